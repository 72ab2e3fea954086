"""Reading of rule files: `.gitignore`, `.ignore`, `info/exclude` and git's global excludes."""

from functools import cached_property

from agentfs.errors import AgentFSError, NotDirectoryError, NotFoundError
from agentfs.fs import Directory, Root, display_name
from agentfs.fs.ignore_files import (
    MAX_RULE_BYTES,
    REPOSITORY,
    RULE_FILES,
    OuterRules,
    is_git_file,
    read_outer_rules,
)
from agentfs.tree.gitignore import IgnoreRules, Sources

DECIDING = frozenset({*RULE_FILES, ".git"})  # names whose presence changes the rules in a directory
_MAX_TOGETHER = 1024 * 1024  # characters of the rules that apply in one directory
_MAX_UNREAD = 1000  # rule files that are named, and counted once


class RuleReader:
    """Reads the rule files of directories, and counts those that it cannot read."""

    def __init__(self, root: Root) -> None:
        self._root = root.unrestricted
        self.unreadable = 0
        self.unread: dict[str, None] = {}  # unreadable rule files, relative to the root; "" if outside
        self._through: dict[str, IgnoreRules] = {}  # of directories above those where a walk starts

    def _refuse(self, file: str) -> None:
        """Count a rule file that cannot be read; one that links lead to several times counts once."""
        if not file or file not in self.unread:
            self.unreadable += 1
            if len(self.unread) < _MAX_UNREAD:
                self.unread[file] = None

    @cached_property
    def _outside(self) -> dict[str, IgnoreRules]:
        """The rules from outside each tree, by its path: global excludes and files of directories above."""
        return {
            path: self._of_outside(path, each) for path, each in read_outer_rules(self._root.trees).items()
        }

    def _of_outside(self, path: str, found: OuterRules) -> IgnoreRules:
        for _ in range(found.unreadable):
            self._refuse("")
        top = with_slash(path)
        rules = IgnoreRules.from_global_excludes(found.excludes or b"", top)
        for below, sources in found.directories:
            rules = rules.enter(top, Sources(*sources), below)
        return rules

    def above(self, real_path: str, *, through: bool = False) -> IgnoreRules:
        """Return the rules of the directories above a directory, and with `through` also its own."""
        tree = self._root.trees.of(real_path)
        names = real_path.split("/") if real_path else []
        rules = self._outside[tree.path]
        for count in range(tree.path != "", len(names) + through):
            path = "/".join(names[:count])
            if path not in self._through:
                try:
                    with self._root.open_directory(display_name(path)) as directory:
                        self._through[path] = self.inside(path, rules, self.sources(directory))
                except (AgentFSError, OSError):
                    self.unreadable += 1
                    return rules
            rules = self._through[path]
        return rules

    def inside(self, real_path: str, rules: IgnoreRules, sources: Sources) -> IgnoreRules:
        """Return the rules that apply in a directory with these rule files, given those of its parent."""
        if sources == Sources():
            return rules
        entered = rules.enter(with_slash(real_path), sources)
        if entered.size <= _MAX_TOGETHER:
            return entered
        for name, content in zip(RULE_FILES, sources, strict=False):
            if content:
                self._refuse(with_slash(real_path) + name)
        return rules

    def sources(self, directory: Directory, names: frozenset[str] = DECIDING) -> Sources:
        """Return the rule files of a directory, given the names of `DECIDING` that may exist there."""
        gitignore, ignore = (self._content(directory, name) if name in names else None for name in RULE_FILES)
        is_repository, exclude = self._repository(directory) if ".git" in names else (False, None)
        return Sources(gitignore, ignore, is_repository, exclude)

    def _content(self, directory: Directory, name: str) -> bytes | None:
        """Return the content of a rule file; links, FIFOs and large files count as unreadable."""
        try:
            with directory.open_file(name) as opened:
                content = opened.read(MAX_RULE_BYTES + 1)
        except NotFoundError:
            return None
        except (AgentFSError, OSError):
            content = None
        if content is None or len(content) > MAX_RULE_BYTES:
            self._refuse(with_slash(directory.real_path) + name)
            return None
        return content

    def _repository(self, directory: Directory) -> tuple[bool, bytes | None]:
        """Return True if a repository begins in a directory, and its `info/exclude`."""
        try:
            with directory.open_directory(".git") as git:
                if not all(map(git.has, REPOSITORY)):
                    return False, None
                with git.open_directory("info") as info:
                    return True, self._content(info, "exclude")
        except NotFoundError:  # `.git` or its `info` is missing
            return directory.has(".git"), None
        except NotDirectoryError:  # the `.git` file of a worktree or a submodule
            return is_git_file(self._content(directory, ".git") or b""), None
        except (AgentFSError, OSError):
            self.unreadable += 1
            return True, None


def with_slash(path: str) -> str:
    """Return a path with a trailing `/`; "" stays ""."""
    return f"{path}/" if path else ""
