"""The options of all commands, and the parser, which is made from their types and descriptions."""

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, NamedTuple, NoReturn, get_args, get_origin

import agentfs
from agentfs.cli.output import FAILED, print_error
from agentfs.policy import Mount


def mount_of(source: str) -> Mount:
    """Return the mount of a directory, written as PATH or PATH:ro."""
    return Mount(source.removesuffix(":ro"), read_only=source.endswith(":ro"))


def mount(text: str) -> tuple[str, Mount]:
    """Return a mount, written as NAME=PATH or NAME=PATH:ro, and its name."""
    name, _, source = text.partition("=")
    return name, mount_of(name and source)


def _option(help_: str, default: Any = None, read: Callable[[str], Any] | None = None) -> Any:
    return field(default=default, metadata={"help": help_, "read": read})


@dataclass
class CommandOptions:
    """The options of a command; those that it does not have are at their default."""

    root: str | None = _option("the directory to work in (default: AGENTFS_ROOT, or the current one)")
    mount: Sequence[tuple[str, Mount]] = _option(
        "show a directory as NAME=PATH or NAME=PATH:ro; may be repeated", (), mount
    )
    state: str | None = _option("a directory that keeps the journal (default: AGENTFS_STATE)")
    connect: tuple[str, ...] | None = _option(
        "a command that serves the root, such as 'ssh host agentfs serve'", read=shlex.split
    )
    dialect: str | None = _option("offer the tools of this dialect")
    json: bool = _option("print the whole result as JSON", default=False)
    name: str = _option("the tool, such as read; or the branch")
    words: Sequence[str] = _option("the command, after `--`; or the arguments of a tool", ())
    format: str = _option("the provider (default: openai)", "openai")
    strict: bool = _option("schemas for the provider's strict mode", default=False)
    limit: int | None = _option("most steps to show (default: all)")
    since: str | None = _option("only changes after this checkpoint (default: all)")
    paths: Sequence[str] | None = _option("only what changed at or below this path; may be repeated")
    html: bool = _option("print the review as a page for a browser", default=False)
    apply: str | None = _option("carry out the decisions in this file, which the page saves")
    mode: Literal["staged", "recorded"] | None = _option("how the command runs (default: staged)")
    preview: bool = _option("show what the command would change, and apply nothing", default=False)
    merge: bool = _option("merge the branch into the root, if the command has succeeded", default=False)
    discard: bool = _option("remove the branch at the end, if the command has succeeded", default=False)
    timeout: float = _option("seconds until the command is stopped (default: 3600)", 3600.0)
    read_only: bool = _option("change nothing", default=False)
    tools: str = _option("the tools to offer, separated by commas", "")
    prefix: str | None = _option("a prefix for each tool's name")
    policy: str | None = _option("a policy file (TOML); the options add to it")
    deny: Sequence[str] = _option("refuse such calls, as 'edit(src/**)'; may be repeated", ())
    ask: Sequence[str] = _option("ask the user before such calls; may be repeated", ())
    allow: Sequence[str] = _option("of all changes, allow only such calls; may be repeated", ())
    protect: Sequence[str] = _option("a name that is neither shown nor changed; may be repeated", ())
    no_watch: bool = _option("keep nothing in memory between searches", default=False)
    http: str | None = _option("serve over streamable HTTP at HOST:PORT; port 0 takes a free one")
    http_name: Sequence[str] = _option("the server's name in clients' URLs; may be repeated", ())
    token_env: str | None = _option("the environment variable with the bearer token that clients send")


class Subcommand(NamedTuple):
    """A command, with its options; those in capitals are positional, those with `!` are required."""

    run: Callable[[CommandOptions], int]
    summary: str
    options: str
    from_environment: bool = True  # True if environment variables may give the root and the state
    misused: int = FAILED  # the exit status after an error of the command line


class _Parser(argparse.ArgumentParser):
    """Reports an error in one line, without the usage."""

    misused = FAILED

    def error(self, message: str) -> NoReturn:
        print_error(f"{self.prog}: {message.removesuffix('.')}. See {self.prog} --help.")
        sys.exit(self.misused)


def parse_command_line(
    argv: Sequence[str], commands: Mapping[str, Subcommand]
) -> tuple[Subcommand, CommandOptions]:
    """Return the command and its options, which go before or after it.

    Raises:
        SystemExit: The help, the version, completions or an error were printed.
    """
    parser = _Parser(prog="agentfs", description="File tools for LLM agent loops.")
    parser.add_argument("-V", "--version", action="version", version=f"agentfs {agentfs.__version__}")
    parsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, command in commands.items():
        subparser = parsers.add_parser(
            name,
            help=command.summary,
            description=f"{command.summary[0].upper()}{command.summary[1:]}.",
            argument_default=argparse.SUPPRESS,
        )
        _add_options(subparser, command)
    if "_ARGCOMPLETE" in os.environ:
        import argcomplete  # noqa: PLC0415 # pyright: ignore[reportMissingTypeStubs] - the extra `cli`

        argcomplete.autocomplete(parser)
    name, rest = _command_first([*argv[1:2], "--help"] if [*argv[:1]] == ["help"] else argv)
    if name not in commands:
        # Ends: prints the help, the version or an error.
        parser.parse_args([name] if name else [each for each in rest if each.startswith("-")])
    # Words follow `--`, whatever they look like.
    at = rest.index("--") if "--" in rest and "WORDS" in commands[name].options else len(rest)
    found: dict[str, Any] = vars(parsers.choices[name].parse_intermixed_args(rest[:at]))
    if own := rest[at + 1 :]:
        found["words"] = [*found["words"], *own]
    return commands[name], CommandOptions(**found)


def _command_first(argv: Sequence[str]) -> tuple[str, list[str]]:
    """Return the command, and the other arguments in their order; "" if there is no command."""
    valued = {_spelled(each.name) for each in fields(CommandOptions) if each.type is not bool}
    at = 0
    while at < len(argv) and argv[at].startswith("-") and argv[at] != "--":
        at += 2 if argv[at] in valued else 1
    return (argv[at], [*argv[:at], *argv[at + 1 :]]) if at < len(argv) else ("", [*argv])


def _add_options(parser: _Parser, command: Subcommand) -> None:
    parser.misused = command.misused
    known = {each.name: each for each in fields(CommandOptions)}
    for word in command.options.split():
        option = word.rstrip("!")
        given = known[option.lower()]
        help_ = given.metadata["help"]
        if option.isupper():
            many: dict[str, Any] = {"nargs": "*", "default": []} if option == "WORDS" else {}
            parser.add_argument(given.name, **many, help=help_)
            continue
        settings = _settings(given.type, given.metadata["read"])
        if option in {"root", "state"} and command.from_environment:
            settings["default"] = os.environ.get(f"AGENTFS_{option.upper()}") or None
        settings["required"] = option != word and not settings.get("default")
        parser.add_argument(_spelled(option), **settings, help=help_)


def _spelled(option: str) -> str:
    return f"--{option.replace('_', '-')}"


def _settings(hint: Any, read: Callable[[str], Any] | None) -> dict[str, Any]:
    """Return the settings of argparse for the type of an option, and the function that reads its text."""
    kinds = [each for each in get_args(hint) or (hint,) if each is not type(None)]
    if get_origin(kinds[0]) is Literal:
        return {"choices": get_args(kinds[0])}
    if Sequence in (get_origin(hint), get_origin(kinds[0])):
        return {"action": "append", "type": read or str}
    return {"action": "store_true"} if hint is bool else {"type": read or kinds[0]}
