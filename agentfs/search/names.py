"""The search of names that `grep` and `glob` share: globs, exclusions, file types, and the walk."""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeAlias, TypeVar

from agentfs.fs import DirEntry, Root
from agentfs.limits import Limits
from agentfs.patterns.compile import compile_pattern
from agentfs.patterns.line_search import seconds_left
from agentfs.search.options import GlobOptions, GrepOptions, as_list, opens_hidden, parse_extensions
from agentfs.tree.file_types import compile_types
from agentfs.tree.globs import compile_descent, compile_exclude, compile_globs, hidden_names
from agentfs.tree.ignore_sources import with_slash
from agentfs.tree.walk import Excluded, Visit
from agentfs.watch.kept_walk import SearchWalk, search_walk

# The options that decide about names, besides globs and exclusions.
_TESTED = ("type", "extensions", "regex", "full_path", "case", "anchored")
NameTest: TypeAlias = Callable[[str], bool]  # tests a path relative to the search directory
_E = TypeVar("_E", bound=DirEntry)


class NameFilter:
    """The tests of names of one search.

    Args:
        options: The arguments of the search.
        directories: Directories can be results.
        unseen: Also take hidden names: they were named, or found by an earlier search.
        deadline: The `time.monotonic()` at which a test with a regular expression raises TimeoutError.
    """

    def __init__(
        self,
        options: GlobOptions | GrepOptions,
        *,
        directories: bool = False,
        unseen: bool = False,
        deadline: float = math.inf,
    ) -> None:
        globs, exclude = options.globs, as_list(options.exclude)
        any_case, has_globs = False, bool(globs)
        tests: list[NameTest] = []
        self._options, self._directories = options, directories
        self._regex: NameTest | None = None  # of paths relative to the root
        if isinstance(options, GrepOptions):
            if options.type:
                has_type = compile_types(as_list(options.type))
                tests.append(lambda path: has_type(_name(path)))
        else:
            any_case, has_globs = options.case == "insensitive", options.pattern is not None
            if options.extensions is not None:
                ends = parse_extensions(options.extensions)
                tests.append(lambda path: _name(path).lower().endswith(ends, 1))
            if options.regex:
                self._regex = _regex_test(options, options.regex, deadline)
        named, opens = hidden_names(globs), unseen or opens_hidden(options)
        if any_case:
            globs = [each.lower() for each in globs]
        # Identifies the tests, so that their results can be used again.
        self._key = repr((globs, exclude, [getattr(options, name, None) for name in _TESTED]))

        def compiled(*, hidden: bool, directories: bool = False) -> list[NameTest]:
            if not has_globs:
                return tests
            test = compile_globs(globs, anchored=options.anchored, hidden=hidden, directories=directories)
            return [_lowered(test) if any_case else test, *tests]

        self._hidden = opens or named or False  # the hidden names that a walk visits
        self._excludes = compile_exclude(exclude) if exclude else None
        descent = compile_descent(globs, anchored=options.anchored)
        self._enter = _lowered(descent) if descent is not None and any_case else descent
        # A walk that skips hidden names yields none, so the matcher need not test for them.
        tests_hidden = opens or named is None
        self._tests = compiled(hidden=tests_hidden)
        self._unseen_tests = self._tests if tests_hidden else compiled(hidden=True)
        self._directory_tests = compiled(hidden=tests_hidden, directories=True) if directories else []

    def walk(
        self,
        root: Root,
        paths: Sequence[str],
        limits: Limits,
        deadline: float,
        *,
        others: bool = False,
        stops: bool = False,
    ) -> SearchWalk:
        """Return the walk for `visits`; with `others`, links and special files can be results."""
        options = self._options
        return search_walk(root)(
            root,
            paths,
            max_entries=limits.walk_entries,
            deadline=deadline,
            hidden=self._hidden,
            ignored=options.include_ignored,
            depth=options.max_depth or 0,
            others=others,
            directories=self._directories,
            follow=options.follow_symlinks,
            enter=self._enter,
            reaches=self._reaches,
            exclude=self._excludes,
            stops=stops,
            filters=self._key,
        )

    def visits(self, walk: SearchWalk) -> Iterable[Visit]:
        """Walk, and yield visits with the entries that pass.

        In an unchanged watched tree, the names that passed in the last equal search are used again.
        """
        passing = partial(self._passing, others=walk.others)
        kept = walk.replayable()
        if kept is None:
            return map(passing, walk)
        return kept.derived(self._key, lambda visits: list(map(passing, visits)))

    def _passing(self, visit: Visit, *, others: bool) -> Visit:
        """Return a visit with the entries that pass; with `others`, also links that a glob leads through."""
        files, child, below = visit.files, visit.child, visit.below
        named = self.of(below, files)
        if self._regex is not None:
            named = [each for each in named if self._has_match(visit, each)]
        if others:
            links = [each for each in files if each.is_symlink() and each not in named]
            named += [each for each in links if not self.skips(below + each.name, is_dir=True)]
        if child is not None and not (
            all(test(below + child.name) for test in self._directory_tests) and self._has_match(visit, child)
        ):
            child = None
        return visit._replace(files=named, child=child)

    def _has_match(self, visit: Visit, listed: DirEntry) -> bool:
        return self._regex is None or self._regex(with_slash(visit.directory.path) + listed.name)

    def passes(self, visit: Visit, listed: DirEntry) -> bool:
        """Return True if a file passes."""
        return bool(self.of(visit.below, [listed])) and self._has_match(visit, listed)

    def of(self, below: str, entries: list[_E]) -> list[_E]:
        """Return the entries whose paths pass in a directory, which is given by its path below the start."""
        for test in self._tests:
            entries = [entry for entry in entries if test(below + entry.name)]
        return entries

    def takes_path(self, path: str) -> bool:
        """Return True if a file passes and nothing above it is excluded; `path` is relative to the root."""
        ends = [at for at, character in enumerate(path) if character == "/"]
        return (
            all(test(path) for test in self._tests)
            and not self.skips(path, is_dir=False)
            and not any(self._excludes is not None and self._excludes(path[:end], True) for end in ends)
        )

    def skips(self, below: str, is_dir: bool, start: str = "") -> bool:
        """Return True if `exclude` leaves out an entry, or if no glob can match below a directory.

        `start` ends with `/`, and the path begins there.
        """
        below = start + below
        return (self._excludes is not None and self._excludes(below, is_dir)) or (
            is_dir and self._enter is not None and not self._enter(below)
        )

    def _reaches(self, excluded: Excluded) -> bool:
        """Return True if a hidden or ignored name could be a result, or lead to one."""
        if excluded.entry.is_dir(follow_symlinks=False):
            return self._enter is None or self._enter(excluded.below)
        is_named = all(test(excluded.below) for test in self._unseen_tests)
        return is_named and (self._regex is None or self._regex(excluded.path))


def _name(path: str) -> str:
    return path[path.rfind("/") + 1 :]


def _lowered(test: NameTest) -> NameTest:
    """Return a test that gets its path in lower case."""
    return lambda path: test(path.lower())


def _regex_test(options: GlobOptions, regex: str, deadline: float) -> NameTest:
    """Return the test of a path relative to the root."""
    search = compile_pattern(regex, ignore_case=options.ignore_case).expression.search

    def matches(path: str) -> bool:
        left, searched = seconds_left(deadline), path if options.full_path else _name(path)
        return search(searched, timeout=left, concurrent=True) is not None

    return matches
