"""The table of what models send for each method because of their training with other products."""

import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, TypeAlias

from agentfs.arguments.kinds import (
    Anything,
    ArgumentReader,
    Boolean,
    Integer,
    Kind,
    ListOf,
    MapOf,
    String,
    UnionOf,
    short_repr,
)
from agentfs.base.advice import Advice, FirstOf, Joined, call
from agentfs.errors import InvalidArgumentError
from agentfs.habits.parameter_names import ALIASES, snake_case

_Arguments: TypeAlias = Mapping[str, Any]
_Meaning: TypeAlias = Mapping[Any, _Arguments | str] | Callable[[Any, _Arguments], _Arguments]
_LEFT_OUT: _Meaning = {}
_MOST_CALLS = 2  # that an error proposes for a list of paths


class Habit(NamedTuple):
    """A parameter that other tools have.

    Attributes:
        name: Its name. If the method has the parameter too, `means` replaces the value that was sent.
        kind: The kind of its values.
        means: The method's own arguments. Either a table from each value to them, or to the reason of a
            refusal; or a function of the value and all arguments, which raises ValueError to refuse.
        aliases: Its other names, separated by spaces.
    """

    name: str
    kind: Kind
    means: _Meaning = _LEFT_OUT
    aliases: str = ""

    def meaning(self, value: Any, given: _Arguments) -> _Arguments:
        """Return the method's own arguments for a value; raise ValueError if it is refused."""
        if callable(self.means):
            return self.means(value, given)
        meant = self.means.get(value, {})
        if not isinstance(meant, str):
            return meant
        raise ValueError(meant)


class Habits(NamedTuple):
    """Names and values for one method besides its own and `ALIASES`; names are separated by spaces.

    Attributes:
        tools: Tools of other products that do the same.
        aliases: Other names of parameters of the method.
        hidden: Parameters after the `*` that a model may send although no schema shows them. None of them
            permits more changes.
        foreign: Parameters of other products' tools.
        lists: Parameters that also take a list, although the schema shows one text.
        values: Numbers that mean another number, by parameter.
    """

    tools: str = ""
    aliases: Mapping[str, str] = {}
    hidden: str = ""
    foreign: tuple[Habit, ...] = ()
    lists: str = ""
    values: Mapping[str, Mapping[int, int]] = {}


def _first_line(line: int, given: _Arguments) -> _Arguments:
    return {} if given.get("should_read_entire_file") else {"offset": line or 1}


def _last_line(line: int, given: _Arguments) -> _Arguments:
    if given.get("should_read_entire_file") or line == -1:
        return {}
    first = given.get("start_line", 1) or 1
    if not 0 < first <= line:
        raise ValueError(f"there are no lines {first} to {line}; the first line is 1")
    return {"offset": first, "limit": line - first + 1}


def _line_range(lines: list[int] | str, given: _Arguments) -> _Arguments:
    if isinstance(lines, str):
        numbers = re.fullmatch(r"\s*(\d+)\s*[-:,]\s*(-?\d+)\s*", lines)
        lines = [int(number) for number in numbers.groups()] if numbers else []
    if len(lines) != 2:
        raise ValueError("a range is the first line and the last")
    first, last = lines
    return {**_first_line(first, given), **_last_line(last, {**given, "start_line": first})}


def _tail(count: int, _: _Arguments) -> _Arguments:
    return {"offset": -count}


def _output_mode(mode: Any, _: _Arguments) -> _Arguments:
    return {"output_mode": _OUTPUT_MODES.get(mode, mode) if isinstance(mode, str) else mode}


def _one_path(method: str) -> Habit:
    """Return the habit to pass several paths to a method that takes one; the error names the calls."""

    def meaning(value: Any, given: _Arguments) -> _Arguments:
        reader = ArgumentReader()
        paths: list[str] = [] if isinstance(value, str) else ListOf(_STRING).read(value, "path", reader)
        if reader.problems or len(paths) < 2:
            return {"path": value if reader.problems or not paths else paths[0]}
        kept = {name: each for name, each in given.items() if name != "path"}
        calls = [call(method, **kept, path=path) for path in paths[:_MOST_CALLS]]
        hint = Advice("Call ", Joined(" and ", *calls, *["so on"] * (len(paths) > _MOST_CALLS)), ".")
        raise InvalidArgumentError(f"One call takes one path, not {len(paths)}; nothing was done.", hint=hint)

    return Habit("path", _ANY, meaning, "paths files file_paths")


def _one_edit(_value: Any, given: _Arguments) -> _Arguments:
    """Make the parameters of `edit` the only item of `edits`."""
    if "edits" in given:
        raise ValueError("each of `edits` has its own")
    edit = {name: given[name] for name in _EDIT if name in given}
    return {"edits": [edit]} if {"old_string", "new_string"} <= edit.keys() else {}


def _edits(edits: Any, given: _Arguments) -> _Arguments:
    """Move the path out of the edits if all of them name the same one; otherwise refuse."""
    several: Any = edits
    with suppress(ValueError):
        several = json.loads(edits) if isinstance(edits, str) else edits
    reader = ArgumentReader()
    maps: list[dict[str, Any]] = ListOf(MapOf(_ANY)).read(several, "edits", reader)
    if reader.problems or not maps:
        return {"edits": edits}
    path = given["path"] if isinstance(given.get("path"), str) else None
    by_path: dict[str | None, list[dict[str, Any]]] = {}
    for edit in maps:
        paths = [name for name in edit if snake_case(name) in ("path", *ALIASES["path"].split())]
        kept = {name: value for name, value in edit.items() if name not in paths}
        by_path.setdefault(str(edit[paths[0]]) if paths else path, []).append(kept)
    if len(by_path) <= 1 and path in (None, *by_path):
        only, stripped = by_path.popitem()
        return {"edits": edits} if stripped == maps else {"edits": stripped, "path": only}
    calls = [call("multi_edit", path=each, edits=of) for each, of in by_path.items() if each is not None]
    raise InvalidArgumentError(
        f"The edits are for several files: {', '.join(map(short_repr, by_path))}. Nothing was changed.",
        hint=Joined("\n", "One call changes one file. Call", *calls),
    )


def _appending(wanted: bool, given: _Arguments) -> _Arguments:
    if not wanted:
        return {}
    append = call("append", **{name: given[name] for name in ("path", "content") if name in given})
    raise InvalidArgumentError(
        "The whole file would be written, and nothing was done.",
        hint=FirstOf(
            Advice("To add lines at its end, call ", append, "."),
            "To add lines at its end, edit its last lines.",
        ),
    )


def _new_name(name: str, given: _Arguments) -> _Arguments:
    path = str(given.get("path"))
    if "/" in path and "/" not in name:
        to = f"{path.rpartition('/')[0]}/{name}"
        raise InvalidArgumentError(
            f"A new name is a path from the root, and {short_repr(name)} would move the file elsewhere.",
            hint=Advice("To rename the file where it is, call ", call("move", path=path, to=to), "."),
        )
    return {"to": name}


def _depth_of_glob(recursive: bool, given: _Arguments) -> _Arguments:
    if not recursive and "**" in str(given.get("pattern")):
        raise ValueError("the pattern has `**`, which is recursive")
    return {} if recursive else {"max_depth": 1}


def _counted(count: int, _: _Arguments) -> _Arguments:
    return {"expect": count} | ({"replace_all": True} if count > 1 else {})


def _count_or_context(value: bool | int, _: _Arguments) -> _Arguments:
    return {"context": value} if not isinstance(value, bool) else {"output_mode": "count"} if value else {}


_OUTPUT_MODES = {
    **dict.fromkeys(("files", "file", "filenames", "paths", "list", "l"), "files_with_matches"),
    **dict.fromkeys(("matches", "lines", "text"), "content"),
    **dict.fromkeys(("counts", "count_matches", "c"), "count"),
}
_STRING, _INTEGER, _BOOLEAN, _ANY = String(), Integer(), Boolean(), Anything()
_EDIT = {"old_string": _STRING, "new_string": _STRING, "replace_all": _BOOLEAN}
# Gemini CLI's read_many_files: a path that is named is read even if a search would leave it out.
_ALL_FILES = (Habit("use_default_excludes", _BOOLEAN), Habit("file_filtering_options", _ANY))
_HIDDEN = {"hidden": "include_hidden show_hidden all a"}  # `ls -a`
# Claude Code; Cursor.
_EXCLUDE = {"exclude": "ignore excludes exclude_pattern exclude_patterns ignore_patterns"}
_RECURSIVE = "recurse r"  # `recursive` of Cline, Roo and Serena; `grep -r`
_RESPECT = Habit(  # Gemini CLI
    "respect_gitignore", _BOOLEAN,
    {True: {"include_ignored": False}, False: {"include_ignored": True}}, "respect_git_ignore",
)  # fmt: skip
_DRY_RUN = {"preview": "dry_run"}  # the filesystem server of MCP
_PATHS = {"path": "paths files directories target_directories"}  # the last one is Cursor's
_FROM_TO = {  # the filesystem server of MCP has `source` and `destination`
    "path": "source src from old_path source_path from_path old_name",
    "to": "destination dest dst target new_path destination_path to_path",
}
_STEPS = {"steps": "count n num number times num_steps"}


def _restart(restart: bool, given: _Arguments) -> _Arguments:
    return {"command": ":"} if restart and "command" not in given else {}


# By method.
HABITS: dict[str, Habits] = {
    # Anthropic's own tool. Each command has a shell of its own, so restarting it is to do nothing.
    "run": Habits("bash", foreign=(Habit("restart", _BOOLEAN, _restart),)),
    "read": Habits(
        # The filesystem server of MCP and Continue have the last two.
        "view read_file view_file open_file cat open fs_read get_file_contents "
        "read_text_file read_file_range",
        {"limit": "head"},  # with `tail`, the filesystem server of MCP
        foreign=(
            # Gemini CLI and Cline; VS Code and Windsurf in camel case. Cursor has `…_one_indexed…`, SWE-agent
            # `line_number`.
            Habit("start_line", _INTEGER, _first_line,
                  "start line_start from_line start_line_one_indexed line_number"),
            Habit("end_line", _INTEGER, _last_line,
                  "end line_end to_line end_line_one_indexed_inclusive"),
            # Anthropic's text editor; Roo writes "1-20".
            Habit("view_range", UnionOf((ListOf(_INTEGER), _STRING)), _line_range, "line_range lines range"),
            # Cursor; if it is true, a range is ignored there.
            Habit("should_read_entire_file", _BOOLEAN, aliases="read_entire_file entire_file"),
            Habit("tail", _INTEGER, _tail),
            _one_path("read"),
            *_ALL_FILES,
        ),
        values={"offset": {0: 1}},
    ),
    "write": Habits(
        # Continue and Serena have the last two.
        "create_file write_file create write_to_file fs_write save_file new_file "
        "create_new_file create_text_file",
        {"overwrite": "force allow_overwrite replace_existing", **_DRY_RUN},
        "preview overwrite",
        (
            # True is dropped: the policy decides which files may be replaced.
            Habit("overwrite", _BOOLEAN, {False: {"overwrite": False}}),
            Habit("create_directories", _BOOLEAN, {False: "missing directories are always created"},
                  "create_dirs create_parents make_dirs mkdirs parents"),
            Habit("append", _BOOLEAN, _appending),
            Habit("line_count", _INTEGER),  # Cline and Roo send the number of lines
            _one_path("write"),
        ),
    ),
    "edit": Habits(
        "str_replace edit_file replace replace_in_file replace_string_in_file find_and_replace "
        "string_replace search_replace search_and_replace edit_block",  # Cursor, Roo, Desktop Commander
        _DRY_RUN,
        "preview expect",
        (
            Habit("use_regex", _BOOLEAN, {True: "an edit finds its text as it is"}, "is_regex regex"),
            Habit("expected_replacements", _INTEGER, _counted, "expected_occurrences expected_count"),
            _one_path("edit"),
        ),
    ),
    "multi_edit": Habits(
        # VS Code, opencode; Windsurf has the last two.
        "multi_replace_string_in_file multiedit replace_file_content multi_replace_file_content",
        _DRY_RUN,
        "preview",
        (
            Habit("edits", _ANY, _edits),
            *(Habit(name, kind, _one_edit) for name, kind in _EDIT.items()),
            _one_path("multi_edit"),
        ),
    ),
    "append": Habits("append_file append_to_file", foreign=(_one_path("append"),)),
    "edit_lines": Habits("", _DRY_RUN, "preview", (_one_path("edit_lines"),)),
    "delete": Habits(
        "delete_file remove remove_file rm unlink",
        {"recursive": _RECURSIVE},
        foreign=(_one_path("delete"),),
    ),
    "ls": Habits(
        # Cursor, Gemini CLI, Cline, opencode; the last one is of the filesystem server of MCP.
        "list_dir list_directory list_files list dir list_directory_with_sizes",
        {**_HIDDEN, **_PATHS},
        "hidden ignore",
        (Habit("recursive", _BOOLEAN, {True: {"depth": 0}, False: {"depth": 1}}, _RECURSIVE), _RESPECT),
        "path",
    ),
    "glob": Habits(
        "find_by_name glob_search file_glob_search find_files",  # Windsurf, Continue
        {"pattern": "name file_mask patterns", **_HIDDEN, **_EXCLUDE, **_PATHS},
        "hidden exclude max_depth",
        (
            Habit("recursive", _BOOLEAN, _depth_of_glob, _RECURSIVE),
            Habit("case_sensitive", _BOOLEAN,
                  {False: "a glob matches case; write both cases, such as `[Rr]eadme*`"}),
            _RESPECT,
        ),
        "pattern path",
    ),
    "grep": Habits(
        # SWE-agent and Serena have the last two.
        "search grep_search search_file_content search_content ripgrep rg search_text search_dir "
        "search_for_pattern",
        {
            # The options of ripgrep and grep, short (also in Claude Code's Grep) and long. Serena has
            # `context_lines_before`, pi `literal`, Crush `literal_text`.
            "before": "b before_context context_before lines_before context_lines_before",
            "after": "a after_context context_after lines_after context_lines_after",
            "fixed_strings": "f literal fixed_string is_literal literal_text",
            "word": "w whole_word match_whole_word word_regexp",
            "multiline": "u",
            "hidden": "include_hidden show_hidden",
            **_EXCLUDE,
            **_PATHS,
        },
        "before after fixed_strings word exclude hidden",
        (
            # Cursor, Gemini CLI.
            Habit("case_sensitive", _BOOLEAN,
                  {True: {"ignore_case": False}, False: {"ignore_case": True}}, "match_case"),
            # VS Code, Windsurf.
            Habit("is_regex", _BOOLEAN, {False: {"fixed_strings": True}}, "is_regexp use_regex"),
            Habit("recursive", _BOOLEAN, {False: "every level is searched; narrow it with glob"}, _RECURSIVE),
            Habit("line_numbers", _BOOLEAN, {False: "lines are always numbered"},
                  "n line_number show_line_numbers"),
            # Gemini CLI has `names_only`.
            Habit("files_only", _BOOLEAN, {True: {"output_mode": "files_with_matches"}},
                  "l files_with_matches names_only"),
            Habit("output_mode", _ANY, _output_mode),
            # `grep -c` counts; `-C 3` and `-c 3` are lines of context.
            Habit("c", UnionOf((_BOOLEAN, _INTEGER)), _count_or_context, "count"),
            _RESPECT,
        ),
        "path",
    ),
    "move": Habits(
        "rename move_file rename_file mv",
        _FROM_TO,
        foreign=(Habit("new_name", _STRING, _new_name), _one_path("move")),
    ),
    # In Anthropic's older text editor, undo_edit takes back the last change of one file.
    "undo": Habits("undo_edit", {**_STEPS, "paths": "path files file_path"}),
    "redo": Habits("", _STEPS),
    "checkpoint": Habits("", {"name": "label message title"}),
    "rollback": Habits("", {"to": "name checkpoint checkpoint_name checkpoint_id label id"}),
    "replace": Habits(
        "",
        {
            "old_string": "pattern",
            "expect": "expected_replacements expected_count",
            "word": "whole_word match_whole_word",
            "regex": "use_regex is_regex is_regexp",
            **_DRY_RUN,
            **_PATHS,
        },
        "preview word regex",
        lists="path",
    ),
}  # fmt: skip
# Parameters that only explain the call, in Cursor and VS Code, Windsurf, OpenHands, Cline, and Gemini CLI.
_REASONS = "explanation tool_summary security_risk task_progress instruction"
REASONS = tuple(Habit(name, _ANY) for name in _REASONS.split())
