"""The parser of the command line: a command for each tool, from its parameters, and the others."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any, NoReturn

import agentfs
from agentfs.cli.command_options import CommandOptions
from agentfs.cli.history_commands import show_diff, show_log
from agentfs.cli.output import FAILED, print_error
from agentfs.cli.servers import serve, serve_mcp
from agentfs.cli.tool_commands import PATH_COMMANDS, POSITIONAL, option_name, run_call, run_tool, show_schemas
from agentfs.providers import FORMATS
from agentfs.text.nearest import nearest
from agentfs.tools.kinds import Boolean, Choice, Kind, ListOf, OptionalOf, Parameter, Scalar, UnionOf
from agentfs.tools.spec import Tool, exposable, make_tool
from agentfs.workspace import Workspace

# Commands that are useless without a state directory.
_HISTORY_COMMANDS = {"undo", "redo", "checkpoint", "rollback"}
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
    "--color": {"choices": ("auto", "always", "never"), "default": "auto", "help": "colors (default: auto)"},
    "--dialect": {"metavar": "NAME", "help": "offer the tools of this dialect"},
}
# Environment variables with defaults of options; an empty one counts as unset.
_VARIABLES = {"--root": "AGENTFS_ROOT", "--state": "AGENTFS_STATE"}
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


def parse(argv: Sequence[str]) -> CommandOptions:
    """Return the options of a command line; raise SystemExit after help, or an error, was printed."""
    completes = "_ARGCOMPLETE" in os.environ
    parser, commands = _parser(argv[0] if argv and not completes else "")
    if completes:
        _complete(parser)
    command = commands.get(argv[0]) if argv else None
    if command is None and argv and not argv[0].startswith("-"):
        near = nearest(argv[0], commands)
        parser.error(f"{argv[0]!r} is not a command." + (f" Did you mean {near!r}?" if near else ""))
    if command is None:
        parser.parse_args(argv)
        parser.error("a COMMAND is required.")
    # Options may follow paths. The method for that drops the argument after a `--`.
    parse_known = command.parse_known_args if "--" in argv else command.parse_known_intermixed_args
    namespace, unknown = parse_known(argv[1:])
    if unknown:
        command.error(_unknown(command, unknown))
    found = vars(namespace)
    tool: Tool | None = found.pop("tool", None)
    if tool is not None:
        names = [each.name for each in tool.parameters if each.name in found]
        found |= {"given": {name: found.pop(name) for name in names}, "run": partial(run_tool, tool)}
    return CommandOptions(**found)


def _complete(parser: argparse.ArgumentParser) -> None:
    """Print the completions that a shell asks for, and end the process."""
    import argcomplete  # noqa: PLC0415 - the extra `cli`

    argcomplete.autocomplete(parser)


def _unknown(command: argparse.ArgumentParser, unknown: Sequence[str]) -> str:
    """Return what is wrong with arguments that a command does not take."""
    option = next((each.partition("=")[0] for each in unknown if each.startswith("-")), "")
    if not option:
        return f"too many arguments: {' '.join(unknown)}"
    near = nearest(option, command._option_string_actions)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - argparse has no public list
    return f"there is no option {option}." + (f" Did you mean {near}?" if near else "")


class _Parser(argparse.ArgumentParser):
    """Reports an error in one line, without the usage."""

    def error(self, message: str) -> NoReturn:
        end = "" if message.endswith((".", "?")) else "."
        print_error(f"{self.prog}: {message}{end} See {self.prog} --help.")
        sys.exit(FAILED)


def _parser(wanted: str) -> tuple["_Parser", dict[str, "_Parser"]]:
    """Return the parser, and the parser of each command; of `wanted` alone if that is a tool."""
    parser = _Parser(prog="agentfs", description="File tools for LLM agent loops.")
    parser.add_argument("-V", "--version", action="version", version=f"agentfs {agentfs.__version__}")
    commands = parser.add_subparsers(metavar="COMMAND")
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
    call.set_defaults(run=run_call)

    schemas = _add_command(commands, "schemas", "print the tools' schemas as JSON")
    schemas.add_argument("--format", default="openai", choices=FORMATS, help="the provider (default: openai)")
    schemas.add_argument("--strict", action="store_true", help="schemas for the provider's strict mode")
    _add_common(schemas, "--dialect", "--root")
    schemas.set_defaults(run=show_schemas)

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
    mcp.set_defaults(run=serve_mcp)

    serving = _add_command(
        commands, "serve", "serve a client of agentfs.connect on standard input and output"
    )
    serving.description = (
        f"{serving.description}\n"
        "It ends when the input ends. A client can narrow what the options allow, but never widen it."
    )
    serving.add_argument("--root", required=True, metavar="DIR", help="the directory to serve")
    serving.add_argument("--state", metavar="DIR", help="persist journal and read history in DIR")
    serving.add_argument("--session", metavar="ID", help="the only session to serve")
    serving.add_argument("--read-only", action="store_true", help="change nothing")
    any_policy_help = "let the client choose any policy, limits and state"
    serving.add_argument("--any-policy", action="store_true", help=any_policy_help)
    serving.set_defaults(run=serve)

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


class _OneOrMore(argparse.Action):
    """A list; a single value may be the JSON of one."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        *_: Any,
    ) -> None:
        setattr(namespace, self.dest, values[0] if len(values) == 1 else values)


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
    log.set_defaults(run=show_log)
    diff = _add_command(commands, "diff", "print all changes as one patch for git apply")
    diff.add_argument(
        "--since", metavar="CHECKPOINT", help="only changes after this checkpoint (default: all)"
    )
    paths_help = "only what changed at or below this path; may be repeated"
    diff.add_argument("--paths", action="append", metavar="PATHS", help=paths_help)
    _add_common(diff, "--json", "--color")
    _add_state(diff)
    diff.set_defaults(run=show_diff)


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
    if tool.name in PATH_COMMANDS:
        null_help = "print data, with a NUL after each path instead of a line feed (for `xargs -0`)"
        group.add_argument("-0", "--null", action="store_true", help=null_help)
    if tool.name == "grep":
        regexp_help = "search for this pattern; may be repeated, and all other arguments are paths"
        command.add_argument("-e", "--regexp", action="append", metavar="PATTERN", help=regexp_help)
        for option, (long, mode, mode_help) in _OUTPUT_MODES.items():
            command.add_argument(
                option, long, action="store_const", dest="output_mode", const=mode, help=mode_help
            )
    if tool.name in PATH_COMMANDS:
        json_help = "print a JSON object for each entry, one on a line"
        group.add_argument("--json", action="store_true", default=False, help=json_help)
    else:
        _add_common(group, "--json")
    _add_common(group, "--color")
    if tool.name in _HISTORY_COMMANDS:
        _add_state(group)
    else:
        _add_common(group, "--root", "--state")
    command.set_defaults(tool=tool)


def _add_parameter(command: argparse.ArgumentParser, tool: str, parameter: Parameter) -> None:
    text = parameter.full_description().replace("%", "%%")
    settings = _settings(parameter.value_kind, parameter.name)
    if parameter.required:
        if parameter.name == "content":
            text += " `-` reads standard input."
        if settings.pop("action", None):  # a list
            settings |= {"nargs": "+", "action": _OneOrMore}
        if tool == "grep":  # `-e` also takes the pattern
            settings["nargs"] = "?"
        command.add_argument(parameter.name, help=text, **settings)
        return
    if parameter.name in POSITIONAL:
        if tool in PATH_COMMANDS:
            settings |= {"nargs": "*", "default": []}
        else:
            settings |= {"nargs": "?", "default": parameter.default}
        command.add_argument(parameter.name, help=text, **settings)
        return
    if settings.get("action") == "store_true" and parameter.default is not False:
        settings["action"] = argparse.BooleanOptionalAction
    names = [option_name(parameter.name)]
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
        case UnionOf() if all(isinstance(option, Scalar) for option in kind.parts):
            return {"metavar": name.upper()}
        case OptionalOf():
            return _settings(kind.kind, name)
        case _:
            return {"metavar": "JSON"}
