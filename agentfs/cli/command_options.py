"""The options of all commands, and the parser, which is made from their types and descriptions."""

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from importlib.resources import files
from typing import Any, Literal, NamedTuple, NoReturn, get_args, get_origin

import agentfs
from agentfs.cli.output import FAILED, print_error
from agentfs.errors import InvalidArgumentError
from agentfs.policy import Mount
from agentfs.text.nearest import nearest

_PATHS = "NAME=PATH"  # a form of words, in which the value is not empty


def _option(help_: str, default: Any = None) -> Any:
    return field(default=default, metadata={"help": help_})


@dataclass
class CommandOptions:
    """The options of a command; those that it does not have are at their default."""

    root: str | None = _option("the directory to work in (default: AGENTFS_ROOT, or the current one)")
    mount: Sequence[str] = _option("show a directory as NAME=PATH or NAME=PATH:ro; may be repeated", ())
    state: str | None = _option("a directory that keeps the journal (default: AGENTFS_STATE)")
    connect: str | None = _option("a command that serves the root, such as 'ssh host agentfs serve'")
    dialect: str | None = _option("offer the tools of this dialect")
    json: bool = _option("print the whole result as JSON", default=False)
    name: str = _option("the tool, such as read")
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
    token_file: str | None = _option("a file with the bearer token that clients send")
    token_env: str | None = _option("the environment variable with this token")

    @property
    def mounts(self) -> Mapping[str, Mount]:
        """The mounts by name; raises `invalid_argument` for a malformed one."""
        hint = "Write for example --mount deps=/path:ro."
        return {
            name: mount_of(source) for name, source in named_values("mount", self.mount, _PATHS, hint).items()
        }

    @property
    def remote_command(self) -> list[str]:
        """The words of the command to connect to; raises `invalid_argument` for a malformed one."""
        try:
            return shlex.split(self.connect or "")
        except ValueError as error:  # such as "No closing quotation"
            raise InvalidArgumentError(f"--connect {self.connect!r} is not a command: {error}.") from None


def named_values(what: str, words: Sequence[str], form: str, hint: str) -> dict[str, str]:
    """Return the values of words of the form `name=value`, by name."""
    found: dict[str, str] = {}
    for word in words:
        name, _, value = word.partition("=")
        if not name or "=" not in word or (not value and form == _PATHS) or name in found:
            problem = "appears twice" if name in found else f"is not {form}"
            raise InvalidArgumentError(f"The {what} {word!r} {problem}.", hint=hint)
        found[name] = value
    return found


def mount_of(source: str) -> Mount:
    """Return the mount of a directory, written as PATH or PATH:ro."""
    return Mount(source.removesuffix(":ro"), read_only=source.endswith(":ro"))


class Subcommand(NamedTuple):
    """A command, with the options that it takes; those in capitals are positional."""

    run: Callable[[CommandOptions], int]
    summary: str
    options: str
    needs: str = ""  # an option that must be given
    from_environment: bool = True  # whether the root and the state may be variables
    misused: int = FAILED  # the exit status after an error of the command line


def parse_command_line(
    argv: Sequence[str], commands: Mapping[str, Subcommand]
) -> tuple[Subcommand, CommandOptions]:
    """Return the command and its options, which go before or after it.

    Raises:
        SystemExit: The help, the version, completions or an error were printed.
    """
    if "_ARGCOMPLETE" in os.environ:
        import argcomplete  # noqa: PLC0415 # pyright: ignore[reportMissingTypeStubs] - the extra `cli`

        name, _ = _command_first(os.environ.get("COMP_LINE", "").split()[1:])
        argcomplete.autocomplete(_parser(name, commands, completes=True))
    if not argv:
        _parser("", commands).print_help()
        sys.exit(FAILED)
    name, rest = _command_first([*argv[1:2], "--help"] if argv[0] == "help" else argv)
    parser, command = _parser(name, commands), commands.get(name)
    if command is None:
        if not name:
            parser.parse_args(rest)  # prints the help or the version
        near = nearest(name, commands)
        did_you_mean = f" Did you mean {near!r}?" if near else ""
        parser.error(f"{name!r} is not a command.{did_you_mean}" if name else "there is no command.")
    own: Sequence[str] = ()
    if name == "run" and "--" in rest:  # what follows is the command's own
        at = [*rest].index("--")
        rest, own = rest[:at], rest[at + 1 :]
    # Options may follow positional arguments. The method for that drops the argument after a `--`.
    parse_known = parser.parse_known_args if "--" in rest else parser.parse_known_intermixed_args
    namespace, unknown = parse_known(rest)
    if unknown:
        parser.refuse(unknown)
    found = vars(namespace)
    if own:
        found["words"] = [*found["words"], *own]
    for option in {"root", "state"}.intersection(command.options.split()) if command.from_environment else ():
        found.setdefault(option, os.environ.get(f"AGENTFS_{option.upper()}") or None)
    if command.needs and found.get(command.needs) is None:
        parser.error(f"the option --{command.needs} is required.")
    return command, CommandOptions(**found)


def _command_first(argv: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Return the command, and the other arguments in their order; "" if there is no command."""
    valued = {_spelled(each.name) for each in fields(CommandOptions) if each.type is not bool}
    at = 0
    while at < len(argv) and argv[at].startswith("-") and argv[at] != "--":
        at += 2 if argv[at] in valued else 1
    return (argv[at], [*argv[:at], *argv[at + 1 :]]) if at < len(argv) else ("", argv)


class _Parser(argparse.ArgumentParser):
    """Reports an error in one line, without the usage."""

    misused = FAILED

    def error(self, message: str) -> NoReturn:
        end = "" if message.endswith((".", "?")) else "."
        print_error(f"{self.prog}: {message}{end} See {self.prog} --help.")
        sys.exit(self.misused)

    def refuse(self, unknown: Sequence[str]) -> NoReturn:
        """Report arguments that the command does not take."""
        option = next((each.partition("=")[0] for each in unknown if each.startswith("-")), "")
        if not option:
            self.error(f"too many arguments: {' '.join(unknown)}")
        near = nearest(option, self._option_string_actions)
        self.error(f"there is no option {option}." + (f" Did you mean {near}?" if near else ""))


def _parser(name: str, commands: Mapping[str, Subcommand], *, completes: bool = False) -> _Parser:
    """Return the parser of a command; of all commands if there is none of this name."""
    command = commands.get(name)
    parser = _Parser(
        prog=f"agentfs {name}" if command else "agentfs",
        argument_default=argparse.SUPPRESS,
        formatter_class=argparse.HelpFormatter if command else argparse.RawDescriptionHelpFormatter,
    )
    if completes or command is None:
        parser.add_argument("command", choices=commands, metavar="COMMAND", help=argparse.SUPPRESS)
    if command is None:
        rows = "".join(f"\n    {each:9} {commands[each].summary}" for each in commands)
        parser.description = f"File tools for LLM agent loops.\n\ncommands:{rows}"
        parser.add_argument("-V", "--version", action="version", version=f"agentfs {agentfs.__version__}")
        return parser
    parser.misused = command.misused
    parser.description = f"{command.summary[0].upper()}{command.summary[1:]}."
    lines = files("agentfs.cli").joinpath("examples.txt").read_text(encoding="utf-8").splitlines()
    parser.epilog = next(f"example: agentfs {line}" for line in lines if line.split()[0] == name)
    known = {each.name: each for each in fields(CommandOptions)}
    for option in command.options.split():
        given = known[option.lower()]
        if option == "WORDS":
            parser.add_argument("words", nargs="*", default=[], help=given.metadata["help"])
        elif option.isupper():
            parser.add_argument(given.name, help=given.metadata["help"])
        else:
            parser.add_argument(_spelled(option), **_settings(given.type), help=given.metadata["help"])
    return parser


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
