"""Other readings of the globs of a search: lists in one text, literal names, and paths from the root."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from agentfs.base.advice import Advice, ParameterName
from agentfs.base.visible import literal, one_line
from agentfs.errors import AgentFSError, OutsideWorkspaceError
from agentfs.fs import Root
from agentfs.fs.path import absolute_parts, parts_below
from agentfs.search.options import SearchOptions, as_list, paths_of
from agentfs.text.display import first_names
from agentfs.tree.globs import compile_globs, expand

_O = TypeVar("_O", bound=SearchOptions)
_R = TypeVar("_R")

# A separator of a list, or a text in which no separator counts: an escape, braces, a class.
_LIST_TOKEN = re.compile(r"\s*[,|]\s*|\s+|\\.|\{[^}]*\}|\[[^\]]*\]|.", re.DOTALL)
_BRACKETS = re.compile(r"[\[{]")
_ANY_PARTS = "**"
_MOST_NAMED = 3


def search_with_meant_globs(
    root: Root, options: _O, search: Callable[[_O], _R], is_found: Callable[[_R], bool]
) -> tuple[_O, _R, str]:
    """Search; if no name matches the globs, search with other readings of them.

    Args:
        root: The root.
        options: The arguments of the search.
        search: Makes the search.
        is_found: Returns True if a name matched the globs.

    Returns:
        The options that were used, the result, and a note on globs that were read in another way.
    """
    options = with_relative_globs(root, options)
    result = search(options)
    if options.globs and not is_found(result):
        for fact, globs in _readings(options.globs, _start_of(root, options)):
            changes: dict[str, Any] = {options.glob_argument: globs}
            meant = replace(options, **changes)
            with suppress(AgentFSError):
                if is_found(found := search(meant)):
                    changed = [glob for glob in options.globs if glob not in globs]
                    note = f"{fact}: {first_names([*map(one_line, changed)], _MOST_NAMED)}" if fact else ""
                    return meant, found, note
    return options, result, ""


def _start_of(root: Root, options: SearchOptions) -> str:
    """Return the directory that is searched, if it is the only one and not the root; else ""."""
    paths = paths_of(options.path)
    with suppress(AgentFSError):  # the search itself will raise the error
        entry = root.entry(paths[0])
        if len(paths) == 1 and entry.is_dir and entry.path != "." and not entry.path.startswith(".."):
            return entry.path
    return ""


def with_relative_globs(root: Root, options: _O) -> _O:
    """Return the options with globs relative to the search directory.

    Absolute globs become relative. Exclusions also mean the parts of a list, and paths from the root.
    """
    names = options.glob_argument, "exclude", "ignore"
    given = {name: globs for name in names if (globs := as_list(getattr(options, name, None)))}
    start = _start_of(root, options)

    def meant(name: str, glob: str) -> list[str]:
        mark, glob = "!" * glob.startswith("!"), glob.removeprefix("!")
        if glob.startswith("/") and (parts := parts_below(absolute_parts(glob), root.roots)):
            from_root = "/" + "/".join(parts) + "/" * glob.endswith("/")
            return [mark + each for each in _below_start(options, start, name, glob, from_root)]
        if name == options.glob_argument and not mark:
            return [glob]
        listed = dict.fromkeys([glob, *split_list(glob)])
        return [
            mark + each for each in (*listed, *(each for part in listed for each in _from_root(part, start)))
        ]

    changes: dict[str, Any] = {
        name: [each for glob in globs for each in meant(name, glob)] for name, globs in given.items()
    }
    return replace(options, **changes)


def _below_start(options: SearchOptions, start: str, name: str, glob: str, from_root: str) -> list[str]:
    """Return the globs below the search directory that match what an absolute glob matches."""
    is_single = len(paths_of(options.path)) == 1
    below = list(globs_below(from_root, start.split("/"))) if start else [from_root]
    if not (is_single and below):
        message = f"The absolute glob {literal(glob)} does not lie in one directory that is searched."
        hint = Advice("Leave out ", ParameterName("path", quoted=True), ", or make the glob relative to it.")
        raise OutsideWorkspaceError(message, hint=hint, details={"parameter": name, "pattern": glob})
    return below


def _readings(globs: Sequence[str], start: str) -> Iterator[tuple[str, list[str]]]:
    """Yield other readings of globs: a fact about the reading, and the globs."""
    excluded = [glob for glob in globs if glob.startswith("!")]
    given = [glob for glob in globs if not glob.startswith("!")]
    parts = [part for glob in given for part in split_list(glob)]
    literal = [_BRACKETS.sub(lambda found: "\\" + found[0], part) for part in parts]
    from_root = f"matched from the root, as nothing matches below {one_line(start)}"
    seen = [given]
    for fact, read in (
        (from_root, [each for part in parts for each in _from_root(part, start) or [part]]),
        ("", parts),
        ("brackets taken literally", literal),
        (from_root, [each for part in literal for each in _from_root(part, start) or [part]]),
    ):
        if read not in seen:
            seen.append(read)
            yield "" if read == parts else fact, [*read, *excluded]


def split_list(glob: str) -> list[str]:
    """Split a text at separators outside braces and classes; return it whole if a part is empty."""
    parts = [""]
    for found in _LIST_TOKEN.finditer(glob):
        if found[0].strip() in {",", "|", ""}:
            parts.append("")
        else:
            parts[-1] += found[0]
    return parts if all(parts) else [glob]


def _from_root(glob: str, start: str) -> list[str]:
    return list(globs_below(glob, start.split("/"))) if start and "/" in glob else []


def globs_below(glob: str, names: Sequence[str]) -> Iterator[str]:
    """Yield the globs that match below a directory what a glob matches from the root."""
    for text in expand(glob):
        parts = text.removeprefix("./").lstrip("/").split("/")
        starts = {0}
        for name in names:
            reached = {
                at
                for start in starts
                for at in range(start, len(parts))
                if all(part == _ANY_PARTS for part in parts[start:at])
            }
            starts = {at + (parts[at] != _ANY_PARTS) for at in reached if _fits(parts[at], name)}
        if starts != {0}:  # otherwise the glob begins with `**`, and matches the same as before
            yield from ("/" + "/".join(parts[start:]) for start in sorted(starts) if any(parts[start:]))


def _fits(part: str, name: str) -> bool:
    return part == _ANY_PARTS or (part != "" and compile_globs([f"/{part}"])(name))
