"""The filter of names that `grep` and `glob` share: globs, exclusions and file types."""

from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

from agentfs.base.advice import Advice, ParameterName
from agentfs.base.visible import literal
from agentfs.errors import InvalidArgumentError, OutsideWorkspaceError
from agentfs.fs import DirEntry, Root
from agentfs.search.options import GlobOptions, GrepOptions, as_list, opens_hidden
from agentfs.tree.file_types import compile_types
from agentfs.tree.globs import compile_descent, compile_exclude, compile_globs, hidden_names
from agentfs.tree.visit import Excluded

NameTest: TypeAlias = Callable[[str], bool]  # tests a path relative to the search directory
_PATH = ParameterName("path", quoted=True)
_E = TypeVar("_E", bound=DirEntry)


def bind_globs(root: Root, globs: list[str], paths: Sequence[str], argument: str = "glob") -> list[str]:
    """Make absolute globs inside the root relative to the search directory."""
    if not globs or not paths:
        return globs
    top = root.path.rstrip("/")
    if len(paths) > 1 and any(glob.removeprefix("!").startswith(f"{top}/") for glob in globs):
        raise InvalidArgumentError(
            "An absolute glob cannot be used with several paths.",
            hint="Make it relative.",
            details={"parameter": argument},
        )
    return [_bound(root, top, glob, paths[0]) for glob in globs]


def _bound(root: Root, top: str, glob: str, path: str) -> str:
    rest = glob.removeprefix("!")
    if not rest.startswith(f"{top}/"):
        return glob
    with root.top.open_directory(root.path_from_top(path)) as directory:
        base = f"/{directory.path}/" if directory.path else "/"
    if not rest.startswith(top + base):
        message = f"The glob {literal(rest)} does not lie in the search directory {literal(path)}."
        hint = Advice("Leave out ", _PATH, ", or make the glob relative to it.")
        raise OutsideWorkspaceError(message, hint=hint, details={"pattern": rest})
    return "!" * glob.startswith("!") + rest[len(top + base) - 1 :]


class NameFilter:
    """The tests of names of one search.

    Args:
        root: The root of the search.
        options: Its arguments.
        paths: The directories that it searches.
        tests: More tests that a path must pass.
        any_case: Match letters of globs in either case.
        directories: Directories can be results.
        unseen: Also take hidden names: they were named, or found by an earlier search.
    """

    def __init__(
        self,
        root: Root,
        options: GlobOptions | GrepOptions,
        paths: Sequence[str],
        tests: Sequence[NameTest] = (),
        *,
        any_case: bool = False,
        directories: bool = False,
        unseen: bool = False,
    ) -> None:
        self.globs = bind_globs(root, options.globs, paths, options.glob_argument)
        exclude = bind_globs(root, as_list(options.exclude), paths, "exclude")
        types = as_list(options.type) if isinstance(options, GrepOptions) else []
        if types:
            has_type = compile_types(types)
            tests = [lambda path: has_type(path[path.rfind("/") + 1 :])]
        named, opens = hidden_names(self.globs), unseen or opens_hidden(options)
        globs = [each.lower() for each in self.globs] if any_case else self.globs

        def compiled(*, hidden: bool, directories: bool = False) -> list[NameTest]:
            if not globs and (not isinstance(options, GlobOptions) or options.pattern is None):
                return [*tests]
            test = compile_globs(globs, anchored=options.anchored, hidden=hidden, directories=directories)
            return [_lowered(test) if any_case else test, *tests]

        self.hidden = opens or named or False  # the hidden names that a walk visits
        self.excludes = compile_exclude(exclude) if exclude else None
        descent = compile_descent(globs, anchored=options.anchored)
        self.enter = _lowered(descent) if descent is not None and any_case else descent
        # A walk that skips hidden names yields none, so the matcher need not test for them.
        tests_hidden = opens or named is None
        self._tests = compiled(hidden=tests_hidden)
        self._unseen_tests = self._tests if tests_hidden else compiled(hidden=True)
        self._directory_tests: list[NameTest] = [*tests]
        if directories and globs:
            self._directory_tests = compiled(hidden=tests_hidden, directories=True)
        self.key = tuple(self.globs), tuple(exclude), tuple(types)

    def of(self, below: str, entries: list[_E]) -> list[_E]:
        """Return the entries that pass in a directory, which is given by its path below the start."""
        for test in self._tests:
            entries = [entry for entry in entries if test(below + entry.name)]
        return entries

    def takes_directory(self, below: str) -> bool:
        """Return True if a directory can be a result."""
        return all(test(below) for test in self._directory_tests)

    def takes_path(self, path: str) -> bool:
        """Return True if a file passes and nothing above it is excluded; `path` is relative to the root."""
        ends = [at for at, character in enumerate(path) if character == "/"]
        return (
            all(test(path) for test in self._tests)
            and not self.skips(path, is_dir=False)
            and not any(self.excludes is not None and self.excludes(path[:end], True) for end in ends)
        )

    def skips(self, below: str, *, is_dir: bool) -> bool:
        """Return True if `exclude` leaves out an entry, or if no glob can match below a directory."""
        return (self.excludes is not None and self.excludes(below, is_dir)) or (
            is_dir and self.enter is not None and not self.enter(below)
        )

    def reaches(self, excluded: Excluded) -> bool:
        """Return True if a hidden or ignored name could be a result, or lead to one."""
        if excluded.entry.is_dir(follow_symlinks=False):
            return self.enter is None or self.enter(excluded.below)
        return all(test(excluded.below) for test in self._unseen_tests)

    def leads_on(self, below: str) -> bool:
        """Return True if a glob could match below a directory of this name."""
        return not self.skips(below, is_dir=True)


def _lowered(test: NameTest) -> NameTest:
    """Return a test that gets its path in lower case."""
    return lambda path: test(path.lower())
