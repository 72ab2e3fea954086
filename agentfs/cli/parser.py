"""The parser of the command line: tools have their parameters, other commands those of `CommandOptions`."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from importlib.resources import files
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
from agentfs.cli.output import FAILED, print_error, print_text
from agentfs.cli.review_command import show_review
from agentfs.cli.run_command import run_command
from agentfs.cli.servers import serve_mcp, serve_stdio
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
from agentfs.tools.tool import Tool, exposable, tool_of
from agentfs.tree.file_types import type_globs
from agentfs.workspace import Workspace

_Run = Callable[[CommandOptions], int]
# The commands that are not tools, with their options; those in capitals are positional.
_COMMANDS: dict[str, tuple[_Run, str, str]] = {
    "call": (
        run_call,
        "run one tool with the arguments a model would send",
        "NAME ARGUMENTS json color dialect root mount state connect",
    ),
    "schemas": (show_schemas, "print the tools' schemas as JSON", "format strict dialect root"),
    "mcp": (
        serve_mcp,
        "serve the tools over MCP",
        """root mount read_only tools prefix watch_bytes no_watch policy deny ask allow protect
        http http_name token_file token_env dialect state connect""",
    ),
    "serve": (
        serve_stdio,
        "serve a client of agentfs.connect on standard input and output, which can only narrow the options",
        "root mount state read_only policy deny protect",
    ),
    "run": (
        run_command,
        "run a command, staged on an overlay: agentfs run -- make test",
        "WORDS mode preview timeout root mount state",
    ),
    "log": (show_log, "list the steps, the latest first", "limit json state root"),
    "review": (
        show_review,
        "decide about changes hunk by hunk; without a terminal, print them",
        "since paths html apply json color state root",
    ),
    "diff": (show_diff, "print all changes as one patch for git apply", "since paths json color state root"),
}
# Commands that are useless without an option.
_NEEDS = {
    "serve": "root",
    **dict.fromkeys(("log", "diff", "review", "undo", "redo", "checkpoint", "rollback"), "state"),
}
# Environment variables with defaults of options; an empty one counts as unset.
_VARIABLES = {"root": "AGENTFS_ROOT", "state": "AGENTFS_STATE"}
# Short options, as `rg` and `fd` have them.
_SHORT = {
    "grep": """i=ignore_case S=smart_case w=word x=whole_line n=line_numbers F=fixed_strings U=multiline
        v=invert A=after B=before C=context g=glob t=type m=max_count L=follow_symlinks e=regexp
        o=only_matching q=quiet 0=null""",
    "find": "t=types e=extensions g=glob E=exclude d=max_depth L=follow_symlinks 0=null",
    "glob": "t=types E=exclude 0=null",
    "ls": "l=long 0=null",
    "delete": "r=recursive",
}
# The options of a tool that only the command line has.
_OWN = {"grep": "regexp only_matching quiet", "ls": "long"}
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
    if argv and argv[0] == "help":
        argv = [*argv[1:2], "--help"]
    parser, commands = _parser("" if completes or not argv else argv[0])
    if completes:
        import argcomplete  # noqa: PLC0415 # pyright: ignore[reportMissingTypeStubs] - the extra `cli`

        argcomplete.autocomplete(parser, exclude=[each for each in commands if "_" in each])
    if not argv:
        parser.print_help()
        sys.exit(FAILED)
    name = argv[0]
    if name not in commands:
        if not name.startswith("-"):
            near = nearest(name, commands)
            parser.error(f"{name!r} is not a command." + (f" Did you mean {near!r}?" if near else ""))
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
    if isinstance(found.get("root"), list):
        found["root"], mounts = _roots(command, found["root"])
        found["mount"] = [*mounts, *found.get("mount", ())]
    needed = _NEEDS.get(name)
    if needed is not None and found.get(needed) is None:
        command.error(f"the option --{needed} is required.")
    if needed is None and name != "mcp":  # for the others the state directory or the policy file may say it
        found["root"] = "." if found["root"] is None else found["root"]
    run, tool = found.pop("run"), cast("Tool | None", found.pop("tool", None))
    if tool is not None:
        names = [each.name for each in tool.parameters if each.name in found]
        found["given"] = {name: found.pop(name) for name in names}
    return run, CommandOptions(**found)


def _roots(command: "_Parser", roots: Sequence[str]) -> tuple[str, list[str]]:
    """Return the first directory as the root, and a mount for each of the others, under its name."""
    mounts: dict[str, str] = {}
    for root in roots[1:]:
        name = os.path.basename(os.path.abspath(root))
        if name in mounts:
            command.error(f"two directories have the name {name!r}; use --mount NAME=PATH")
        mounts[name] = root
    return roots[0], [f"{name}={root}" for name, root in mounts.items()]


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
    about = "File tools for LLM agent loops. `agentfs help COMMAND` explains a command, with an example."
    parser = _Parser(prog="agentfs", description=about)
    parser.add_argument("-V", "--version", action="version", version=f"agentfs {agentfs.__version__}")
    commands = parser.add_subparsers(metavar="COMMAND")
    unopened = object.__new__(Workspace)
    unopened.policy = Policy()
    names = [name for name in unopened.tool_names() if name != "changes"]
    chosen = [name for name in names if name == wanted.replace("-", "_")] or names
    for method in (getattr(unopened, name) for name in chosen):
        _add_tool(commands, tool_of(method, expose=exposable(method)))
    for name, (run, summary, options) in _COMMANDS.items() if chosen is names else ():
        command = _add_command(commands, name, f"{summary[0].upper()}{summary[1:]}.", summary, run)
        _add_options(command, name, options)
    return parser, commands.choices


def _add_command(commands: Any, name: str, text: str, summary: str, run: object, *aliases: str) -> _Parser:
    command: _Parser = commands.add_parser(
        name,
        help=summary,
        description=text,
        aliases=aliases,
        argument_default=argparse.SUPPRESS,
        formatter_class=_Help,
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
    for parameter in sorted(tool.parameters, key=lambda each: each.name != "pattern"):
        _add_parameter(command, tool.name, parameter, positional=is_positional(parameter))
    group = command.add_argument_group("about the command")
    if tool.name == "grep":
        other: dict[str, Any] = {"action": "append", "type": "!{}".format, "metavar": "TYPE"}
        command.add_argument("-T", "--type-not", dest="type", help="Not files of a type.", **other)
        command.add_argument("--type-list", action=_TypeList, nargs=0, help="List the types, and exit.")
        for option, (long, mode, help_) in _OUTPUT_MODES.items():
            command.add_argument(
                option, long, action="store_const", dest="output_mode", const=mode, help=help_
            )
    elif tool.name == "find":
        text = "Find names with this pattern; all other arguments are paths."
        command.add_argument("--pattern", action="append", dest="regexp", help=text)
    _add_options(command, tool.name, _OWN.get(tool.name, ""))
    _add_options(group, tool.name, "null json color" if tool.name in PATH_COMMANDS else "json color")
    _add_options(group, tool.name, "root mount state")


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
        elif parameter.name == "pattern" and name != "glob":  # an option may have it instead
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
        settings["action"] = "append"
    pairs = (each.split("=") for each in _SHORT.get(name, "").split())
    short = [f"-{letter}" for letter, long in pairs if long == parameter.name]
    command.add_argument(*short, option_name(parameter.name), help=text, dest=parameter.name, **settings)


class _Help(argparse.HelpFormatter):
    """Help with a short usage and an example, so that both are on the first screen."""

    def add_usage(
        self, usage: str | None, actions: Iterable[argparse.Action], *more: Any, **named: Any
    ) -> None:
        options = argparse.Action(["OPTIONS"], "", nargs=0)
        positional = [each for each in actions if not each.option_strings]
        super().add_usage(usage, [options, *positional], *more, **named)
        if usage is None:  # else a parser formats again what this method returned
            name = self._prog.split()[-1].replace("-", "_")
            lines = files("agentfs.cli").joinpath("examples.txt").read_text(encoding="utf-8").splitlines()
            self.add_text(next(f"example: agentfs {line}" for line in lines if line.split()[0] == name))


class _TypeList(argparse.Action):
    """Print the file types."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        for name, globs in type_globs().items():
            print_text(f"{name}: {', '.join(globs)}")
        parser.exit()


class _OneOrMore(argparse.Action):
    """A list; a single value may be the JSON of one."""

    def __call__(self, _: object, namespace: argparse.Namespace, values: Any, *__: object) -> None:
        setattr(namespace, self.dest, values[0] if len(values) == 1 else values)


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
