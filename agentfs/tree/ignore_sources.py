"""Where ignore rules come from: the rule files of the tree and those around it."""

import math
import os
from collections.abc import Container
from contextlib import ExitStack
from typing import NamedTuple

from agentfs.errors import AgentFSError, NotDirectoryError, NotFoundError
from agentfs.fs import Directory, Root
from agentfs.fs.ignore_files import (
    MAX_RULE_BYTES,
    REPOSITORY,
    RULE_FILES,
    OuterRules,
    git_directory,
    read_outer_rules,
    worktree_exclude,
)
from agentfs.tree.gitignore import IgnoreRules, Rule, TooManyRulesError, read_rules

MAX_UNREAD = 20  # rule files that could not be read, of which the names are kept


class _Repository(NamedTuple):
    """What a directory says about a repository that begins in it."""

    exists: bool
    exclude: bytes | None = None  # its `info/exclude`
    quoted: bool = True  # whether that file is in the root, so that its rules may be quoted


class RuleReader:
    """Reads the rule files of directories, until a deadline, and counts those that it cannot read."""

    def __init__(self, root: Root, deadline: float = math.inf) -> None:
        self._root = root.unrestricted
        self._deadline = deadline
        self.unreadable = 0
        self.unread: list[str] = []  # the first of these, relative to the root; "" for one outside
        # What was read from where no event comes, and whether that is all.
        self._outer: OuterRules | None = None
        self._repositories: dict[str, _Repository] = {}
        self._linked = False

    def _refuse(self, *files: str) -> None:
        self.unreadable += len(files)
        self.unread += files[: MAX_UNREAD - len(self.unread)]

    def outside_root(self) -> IgnoreRules:
        """Return the rules that apply in the root from outside: global excludes, and directories above it."""
        self._outer = found = read_outer_rules(self._root.path)
        self._refuse(*[""] * found.unreadable)
        global_excludes: list[Rule] = []
        try:
            global_excludes = read_rules(found.excludes or b"", "", self._deadline)
        except TooManyRulesError:
            self._refuse("")
        rules = IgnoreRules.from_global_excludes(global_excludes, self._deadline)
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
        """Return the rules of the directories above one, `through` with its own; may raise `TimeoutError`."""
        rules = self.outside_root()
        parts = real_path.split("/") if real_path else []
        names = ["", *parts][: len(parts) + through]
        try:
            with ExitStack() as opened:
                parent: Root | Directory = self._root
                for name in names:
                    directory = parent.open_directory(name)
                    opened.close()
                    parent = opened.enter_context(directory)
                    rules = self.inside(directory, rules)
        except TimeoutError:
            raise
        except (AgentFSError, OSError):
            self.unreadable += 1
        return rules

    def inside(
        self, directory: Directory, rules: IgnoreRules, dotted: Container[str] | None = None
    ) -> IgnoreRules:
        """Return the rules that apply in a directory, given those of its parent and the names with a dot."""
        gitignore, ignore = (
            self._content(directory, name) if dotted is None or name in dotted else None
            for name in RULE_FILES
        )
        repository = _Repository(False)
        if dotted is None or ".git" in dotted:
            repository = self._repositories[directory.real_path] = self._repository(directory)
        if gitignore is None and ignore is None and not repository.exists:
            return rules
        entered = rules.enter(
            with_slash(directory.real_path),
            gitignore=gitignore,
            ignore=ignore,
            repository=repository.exists,
            exclude=repository.exclude,
            quote_exclude=repository.quoted,
            deadline=self._deadline,
        )
        if entered is not rules:
            self._refuse(*entered.refused)
        return entered

    @property
    def is_complete(self) -> bool:
        """Whether all rule files were read, and those that no event is about can be compared."""
        return not self.unreadable and not self._linked

    def add(self, other: "RuleReader") -> None:
        """Add what another reader has read in other directories."""
        self.unreadable += other.unreadable
        self._repositories.update(other._repositories)  # noqa: SLF001 - its own
        self._linked |= other._linked  # noqa: SLF001 - its own

    def is_current(self) -> bool:
        """Return whether what no event is about is as it was read: rules outside, and of repositories."""
        if self._outer is not None and read_outer_rules(self._root.path) != self._outer:
            return False
        reader = RuleReader(self._root)
        for real_path, before in self._repositories.items():
            directory = self._root.tree and self._root.open_kept(real_path)
            if not directory or reader._repository(directory) != before:
                return False
        return reader.is_complete

    def _content(self, directory: Directory, name: str) -> bytes | None:
        """Return a rule file; a link, a FIFO or a giant is none and counts as unreadable."""
        try:
            with directory.open_file(name) as opened:
                tree, real_path = self._root.tree, with_slash(directory.real_path) + name
                if tree is not None:
                    tree.keep_rule_file(real_path, opened.stat)
                    self._linked |= opened.stat.st_nlink > 1 or tree.has_no_events(real_path)
                content = opened.read(MAX_RULE_BYTES + 1)
        except NotFoundError:
            return None
        except (AgentFSError, OSError):
            content = None
        if content is None or len(content) > MAX_RULE_BYTES:
            self._refuse(with_slash(directory.real_path) + name)
            return None
        return content

    def _repository(self, directory: Directory) -> _Repository:
        try:
            with directory.open_directory(".git") as git:
                if not all(map(git.has, REPOSITORY)):
                    return _Repository(False)
                with git.open_directory("info") as info:
                    return _Repository(True, self._content(info, "exclude"))
        except NotFoundError:  # of `.git`, or of its `info`
            return _Repository(_has_git(directory))
        except NotDirectoryError:
            return self._linked_repository(directory)
        except (AgentFSError, OSError):
            self.unreadable += 1
            return _Repository(True)

    def _linked_repository(self, directory: Directory) -> _Repository:
        """Follow the `.git` file of a worktree or a submodule."""
        pointer = self._content(directory, ".git")
        top = os.path.normpath(os.path.join(self._root.path, directory.real_path))
        git_path = git_directory(top, pointer) if pointer else None
        if git_path is None:
            return _Repository(False)
        if self._below_root(git_path) is None:
            return _Repository(True, worktree_exclude(self._root.path, top, git_path), quoted=False)
        try:
            with self._open(git_path) as git:
                common = self._content(git, "commondir") or b"."
            info_path = os.path.normpath(os.path.join(git_path, os.fsdecode(common).rstrip("\r\n"), "info"))
            with self._open(info_path) as info:
                return _Repository(True, self._content(info, "exclude"))
        except NotFoundError:
            return _Repository(True)
        except (AgentFSError, OSError, ValueError):
            # A directory in the tree leads outside, is none, or is reached by a link.
            self.unreadable += 1
            return _Repository(True)

    def _below_root(self, path: str) -> list[str] | None:
        """Return the names that lead from the root to an absolute path; None where it is outside."""
        root, names = ([name for name in each.split(os.sep) if name] for each in (self._root.path, path))
        return names[len(root) :] if names[: len(root)] == root else None

    def _open(self, path: str) -> Directory:
        """Open a directory by its absolute path, no link on the way; ValueError where it is outside."""
        names = self._below_root(path)
        if names is None:
            raise ValueError(path)
        directory = self._root.open_directory("")
        for name in names:
            with directory:
                directory = directory.open_directory(name)
        return directory


def _has_git(directory: Directory) -> bool:
    try:
        directory.open_directory(".git").close()
    except (AgentFSError, OSError):
        return False
    return True


def with_slash(path: str) -> str:
    """Return a path with a `/` at its end; "" stays."""
    return f"{path}/" if path else ""
