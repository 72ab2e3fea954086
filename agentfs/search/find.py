"""`glob` and `find`: the files whose names match, in order, a page at a time."""

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, get_args

from agentfs import call_context
from agentfs.errors import AgentFSError, InvalidArgumentError, OutsideWorkspaceError
from agentfs.fs import Root
from agentfs.limits import Limits
from agentfs.messages import Joined, Message, NextCall, ParameterName, Retry
from agentfs.patterns.compile import compile_pattern
from agentfs.patterns.syntax import has_capital, has_slash
from agentfs.policy import NO_DIALECT, DialectOptions
from agentfs.results import GlobResult
from agentfs.search.collect import Collection, FindQuery, Sort, collect
from agentfs.search.filters import Filter, all_of, parse_extensions, parse_moment, parse_sizes, parse_types
from agentfs.search.paging import (
    PAGE_BYTES,
    Page,
    as_list,
    check_choice,
    check_offset,
    check_timeout,
    next_page,
    page_of,
    paths_of,
)
from agentfs.search.skip_report import OPENED, describe_skipped, describe_stop, why_left_out
from agentfs.search.suggestions import suggesting
from agentfs.text import Step, continuation, fitted, footer
from agentfs.tree.globs import compile_descent, compile_exclude, compile_globs, hidden_names
from agentfs.visible import literal, one_line

Case = Literal["smart", "sensitive", "insensitive"]
OneOrMore = str | Sequence[str]

SECOND_LOOK_ENTRIES = 200_000
SECOND_LOOK_SECONDS = 0.5

_LITERAL_START = re.compile(r"/+([^*?\[\]{}\\/]+)/")
_FREE_STEPS = 50_000  # what a search may take without a timeout, which costs five times as much


def glob_files(
    root: Root,
    limits: Limits,
    pattern: OneOrMore,
    path: OneOrMore = ".",
    limit: int | None = None,
    offset: int = 0,
    include_ignored: bool = False,
    *,
    sort: Sort = "path",
    hidden: bool | None = None,
    exclude: OneOrMore | None = None,
    anchored: bool = False,
    types: OneOrMore = "f",
    timeout: float | None = None,
    dialect: DialectOptions = NO_DIALECT,
) -> GlobResult:
    """Find the files that match a glob.

    Args:
        root: The confined root.
        limits: The bounds of the answer.
        pattern: One glob or several; see `compile_globs`.
        path: The directory to search, or several.
        limit: Files of a page, or None for the usual number.
        offset: Files before the page.
        include_ignored: Whether hidden and ignored files are searched too.
        sort: The order.
        hidden: Whether hidden files are searched; None: as `include_ignored`.
        exclude: Globs of what is left out; an excluded directory is not entered.
        anchored: Whether every pattern is bound to the search directory.
        types: What is found: letters of `f d l x e`.
        timeout: Seconds that the search may take, or None for the usual.
        dialect: What a dialect asks for besides.

    Returns:
        The page.

    Raises:
        AgentFSError: invalid_pattern, outside_workspace, invalid_argument, past_end, and those of the path:
            not_found, not_a_directory, …
    """
    call = _Call(
        root, limits, "glob", time.monotonic(), path, limit, offset, include_ignored, hidden, timeout
    )
    call.arguments = {
        "pattern": (pattern, None),
        "sort": (sort, "path"),
        "exclude": (exclude, None),
        "anchored": (anchored, False),
        "types": (types, "f"),
    }
    call.asked = as_list(pattern)
    globs = call.bound(call.asked)
    opened = hidden_names(globs)
    kind = Filter(types=parse_types(types), links_as_files=True)

    def wanted(everything: bool) -> FindQuery:
        # A walk that opens no hidden name meets none, so the matcher need not look for one either.
        open_names = everything or call.opens_hidden or opened is None
        compiled = partial(compile_globs, globs, anchored=anchored, hidden=open_names)
        return replace(
            call.wanted(opened, everything=everything),
            matches=compiled(),
            matches_directory=compiled(directories=True) if "d" in kind.kinds else None,
            filter=kind,
            sort=check_choice("sort", sort, get_args(Sort)),
            enter=compile_descent(globs, anchored=anchored),
            exclude=call.exclusion(exclude),
            dialect=dialect,
            count_others=True,
        )

    return call.answer(wanted)


def find_files(
    root: Root,
    limits: Limits,
    path: OneOrMore = ".",
    *,
    pattern: str | None = None,
    glob: OneOrMore | None = None,
    types: OneOrMore | None = None,
    extensions: OneOrMore | None = None,
    exclude: OneOrMore | None = None,
    min_depth: int | None = None,
    max_depth: int | None = None,
    follow_symlinks: bool = False,
    hidden: bool | None = None,
    include_ignored: bool = False,
    size: OneOrMore | None = None,
    changed_within: str | None = None,
    changed_before: str | None = None,
    full_path: bool = False,
    dialect: DialectOptions = NO_DIALECT,
    case: Case = "smart",
    sort: Sort = "path",
    limit: int | None = None,
    offset: int = 0,
    timeout: float | None = None,
) -> GlobResult:
    """Find entries by name, type, size and time, as fd does.

    Args:
        root: The confined root.
        limits: The bounds of the answer.
        path: The directory to search, or several.
        pattern: A regular expression to be found in the name, or with `full_path` in the path.
        glob: One glob or several; see `compile_globs`.
        types: Letters of `f d l x e`, or None for all.
        extensions: One extension or several.
        exclude: Globs of what is left out; an excluded directory is not entered.
        min_depth: The first level; 1 is what lies in `path` itself.
        max_depth: The last level.
        follow_symlinks: Whether links are followed where they lead inside.
        hidden: Whether hidden names are searched; None: as `include_ignored`.
        include_ignored: Whether hidden and ignored names are searched too.
        size: One size or several, as `+10M`; all must fit.
        changed_within: A duration or a date; only what was changed since.
        changed_before: A duration or a date; only what was changed before.
        full_path: Whether `pattern` is tested on the path relative to the root.
        dialect: What a dialect asks for besides.
        case: How `pattern` takes letters: "smart" ignores case unless there is a capital in it.
        sort: The order.
        limit: Entries of a page, or None for the usual number.
        offset: Entries before the page.
        timeout: Seconds that the search may take, or None for the usual.

    Returns:
        The page.

    Raises:
        AgentFSError: As `glob_files`.
    """
    call = _Call(
        root, limits, "find", time.monotonic(), path, limit, offset, include_ignored, hidden, timeout
    )
    call.arguments = {
        "pattern": (pattern, None),
        "glob": (glob, None),
        "types": (types, None),
        "extensions": (extensions, None),
        "exclude": (exclude, None),
        "min_depth": (min_depth, None),
        "max_depth": (max_depth, None),
        "follow_symlinks": (follow_symlinks, False),
        "size": (size, None),
        "changed_within": (changed_within, None),
        "changed_before": (changed_before, None),
        "full_path": (full_path, False),
        "case": (case, "smart"),
        "sort": (sort, "path"),
    }
    for name, level in (("min_depth", min_depth), ("max_depth", max_depth)):
        if level is not None and level < 1:
            raise InvalidArgumentError(
                Message(ParameterName(name, quoted=True), f" must be at least 1, not {level}."),
                hint="1 is what lies in the directory itself.",
                details={"argument": name},
            )
    call.asked = [*as_list(glob), *as_list(pattern)]
    globs = call.bound(as_list(glob))
    opened = hidden_names(globs)
    by_name = _regex_test(call, pattern, case, full_path=full_path) if pattern else None
    if pattern and not full_path and has_slash(pattern):
        in_paths = Message(Retry({"full_path": True}), " to look in paths, or use ", ParameterName("glob"))
        call.reason = Joined(": ", "no name has a '/' in it", in_paths)
    by_extension = _of_name(parse_extensions(extensions)) if extensions is not None else None
    kind = Filter(
        parse_types(types),
        tuple(parse_sizes(size)) if size is not None else (),
        after=parse_moment(changed_within, "changed_within") if changed_within is not None else None,
        before=parse_moment(changed_before, "changed_before") if changed_before is not None else None,
        follow=follow_symlinks,
    )

    def wanted(everything: bool) -> FindQuery:
        open_names = everything or call.opens_hidden or opened is None

        def tests(*, directories: bool) -> Callable[[str], bool] | None:
            by_glob = compile_globs(globs, hidden=open_names, directories=directories) if globs else None
            return all_of((by_extension, by_glob, by_name))

        return replace(
            call.wanted(opened, everything=everything),
            matches=tests(directories=False),
            matches_directory=tests(directories=True) if "d" in kind.kinds else None,
            filter=kind,
            sort=check_choice("sort", sort, get_args(Sort)),
            follow=follow_symlinks,
            dialect=dialect,
            enter=compile_descent(globs),
            exclude=call.exclusion(exclude),
            min_depth=min_depth or 1,
            max_depth=max_depth or 0,
        )

    return call.answer(wanted)


@dataclass
class _Call:
    """What one call of `glob` or `find` was asked for, and how it answers."""

    root: Root
    limits: Limits
    name: Literal["glob", "find"]
    began: float
    path: OneOrMore
    limit: int | None
    offset: int
    include_ignored: bool
    hidden: bool | None
    timeout: float | None
    arguments: dict[str, tuple[Any, Any]] = field(default_factory=dict[str, tuple[Any, Any]])
    asked: list[str] = field(default_factory=list[str])
    reason: str = ""  # why nothing can match, where that is known

    def __post_init__(self) -> None:
        self.page = page_of(self.limit, self.offset, self.limits.glob_results, self.limits)
        self.seconds = check_timeout(self.timeout, self.limits.timeout)
        self.paths = paths_of(self.path)
        self.opens_hidden = self.include_ignored if self.hidden is None else self.hidden
        self.deadline = call_context.deadline(self.seconds)

    def bound(self, globs: list[str]) -> list[str]:
        """Make absolute globs relative to where is searched."""
        bound = [bind_to_search(self.root, globs, path) for path in self.paths]
        if any(each != bound[0] for each in bound):
            raise InvalidArgumentError(
                "An absolute glob means something else for each of several paths.",
                hint="Make it relative.",
                details={"argument": "pattern" if self.name == "glob" else "glob"},
            )
        return bound[0]

    def exclusion(self, exclude: OneOrMore | None) -> Callable[[str, bool], bool] | None:
        """Return the test for `exclude`."""
        globs = as_list(exclude)
        return compile_exclude(self.bound(globs)) if globs else None

    def wanted(self, opened: Callable[[str], bool] | None, *, everything: bool) -> FindQuery:
        """Return what both methods look for, with all hidden and ignored names or as the call has it."""
        return FindQuery(
            self.paths,
            None,
            None,
            Filter(),
            hidden=everything or self.opens_hidden or opened or False,
            ignored=everything or self.include_ignored,
        )

    def answer(self, wanted: Callable[[bool], FindQuery]) -> GlobResult:
        """Search, and put the answer together; `wanted(True)` is asked for a second look at everything."""
        with suggesting(self.root):
            found = collect(
                self.root,
                wanted(False),
                self.page,
                max_entries=self.limits.walk_entries,
                deadline=self.deadline,
            )
        total, skipped = found.total, found.skipped
        first, end = self.offset, min(self.page.end, total)
        noun = "files" if self.name == "glob" else "entries"
        if total and skipped.reached is None:
            check_offset(first, total, noun)
        lines = [one_line(entry.path) + ("/" if entry.type == "directory" else "") for entry in found.page]
        nothing = "" if total else self._say_nothing(found, wanted, noun)

        counted = total if skipped.reached is None else f"at least {total}"

        def answer(count: int) -> GlobResult:
            shown_to = end if count >= len(lines) else first + count
            following = self._following(shown_to) if shown_to < total else None
            notes = footer(
                f"{noun} {first + 1}-{shown_to} of {counted}"
                if total and (first or following or skipped.reached)
                else "",
                continuation(following),
                describe_skipped(skipped, can_open=not self.include_ignored),
                describe_stop(skipped, self.seconds),
            )
            return GlobResult(
                found.page,
                total,
                skipped,
                exact=skipped.reached is None,
                truncated=following is not None,
                elapsed_ms=int((time.monotonic() - self.began) * 1000),
                next=following,
                text=Joined("\n", "\n".join(lines[:count]) if total else nothing, notes),
            )

        return fitted(self.limits, Step(max(min(len(lines), self.limits.output_tokens), 1), answer))

    def _following(self, offset: int) -> NextCall:
        before = ("pattern",) if self.name == "glob" else ()
        return next_page(
            self.name,
            offset,
            **{name: self.arguments[name] for name in before},
            path=(self.path or ".", "."),
            **{name: value for name, value in self.arguments.items() if name not in before},
            limit=(self.limit, None),
            include_ignored=(self.include_ignored, False),
            hidden=(self.hidden, None),
            timeout=(self.timeout, None),
        )

    def _say_nothing(self, found: Collection, wanted: Callable[[bool], FindQuery], noun: str) -> str:
        """Say that nothing matched, and where something would have."""
        pattern = ", ".join(one_line(each) for each in self.asked)
        where = "" if self.paths == ["."] else f" in {', '.join(one_line(each) for each in self.paths)}"
        said = f"0 {noun} match {pattern}{where}" if pattern else f"0 {noun} match{where}"
        if not self.include_ignored and (found.skipped.hidden or found.skipped.ignored):
            again = collect(
                self.root,
                wanted(True),
                Page(0, 1, PAGE_BYTES),
                max_entries=SECOND_LOOK_ENTRIES,
                deadline=call_context.deadline(SECOND_LOOK_SECONDS),
            )
            if again.total:
                count = f"{again.total}{'' if again.skipped.reached is None else ' or more'}"
                why = why_left_out(self.root, again.page[0].path) if again.page else ""
                among = f"{count} among hidden and ignored{f', as in {why}' if why else ''}"
                return Joined(": ", f"{said}; {among}", OPENED)
        if self.reason:
            return Joined("; ", said, self.reason)
        if self.name == "glob" and any("[" in each.replace("\\[", "") for each in self.asked):
            return f"{said}; [ ] stands for one character of a set: write \\[ for the bracket itself"
        return f"{said}."


def _regex_test(call: _Call, pattern: str, case: Case, *, full_path: bool) -> Callable[[str], bool]:
    """Return the test of a path below the search directory for a regular expression."""
    check_choice("case", case, get_args(Case))
    smart = case == "smart" and not has_capital(pattern)
    compiled = compile_pattern(pattern, ignore_case=case == "insensitive" or smart)
    search = compiled.expression.search
    repeats = compiled.plan.repeats
    free_length = 0 if repeats is None else int(_FREE_STEPS ** (1 / (repeats + 1)))
    starts = [call.root.entry(path).path for path in call.paths[:1]] if full_path else []
    prefix = f"{starts[0]}/" if starts and starts[0] != "." else ""

    def matches(path: str) -> bool:
        text = prefix + path if full_path else path[path.rfind("/") + 1 :]
        if len(text) <= free_length:
            return search(text) is not None
        left = call.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return search(text, timeout=left, concurrent=True) is not None

    return matches


def _of_name(test: Callable[[str], bool]) -> Callable[[str], bool]:
    return lambda path: test(path[path.rfind("/") + 1 :])


def bind_to_search(root: Root, globs: Sequence[str], path: str) -> list[str]:
    """Make absolute globs inside the root relative to the search directory, and refuse those outside.

    Args:
        root: The confined root.
        globs: Globs as they were given.
        path: The search directory as it was given.

    Raises:
        OutsideWorkspaceError: A glob that takes in begins with `/` and a directory that is neither under the
            root nor in the search directory (outside_workspace).
    """
    bound: list[str] = []
    for glob in globs:
        negation = "!" if glob.startswith("!") else ""
        rest = glob.removeprefix("!")
        if rest.startswith(f"{root.path.rstrip('/')}/"):
            bound.append(negation + _relative(root, rest, path))
            continue
        start = None if negation else _LITERAL_START.match(rest)
        if start and start[1] != ".." and not _exists(root, path, start[1]):
            raise OutsideWorkspaceError(
                f"The glob {literal(glob)} begins with '/', which means the search directory, "
                f"and there is no {literal(start[1])} in it.",
                hint=Message(
                    "Only the workspace can be searched: leave out the '/', and put a directory in ",
                    ParameterName("path", quoted=True),
                    ".",
                ),
                details={"pattern": glob},
            )
        bound.append(glob)
    return bound


def _relative(root: Root, glob: str, path: str) -> str:
    below = glob[len(root.path.rstrip("/")) :]
    with root.top.open_directory(root.path_from_top(path)) as directory:
        base = f"/{directory.path}/" if directory.path else "/"
    if not below.startswith(base):
        raise OutsideWorkspaceError(
            f"The glob {literal(glob)} does not lie in the search directory {literal(path)}.",
            hint=Message(
                "Leave out ", ParameterName("path", quoted=True), ", or make the glob relative to it."
            ),
            details={"pattern": glob},
        )
    return below[len(base) - 1 :]


def _exists(root: Root, path: str, name: str) -> bool:
    try:
        return root.exists(f"{path}/{name}")
    except AgentFSError:
        return False
