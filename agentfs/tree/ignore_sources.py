"""Reading of rule files: `.gitignore`, `.ignore`, `info/exclude` and git's global excludes."""

import math
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
from agentfs.fs.trees import OpenTree
from agentfs.tree.gitignore import IgnoreRule, IgnoreRules, TooManyRulesError, read_rules

Sources = tuple[bytes | None, bytes | None, bool, bytes | None]
DECIDING = frozenset({*RULE_FILES, ".git"})  # names whose presence changes the rules in a directory
_MAX_REFUSED = 10_000  # rule files that are counted once, to bound the memory
_MAX_UNREAD = 20  # names of unreadable rule files that are kept


class RuleReader:
    """Reads the rule files of directories, until a deadline, and counts those that it cannot read.

    Each search reads rule files again, even in a watched tree. There, unchanged files give the same
    `IgnoreRules` object, which tells a walk that it can reuse an earlier walk.
    """

    def __init__(self, root: Root, deadline: float = math.inf) -> None:
        self._root = root.unrestricted
        self._deadline = deadline
        self.unreadable = 0
        self._refused: set[str] = set()
        self._sources: dict[str, Sources] = {}  # by directory; a watched tree needs them twice
        self.unread: list[str] = []  # first unreadable rule files, relative to the root; "" if outside
        self._inside: dict[str, IgnoreRules] = {}  # of directories above those where a walk starts
        self.looked_at: set[str] = set()  # real paths that exist and decide the rules

    def _refuse(self, *files: str) -> None:
        """Count rule files that cannot be read; a file that links lead to several times counts once."""
        new = [file for file in files if not file or file not in self._refused]
        if len(self._refused) < _MAX_REFUSED:
            self._refused.update(new)
        self.unreadable += len(new)
        self.unread += new[: _MAX_UNREAD - len(self.unread)]

    @cached_property
    def _outer(self) -> dict[str, OuterRules]:
        """The rule files from outside each tree, by its path."""
        return read_outer_rules(self._root.trees)

    def _outside(self, tree: OpenTree) -> IgnoreRules:
        """Return the rules from outside a tree: global excludes and rule files of directories above."""
        found, top = self._outer[tree.path], tree.path
        self._refuse(*[""] * found.unreadable)
        derived = self._root.derived
        if derived is None:
            return self._outer_rules(found, top)
        before: tuple[OuterRules, IgnoreRules] | None = derived.get(("outer rules", top))
        if before is not None and before[0] == found:
            return before[1]
        unreadable, rules = self.unreadable, self._outer_rules(found, top)
        if unreadable == self.unreadable:
            derived["outer rules", top] = found, rules
        return rules

    def _outer_rules(self, found: OuterRules, top: str) -> IgnoreRules:
        global_excludes: list[IgnoreRule] = []
        try:
            global_excludes = read_rules(found.excludes or b"", "", self._deadline)
        except TooManyRulesError:
            self._refuse("")
        rules = IgnoreRules.from_global_excludes(global_excludes, with_slash(top), self._deadline)
        for number, each in enumerate(found.directories):
            rules = rules.enter(
                with_slash(top),
                gitignore=each.gitignore,
                ignore=each.ignore,
                repository=number == 0,
                exclude=each.exclude,
                above=each.below,
                deadline=self._deadline,
            )
            self._refuse(*rules.refused)
        return rules

    def above(self, real_path: str, *, through: bool = False) -> IgnoreRules:
        """Return the rules of the directories above a directory, and with `through` also its own."""
        tree = self._root.trees.of(real_path)
        parts = real_path.split("/") if real_path else []
        first = len(tree.path.split("/")) if tree.path else 0
        above = ["/".join(parts[:count]) for count in range(first, len(parts) + through)]
        known = next((count for count in range(len(above), 0, -1) if above[count - 1] in self._inside), 0)
        rules = self._inside[above[known - 1]] if known else self._outside(tree)
        try:
            for each in above[known:]:
                with self._root.open_directory(display_name(each)) as directory:
                    rules = self._inside[each] = self.inside(directory, rules)
        except TimeoutError:
            raise
        except (AgentFSError, OSError):
            self.unreadable += 1
        return rules

    def inside(
        self, directory: Directory, rules: IgnoreRules, deciding: frozenset[str] | None = None
    ) -> IgnoreRules:
        """Return the rules that apply in a directory, given those of its parent.

        `deciding` has the names of `DECIDING` that exist there; None if that is unknown.
        """
        real_path = directory.real_path
        sources = self._sources.get(real_path)
        if sources is None:
            sources = self._sources_in(directory, DECIDING if deciding is None else deciding)
            if directory.derived is not None:
                self._sources[real_path] = sources
        gitignore, ignore, is_repository, exclude = sources
        if gitignore is None and ignore is None and not is_repository:
            return rules
        before, entered = rules.entered.get(real_path, (None, rules))
        if before != sources:
            entered = rules.enter(
                with_slash(real_path),
                gitignore=gitignore,
                ignore=ignore,
                repository=is_repository,
                exclude=exclude,
                deadline=self._deadline,
            )
            if self._root.derived is not None:
                rules.entered[real_path] = sources, entered
        if entered is not rules:
            self._refuse(*entered.refused)
        return entered

    def _sources_in(self, directory: Directory, names: frozenset[str]) -> Sources:
        base = with_slash(directory.real_path)
        self.looked_at.update(base + name for name in names)
        if ".git" in names:
            self.looked_at.add(f"{base}.git/info/exclude")
        gitignore, ignore = (self._content(directory, name) if name in names else None for name in RULE_FILES)
        is_repository, exclude = self._repository(directory) if ".git" in names else (False, None)
        return gitignore, ignore, is_repository, exclude

    def _content(self, directory: Directory, name: str) -> bytes | None:
        """Return the content of a rule file; links, FIFOs and giant files count as unreadable."""
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
