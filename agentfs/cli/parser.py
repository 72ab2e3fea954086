"""The parser of the command line. Options go before or after the command."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import fields
from importlib.resources import files
from typing import Any, Literal, NoReturn, get_args, get_origin

import agentfs
from agentfs.cli.call_command import run_call, show_schemas
from agentfs.cli.command_options import CommandOptions
from agentfs.cli.history_commands import show_diff, show_log
from agentfs.cli.output import FAILED, print_error
from agentfs.cli.review_command import show_review
from agentfs.cli.run_command import RUN_FAILED, run_command
from agentfs.cli.servers import serve_mcp, serve_remote
from agentfs.text.nearest import nearest

_Run = Callable[[CommandOptions], int]
# The commands with their options; those in capitals are positional.
_COMMANDS: dict[str, tuple[_Run, str, str]] = {
    "call": (
        run_call,
        "run one tool: agentfs call NAME JSON, or key=value …",
        "NAME WORDS json dialect root mount state connect",
    ),
    "schemas": (show_schemas, "print the tools' schemas as JSON", "format strict dialect root"),
    "mcp": (
        serve_mcp,
        "serve the tools over MCP",
        """root mount read_only tools prefix no_watch policy deny ask allow protect http http_name
        token_file token_env dialect state connect""",
    ),
    "serve": (
        serve_remote,
        "serve a client of agentfs.connect on standard input and output, which can only narrow the options",
        "root mount state read_only policy deny protect",
    ),
    "run": (
        run_command,
        "run a command, staged on an overlay: agentfs run -- make test",
        "WORDS mode preview timeout root mount state policy deny allow",
    ),
    "log": (show_log, "list the steps, the latest first", "limit json state root"),
    "diff": (show_diff, "print all changes as one patch for git apply", "since paths json state root"),
    "review": (
        show_review,
        "print what changed, hunk by hunk, or carry out decisions",
        "since paths html apply json state root",
    ),
}
# Options that a command needs.
_NEEDS = {"serve": "root", "log": "state", "diff": "state", "review": "state"}
# Environment variables with defaults of options; an empty one counts as unset.
_VARIABLES = {"root": "AGENTFS_ROOT", "state": "AGENTFS_STATE"}


def parse_command_line(argv: Sequence[str]) -> tuple[_Run, CommandOptions]:
    """Return the function that runs a command, and its options.

    Raises:
        SystemExit: The help, the version, completions or an error were printed.
    """
    parser = _Parser(prog="agentfs", description="File tools for LLM agent loops.")
    parser.add_argument("-V", "--version", action="version", version=f"agentfs {agentfs.__version__}")
    commands = parser.add_subparsers(metavar="COMMAND")
    for name, (_, summary, options) in _COMMANDS.items():
        _add_command(commands, name, summary, options)
    if "_ARGCOMPLETE" in os.environ:
        import argcomplete  # noqa: PLC0415 # pyright: ignore[reportMissingTypeStubs] - the extra `cli`

        argcomplete.autocomplete(parser)
    if not argv:
        parser.print_help()
        sys.exit(FAILED)
    name, rest = _command_first([*argv[1:2], "--help"] if argv[0] == "help" else argv)
    if name not in _COMMANDS:
        if name:
            near = nearest(name, _COMMANDS)
            parser.error(f"{name!r} is not a command." + (f" Did you mean {near!r}?" if near else ""))
        parser.parse_args(rest)
        parser.error("there is no command.")
    return _COMMANDS[name][0], _options_of(name, commands.choices[name], rest)


def _options_of(name: str, command: "_Parser", rest: Sequence[str]) -> CommandOptions:
    own: Sequence[str] = ()
    if name == "run" and "--" in rest:  # what follows is the command's own
        at = [*rest].index("--")
        rest, own = rest[:at], rest[at + 1 :]
    # Options may follow positional arguments. The method for that drops the argument after a `--`.
    parse_known = command.parse_known_args if "--" in rest else command.parse_known_intermixed_args
    namespace, unknown = parse_known(rest)
    if unknown:
        option = next((each.partition("=")[0] for each in unknown if each.startswith("-")), "")
        near = nearest(option, command.options()) if option else None
        what = f"there is no option {option}." if option else f"too many arguments: {' '.join(unknown)}"
        command.error(what + (f" Did you mean {near}?" if near else ""))
    found = vars(namespace)
    if own:
        found["words"] = [*found.get("words", ()), *own]
    if name != "serve":  # what it serves is for its command line to say
        for option, variable in _VARIABLES.items():
            if option in _COMMANDS[name][2].split():
                found.setdefault(option, os.environ.get(variable) or None)
    needed = _NEEDS.get(name)
    if needed is not None and found.get(needed) is None:
        command.error(f"the option --{needed} is required.")
    return CommandOptions(**found)


def _command_first(argv: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Return the command, and the other arguments in their order; "" if there is no command."""
    valued = {_spelled(each.name) for each in fields(CommandOptions) if each.type is not bool}
    at = 0
    while at < len(argv) and argv[at].startswith("-") and argv[at] != "--":
        at += 2 if argv[at] in valued else 1
    return (argv[at], [*argv[:at], *argv[at + 1 :]]) if at < len(argv) else ("", argv)


class _Parser(argparse.ArgumentParser):
    """Reports an error in one line, without the usage."""

    def error(self, message: str) -> NoReturn:
        end = "" if message.endswith((".", "?")) else "."
        print_error(f"{self.prog}: {message}{end} See {self.prog} --help.")
        sys.exit(RUN_FAILED if self.prog == "agentfs run" else FAILED)

    def options(self) -> list[str]:
        """Return the names of all options."""
        return list(self._option_string_actions)


def _add_command(commands: Any, name: str, summary: str, options: str) -> None:
    lines = files("agentfs.cli").joinpath("examples.txt").read_text(encoding="utf-8").splitlines()
    command: _Parser = commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=next(f"example: agentfs {line}" for line in lines if line.split()[0] == name),
        argument_default=argparse.SUPPRESS,
    )
    known = {each.name: each for each in fields(CommandOptions)}
    for option in options.split():
        field = known[option.lower()]
        settings = {**_settings(field.type), "help": field.metadata["help"]}
        if not option.isupper():
            command.add_argument(_spelled(option), dest=option, **settings)
        elif field.name == "words":
            command.add_argument("words", nargs="*", default=[], help=settings["help"])
        else:
            command.add_argument(field.name, help=settings["help"])


def _spelled(option: str) -> str:
    return f"--{option.replace('_', '-')}"


def _settings(hint: Any) -> dict[str, Any]:
    """Return the settings of argparse for the type of an option."""
    kinds = [each for each in get_args(hint) or (hint,) if each is not type(None)]
    if get_origin(kinds[0]) is Literal:
        return {"choices": get_args(kinds[0])}
    if Sequence in (get_origin(hint), get_origin(kinds[0])):
        return {"action": "append"}
    return {"action": "store_true"} if hint is bool else {"type": kinds[0]}
