"""Other readings of the globs of a search: lists, names with brackets, and paths from the root."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from agentfs.base.visible import one_line
from agentfs.errors import AgentFSError
from agentfs.search.entries import find_entries
from agentfs.search.options import GlobOptions, GrepOptions, ListOptions, SearchOptions, as_list, paths_of
from agentfs.shown.workspace_context import Context
from agentfs.text import first_names
from agentfs.tree.globs import compile_globs, expand

_O = TypeVar("_O", bound=SearchOptions)

_GLOB_FIELDS = {
    ListOptions: ("ignore",),
    GlobOptions: ("pattern", "exclude"),
    GrepOptions: ("glob", "exclude"),
}
# A separator of a list, or a text in which no separator counts: an escape, braces, a class.
_LIST_TOKEN = re.compile(r"\s*[,|]\s*|\s+|\\.|\{[^}]*\}|\[[^\]]*\]|.", re.DOTALL)
# A name in brackets that begins a part of a path: `[id]` or `[...slug]`, and not `[Tt]` or `[a-z]`.
_NAME_IN_BRACKETS = re.compile(r"(?:^|(?<=/))\[{1,2}(?:\.\.\.)?(?!(\w)(?i:\1)\])[^\W\d]\w+\]{1,2}")
_ANY_PARTS = "**"
_MOST_NAMED = 3
_SECONDS = 1.0  # for each short search


def reinterpret_globs(context: Context, options: _O) -> tuple[_O, str]:
    """Return the options with the globs that were probably meant, and a note on those read in another way.

    A glob that matches a name below `path` is kept. Another is read as a list (`*.json,*.md`), literally
    (`app/[id]/*`), or as a path from the root (`src/*.c` with `path="src"`), if that matches a name.
    """
    fields = {name: as_list(getattr(options, name)) for name in _GLOB_FIELDS[type(options)]}
    if not any(mark in glob for globs in fields.values() for glob in globs for mark in "/,|[ "):
        return options, ""
    if isinstance(options, GrepOptions) and options.listed is not None:
        return options, ""
    return _GlobReader(context, options).read(options, fields)


class _GlobReader:
    def __init__(self, context: Context, options: SearchOptions) -> None:
        self._context = context
        self._paths = paths_of(options.path)
        self._start = ""  # the directory that is searched, if it is the only one and not the root
        self._from_root: list[str] = []
        self._literal: list[str] = []

    def read(self, options: _O, fields: Mapping[str, list[str]]) -> tuple[_O, str]:
        try:
            if len(self._paths) == 1 and (entry := self._context.root.entry(self._paths[0])).is_dir:
                self._start = "" if entry.path == "." or entry.path.startswith("..") else entry.path
            changed = {name: [each for glob in globs for each in self._meant(glob)]
                       for name, globs in fields.items()}  # fmt: skip
        except AgentFSError:  # the search itself raises it
            return options, ""
        if changed == fields:
            return options, ""
        meant: dict[str, Any] = {name: globs for name, globs in changed.items() if globs}
        return replace(options, **meant), self._note()

    def _meant(self, glob: str) -> list[str]:
        """Return a glob, or those that it probably means."""
        negated = glob.startswith("!")
        text = glob[negated:]
        parts = _split(text)
        literal = _NAME_IN_BRACKETS.sub(lambda name: name[0].replace("[", "\\["), text)
        readings = [
            (self._literal, [literal] if literal != text else []),
            (self._from_root, self._below_start(text)),
            (self._from_root, self._below_start(literal)),
        ]
        if len(parts) == 1 and not any(globs for _, globs in readings):
            return [glob]
        if self._matches([text.lstrip("/") if readings[1][1] else text]) is not False:
            return [glob]
        if len(parts) > 1:
            given = [f"!{part}" if negated and not part.startswith("!") else part for part in parts]
            return [each for part in given for each in self._meant(part)]
        for read_so, globs in readings:
            if globs and self._matches(globs):
                read_so.append(glob)
                return [f"!{each}" if negated else each for each in globs]
        return [glob]

    def _below_start(self, glob: str) -> list[str]:
        return list(globs_below(glob, self._start.split("/"))) if self._start and "/" in glob else []

    def _matches(self, globs: Sequence[str]) -> bool | None:
        """Return whether globs match a name, hidden or ignored too; None if there is no time to tell."""
        options = GlobOptions(globs, self._paths, 1, types=None, include_ignored=True)
        found = find_entries(self._context, options, seconds=_SECONDS)
        return True if found.total else (False if found.exact else None)

    def _note(self) -> str:
        readings = {
            "brackets taken literally": self._literal,
            f"matched from the root, as nothing matches below {one_line(self._start)}": self._from_root,
        }
        return "; ".join(
            f"{how}: {first_names([*map(one_line, globs)], _MOST_NAMED)}"
            for how, globs in readings.items()
            if globs
        )


def _split(glob: str) -> list[str]:
    """Split a text at separators outside braces and classes; return it whole if a part is empty."""
    parts = [""]
    for found in _LIST_TOKEN.finditer(glob):
        if found[0].strip() in {",", "|", ""}:
            parts.append("")
        else:
            parts[-1] += found[0]
    return parts if all(parts) else [glob]


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
