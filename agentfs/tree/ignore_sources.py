"""Where ignore rules come from: the rule files of the tree and those around it."""

import math
import os
from collections.abc import Container

from agentfs.errors import AgentFSError, NotDirectoryError, NotFoundError
from agentfs.fs import Directory, Root
from agentfs.fs.ignore_files import MAX_RULE_BYTES, git_directory, read_outer_rules, worktree_exclude
from agentfs.tree.gitignore import IgnoreRules, Rule, TooManyRulesError, read_rules

MOST_UNREAD = 20  # rule files that could not be read, of which the names are kept
_REPOSITORY = frozenset({"HEAD", "objects", "refs"})  # what git wants to see in a `.git`


class RuleReader:
    """Reads the rule files of directories and counts those that it cannot read.

    Args:
        root: The confined root.
        deadline: The `time.monotonic()` at which reading ends.

    Attributes:
        unreadable: How many could not be read, or are too large.
        unread: The first of these, relative to the root; "" for one outside.
    """

    def __init__(self, root: Root, deadline: float = math.inf) -> None:
        self._root = root.unrestricted
        self._deadline = deadline
        self.unreadable = 0
        self.unread: list[str] = []

    def _refuse(self, *files: str) -> None:
        self.unreadable += len(files)
        self.unread += files[: MOST_UNREAD - len(self.unread)]

    def around(self) -> IgnoreRules:
        """Return the rules that hold in the root from outside: global excludes, and directories above it."""
        found = read_outer_rules(self._root.path)
        self._refuse(*[""] * found.unreadable)
        everywhere: list[Rule] = []
        try:
            everywhere = read_rules(found.excludes or b"", "", self._deadline)
        except TooManyRulesError:
            self._refuse("")
        rules = IgnoreRules.from_global_excludes(everywhere, self._deadline)
        for number, each in enumerate(found.directories):
            rules = rules.enter(
                "",
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
        """Return the rules of the directories from the root down to the one above a directory.

        Args:
            real_path: The path of the directory, links resolved.
            through: Whether to take its own rules too.

        Raises:
            TimeoutError: The deadline has passed.
        """
        rules = self.around()
        parts = real_path.split("/") if real_path else []
        directory: Directory | None = None
        try:
            for count in range(len(parts) + through):
                below = (
                    directory.open_directory(parts[count - 1]) if directory else self._root.open_directory("")
                )
                if directory is not None:
                    directory.close()
                directory = below
                rules = self.inside(directory, rules)
        except TimeoutError:
            raise
        except (AgentFSError, OSError):
            self.unreadable += 1
        finally:
            if directory is not None:
                directory.close()
        return rules

    def inside(
        self, directory: Directory, rules: IgnoreRules, dotted: Container[str] | None = None
    ) -> IgnoreRules:
        """Return the rules that hold in an open directory.

        Args:
            directory: The directory.
            rules: Those of the directory above.
            dotted: At least the names in it that begin with a dot; None when they are not known.

        Raises:
            TimeoutError: The deadline has passed.
        """
        gitignore = ignore = exclude = None
        repository, quoted = False, True
        if dotted is None or ".gitignore" in dotted:
            gitignore = self._content(directory, ".gitignore")
        if dotted is None or ".ignore" in dotted:
            ignore = self._content(directory, ".ignore")
        if dotted is None or ".git" in dotted:
            repository, exclude, quoted = self._repository(directory)
        if gitignore is None and ignore is None and not repository:
            return rules
        entered = rules.enter(
            slashed(directory.real_path),
            gitignore=gitignore,
            ignore=ignore,
            repository=repository,
            exclude=exclude,
            quote_exclude=quoted,
            deadline=self._deadline,
        )
        if entered is not rules:
            self._refuse(*entered.refused)
        return entered

    def _content(self, directory: Directory, name: str) -> bytes | None:
        """Return a rule file; a link, a FIFO or a giant is no rule file and counts as unreadable."""
        try:
            with directory.open_file(name) as opened:
                content = opened.read(MAX_RULE_BYTES + 1)
        except NotFoundError:
            return None
        except (AgentFSError, OSError):
            content = None
        if content is None or len(content) > MAX_RULE_BYTES:
            self._refuse(slashed(directory.real_path) + name)
            return None
        return content

    def _repository(self, directory: Directory) -> tuple[bool, bytes | None, bool]:
        """Tell whether a repository begins here, its `info/exclude`, and whether that may be quoted."""
        try:
            with directory.open_directory(".git") as git:
                if not _REPOSITORY.issubset(entry.name for entry in git.scan()):
                    return False, None, True
                with git.open_directory("info") as info:
                    return True, self._content(info, "exclude"), True
        except NotFoundError:
            # Without `.git` at all, or with a `.git` that has no `info`.
            return _is_there(directory, ".git"), None, True
        except NotDirectoryError:
            return self._pointer(directory)
        except (AgentFSError, OSError):
            self.unreadable += 1
            return True, None, True

    def _pointer(self, directory: Directory) -> tuple[bool, bytes | None, bool]:
        """Follow the `.git` file of a worktree or a submodule."""
        pointer = self._content(directory, ".git")
        top = os.path.normpath(os.path.join(self._root.path, directory.real_path))
        named = git_directory(top, pointer) if pointer else None
        if named is None:
            return False, None, True
        if self._inside(named) is None:
            return True, worktree_exclude(self._root.path, top, named), False
        try:
            with self._opened(named) as git:
                common = self._content(git, "commondir") or b"."
            place = os.path.normpath(os.path.join(named, os.fsdecode(common).rstrip("\r\n"), "info"))
            with self._opened(place) as info:
                return True, self._content(info, "exclude"), True
        except NotFoundError:
            return True, None, True
        except (AgentFSError, OSError, ValueError):
            # A directory in the tree leads outside, is none, or is come to by a link.
            self.unreadable += 1
            return True, None, True

    def _inside(self, path: str) -> list[str] | None:
        """Return the names that lead from the root to an absolute path; None where it lies outside."""
        root = [name for name in self._root.path.split(os.sep) if name]
        names = [name for name in path.split(os.sep) if name]
        return names[len(root) :] if names[: len(root)] == root else None

    def _opened(self, path: str) -> Directory:
        """Open a directory by its absolute path, no link on the way; ValueError where it lies outside."""
        names = self._inside(path)
        if names is None:
            raise ValueError(path)
        directory = self._root.open_directory("")
        for name in names:
            with directory:
                directory = directory.open_directory(name)
        return directory


def _is_there(directory: Directory, name: str) -> bool:
    try:
        directory.open_directory(name).close()
    except (AgentFSError, OSError):
        return False
    return True


def slashed(path: str) -> str:
    """Return a path with a `/` at its end; "" stays."""
    return f"{path}/" if path else ""
