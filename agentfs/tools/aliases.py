"""What models that were trained with other tools send: their names of parameters and of tools.

A name that means one thing is taken as that. Each row says which products have it.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from agentfs.errors import InvalidArgumentError
from agentfs.messages import Joined, Message, call
from agentfs.nearest import closest
from agentfs.tools.types import Anything, ListOf, Parameter, has_type, short_repr

# For a parameter of any tool, its other names. One counts only where exactly one parameter of the tool has it
# and no parameter bears it as its name.
ALIASES: dict[str, tuple[str, ...]] = {
    "path": (
        "file_path", "filepath", "filename", "file_name", "file", "target_file", "relative_path",
        "absolute_path", "abs_path", "directory", "directory_path", "dir", "dir_path", "dirname", "folder",
        "folder_path", "target_directory", "path_name", "pathname", "search_directory", "search_path",
    ),
    "content": (
        "text", "file_text", "contents", "body", "file_content", "file_contents", "new_content",
        "code_content",
    ),
    "old_string": (
        "old_str", "old_text", "old", "old_content", "search", "search_string", "find", "target_content",
    ),
    "new_string": (
        "new_str", "new_text", "new", "new_content", "replace", "replacement", "replace_with", "updated",
        "replacement_content",
    ),
    "replace_all": ("all", "all_occurrences", "global", "replace_all_occurrences", "allow_multiple"),
    "edits": ("edit", "changes", "replacements", "edit_list", "replacement_chunks"),
    "pattern": (
        "query", "regex", "regexp", "search", "search_pattern", "search_term", "glob_pattern", "glob", "q",
        "substring_pattern",
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


def _nothing() -> dict[str, Any]:
    return {}


class Habits(NamedTuple):
    """What is sent for one method besides its own parameters and `ALIASES`.

    Attributes:
        aliases: For a parameter of the method or of `convert`, other names.
        hidden: Parameters after the `*` that are taken where a model sends them, though no schema shows
            them: none that widens what may be changed.
        convert: Makes arguments of the method from parameters that only other tools have; those that it
            shares with the method come as they were sent. A ValueError says why that cannot be done.
    """

    aliases: Mapping[str, tuple[str, ...]] = {}
    hidden: tuple[str, ...] = ()
    convert: Callable[..., dict[str, Any]] = _nothing


def _line_range(
    start_line: int | None = None,
    end_line: int | None = None,
    view_range: list[int] | str | None = None,
    should_read_entire_file: bool = False,
    tail: int | None = None,
) -> dict[str, Any]:
    if tail is not None:
        if (start_line, end_line, view_range) != (None, None, None):
            raise ValueError("they name different lines")
        return {"offset": -tail}
    if should_read_entire_file:  # Cursor then looks at no range
        return {}
    if isinstance(view_range, str):
        numbers = re.fullmatch(r"\s*(\d+)\s*[-:,]\s*(-?\d+)\s*", view_range)
        view_range = [int(number) for number in numbers.groups()] if numbers else []
    if view_range is not None:
        if len(view_range) != 2:
            raise ValueError("a range is the first line and the last")
        start_line, end_line = view_range
    if start_line is None and end_line is None:
        return {}
    first = 1 if start_line is None else start_line
    if end_line is None or end_line == -1:
        return {"offset": first}
    if not 0 < first <= end_line:
        raise ValueError(f"there are no lines {first} to {end_line}; the first line is 1")
    return {"offset": first, "limit": end_line - first + 1}


def _written(
    overwrite: bool | None = None,
    create_directories: bool = True,
    append: bool = False,
    line_count: int | None = None,
) -> dict[str, Any]:
    del line_count
    if append:
        raise ValueError("the whole file is written; to append, change its last lines")
    if not create_directories:
        raise ValueError("missing directories are always made")
    # What may be replaced is for the workspace to decide.
    return {"overwrite": False} if overwrite is False else {}


def _counted(expected_replacements: int | None = None) -> dict[str, Any]:
    if expected_replacements is None:
        return {}
    return {"expect": expected_replacements} | ({"replace_all": True} if expected_replacements > 1 else {})


def _edits(
    edits: Any = None,
    path: Any = None,
    old_string: str | None = None,
    new_string: str | None = None,
    replace_all: bool | None = None,
) -> dict[str, Any]:
    if edits is None:
        single = {"old_string": old_string, "new_string": new_string, "replace_all": bool(replace_all)}
        return {} if old_string is None or new_string is None else {"edits": [single]}
    if (old_string, new_string, replace_all) != (None, None, None):
        raise ValueError("each of `edits` has its own")
    edits = _parsed(edits)
    if not has_type(ListOf(Anything()), edits) or not all(isinstance(each, Mapping) for each in edits):
        return {}
    several: list[Mapping[Any, Any]] = [*edits]
    given = path if isinstance(path, str) else None
    by_path: dict[str | None, list[Mapping[Any, Any]]] = {}
    for edit in several:
        paths = [name for name in edit if snake_case(str(name)) in ("path", *ALIASES["path"])]
        kept = {name: value for name, value in edit.items() if name not in paths}
        by_path.setdefault(str(edit[paths[0]]) if paths else given, []).append(kept)
    if len(by_path) <= 1 and given in (None, *by_path):
        only, stripped = by_path.popitem() if by_path else (None, several)
        return {} if stripped == several else {"edits": stripped, "path": only}
    calls = [call("multi_edit", path=each, edits=of) for each, of in by_path.items() if each is not None]
    raise InvalidArgumentError(
        f"The edits are for several files: {', '.join(map(short_repr, by_path))}. Nothing was changed.",
        hint=Joined("\n", "One call changes one file. Call", *calls),
    )


def _parsed(value: Any) -> Any:
    with suppress(ValueError):
        return json.loads(value) if isinstance(value, str) else value
    return value


def _listed(recursive: bool | None = None, respect_gitignore: bool | None = None) -> dict[str, Any]:
    depth = {} if recursive is None else {"depth": 0 if recursive else 1}
    return depth | _ignored(respect_gitignore)


def _globbed(
    recursive: bool = True,
    case_sensitive: bool = True,
    respect_gitignore: bool | None = None,
    pattern: Any = None,
) -> dict[str, Any]:
    if not recursive and "**" in str(pattern):
        raise ValueError("the pattern has `**`, which is recursive")
    if not case_sensitive:
        raise ValueError("a glob matches case; write both cases, such as `[Rr]eadme*`")
    return ({} if recursive else {"anchored": True}) | _ignored(respect_gitignore)


def _searched(
    case_sensitive: bool | None = None,
    is_regex: bool | None = None,
    recursive: bool = True,
    files_only: bool = False,
    respect_gitignore: bool | None = None,
) -> dict[str, Any]:
    case = {} if case_sensitive is None else {"ignore_case": not case_sensitive}
    literal = {"fixed_strings": True} if is_regex is False else {}
    level = {} if recursive else {"max_depth": 1}
    names = {"output_mode": "files_with_matches"} if files_only else {}
    return case | literal | level | names | _ignored(respect_gitignore)


def _ignored(respect_gitignore: bool | None) -> dict[str, Any]:
    return {} if respect_gitignore is None else {"include_ignored": not respect_gitignore}


def _renamed(new_name: str | None = None, path: Any = None) -> dict[str, Any]:
    if new_name is None:
        return {}
    if "/" in str(path) and "/" not in new_name:
        to = f"{str(path).rpartition('/')[0]}/{new_name}"
        raise InvalidArgumentError(
            f"A new name is a path from the root, and {short_repr(new_name)} would move the file elsewhere.",
            hint=Message("To rename the file where it is, call ", call("move", path=str(path), to=to), "."),
        )
    return {"to": new_name}


_HIDDEN = ("include_hidden", "show_hidden", "all", "a")  # `ls -a`
# Claude Code; Cursor.
_EXCLUDE = ("ignore", "excludes", "exclude_pattern", "exclude_patterns", "ignore_patterns")
_RESPECT = {"respect_gitignore": ("respect_git_ignore",)}  # Gemini CLI
_RECURSIVE = ("recurse", "r")  # `recursive` of Cline, Roo and Serena; `grep -r`
_DRY_RUN = {"preview": ("dry_run",)}  # the filesystem server of MCP
_STEPS = {"steps": ("count", "n", "num", "number", "times", "num_steps")}

# For a method, by its name.
HABITS: dict[str, Habits] = {
    "read": Habits(
        {
            # Gemini CLI, Cline; VS Code and Windsurf in other case, Cursor `…_indexed…`, SWE-agent the last.
            "start_line": ("start", "line_start", "from_line", "start_line_one_indexed", "line_number"),
            "end_line": ("end", "line_end", "to_line", "end_line_one_indexed_inclusive"),
            "view_range": ("line_range", "lines", "range"),  # Anthropic's text editor; Roo writes "1-20"
            "should_read_entire_file": ("read_entire_file", "entire_file"),  # Cursor
            "limit": ("head",),  # with `tail`, the filesystem server of MCP
        },
        ("encoding",),  # several servers of MCP
        _line_range,
    ),
    "write": Habits(
        {
            "overwrite": ("force", "allow_overwrite", "replace_existing"),
            "create_directories": ("create_dirs", "create_parents", "make_dirs", "mkdirs", "parents"),
            "line_count": (),  # Cline and Roo send the number of lines
            **_DRY_RUN,
        },
        ("preview", "overwrite"),
        _written,
    ),
    "edit": Habits(
        {
            "expected_replacements": ("expected_occurrences", "expected_count"),  # Gemini CLI
            **_DRY_RUN,
        },
        ("preview", "expect"),
        _counted,
    ),
    "multi_edit": Habits(_DRY_RUN, ("preview",), _edits),
    "edit_lines": Habits(_DRY_RUN, ("preview",)),
    "ls": Habits({"recursive": _RECURSIVE, "hidden": _HIDDEN, **_RESPECT}, ("hidden", "ignore"), _listed),
    "glob": Habits(
        {
            "pattern": ("name", "file_mask"),
            "recursive": _RECURSIVE,
            "hidden": _HIDDEN,
            "exclude": _EXCLUDE,
            **_RESPECT,
        },
        ("hidden", "exclude", "anchored"),
        _globbed,
    ),
    "find": Habits(
        {"glob": ("name",), "types": ("type",), "exclude": _EXCLUDE},
        ("extensions", "max_depth", "hidden", "exclude", "size"),
    ),
    "grep": Habits(
        {
            # The options of ripgrep and grep: short, as Claude Code's Grep has them, and long; Serena has
            # `context_lines_before`, pi `literal`, Crush `literal_text`, Gemini CLI the last of `max_count`.
            "before": ("b", "before_context", "context_before", "lines_before", "context_lines_before"),
            "after": ("a", "after_context", "context_after", "lines_after", "context_lines_after"),
            "line_numbers": ("n", "line_number", "show_line_numbers"),
            "fixed_strings": ("f", "literal", "fixed_string", "is_literal", "literal_text"),
            "word": ("w", "whole_word", "match_whole_word", "word_regexp"),
            "max_count": ("m", "max_matches_per_file"),
            "case_sensitive": ("match_case",),  # Cursor, Gemini CLI
            "is_regex": ("is_regexp", "use_regex"),  # VS Code, Windsurf
            "multiline": ("u",),
            "recursive": _RECURSIVE,
            "files_only": ("l", "files_with_matches", "names_only"),  # the last: Gemini CLI
            "hidden": ("include_hidden", "show_hidden"),
            "exclude": _EXCLUDE,
            **_RESPECT,
        },
        (
            *("before", "after", "line_numbers", "fixed_strings", "word", "smart_case", "exclude", "hidden"),
            *("max_count", "max_depth"),
        ),
        _searched,
    ),
    "move": Habits(
        {
            # The filesystem server of MCP has `source` and `destination`.
            "path": ("source", "src", "from", "old_path", "source_path", "from_path", "old_name"),
            "to": ("destination", "dest", "dst", "target", "new_path", "destination_path", "to_path"),
        },
        convert=_renamed,
    ),
    "undo": Habits(_STEPS),
    "redo": Habits(_STEPS),
    "checkpoint": Habits({"name": ("label", "message", "title")}),
    "rollback": Habits({"to": ("name", "checkpoint", "checkpoint_name", "checkpoint_id", "label", "id")}),
    "read_many": Habits({"paths": ("files", "file_paths", "path")}),  # Gemini CLI, the server of MCP
    "delete": Habits(),
    "replace": Habits(
        {
            "expect": ("expected_replacements", "expected_count"),
            "word": ("whole_word", "match_whole_word"),
            "regex": ("use_regex", "is_regex", "is_regexp"),
            **_DRY_RUN,
        },
        ("preview", "word", "regex"),
    ),
}
# What only says why a call is made: Cursor and VS Code, Windsurf, OpenHands, Cline, Gemini CLI.
REASONS = ("explanation", "tool_summary", "security_risk", "task_progress", "instruction")

# For a method, the names of tools that do the same.
TOOL_NAMES: dict[str, tuple[str, ...]] = {
    "read": (
        *("view", "read_file", "view_file", "open_file", "cat", "open", "fs_read", "get_file_contents"),
        *("read_text_file", "read_file_range"),  # the filesystem server of MCP, Continue
    ),
    "write": (
        *("create_file", "write_file", "create", "write_to_file", "fs_write", "save_file", "new_file"),
        "create_new_file",  # Continue
    ),
    "edit": (
        *("str_replace", "edit_file", "replace", "replace_in_file", "replace_string_in_file"),
        *("search_replace", "search_and_replace", "edit_block"),  # Cursor, Roo, Desktop Commander
    ),
    "multi_edit": (
        *("multi_replace_string_in_file", "multiedit"),  # VS Code, opencode
        *("replace_file_content", "multi_replace_file_content"),  # Windsurf
    ),
    "ls": ("list_dir", "list_directory", "list_files", "list", "dir"),  # Cursor, Gemini CLI, Cline, opencode
    "glob": ("find_by_name", "glob_search", "file_glob_search", "find_files"),  # Windsurf, Continue
    "grep": (
        *("search", "grep_search", "search_file_content", "search_content", "ripgrep", "rg", "search_text"),
        *("search_dir", "search_for_pattern"),  # SWE-agent, Serena
    ),
    "move": ("rename", "move_file", "rename_file", "mv"),
    "delete": ("delete_file", "remove", "remove_file", "rm", "unlink"),
    "read_many": ("read_many_files", "read_multiple_files", "read_files"),
}
# The names that mean one method in one product and another, or nothing so exact, in the next: the calls that
# are proposed, each with more arguments.
UNCERTAIN: dict[str, tuple[tuple[str, dict[str, Any]], ...]] = {
    "find": (("glob", {}),),  # a regular expression here, a glob for the program
    "find_file": (("glob", {}),),
    "file_search": (("glob", {}),),  # VS Code takes a glob, Cursor a part of the name
    "search_file": (("grep", {}), ("glob", {})),
    "search_files": (("grep", {}), ("glob", {})),  # contents in Cline and Roo, names in the server of MCP
    "tree": (("ls", {"depth": 0}),),
    "directory_tree": (("ls", {"depth": 0}),),
    "revert": (("undo", {}),),
    "undo_edit": (("undo", {}),),  # of one file, with Anthropic's older text editor
    "codebase_search": (("grep", {}),),  # by meaning, in Cursor and Windsurf
}
# One tool whose `command` is the name of what to do: Anthropic's text editor, SWE-agent, OpenHands.
EDITORS = ("str_replace_based_edit_tool", "str_replace_editor", "text_editor")
# What is put before names: the GPT models, Gemini, clients of MCP.
_MOST_UNKNOWN = 100  # unknown names that are looked at
_MOST_MEANT = 12  # of them, those for which the nearest name is looked for
_NAMESPACES = re.compile(r"(functions|default_api)[.:]|mcp__\w+?__")


@dataclass
class ResolvedNames:
    """Arguments under the names of the parameters, and what was not so named."""

    values: dict[str, Any]
    aliases: dict[str, str] = field(default_factory=dict[str, str])  # for a parameter, the name it came under
    duplicates: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])  # both names
    unknown: list[tuple[str, str | None]] = field(default_factory=list[tuple[str, str | None]])  # the nearest


def resolve_names(
    members: Sequence[Parameter],
    given: Mapping[Any, Any],
    more: Sequence[Parameter] = (),
    aliases: Mapping[str, tuple[str, ...]] = {},
) -> ResolvedNames:
    """Assign what was given to parameters or members, and to `more` of them, which no error names."""
    visible = [member.name for member in members]
    if given.keys() <= set(visible):
        return ResolvedNames(dict(given))
    members = (*members, *more)
    names = [member.name for member in members]
    identifiers = {member.identifier: member.name for member in members}
    spellings = _spellings(members, aliases)
    resolved = ResolvedNames({name: given[name] for name in names if name in given})
    for key, value in given.items():
        if key in names:
            continue
        text = key if isinstance(key, str) else repr(key)
        name = identifiers.get(text) or spellings.get(snake_case(text))
        if name is None:
            few = len(resolved.unknown) < _MOST_MEANT
            resolved.unknown.append((text[:200], nearest(snake_case(text), visible) if few else None))
            if len(resolved.unknown) > _MOST_UNKNOWN:
                break  # the call is refused anyway
        elif name not in resolved.values:
            resolved.values[name] = value
            resolved.aliases[name] = text
        elif not _same(resolved.values[name], value):
            resolved.duplicates[name] = (resolved.aliases.get(name, name), text)
    return resolved


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the name that is most like the one given, or None when none is."""
    return next(iter(closest(name, names, 1, 0.55)), None)


def _spellings(
    members: Sequence[Parameter], more_aliases: Mapping[str, tuple[str, ...]]
) -> dict[str, str | None]:
    """Return the name that each spelling in lower snake case means, or None where it could mean two.

    The name in another case counts more than the callable's own name, and that more than the aliases of both.
    """
    tables = (ALIASES, more_aliases)
    known: dict[str, str | None] = {}
    for level in range(3):
        found: dict[str, str | None] = {}
        for member in members:
            own = member.target or member.name
            keys = dict.fromkeys((member.name, own))
            aliases = [each for key in keys for table in tables for each in table.get(key, ())]
            for spelling in {snake_case(text) for text in ((member.name,), (own,), aliases)[level]}:
                found[spelling] = None if spelling in found else member.name
        known = found | known
    return known


def snake_case(name: str) -> str:
    """Return a name in lower snake case: `filePath`, `file-path` and `-C` as `file_path` and `c`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name[:80]).replace("-", "_").strip("_ ").lower()


def plain_name(name: str) -> str:
    """Return the name of a tool in lower snake case, without what a client or a model puts before it."""
    return snake_case(_NAMESPACES.sub("", name[:200], count=1))


def _same(one: Any, other: Any) -> bool:
    return isinstance(one, (str, int)) and type(one) is type(other) and one == other
