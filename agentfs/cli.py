"""The command line `agentfs`: every tool as a command, history, schemas, `mcp` and `serve`."""

import argparse
import contextlib
import json
import math
import os
import re
import shlex
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, cast

import agentfs
from agentfs import call_context, history, remote
from agentfs.advice import METHODS, Names, NextCall
from agentfs.arguments.kinds import Boolean, Choice, Kind, ListOf, OptionalOf, Parameter, Scalar, UnionOf
from agentfs.completion import SHELLS
from agentfs.errors import AgentFSError, EncodingError, FileIOError, InvalidArgumentError, RefusedError
from agentfs.fs import Root
from agentfs.fs.settings_file import places_inside, read_settings
from agentfs.habits.lenient import parse_arguments
from agentfs.history import Timeline
from agentfs.history.timeline import Step
from agentfs.limits import MIB, Limits
from agentfs.permissions import READING
from agentfs.policy import Policy
from agentfs.providers import FORMATS
from agentfs.results import ToolResult
from agentfs.terminal import (
    COLOR_CHOICES,
    OutputError,
    data_of,
    encoded,
    paint_diff,
    paint_result,
    print_error,
    print_text,
    progress,
    records_of,
    wants_data,
    write_output,
)
from agentfs.text import footer, to_json
from agentfs.text.nearest import nearest
from agentfs.tools.result import ToolNames
from agentfs.tools.spec import Tool, exposable, make_tool
from agentfs.tools.toolset import Toolset
from agentfs.workspace import Workspace

NOTHING_FOUND = 1
FAILED = 2
INTERRUPTED = 130
_TIME = "%Y-%m-%d %H:%M:%S"
# Commands that are useless without a state directory.
_HISTORY_COMMANDS = {"undo", "redo", "checkpoint", "rollback"}
# Optional parameters that are positional on the command line.
_POSITIONAL = {"path", "steps", "name"}
# Options that several commands have.
_COMMON: dict[str, dict[str, Any]] = {
    "--root": {
        "default": ".",
        "metavar": "DIR",
        "help": "the workspace (default: that of AGENTFS_ROOT, or here)",
    },
    "--state": {
        "default": None,
        "metavar": "DIR",
        "help": "persist journal and read history in DIR (default: that of AGENTFS_STATE, if set)",
    },
    "--connect": {
        "default": None,
        "metavar": "COMMAND",
        "help": "a command prefix that reaches the host of the root, such as 'ssh host'",
    },
    "--json": {"action": "store_true", "default": False, "help": "print the whole result as JSON"},
    "--color": {"choices": COLOR_CHOICES, "default": "auto", "help": "colors (default: auto)"},
    "--dialect": {"default": "agentfs", "metavar": "NAME", "help": "offer the tools of this dialect"},
}
# Environment variables with defaults of options; an empty one counts as unset.
_VARIABLES = {"--root": "AGENTFS_ROOT", "--state": "AGENTFS_STATE"}
# The commands that take several paths and print a line for each entry.
_PATH_COMMANDS = {"ls", "glob", "find", "grep"}
# Short options, as `rg` and `fd` have them.
_SHORT = {
    "grep": {
        "ignore_case": "-i",
        "smart_case": "-S",
        "word": "-w",
        "whole_line": "-x",
        "line_numbers": "-n",
        "fixed_strings": "-F",
        "multiline": "-U",
        "invert": "-v",
        "after": "-A",
        "before": "-B",
        "context": "-C",
        "glob": "-g",
        "type": "-t",
        "max_count": "-m",
        "follow_symlinks": "-L",
    },
    "find": {
        "types": "-t",
        "extensions": "-e",
        "glob": "-g",
        "exclude": "-E",
        "max_depth": "-d",
        "follow_symlinks": "-L",
    },
    "glob": {"types": "-t", "exclude": "-E"},
    "delete": {"recursive": "-r"},
}
_RULES = {"deny": "refuse these calls", "ask": "ask the user first", "allow": "of all changes, allow these"}
_OUTPUT_MODES = {
    "-l": ("--files-with-matches", "files_with_matches", "print only the paths of files with matches"),
    "-c": ("--count", "count", "print only the number of matching lines of each file"),
}
_MOST = 2**31 - 1
# Limits of results that go to a pipe. A matching line may have 10 MiB.
_UNCUT = Limits(
    read_lines=_MOST,
    read_bytes=_MOST,
    line_chars=_MOST,
    list_entries=_MOST,
    glob_results=_MOST,
    grep_results=_MOST,
    grep_line_chars=10 * MIB,
    walk_entries=_MOST,
    timeout=math.inf,
    output_tokens=_MOST,
    count_tokens=lambda _: 0,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: The arguments; by default those of the process.

    Returns:
        The exit status: 0 for success, 1 if a search found nothing, 2 if the command failed or was malformed.
    """
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison] - None if it is closed
        print_error("agentfs: Standard output is closed.")
        return FAILED
    if reconfigure := getattr(sys.stdout, "reconfigure", None):
        reconfigure(errors="backslashreplace")
    try:
        status = _run(argv)
        write_output()
    except AgentFSError as error:
        print_error(f"agentfs: {error}")
        return FAILED
    except OutputError as failure:
        sys.stdout = None  # or Python complains again when it flushes at exit
        if isinstance(failure.__cause__, BrokenPipeError):  # the reader is gone, as after `| head`
            return 0
        reason = getattr(failure.__cause__, "strerror", None)
        print_error(f"agentfs: Standard output cannot be written: {reason}.")
        return FAILED
    except OSError as error:
        name = "" if error.filename is None else f" on {error.filename!r}"
        print_error(f"agentfs: The system failed{name}: {error.strerror or error}.")
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    return status


def _run(argv: Sequence[str] | None) -> int:
    try:
        arguments = _parse(sys.argv[1:] if argv is None else argv)
    except SystemExit as end:  # argparse has printed help or an error
        return end.code if isinstance(end.code, int) else FAILED
    status: int = arguments.run(arguments)
    return status


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser, commands = _parser(argv[0] if argv else "")
    command = commands.get(argv[0]) if argv else None
    if command is None and argv and not argv[0].startswith("-"):
        near = nearest(argv[0], commands)
        parser.error(f"{argv[0]!r} is not a command." + (f" Did you mean {near!r}?" if near else ""))
    if command is None or "--" in argv:  # the other method drops the argument after a `--`
        return parser.parse_args(argv)
    return command.parse_intermixed_args(argv[1:])  # options may follow paths


def _parser(wanted: str = "") -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    """Return the parser, and the parser of each command; of `wanted` alone if that is a tool."""
    parser = argparse.ArgumentParser(prog="agentfs", description="File tools for LLM agent loops.")
    parser.add_argument("-V", "--version", action="version", version=f"agentfs {agentfs.__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    unopened = object.__new__(Workspace)
    names = [name for name in unopened.tool_names() if name != "changes"]
    chosen = [name for name in names if name == wanted.replace("-", "_")] or names
    for method in (getattr(unopened, name) for name in chosen):
        _add_tool(commands, make_tool(method, expose=exposable(method)))
    if chosen is not names:
        return parser, commands.choices

    call = _add_command(commands, "call", "run one tool with the arguments a model would send")
    call.add_argument("name", metavar="NAME", help="the tool, such as read")
    json_help = "its arguments as a JSON object; - reads standard input"
    call.add_argument("arguments", metavar="JSON", help=json_help)
    _add_common(call, "--json", "--color", "--dialect", "--root", "--state", "--connect")
    call.set_defaults(run=_call)

    schemas = _add_command(commands, "schemas", "print the tools' schemas as JSON")
    schemas.add_argument("--format", default="openai", choices=FORMATS, help="the provider (default: openai)")
    schemas.add_argument("--strict", action="store_true", help="schemas for the provider's strict mode")
    _add_common(schemas, "--dialect", "--root")
    schemas.set_defaults(run=_schemas)

    mcp = _add_command(commands, "mcp", "serve the tools over MCP")
    mcp.add_argument("--read-only", action="store_true", help="change nothing")
    mcp.add_argument("--tools", metavar="NAMES", help="the tools to offer, separated by commas")
    mcp.add_argument("--prefix", default="", help="a prefix for each tool's name")
    structured_help = "also send typed data, for clients that are programs"
    mcp.add_argument("--structured", action="store_true", help=structured_help)
    watch_help = "bytes of text to keep in memory for searches (default: 128 MiB)"
    mcp.add_argument("--watch-bytes", type=int, metavar="BYTES", default=argparse.SUPPRESS, help=watch_help)
    mcp.add_argument(
        "--no-watch",
        dest="watch_bytes",
        action="store_const",
        const=None,
        default=argparse.SUPPRESS,
        help="keep nothing in memory between searches",
    )
    mcp.add_argument("--policy", metavar="FILE", help="a policy file (TOML); the options add to it")
    for name, rules_help in _RULES.items():
        mcp.add_argument(
            f"--{name}",
            action="append",
            default=[],
            metavar="RULE",
            help=f"{rules_help}, such as 'edit(src/**)'; may be repeated",
        )
    protect_help = "a name whose contents are neither shown nor changed; may be repeated"
    mcp.add_argument("--protect", action="append", default=[], metavar="NAME", help=protect_help)
    http_help = "serve over streamable HTTP instead; port 0 takes a free one"
    mcp.add_argument("--http", metavar="HOST:PORT", help=http_help)
    name_help = "another name of the server in clients' URLs; may be repeated"
    mcp.add_argument("--http-name", action="append", default=[], metavar="NAME", help=name_help)
    token = mcp.add_mutually_exclusive_group()
    token.add_argument("--token-file", metavar="FILE", help="a file with the bearer token that clients send")
    token.add_argument("--token-env", metavar="VARIABLE", help="the environment variable with this token")
    _add_common(mcp, "--dialect", "--state", "--connect")
    root_help = "the workspace (default: that of AGENTFS_ROOT, of the policy file, or here)"
    root = _from_environment("--root")
    mcp.add_argument("--root", action=_Once, default=root, metavar="DIR", help=root_help)
    mcp.set_defaults(run=_mcp, dialect=None)

    serve = _add_command(commands, "serve", "serve a client of agentfs.connect on standard input and output")
    serve.description = (
        f"{serve.description}\n"
        "It ends when the input ends. A client can narrow what the options allow, but never widen it."
    )
    serve.add_argument("--root", required=True, metavar="DIR", help="the directory to serve")
    serve.add_argument("--state", metavar="DIR", help="persist journal and read history in DIR")
    serve.add_argument("--session", metavar="ID", help="the only session to serve")
    serve.add_argument("--read-only", action="store_true", help="change nothing")
    any_policy_help = "let the client choose any policy, limits and state"
    serve.add_argument("--any-policy", action="store_true", help=any_policy_help)
    serve.set_defaults(run=_serve)

    completion = _add_command(commands, "completion", "print the completion script of a shell")
    completion.add_argument("shell", choices=SHELLS, metavar=f"{{{','.join(SHELLS)}}}", help="the shell")
    completion.set_defaults(run=_completion)

    _add_history(commands)
    return parser, commands.choices


def _add_command(commands: Any, name: str, summary: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=summary, description=f"{summary[0].upper()}{summary[1:]}."
    )
    return parser


def _add_common(command: Any, *names: str) -> None:
    for name in names:
        settings = _COMMON[name]
        if default := _from_environment(name):
            settings = {**settings, "default": default}
        command.add_argument(name, **settings)


def _from_environment(option: str) -> str | None:
    return os.environ.get(_VARIABLES.get(option, "")) or None


class _Once(argparse.Action):
    """An option that may be given once."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, *_: Any
    ) -> None:
        if getattr(namespace, self.dest) is not self.default:
            parser.error("several roots are not supported: start one server for each --root")
        setattr(namespace, self.dest, values)


def _add_history(commands: Any) -> None:
    log = _add_command(commands, "log", "list the steps, the latest first")
    log.add_argument("--limit", type=int, metavar="N", help="most steps to show (default: all)")
    _add_common(log, "--json")
    _add_state(log)
    log.set_defaults(run=_log)
    diff = _add_command(commands, "diff", "print all changes as one patch for git apply")
    diff.add_argument(
        "--since", metavar="CHECKPOINT", help="only changes after this checkpoint (default: all)"
    )
    paths_help = "only what changed at or below this path; may be repeated"
    diff.add_argument("--paths", action="append", metavar="PATHS", help=paths_help)
    _add_common(diff, "--json", "--color")
    _add_state(diff)
    diff.set_defaults(run=_diff)


def _add_state(command: Any) -> None:
    state = _from_environment("--state")
    state_help = "the state directory (default: that of AGENTFS_STATE)"
    command.add_argument("--state", required=state is None, default=state, metavar="DIR", help=state_help)
    root_help = "the workspace (default: that of AGENTFS_ROOT, or of the state directory)"
    command.add_argument("--root", default=_from_environment("--root"), metavar="DIR", help=root_help)


def _add_tool(commands: Any, tool: Tool) -> None:
    dashed = tool.name.replace("_", "-")
    command = commands.add_parser(
        tool.name,
        help=tool.description.split("\n", maxsplit=1)[0].replace("%", "%%"),
        description=tool.description.replace("%", "%%"),
        aliases=[dashed] if dashed != tool.name else [],
        argument_default=argparse.SUPPRESS,
    )
    for parameter in tool.parameters:
        _add_parameter(command, tool.name, parameter)
    group = command.add_argument_group("about the command")
    if tool.name in _PATH_COMMANDS:
        null_help = "print data, with a NUL after each path instead of a line feed (for `xargs -0`)"
        group.add_argument("-0", "--null", action="store_true", help=null_help)
    if tool.name == "grep":
        regexp_help = "search for this pattern; may be repeated, and all other arguments are paths"
        command.add_argument("-e", "--regexp", action="append", metavar="PATTERN", help=regexp_help)
        for option, (long, mode, mode_help) in _OUTPUT_MODES.items():
            command.add_argument(
                option, long, action="store_const", dest="output_mode", const=mode, help=mode_help
            )
    if tool.name in _PATH_COMMANDS:
        json_help = "print a JSON object for each entry, one on a line"
        group.add_argument("--json", action="store_true", default=False, help=json_help)
    else:
        _add_common(group, "--json")
    _add_common(group, "--color")
    if tool.name in _HISTORY_COMMANDS:
        _add_state(group)
    else:
        _add_common(group, "--root", "--state")
    command.set_defaults(run=_run_tool, tool=tool)


def _add_parameter(command: argparse.ArgumentParser, tool: str, parameter: Parameter) -> None:
    text = parameter.full_description().replace("%", "%%")
    settings = _settings(parameter.value_kind, parameter.name)
    if parameter.required:
        if parameter.name == "content":
            text += " `-` reads standard input."
        settings.pop("action", None)
        if tool == "grep":  # `-e` also takes the pattern
            settings["nargs"] = "?"
        command.add_argument(parameter.name, help=text, **settings)
        return
    if parameter.name in _POSITIONAL:
        if tool in _PATH_COMMANDS:
            settings |= {"nargs": "*", "default": []}
        else:
            settings |= {"nargs": "?", "default": parameter.default}
        command.add_argument(parameter.name, help=text, **settings)
        return
    if settings.get("action") == "store_true" and parameter.default is not False:
        settings["action"] = argparse.BooleanOptionalAction
    names = [_option_name(parameter.name)]
    if short := _SHORT.get(tool, {}).get(parameter.name):
        names.insert(0, short)
    command.add_argument(*names, help=text, dest=parameter.name, **settings)


def _settings(kind: Kind, name: str) -> dict[str, Any]:
    """Return the settings of argparse for values of a kind. Other kinds are given as JSON."""
    match kind:
        case Boolean():
            return {"action": "store_true"}
        case Scalar():
            return {"type": kind.hint, "metavar": name.upper()}
        case Choice():
            choices = ",".join(json.dumps(value).strip('"') for value in kind.choices)
            return {"type": kind.hint, "choices": kind.choices, "metavar": f"{{{choices}}}"}
        case UnionOf() if any(isinstance(option, ListOf) for option in kind.parts):
            return {"action": "append", "metavar": name.upper()}
        case ListOf(item=Scalar()):
            return {"action": "append", "metavar": name.upper()}
        case OptionalOf():
            return _settings(kind.kind, name)
        case _:
            return {"metavar": "JSON"}


def _open(
    root: str | None, state: str | None, command: str | None = None, limits: Limits | None = None
) -> Workspace:
    """Open a workspace, by default that of the state directory, and print its recovery notes."""
    workspace: Workspace
    with progress() as report:
        if command is not None:
            report(f"connecting (the first time the package is sent): {command}")
            workspace = agentfs.connect(_words(command), root or ".", state=state)
        else:
            if root is None and state is not None:
                root = history.state.root_of(state)
            workspace = Workspace(root or ".", state=state, limits=limits)
    for note in workspace.recovery_notes:
        print_error(f"agentfs: {note}")
    return workspace


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError as error:  # such as "No closing quotation"
        raise InvalidArgumentError(f"--connect {command!r} is not a command: {error}.") from None


def _run_tool(arguments: argparse.Namespace) -> int:
    tool: Tool = arguments.tool
    given = {p.name: getattr(arguments, p.name) for p in tool.parameters if hasattr(arguments, p.name)}
    if given.get("content") == "-":
        given["content"] = _standard_input()
    calls = [given]
    if tool.name in _PATH_COMMANDS:
        paths = _paths_after_pattern(arguments, given)
        calls = [{**given, "path": path} for path in paths] or calls
    limits = _UNCUT if wants_data(arguments.color) else None
    with _open(arguments.root, arguments.state, limits=limits) as workspace:
        # Every tool is a command, so an error may suggest any of them.
        names = [name for name in workspace.tool_names() if name != "changes"]
        expose = {"read": ["line_ids"], "grep": ["line_ids"]}
        expose[tool.name] = exposable(getattr(workspace, tool.name))
        tools = _CommandTools([getattr(workspace, name) for name in names], expose=expose)
        statuses: list[int] = []
        for call in calls:
            result = _call_with_progress(tools, tool.name, call)
            # The data of one result is at most 64 MiB, so a pipe gets one result after the other.
            while result.next and limits is _UNCUT and tool.name in _PATH_COMMANDS and "limit" not in given:
                _show(
                    arguments,
                    workspace,
                    replace(result, data={**cast("dict[str, Any]", result.data), "notes": ()}),
                    call,
                )
                result = _call_with_progress(tools, tool.name, result.next["arguments"])
            statuses.append(_show(arguments, workspace, result, call))
    return FAILED if FAILED in statuses else min(statuses)


class _CommandNames(ToolNames):
    """Suggestions in the spelling of the command line."""

    def parameter(self, name: str) -> str | None:
        visible = super().parameter(name)
        positional = visible in _positional(self._called)
        return visible.upper() if visible and positional else visible and _option_name(visible)

    def call_text(self, call: NextCall) -> str:
        given, wanted = self._values, call["arguments"]
        tool = next(tool for tool in self._tools if tool.name == call["name"])
        positional = _positional(tool)
        changed = {name: value for name, value in wanted.items() if given.get(name) != value}
        again = tool is self._called and given.keys() <= wanted.keys()
        if again and changed and changed.keys().isdisjoint(positional):
            return " ".join(self.argument_text(*each) for each in changed.items())
        words = [self.argument_text(*each) for each in wanted.items() if each[0] not in positional]
        values = [_shell_word(wanted[name]) for name in positional if name in wanted]
        if any(value.startswith("-") for value in values):
            words.append("--")
        return f"`{' '.join(['agentfs', tool.name, *words, *values])}`"

    def argument_text(self, name: str, value: Any) -> str:
        if isinstance(value, bool):
            return _option_name(name if value else f"no_{name}")
        values: list[Any] = value if isinstance(value, list) else [value]  # pyright: ignore[reportUnknownVariableType] - of JSON
        return " ".join(f"{_option_name(name)} {_shell_word(each)}" for each in values)


class _CommandTools(Toolset):
    """The tools as commands."""

    def _names(self, tool: Tool | None, values: Mapping[str, Any]) -> Names:
        return METHODS if tool is None else _CommandNames(tuple(self._tools.values()), tool, values)


def _positional(tool: Tool) -> list[str]:
    return [each.name for each in tool.parameters if each.required or each.name in _POSITIONAL]


def _option_name(parameter: str) -> str:
    return f"--{parameter.replace('_', '-')}"


def _shell_word(value: Any) -> str:
    return shlex.quote(value if isinstance(value, str) else to_json(value))


def _paths_after_pattern(arguments: argparse.Namespace, given: dict[str, Any]) -> list[str]:
    """Take the paths out of the given arguments; with `-e` all positional arguments are paths."""
    paths: list[str] = given.pop("path")
    if patterns := getattr(arguments, "regexp", None):
        if "pattern" in given:
            paths.insert(0, given["pattern"])
        if len(patterns) > 1:
            fixed = given.pop("fixed_strings", False)
            patterns = ["|".join(f"(?:{re.escape(each) if fixed else each})" for each in patterns)]
        given["pattern"] = patterns[0]
    elif arguments.tool.name == "grep" and "pattern" not in given:
        raise InvalidArgumentError("grep needs a PATTERN, or -e PATTERN.")
    return paths


def _call(arguments: argparse.Namespace) -> int:
    text = _standard_input() if arguments.arguments == "-" else arguments.arguments
    with _open(arguments.root, arguments.state, arguments.connect) as workspace:
        tools = workspace.tools(dialect=arguments.dialect)
        result = _call_with_progress(tools, arguments.name, text)
        return _show(arguments, workspace, result, parse_arguments(text) if result.success else None)


def _call_with_progress(tools: Toolset, name: str, arguments: str | dict[str, Any]) -> ToolResult:
    with progress() as report:
        call = call_context.Execution(
            name, on_progress=lambda entries: report(f"looked at {entries:,} entries")
        )
        token = call_context.current.set(call)
        try:
            return tools.call(name, arguments)
        finally:
            call_context.current.reset(token)


def _show(arguments: argparse.Namespace, workspace: Workspace, result: ToolResult, given: Any) -> int:
    facts: Any = result.data
    data = cast("dict[str, Any]", facts) if isinstance(facts, dict) else {}
    lists = hasattr(arguments, "tool") and arguments.tool.name in _PATH_COMMANDS
    if arguments.json and not lists:
        print_text(to_json(result.to_dict()))
    elif not result.success:
        print_error(result.content)
        if "tool" in arguments and arguments.state is None and (result.error or {}).get("code") == "unread":
            print_error("Without --state DIR no earlier read counts. `write` also takes --overwrite.")
    elif arguments.json or getattr(arguments, "null", False) or wants_data(arguments.color):
        _print_data(arguments, workspace, result, data, given)
    else:
        print_text(result.content, arguments.color, lambda text: paint_result(text, data))
    if not result.success:
        return FAILED
    found = data.get("total_matches", data.get("total") if "files" in data else None)
    return NOTHING_FOUND if found == 0 else 0


def _print_data(
    arguments: argparse.Namespace, workspace: Workspace, result: ToolResult, data: dict[str, Any], given: Any
) -> None:
    """Print the data of a result on standard output, and its notes and footers on standard error."""
    said: Sequence[str] = () if result.notes else data.get("notes", ())
    notes = [footer(*said)]
    found = None
    mode = given.get("output_mode", "content")
    # `call` prints the text that a model gets, unless that is a list of paths, which may be drawn as a tree.
    if arguments.json:
        found = b"".join(encoded(to_json(each) + "\n") for each in records_of(data, mode))
    elif hasattr(arguments, "tool") or data.keys() >= {"next", "skipped"}:
        context = mode == "content" and any(map(given.get, ("context", "before", "after")))
        null = getattr(arguments, "null", False)
        found = data_of(data, mode, str(workspace.root), null=null, context=context)
        if found and context:  # as between the files of one search
            found = (b"--\n" if "divides" in arguments else b"") + found
            arguments.divides = True
    if found:
        write_output(found)
        if "failed" in data:  # the files of `read_many` have footers of their own
            notes += [f"{path}: {code}" for path, code in data["failed"].items()]
            notes += [f"{path}: left out" for path in data["left"]]
            notes += [f"{file['path']}: cut" for file in data["files"] if file["truncated_by"]]
    elif found is None:
        # A note is a line of the text or a part of its footer. The text of a change has other footers too.
        beside = {*said, *(footer(*said[first:]) for first in range(len(said)))}
        lines = result.content.split("\n")
        if hasattr(arguments, "tool") and arguments.tool.effect not in READING:
            beside |= {line for line in lines if line.startswith("[")}
        notes = [line for line in lines if line in beside]
        print_text("\n".join(line for line in lines if line not in beside))
    else:
        notes = [result.content]
    for line in (*notes, *result.notes):
        if line:
            print_error(line)


def _log(arguments: argparse.Namespace) -> int:
    if arguments.limit is not None and arguments.limit < 1:
        raise InvalidArgumentError(f"--limit must be 1 or more, not {arguments.limit}.")
    rows = list(_rows(history.state.read_journal(arguments.state, arguments.root).timeline))[
        : arguments.limit
    ]
    if arguments.json:
        print_text(to_json([row for row, _ in rows]))
        return 0
    width = len(str(rows[0][0]["step"])) if rows else 1
    for row, description in rows:
        for name in row["checkpoints"]:
            print_text(f"{'':{width}}  checkpoint {json.dumps(name, ensure_ascii=False)}")
        if row["step"]:
            when = time.strftime(_TIME, time.localtime(row["time"])) if row["time"] else f"{'earlier':19}"
            undone = "undone: " if row["undone"] else ""
            print_text(f"{row['step']:{width}}  {when}  {undone}{description}")
    return 0


def _rows(timeline: Timeline) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield each step, the latest first, with the checkpoints after it; then the merged steps."""
    first, last = timeline.merged, timeline.position
    checkpoints: dict[int, list[str]] = {}
    for name, position in timeline.checkpoints.items():
        checkpoints.setdefault(position, []).append(name)

    def row(number: int, step: Step, seconds: float | None) -> dict[str, Any]:
        return {
            "step": number,
            "time": seconds,
            "label": step.label,
            "undone": number > last,
            "checkpoints": checkpoints.get(number, []),
            "files": [vars(file) for file in history.report.file_changes(step.changes, count_lines=False)],
        }

    for number, step in reversed(list(enumerate(timeline.between(first, timeline.end), first + 1))):
        yield row(number, step, step.time), history.report.describe_step(step)
    if first or 0 in checkpoints:
        yield row(first, Step(timeline.base.changes, 0.0), None), "earlier steps, merged"


def _diff(arguments: argparse.Namespace) -> int:
    # With the default policy, because the workspace that made the changes may have protected fewer names.
    journal = history.state.read_journal(arguments.state, arguments.root)
    with Root(history.state.root_of(arguments.state), Policy(read_only=True)) as root:
        changes = history.methods.changes(
            journal, root, arguments.since, arguments.paths, Limits().file_bytes
        )
    for note in changes.notes:
        print_error(f"agentfs: {note}")
    if arguments.json:
        print_text(to_json(changes.to_dict()))
    elif sys.stdout.isatty() or arguments.color == "always":
        patch = changes.patch.decode("utf-8", "backslashreplace").removesuffix("\n")
        print_text(patch, arguments.color, paint_diff)
    else:
        write_output(changes.patch)  # byte for byte
    return 0


def _schemas(arguments: argparse.Namespace) -> int:
    with Workspace(arguments.root) as workspace:
        tools = workspace.tools(dialect=arguments.dialect)
        schemas = tools.schemas(cast("str", arguments.format), strict=arguments.strict)
    print_text(to_json(schemas, indent=2))
    return 0


def _completion(arguments: argparse.Namespace) -> int:
    print_text(SHELLS[arguments.shell](_parser()[1]).removesuffix("\n"))
    return 0


def _mcp(arguments: argparse.Namespace) -> int:
    try:
        from agentfs.mcp import LIMITS, HttpAddress, WorkspaceServer  # noqa: PLC0415 - needs the extra
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "mcp":
            raise
        print_error("agentfs: the server needs the official SDK: pip install 'mcp>=2.3,<3'")
        return FAILED
    settings = _policy_of(arguments, LIMITS)
    address = None
    token = _token(arguments, settings.root or ".")
    if arguments.http is not None:
        address = HttpAddress(arguments.http, token=token, names=arguments.http_name)
    elif token is not None or arguments.http_name:
        raise InvalidArgumentError("--token-file, --token-env and --http-name need --http HOST:PORT.")
    limits = settings.limits
    watch_bytes = getattr(arguments, "watch_bytes", limits.watch_bytes)
    server = WorkspaceServer(
        settings.root or ".",
        names=[name.strip() for name in arguments.tools.split(",")] if arguments.tools else None,
        prefix=settings.prefix or "",
        dialect=settings.dialect or "agentfs",
        policy=settings.policy,
        state=arguments.state,
        command=None if arguments.connect is None else _words(arguments.connect),
        structured=arguments.structured,
        limits=limits if watch_bytes is None else replace(limits, watch_bytes=watch_bytes),
        watch=watch_bytes is not None,
    )
    if address is None and sys.stdin is not None and sys.stdin.isatty():  # pyright: ignore[reportUnnecessaryComparison] - as in `main`
        print_error("agentfs: waiting for an MCP client, which starts this command itself. Ctrl-C ends it.")
    with contextlib.suppress(KeyboardInterrupt):
        server.run(address)
    return 0


def _policy_of(arguments: argparse.Namespace, limits: Limits) -> "agentfs.PolicyFile":
    """Return the settings of the policy file and of the options, which add rules and replace the others."""
    settings = agentfs.PolicyFile(arguments.policy or "", Policy(), limits)
    if arguments.policy is not None:
        settings = agentfs.PolicyFile.read(arguments.policy, limits=limits)
    policy = settings.policy
    policy = replace(
        policy,
        deny=[*policy.deny, *arguments.deny],
        ask=[*policy.ask, *arguments.ask],
        allow=[*policy.allow, *arguments.allow],
        protect=replace(policy.protect, read=[*policy.protect.read, *arguments.protect]),
        read_only=arguments.read_only or policy.read_only,
    )
    root = arguments.root or settings.root or "."
    if arguments.policy is not None and arguments.connect is None:
        settings.check_outside(root)
    return replace(
        settings,
        policy=policy,
        root=root,
        dialect=arguments.dialect or settings.dialect,
        prefix=arguments.prefix or settings.prefix,
    )


def _token(arguments: argparse.Namespace, root: str) -> str | None:
    """Return the bearer token, or None if there is no option for one."""
    if arguments.token_env is not None:
        if not (token := os.environ.get(arguments.token_env)):
            raise InvalidArgumentError(f"The environment variable {arguments.token_env} is not set.")
        return token
    if arguments.token_file is None:
        return None
    if places_inside(root, arguments.token_file):
        raise RefusedError("The token file is in the workspace, so a model could read it.", hint="Move it.")
    try:
        return read_settings(arguments.token_file).decode().strip()
    except UnicodeDecodeError:
        raise EncodingError(f"{arguments.token_file} is not text in UTF-8.") from None


def _serve(arguments: argparse.Namespace) -> int:
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison] - as in `main`
        raise InvalidArgumentError("Standard input is closed.")
    options = remote.server.Options
    return remote.server.serve(
        options(**{each.name: getattr(arguments, each.name) for each in fields(options)})
    )


def _standard_input() -> str:
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison] - as in `main`
        raise InvalidArgumentError("Standard input is closed.")
    try:
        return sys.stdin.buffer.read().decode(sys.stdin.encoding)  # without changing line ends
    except UnicodeDecodeError as error:
        raise EncodingError(
            f"Standard input is not text in {error.encoding}: byte {error.object[error.start]:#04x}."
        ) from None
    except OSError as error:
        raise FileIOError(f"Standard input cannot be read: {error.strerror}.") from None
