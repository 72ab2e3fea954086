"""The tools as commands, `agentfs call` and `agentfs schemas`."""

import math
import os
import re
import shlex
import stat
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import agentfs
from agentfs import history
from agentfs.arguments.kinds import Parameter
from agentfs.base import call_context
from agentfs.base.advice import METHODS, Names, NextCall, Style, StyleKind, shown_in
from agentfs.cli.colors import color_style, uses_color
from agentfs.cli.command_options import CommandOptions
from agentfs.cli.output import (
    FAILED,
    data_of,
    encoded,
    input_bytes,
    input_text,
    print_error,
    print_text,
    progress,
    records_of,
    wants_data,
    write_output,
)
from agentfs.errors import InvalidArgumentError
from agentfs.habits.lenient import parse_arguments
from agentfs.limits import MIB, Limits
from agentfs.results import ToolResult
from agentfs.text import decode, escape_controls, footer, to_json
from agentfs.tools.result import ToolNames
from agentfs.tools.tool import Tool, exposable
from agentfs.tools.toolset import Toolset
from agentfs.workspace import Workspace

# The commands that take several paths and print a line for each entry.
PATH_COMMANDS = {"ls", "glob", "find", "grep"}
_NOTHING_FOUND = 1
_STDIN = "<stdin>"  # the path of standard input in the output of `rg`
_MOST = 2**31 - 1
# Limits of results that go to a pipe. A matching line may have 10 MiB.
_COUNTS = (
    "read_lines",
    "read_bytes",
    "line_chars",
    "list_entries",
    "glob_results",
    "grep_results",
    "walk_entries",
)
_UNCUT = Limits(
    **dict.fromkeys((*_COUNTS, "output_tokens"), _MOST),
    grep_line_chars=10 * MIB,
    timeout=math.inf,
    count_tokens=lambda _: 0,
)


def run_tool(tool: Tool, options: CommandOptions) -> int:
    """Run a tool, once for each path."""
    given = dict(options.given)
    if given.get("content") == "-":
        given["content"] = input_text()
    if given.get("invert"):  # lines without a match have no matched part
        options = replace(options, only_matching=False)
    if options.quiet:
        given |= {"output_mode": "files_with_matches", "limit": 1}
    limits = _UNCUT if wants_data(options.color) else None
    with _open(options, limits) as workspace:
        # Every tool is a command, so an error may suggest any of them.
        names = [name for name in workspace.tool_names() if name != "changes"]
        expose = {"read": ["line_ids"], "grep": ["line_ids"]}
        expose[tool.name] = exposable(getattr(workspace, tool.name))
        tools = _CommandTools([getattr(workspace, name) for name in names], expose=expose)
        calls, all_given = _Calls(options, workspace, tools, tool), [given]
        if tool.name in PATH_COMMANDS:
            paths = _paths_after_pattern(tool, given, options.regexp)
            if tool.name == "grep" and not paths and "files" not in given and _is_piped():
                paths = ["-"]
            all_given = [{**given, "path": calls.searchable(path)} for path in paths] or [given]
        statuses = [calls.run(each) for each in all_given]
    if options.quiet and 0 in statuses:  # as `rg`, whatever else failed
        return 0
    return FAILED if FAILED in statuses else min(statuses)


def run_call(options: CommandOptions) -> int:
    """Run a tool with the arguments of a model."""
    text = input_text() if options.arguments == "-" else options.arguments
    with _open(options) as workspace:
        calls = _Calls(options, workspace, workspace.tools(dialect=options.dialect or "agentfs"))
        result = calls.ask(options.name, text)
        return calls.show(result, parse_arguments(text) if result.success else {})


def show_schemas(options: CommandOptions) -> int:
    """Print the schemas of the tools."""
    with Workspace(options.root or ".") as workspace:
        tools = workspace.tools(dialect=options.dialect or "agentfs")
        schemas = tools.schemas(options.format, strict=options.strict)
    print_text(to_json(schemas, indent=2))
    return 0


def words_of(command: str) -> list[str]:
    """Return the words of the command that `--connect` names."""
    try:
        return shlex.split(command)
    except ValueError as error:  # such as "No closing quotation"
        raise InvalidArgumentError(f"--connect {command!r} is not a command: {error}.") from None


def _open(options: CommandOptions, limits: Limits | None = None) -> Workspace:
    """Open a workspace, by default that of the state directory, and print its recovery notes."""
    root, state, command = options.root, options.state, options.connect
    workspace: Workspace
    with progress() as report:
        if command is not None:
            report(f"connecting: {command}")
            workspace = agentfs.connect(words_of(command), root or ".", state=state)
        else:
            if root is None and state is not None:
                root = history.storage.state.root_of(state)
            place = options.place if root is None or root == options.root else root
            workspace = Workspace(place, mounts=options.mounts, state=state, limits=limits)
    for note in workspace.recovery_notes:
        print_error(f"agentfs: {note}")
    return workspace


def _paths_after_pattern(tool: Tool, given: dict[str, Any], patterns: Sequence[str]) -> list[str]:
    """Take the paths out of the given arguments; with `-e` or `find -g` all others are paths."""
    paths: list[str] = given.pop("path")
    if (patterns or (tool.name == "find" and "glob" in given)) and "pattern" in given:
        paths.insert(0, given.pop("pattern"))
    if patterns:
        if len(patterns) > 1:
            fixed = given.pop("fixed_strings", False)
            patterns = ["|".join(f"(?:{re.escape(each) if fixed else each})" for each in patterns)]
        given["pattern"] = patterns[0]
    elif tool.name == "grep" and "pattern" not in given:
        raise InvalidArgumentError("grep needs a PATTERN, or -e PATTERN.")
    return paths


def _is_piped() -> bool:
    """Return True if standard input is a pipe, a file or a socket, as `rg` decides to search it."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (AttributeError, OSError, ValueError):  # it is closed, or a program has replaced it
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)


@dataclass
class _Calls:
    """The calls of one command; prints their results."""

    options: CommandOptions
    workspace: Workspace
    tools: Toolset
    tool: Tool | None = None  # None for `call`
    _input: str = ""  # the name under which the text of standard input is kept
    _left_out: list[str] = field(default_factory=list[str])  # the notes in the text of the last result
    _divides: bool = False

    def __post_init__(self) -> None:
        options = self.options
        is_ours = options.dialect in {None, "agentfs"}
        self._is_list = self.tool is not None and self.tool.name in PATH_COMMANDS
        lists = options.null or options.only_matching or options.long
        self._is_data = lists or (self._is_list and options.json) or wants_data(options.color)
        self._style: Style | None = None
        if is_ours and not options.json and self._is_data:
            self._style = self._without_notes
        elif is_ours and not options.json and uses_color(options.color):
            colored = color_style()
            self._style = lambda kind, text: colored(kind, _STDIN if text == self._input else text)

    def searchable(self, path: str) -> str:
        """Return the path to search; for `-`, the name of a kept text of standard input."""
        if path != "-":
            return path
        self._input = self._input or self.workspace.keep(decode(input_bytes()).text, kind="stdin")
        return self._input

    def run(self, given: dict[str, Any]) -> int:
        """Run the tool, print its result, and return the exit status."""
        tool = cast("Tool", self.tool)
        result = self.ask(tool.name, given)
        # The data of one result is at most 64 MiB, so a pipe gets one result after the other.
        while result.next and self._is_list and wants_data(self.options.color) and "limit" not in given:
            self.show(result, given, last=False)
            result = self.ask(tool.name, result.next["arguments"])
        return self.show(result, given)

    def ask(self, name: str, arguments: str | dict[str, Any]) -> ToolResult:
        """Call a tool, with progress on a terminal."""
        self._left_out.clear()
        with progress() as report, shown_in(self._style):
            call = call_context.Execution(
                name, on_progress=lambda entries: report(f"looked at {entries:,} entries")
            )
            token = call_context.current.set(call)
            try:
                return self.tools.call(name, arguments)
            finally:
                call_context.current.reset(token)

    def show(self, result: ToolResult, given: Mapping[str, Any], *, last: bool = True) -> int:
        """Print a result and return the exit status. Only the `last` page has notes."""
        facts: Any = result.data
        data = self._with_input(cast("dict[str, Any]", facts)) if isinstance(facts, dict) else {}
        if self.options.json and not self._is_list:
            print_text(to_json(result.to_dict()))
        elif not result.success:
            print_error(result.content)
            if hint := self._hint(result):
                print_error(hint)
        elif self.options.quiet:
            pass
        elif self._is_data:
            for line in self._print_data(result, data, given):
                if line and last:
                    print_error(line)
        elif self._style is not None:
            write_output(f"{result.content}\n")  # its parts are visible, and its control characters colours
        else:
            print_text(result.content)
        if not result.success:
            return FAILED
        found = data.get("total_matches", data.get("total") if "files" in data else None)
        return _NOTHING_FOUND if found == 0 else 0

    def _print_data(
        self, result: ToolResult, data: Mapping[str, Any], given: Mapping[str, Any]
    ) -> Sequence[str]:
        """Print the data of a result on standard output; return what belongs on standard error."""
        mode = given.get("output_mode", "content")
        found = None
        # `call` prints the text that a model gets, unless that is a list of paths, maybe drawn as a tree.
        if self.options.json:
            found = b"".join(encoded(to_json(each) + "\n") for each in records_of(data, mode))
        elif self.tool is not None or data.keys() >= {"next", "skipped"}:
            context = mode == "content" and any(map(given.get, ("context", "before", "after")))
            found = data_of(data, mode, self.workspace.root, self.options, context=context)
            if found and context:  # as between the files of one search
                found = (b"--\n" if self._divides else b"") + found
                self._divides = True
        if found is None and result.content:
            print_text(result.content)
        if not found:
            return [*([] if found is None else [result.content]), *self._left_out, *result.notes]
        if sys.stdout.isatty() and not self.options.null and not self.options.json:
            found = encoded(escape_controls(os.fsdecode(found)))
        write_output(found)
        notes = [] if result.notes else [footer(*data.get("notes", ()))]
        if "failed" in data:  # the files of `read_many` have footers of their own
            notes += [f"{path}: {code}" for path, code in data["failed"].items()]
            notes += [f"{path}: left out" for path in data["left"]]
            notes += [f"{file['path']}: cut" for file in data["files"] if file["truncated_by"]]
        return [*notes, *result.notes]

    def _without_notes(self, kind: StyleKind, text: str) -> str:
        """Leave notes out of a text; they are printed on standard error."""
        if kind not in {"note", "footer"}:
            return text
        self._left_out.append(text)
        return ""

    def _with_input(self, data: dict[str, Any]) -> dict[str, Any]:
        """Return the data of a search with the usual name of standard input."""
        if not self._input or self._input not in data.get("counts", ()):
            return data
        matches = [{**match, "path": _STDIN} for match in data["matches"]]
        return {**data, "matches": matches, "counts": {_STDIN: data["counts"][self._input]}}

    def _hint(self, result: ToolResult) -> str:
        """Return advice that only the command line can give."""
        code = (result.error or {}).get("code")
        if self.tool is not None and code == "unread" and self.options.state is None:
            return "Without --state DIR no earlier read counts. `write` also takes --overwrite."
        return ""


class _CommandNames(ToolNames):
    """Suggestions in the spelling of the command line."""

    def parameter(self, name: str) -> str | None:
        visible = super().parameter(name)
        positional = visible in _positional(self._called)
        return visible.upper() if visible and positional else visible and option_name(visible)

    def call_text(self, call: NextCall) -> str:
        given, wanted = self._values, call["arguments"]
        tool = next(tool for tool in self._tools if tool.name == call["name"])
        positional = _positional(tool)
        if tool.name == "find" and "glob" in wanted:  # all positional arguments are paths
            positional = ["path"]
        elif tool.name == "find":
            wanted = {"pattern": ".", **wanted}
        changed = {name: value for name, value in wanted.items() if given.get(name) != value}
        again = tool is self._called and given.keys() <= wanted.keys()
        if again and changed and changed.keys().isdisjoint(positional):
            return " ".join(_option(*each) for each in changed.items())
        words = [_option(*each) for each in wanted.items() if each[0] not in positional]
        values = [_word(wanted[name]) for name in positional if name in wanted]
        if any(value.startswith("-") for value in values):
            words.append("--")
        return f"`{' '.join(['agentfs', tool.name, *words, *values])}`"

    def argument_text(self, name: str, value: Any) -> str:
        return _word(value) if name in _positional(self._called) else _option(name, value)


class _CommandTools(Toolset):
    """The tools as commands."""

    def _names(self, tool: Tool | None, values: Mapping[str, Any]) -> Names:
        return METHODS if tool is None else _CommandNames(tuple(self._tools.values()), tool, values)


def is_positional(parameter: Parameter) -> bool:
    """Return True if a parameter of a tool is positional on the command line."""
    return parameter.required or parameter.name in {"pattern", "path", "steps", "name"}


def _positional(tool: Tool) -> list[str]:
    names = [each.name for each in tool.parameters if is_positional(each)]
    return sorted(names, key=lambda name: name != "pattern")  # first in `find`, as in `fd`


def option_name(parameter: str) -> str:
    """Return the option of a parameter."""
    return f"--{parameter.replace('_', '-')}"


def _option(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return option_name(name if value else f"no_{name}")
    values: list[Any] = value if isinstance(value, list) else [value]  # pyright: ignore[reportUnknownVariableType] - of JSON
    return " ".join(f"{option_name(name)} {_word(each)}" for each in values)


def _word(value: Any) -> str:
    return shlex.quote(value if isinstance(value, str) else to_json(value))
