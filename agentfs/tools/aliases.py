"""Other names that models know for a parameter."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentfs.tools.types import Parameter

# An alias counts only where exactly one parameter of the tool has it and no parameter bears it as its name.
# Names that mean something a little different (`start_line` for an offset that skips entries) are not here.
ALIASES: dict[str, tuple[str, ...]] = {
    "path": (
        "file_path", "filepath", "filename", "file_name", "file", "target_file", "relative_path",
        "absolute_path", "abs_path", "directory", "directory_path", "dir", "dir_path", "dirname", "folder",
        "folder_path", "target_directory", "path_name", "pathname",
    ),
    "content": ("text", "file_text", "contents", "body", "file_content", "file_contents", "new_content"),
    "old_string": ("old_str", "old_text", "old", "old_content", "search", "search_string", "find"),
    "new_string": (
        "new_str", "new_text", "new", "new_content", "replace", "replacement", "replace_with", "updated",
    ),
    "replace_all": ("all", "all_occurrences", "global", "replace_all_occurrences"),
    "edits": ("edit", "changes", "replacements", "edit_list"),
    "pattern": (
        "query", "regex", "regexp", "search", "search_pattern", "search_term", "glob_pattern", "glob", "q",
    ),
    "glob": ("include", "includes", "include_pattern", "file_pattern", "file_glob", "glob_pattern", "globs"),
    "type": ("file_type", "filetype", "types", "language", "lang"),
    "output_mode": ("mode", "output", "output_format"),
    "ignore_case": ("case_insensitive", "i", "insensitive"),
    "context": ("context_lines", "lines_of_context", "c"),
    "multiline": ("multi_line",),
    "limit": (
        "max_results", "head_limit", "max_lines", "num_lines", "line_count", "max_entries",
    ),
    "offset": ("skip", "line_offset"),
    "depth": ("max_depth",),
    "include_ignored": ("no_ignore", "include_gitignored", "show_ignored"),
}  # fmt: skip


@dataclass
class ResolvedNames:
    """Arguments under the names of the parameters, and what was not so named."""

    values: dict[str, Any]
    aliases: dict[str, str] = field(default_factory=dict[str, str])  # for a parameter, the name it came under
    duplicates: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])  # both names
    unknown: list[tuple[str, str | None]] = field(default_factory=list[tuple[str, str | None]])  # the nearest


def resolve_names(members: Sequence[Parameter], given: Mapping[Any, Any]) -> ResolvedNames:
    """Assign what was given to parameters or members."""
    names = [member.name for member in members]
    if given.keys() <= set(names):
        return ResolvedNames(dict(given))
    identifiers = {member.identifier: member.name for member in members}
    spellings = _spellings(members)
    resolved = ResolvedNames({name: given[name] for name in names if name in given})
    for key, value in given.items():
        if key in names:
            continue
        text = key if isinstance(key, str) else repr(key)
        name = identifiers.get(text) or spellings.get(_snake_case(text))
        if name is None:
            resolved.unknown.append((text, nearest(_snake_case(text), names)))
        elif name not in resolved.values:
            resolved.values[name] = value
            resolved.aliases[name] = text
        elif not _same(resolved.values[name], value):
            resolved.duplicates[name] = (resolved.aliases.get(name, name), text)
    return resolved


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the name that is most like the one given, or None when none is."""
    from difflib import get_close_matches  # noqa: PLC0415 - needed only where something was wrong

    return next(iter(get_close_matches(name[:60], list(names), n=1, cutoff=0.55)), None)


def _spellings(members: Sequence[Parameter]) -> dict[str, str | None]:
    """Return the name that each spelling in lower snake case means, or None where it could mean two.

    The name in another case counts more than the callable's own name, and that more than the aliases of both.
    """
    known: dict[str, str | None] = {}
    for level in range(3):
        found: dict[str, str | None] = {}
        for member in members:
            own = member.target or member.name
            aliases = (*ALIASES.get(member.name, ()), *ALIASES.get(own, ()))
            for spelling in {_snake_case(text) for text in ((member.name,), (own,), aliases)[level]}:
                found[spelling] = None if spelling in found else member.name
        known = found | known
    return known


def _snake_case(name: str) -> str:
    """Return a name in lower snake case: `filePath`, `file-path` and `-C` as `file_path` and `c`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name[:80]).replace("-", "_").strip("_ ").lower()


def _same(one: Any, other: Any) -> bool:
    return isinstance(one, (str, int)) and type(one) is type(other) and one == other
