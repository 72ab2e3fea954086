"""The parser of the command line: tools have their parameters, other commands those of `CommandOptions`."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from typing import Any, NoReturn, cast

import agentfs
from agentfs.arguments.hints import kind_of
from agentfs.arguments.kinds import (
    Boolean,
    Choice,
    Kind,
    ListOf,
    OptionalOf,
    Parameter,
    Record,
    Scalar,
    UnionOf,
)
from agentfs.cli.command_options import CommandOptions
from agentfs.cli.history_commands import show_diff, show_log
from agentfs.cli.output import FAILED, print_error
from agentfs.cli.run_command import run_command
from agentfs.cli.servers import serve_mcp, serve_stdio
from agentfs.cli.store_command import run_store
from agentfs.cli.tool_commands import (
    PATH_COMMANDS,
    is_positional,
    option_name,
    run_call,
    run_tool,
    show_schemas,
)
from agentfs.policy import Policy
from agentfs.text.nearest import nearest
from agentfs.tools.spec import Tool, exposable, make_tool
from agentfs.workspace import Workspace

_Run = Callable[[CommandOptions], int]
# The commands that are not tools, with their options; those in capitals are positional.
_COMMANDS: dict[str, tuple[_Run, str, str]] = {
    "call": (
        run_call,
        "run one tool with the arguments a model would send",
        "NAME ARGUMENTS json color dialect root state connect",
    ),
    "schemas": (show_schemas, "print the tools' schemas as JSON", "format strict dialect root"),
    "mcp": (
        serve_mcp,
        "serve the tools over MCP",
        """root read_only tools prefix structured watch_bytes no_watch policy deny ask allow protect
        http http_name token_file token_env dialect state connect""",
    ),
    "serve": (
        serve_stdio,
        "serve a client of agentfs.connect on standard input and output, which can only narrow the options",
        "root state session read_only any_policy",
    ),
    "run": (
        run_command,
        "run a command, staged on an overlay: agentfs run -- make test",
        "WORDS mode preview timeout root state",
    ),
    "store": (
        run_store,
        "pull or push a tree in an object store, with its files in a directory: agentfs store pull URL DIR",
        "ACTION URL DIRECTORY json",
    ),
    "log": (show_log, "list the steps, the latest first", "limit json state root"),
    "diff": (show_diff, "print all changes as one patch for git apply", "since paths json color state root"),
}
# Commands that are useless without an option.
_NEEDS = {
    "serve": "root",
    **dict.fromkeys(("log", "diff", "undo", "redo", "checkpoint", "rollback"), "state"),
}
# Environment variables with defaults of options; an empty one counts as unset.
_VARIABLES = {"root": "AGENTFS_ROOT", "state": "AGENTFS_STATE"}
# Short options, as `rg` and `fd` have them.
_SHORT = {
    "grep": """i=ignore_case S=smart_case w=word x=whole_line n=line_numbers F=fixed_strings U=multiline
        v=invert A=after B=before C=context g=glob t=type m=max_count L=follow_symlinks e=regexp 0=null""",
    "find": "t=types e=extensions g=glob E=exclude d=max_depth L=follow_symlinks 0=null",
    "glob": "t=types E=exclude 0=null",
    "ls": "0=null",
    "delete": "r=recursive",
}
_OUTPUT_MODES = {
    "-l": ("--files-with-matches", "files_with_matches", "Print only the paths of files with matches."),
    "-c": ("--count", "count", "Print only the number of matching lines of each file."),
}


def parse_command_line(argv: Sequence[str]) -> tuple[_Run, CommandOptions]:
    """Return the function that runs a command, and its options.

    Raises:
        SystemExit: The help, the version, completions or an error were printed.
    """
    completes = "_ARGCOMPLETE" in os.environ
    parser, commands = _parser("" if completes or not argv else argv[0])
    if completes:
        import argcomplete  # noqa: PLC0415 # pyright: ignore[reportMissingTypeStubs] - the extra `cli`

        argcomplete.autocomplete(parser, exclude=[each for each in commands if "_" in each])
    name = argv[0] if argv else ""
    if name not in commands:
        if not name.startswith("-"):
            near = nearest(name, commands)
            what = f"{name!r} is not a command." if name else "a COMMAND is required."
            parser.error(what + (f" Did you mean {near!r}?" if near else ""))
        parser.parse_args(argv)
    command = commands[name]
    words: Sequence[str] = ()
    if name == "run" and "--" in argv:  # the rest is the command's own
        at = [*argv].index("--")
        argv, words = argv[:at], argv[at + 1 :]
    # Options may follow paths. The method for that drops the argument after a `--`.
    parse_known = command.parse_known_args if "--" in argv else command.parse_known_intermixed_args
    namespace, unknown = parse_known(argv[1:])
    if unknown:
        command.error(_unknown(command, unknown))
    found = vars(namespace)
    if words:
        found["words"] = words
    if name != "serve":  # what it serves is for its command line to say
        for option, variable in _VARIABLES.items():
            found.setdefault(option, os.environ.get(variable) or None)
    needed = _NEEDS.get(name)
    if needed is not None and found.get(needed) is None:
        command.error(f"the option --{needed} is required.")
    if needed is None and name != "mcp":  # for the others the state directory or the policy file may say it
        found["root"] = found["root"] or "."
    run, tool = found.pop("run"), cast("Tool | None", found.pop("tool", None))
    if tool is not None:
        names = [each.name for each in tool.parameters if each.name in found]
        found["given"] = {name: found.pop(name) for name in names}
    return run, CommandOptions(**found)


def _unknown(command: "_Parser", unknown: Sequence[str]) -> str:
    """Return what is wrong with arguments that a command does not take."""
    option = next((each.partition("=")[0] for each in unknown if each.startswith("-")), "")
    if not option:
        return f"too many arguments: {' '.join(unknown)}"
    near = nearest(option, command.options())
    return f"there is no option {option}." + (f" Did you mean {near}?" if near else "")


class _Parser(argparse.ArgumentParser):
    """Reports an error in one line, without the usage."""

    def error(self, message: str) -> NoReturn:
        end = "" if message.endswith((".", "?")) else "."
        print_error(f"{self.prog}: {message}{end} See {self.prog} --help.")
        sys.exit(FAILED)

    def options(self) -> Iterable[str]:
        """Return the names of all options."""
        return self._option_string_actions


def _parser(wanted: str) -> tuple[_Parser, dict[str, _Parser]]:
    """Return the parser, and the parser of each command; of `wanted` alone if that is a tool."""
    parser = _Parser(prog="agentfs", description="File tools for LLM agent loops.")
    parser.add_argument("-V", "--version", action="version", version=f"agentfs {agentfs.__version__}")
    commands = parser.add_subparsers(metavar="COMMAND")
    unopened = object.__new__(Workspace)
    unopened.policy = Policy()
    names = [name for name in unopened.tool_names() if name != "changes"]
    chosen = [name for name in names if name == wanted.replace("-", "_")] or names
    for method in (getattr(unopened, name) for name in chosen):
        _add_tool(commands, make_tool(method, expose=exposable(method)))
    for name, (run, summary, options) in _COMMANDS.items() if chosen is names else ():
        command = _add_command(commands, name, f"{summary[0].upper()}{summary[1:]}.", summary, run)
        _add_options(command, name, options)
    return parser, commands.choices


def _add_command(commands: Any, name: str, text: str, summary: str, run: object, *aliases: str) -> _Parser:
    command: _Parser = commands.add_parser(
        name, help=summary, description=text, aliases=aliases, argument_default=argparse.SUPPRESS
    )
    command.set_defaults(run=run)
    return command


def _add_tool(commands: Any, tool: Tool) -> None:
    dashed, text = tool.name.replace("_", "-"), tool.description.replace("%", "%%")
    aliases = [dashed] if dashed != tool.name else []
    command = _add_command(
        commands, tool.name, text, text.partition("\n")[0], partial(run_tool, tool), *aliases
    )
    command.set_defaults(tool=tool)
    for parameter in tool.parameters:
        _add_parameter(command, tool.name, parameter, positional=is_positional(parameter))
    group = command.add_argument_group("about the command")
    if tool.name == "grep":
        _add_options(command, tool.name, "regexp")
        for option, (long, mode, help_) in _OUTPUT_MODES.items():
            command.add_argument(
                option, long, action="store_const", dest="output_mode", const=mode, help=help_
            )
    _add_options(group, tool.name, "null json color" if tool.name in PATH_COMMANDS else "json color")
    _add_options(group, tool.name, "root state")


@cache
def _known_options() -> dict[str, Parameter]:
    # Their descriptions state the defaults, which are those of fields.
    members = cast("Record", kind_of(CommandOptions)).members
    return {each.name: each._replace(required=True) for each in members}


def _add_options(command: Any, name: str, options: str) -> None:
    for option in options.split():
        _add_parameter(command, name, _known_options()[option.lower()], positional=option.isupper())


def _add_parameter(command: Any, name: str, parameter: Parameter, *, positional: bool) -> None:
    text = parameter.full_description().replace("%", "%%")
    settings: dict[str, Any] = _settings(parameter.value_kind, parameter.name)
    if positional:
        is_list = bool(settings.pop("action", None))
        if name == "run":  # the parser does not see the words after `--`
            settings = {"nargs": "*", "default": list[str]()}
        elif parameter.name == "path" and name in PATH_COMMANDS:
            settings |= {"nargs": "*", "default": []}
        elif is_list:
            settings |= {"nargs": "+", "action": _OneOrMore}
        elif name == "grep":  # `-e` also takes the pattern
            settings["nargs"] = "?"
        elif not parameter.required:
            settings |= {"nargs": "?", "default": parameter.default}
        if parameter.name == "content":
            text += " `-` reads standard input."
        command.add_argument(parameter.name, help=text, **settings)
        return
    if settings.get("action") == "store_true" and parameter.default is not False:
        settings["action"] = argparse.BooleanOptionalAction
    if parameter.name == "root":
        settings["action"] = _Once
    pairs = (each.split("=") for each in _SHORT.get(name, "").split())
    short = [f"-{letter}" for letter, long in pairs if long == parameter.name]
    command.add_argument(*short, option_name(parameter.name), help=text, dest=parameter.name, **settings)


class _OneOrMore(argparse.Action):
    """A list; a single value may be the JSON of one."""

    def __call__(self, _: object, namespace: argparse.Namespace, values: Any, *__: object) -> None:
        setattr(namespace, self.dest, values[0] if len(values) == 1 else values)


class _Once(argparse.Action):
    """An option that may be given once."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, *_: object
    ) -> None:
        if hasattr(namespace, self.dest):
            parser.error("several roots are not supported: start one server for each --root")
        setattr(namespace, self.dest, values)


def _settings(kind: Kind, name: str) -> dict[str, Any]:
    """Return the settings of argparse for values of a kind. Other kinds are given as JSON."""
    match kind:
        case Boolean():
            return {"action": "store_true"}
        case Scalar():
            return {"type": kind.hint, "metavar": name.upper()}
        case Choice():
            choices = ",".join(json.dumps(value).strip('"') for value in kind.choices)
            return {"type": kind.type, "choices": kind.choices, "metavar": f"{{{choices}}}"}
        case UnionOf() if any(isinstance(option, ListOf) for option in kind.parts):
            return {"action": "append", "metavar": name.upper()}
        case UnionOf() if all(isinstance(option, Scalar) for option in kind.parts):
            return {"metavar": name.upper()}
        case ListOf(item=Scalar()):
            return {"action": "append", "metavar": name.upper()}
        case OptionalOf():
            return _settings(kind.kind, name)
        case _:
            return {"metavar": "JSON"}
