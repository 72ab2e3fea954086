"""The command line: every tool as a command, made from the same hints as the schemas, and an MCP server."""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, cast

from agentfs import call_context
from agentfs.cli_history import add_commands, opened
from agentfs.cli_output import print_error, print_json, print_text
from agentfs.errors import AgentFSError, EncodingError, FileIOError, InvalidArgumentError
from agentfs.policy import Policy
from agentfs.results import ToolResult
from agentfs.tools.schema import FORMATS
from agentfs.tools.spec import Tool, exposable, full_description, tool_of
from agentfs.tools.types import EnumOf, Kind, ListOf, OptionalOf, Parameter, Scalar, UnionOf
from agentfs.workspace import Workspace

NOTHING_FOUND = 1
FAILED = 2
INTERRUPTED = 130
_TYPES: dict[str, Callable[[str], Any]] = {"string": str, "integer": int, "number": float}
_PROGRESS_AFTER = 1.0


# They speak of what was done before, which takes a state directory: their commands are `cli_history`'s.
_OF_A_SESSION = {"undo", "redo", "checkpoint", "rollback", "changes"}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: The arguments; by default those of the process.

    Returns:
        The exit status: 0 for success, 1 for a search that found nothing, 2 for a failure, also of the
        command line itself.
    """
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison] - what Python makes of a closed one
        print_error("agentfs: Standard output is closed.")
        return FAILED
    if reconfigure := getattr(sys.stdout, "reconfigure", None):
        reconfigure(errors="backslashreplace")  # what its encoding does not have
    try:
        status = _run(argv)
        sys.stdout.flush()
    except AgentFSError as error:
        print_error(f"agentfs: {error}")
        return FAILED
    except BrokenPipeError:
        # The reader has gone, as `| head` does; Python would complain again when it flushes at exit.
        sys.stdout = None
        return NOTHING_FOUND
    except OSError as error:
        sys.stdout = None
        print_error(f"agentfs: Standard output cannot be written: {error.strerror}.")
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    return status


def _run(argv: Sequence[str] | None) -> int:
    try:
        arguments = _parser().parse_args(argv)
    except SystemExit as end:  # argparse has printed help, or what is wrong
        return end.code if isinstance(end.code, int) else FAILED
    status: int = arguments.run(arguments)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="agentfs", description="File tools for LLM agent loops.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for tool in _tools():
        _add_tool(commands, tool)

    call = commands.add_parser("call", help="run one tool with the arguments a model would send")
    call.add_argument("name", metavar="NAME", help="the tool, such as read")
    call.add_argument(
        "arguments", metavar="JSON", help="its arguments as a JSON object; - reads standard input"
    )
    call.add_argument("--json", action="store_true", help="print the whole result as JSON")
    call.set_defaults(run=_call)

    schemas = commands.add_parser("schemas", help="print the tools' schemas as JSON")
    schemas.add_argument("--format", default="openai", choices=FORMATS, help="the provider (default: openai)")
    schemas.add_argument("--strict", action="store_true", help="schemas for the provider's strict mode")
    schemas.set_defaults(run=_schemas)

    mcp = commands.add_parser("mcp", help="serve the tools over MCP on standard input and output")
    mcp.add_argument("--read-only", action="store_true", help="change nothing")
    mcp.add_argument("--tools", metavar="NAMES", help="the tools to offer, separated by commas")
    mcp.add_argument("--prefix", default="", help="what stands before each tool's name")
    mcp.add_argument(
        "--structured",
        action="store_true",
        help="send typed data beside the text, for clients that are programs",
    )
    mcp.set_defaults(run=_mcp)

    for command in (call, schemas, mcp):
        command.add_argument(
            "--dialect", default="agentfs", metavar="NAME", help="whose names, arguments and output"
        )
        _add_root(command)
    for command in (call, mcp):
        _add_state(command)
    add_commands(commands)
    return parser


def _add_root(command: argparse.ArgumentParser) -> None:
    command.add_argument("--root", default=".", metavar="DIR", help="the workspace (default: here)")


def _add_state(command: argparse.ArgumentParser) -> None:
    told = "go on with the journal and with what was shown that this directory keeps"
    command.add_argument("--state", default=None, metavar="DIR", help=told)


def _tools() -> list[Tool]:
    """Return all methods as tools that show everything a command line can say; no tree is opened for it."""
    unopened = object.__new__(Workspace)
    methods = [getattr(unopened, name) for name in _names(unopened)]
    return [tool_of(method, expose=exposable(method)) for method in methods]


def _names(workspace: Workspace) -> list[str]:
    """Return the names of the methods that are commands."""
    return [name for name in workspace.tool_names() if name not in _OF_A_SESSION]


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
        _add_parameter(command, parameter)
    group = command.add_argument_group("about the command")
    group.add_argument("--json", action="store_true", default=False, help="print the whole result as JSON")
    _add_root(group)
    _add_state(group)
    command.set_defaults(run=_run_tool, tool=tool)


def _add_parameter(command: argparse.ArgumentParser, parameter: Parameter) -> None:
    told = full_description(parameter).replace("%", "%%")
    settings = _settings(parameter.value_kind, parameter.name)
    if parameter.required:
        if parameter.name == "content":
            told += " `-` reads standard input."
        settings.pop("action", None)
        command.add_argument(parameter.name, help=told, **settings)
        return
    if parameter.name == "path":
        command.add_argument(parameter.name, help=told, nargs="?")
        return
    if settings.get("action") == "store_true" and parameter.default is not False:
        settings["action"] = argparse.BooleanOptionalAction
    command.add_argument(f"--{parameter.name.replace('_', '-')}", help=told, dest=parameter.name, **settings)


def _settings(kind: Kind, name: str) -> dict[str, Any]:
    """Return how argparse takes values of a kind; what it cannot say is JSON text, which a call takes too."""
    match kind:
        case Scalar(type="boolean"):
            return {"action": "store_true"}
        case Scalar():
            return {"type": _TYPES[kind.type], "metavar": name.upper()}
        case EnumOf():
            shown = ",".join(json.dumps(value).strip('"') for value in kind.values)
            return {"type": _TYPES[kind.type], "choices": kind.values, "metavar": f"{{{shown}}}"}
        case UnionOf() if any(isinstance(option, ListOf) for option in kind.options):
            return {"action": "append", "metavar": name.upper()}
        case ListOf(item=Scalar()):
            return {"action": "append", "metavar": name.upper()}
        case OptionalOf():
            return _settings(kind.kind, name)
        case _:
            return {"metavar": "JSON"}


def _run_tool(arguments: argparse.Namespace) -> int:
    tool: Tool = arguments.tool
    given = {p.name: getattr(arguments, p.name) for p in tool.parameters if hasattr(arguments, p.name)}
    if given.get("content") == "-":
        given["content"] = _standard_input()
    with opened(arguments.root, arguments.state) as workspace:
        # All these are commands, so an error may advise any of them.
        tools = workspace.tools(
            _names(workspace), expose={tool.name: exposable(getattr(workspace, tool.name))}
        )
        token = call_context.current.set(call_context.Call(tool.name, on_progress=_progress()))
        try:
            result = tools.call(tool.name, given)
        finally:
            call_context.current.reset(token)
    return _show(result, as_json=arguments.json)


def _call(arguments: argparse.Namespace) -> int:
    text = _standard_input() if arguments.arguments == "-" else arguments.arguments
    with opened(arguments.root, arguments.state) as workspace:
        tools = workspace.tools(dialect=arguments.dialect)
        return _show(tools.call(arguments.name, text), as_json=arguments.json)


def _show(result: ToolResult, *, as_json: bool) -> int:
    if as_json:
        print_json(result.to_dict())
    elif result.success:
        print_text(result.content, coloured=True)
    else:
        print_error(result.content)
    if not result.success:
        return FAILED
    data: Any = result.data
    found: Any = None
    if isinstance(data, dict):
        facts = cast("dict[str, Any]", data)
        found = facts.get("total_matches", facts.get("total") if "files" in facts else None)
    return NOTHING_FOUND if found == 0 else 0


def _schemas(arguments: argparse.Namespace) -> int:
    with Workspace(arguments.root) as workspace:
        tools = workspace.tools(dialect=arguments.dialect)
        schemas = tools.schemas(arguments.format, strict=arguments.strict)
    print_json(schemas, indent=2)
    return 0


def _mcp(arguments: argparse.Namespace) -> int:
    import asyncio  # noqa: PLC0415 - only the server needs it

    try:
        from agentfs.mcp_server import WorkspaceServer  # noqa: PLC0415 - needs the extra
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "mcp":
            raise
        print_error("agentfs: the server needs the official SDK: pip install 'agentfs-workspace[mcp]'")
        return FAILED
    names = [name.strip() for name in arguments.tools.split(",")] if arguments.tools else None
    policy = Policy(read_only=arguments.read_only)
    server = WorkspaceServer(
        arguments.root,
        names=names,
        prefix=arguments.prefix,
        dialect=arguments.dialect,
        policy=policy,
        state=arguments.state,
        structured=arguments.structured,
    )
    try:
        asyncio.run(server.serve())
    except KeyboardInterrupt:
        return 0
    return 0


def _standard_input() -> str:
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison] - as in `main`
        raise InvalidArgumentError("Standard input is closed.")
    try:
        return sys.stdin.buffer.read().decode(sys.stdin.encoding)  # with the line ends that it has
    except UnicodeDecodeError as error:
        raise EncodingError(
            f"Standard input is no text in {error.encoding}: byte {error.object[error.start]:#04x}."
        ) from None
    except OSError as error:
        raise FileIOError(f"Standard input cannot be read: {error.strerror}.") from None


def _progress() -> Callable[[int], None] | None:
    """Return what shows the progress of a long search on a terminal's standard error, and nowhere else."""
    if sys.stderr is None or not sys.stderr.isatty():  # pyright: ignore[reportUnnecessaryComparison] - as above
        return None
    started = time.monotonic()

    def report(entries: int) -> None:
        if time.monotonic() - started > _PROGRESS_AFTER:
            print(f"\r{entries:,} entries looked at\033[K\r", end="", file=sys.stderr, flush=True)

    return report
