"""`agentfs call`, `schemas`, `run`, `branch`, `mcp` and `serve`: what works in a workspace."""

import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

from agentfs import history
from agentfs.base.visible import to_json
from agentfs.cli.command_options import CommandOptions
from agentfs.cli.output import FAILED, input_text, print_error, print_text, write_output
from agentfs.cli.policy_file import opened, settings_of
from agentfs.errors import AgentFSError, InvalidArgumentError, UnsupportedSystemError
from agentfs.limits import HARD_FILE_BYTES, MIB, Limits
from agentfs.permission.ask import ask
from agentfs.remote.server import serve
from agentfs.results import RunResult
from agentfs.workspace import Workspace

_MCP_EXTRA = "Install the extra `mcp`: pip install mcp anyio uvicorn"
_TIMED_OUT = 124
RUN_FAILED = 125  # as `timeout` and `env` end if they fail themselves


def run_call(options: CommandOptions) -> int:
    """Run a tool with the arguments of a model, and print its answer."""
    dialect = options.dialect or "agentfs"
    with _opened(options) as workspace:
        for note in workspace.recovery_notes:
            print_error(f"agentfs: {note}")
        tools = workspace.tools("all") if dialect == "agentfs" else workspace.tools(dialect=dialect)
        result = tools.call(options.name, _arguments(options.words))
    if options.json:
        print_text(to_json(result.to_dict()))
    else:
        (print_text if result.success else print_error)(result.content)
    if not result.success:
        return FAILED
    given: Any = result.data
    data = cast("dict[str, Any]", given) if isinstance(given, dict) else dict[str, Any]()
    found = data.get("total_matches", data.get("total") if "files" in data else None)
    return int(found == 0)  # as grep: nothing was found


def show_schemas(options: CommandOptions) -> int:
    """Print the schemas of the tools."""
    with Workspace(options.root or ".") as workspace:
        tools = workspace.tools(dialect=options.dialect or "agentfs")
        print_text(to_json(tools.schemas(options.format, strict=options.strict), indent=2))
    return 0


def run_command(options: CommandOptions) -> int:
    """Run a command under the rules of a workspace or in a branch; print its output and its changes."""
    try:
        settings = settings_of(options, Limits(file_bytes=HARD_FILE_BYTES))
        policy = replace(settings.policy, run=options.mode or settings.policy.run or "staged")
        with opened(settings._replace(policy=policy), options) as workspace:
            if options.name:
                return _run_in_branch(workspace, options)
            result = workspace.run(_command_of(options), options.timeout, preview=options.preview)
            return _print_run(result, patch=options.preview)
    except AgentFSError as error:
        print_error(f"agentfs: {error}")
        return RUN_FAILED


def _run_in_branch(workspace: Workspace, options: CommandOptions) -> int:
    """Run a command in a branch, which is kept; then merge or discard it, if the options say so."""
    status = 0
    with workspace.branch(options.name) as branch:
        if options.words or not (options.merge or options.discard):
            status = _print_run(branch.run(_command_of(options), options.timeout))
        if options.merge and status == 0:
            merged = branch.merge(preview=options.preview)
            write_output(merged.patch if options.preview else b"")
            _print_notes(merged.notes, merged.text)
        if options.discard and status == 0:
            branch.discard()
    return status


def serve_mcp(options: CommandOptions) -> int:
    """Serve the tools over MCP."""
    # It may be one of several servers on a machine.
    settings = settings_of(options, Limits(watch_bytes=128 * MIB))
    if settings.policy.ask and settings.policy.on_ask is None:
        # The client's user is asked about what a rule of `ask` covers, and nothing else.
        allow = settings.policy.allow or ("*",)
        settings = settings._replace(policy=replace(settings.policy, on_ask=ask, allow=allow))
    if options.http is None and (options.token_env is not None or options.http_name):
        raise InvalidArgumentError("--token-env and --http-name need --http HOST:PORT.")
    token = None if options.token_env is None else os.environ.get(options.token_env)
    if options.token_env is not None and not token:
        raise InvalidArgumentError(f"The environment variable {options.token_env} is not set.")
    names = [name.strip() for name in options.tools.split(",")] if options.tools else None
    with opened(settings, options, watch=not options.no_watch) as workspace:
        try:
            from agentfs import mcp  # noqa: PLC0415 - needs the extra
        except ModuleNotFoundError as error:
            missing = (error.name or "mcp").partition(".")[0]
            raise UnsupportedSystemError(f"{missing!r} is not installed. {_MCP_EXTRA}") from None
        tools = mcp.offered(workspace, names, dialect=settings.dialect, prefix=settings.prefix)
        if options.http is None:
            mcp.serve_stdio(tools)
        else:
            mcp.serve_http(tools, options.http, token=token, names=options.http_name)
    return 0


def serve_remote(options: CommandOptions) -> int:
    """Serve a client of `agentfs.connect`."""
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison] - None if it is closed
        raise InvalidArgumentError("Standard input is closed.")
    settings = settings_of(options, Limits())
    return serve(settings.root, policy=settings.policy, state=options.state, mounts=settings.mounts)


def _command_of(options: CommandOptions) -> str:
    if not options.words:
        raise InvalidArgumentError("There is no command.", hint="Write it after `--`: run -- make test.")
    return options.words[0] if len(options.words) == 1 else shlex.join(options.words)


def _print_run(result: RunResult, *, patch: bool = False) -> int:
    """Print the output and the changes of a command, and return the exit status."""
    write_output(result.stdout)
    if sys.stderr is not None:  # pyright: ignore[reportUnnecessaryComparison] - None if it is closed
        with suppress(OSError):
            sys.stderr.buffer.write(result.stderr)
    if patch:
        write_output(result.changes.patch)
    _print_notes(result.notes, result.changes.text)
    return _TIMED_OUT if result.exit_status is None else result.exit_status


def _print_notes(notes: Sequence[str], text: object) -> None:
    for line in (*notes, *str(text).splitlines()):
        print_error(f"agentfs: {line}")


def _opened(options: CommandOptions) -> Workspace:
    settings = settings_of(options, Limits())
    if options.root is None and options.state is not None and options.connect is None:
        with suppress(InvalidArgumentError):  # a new directory belongs to no root yet
            settings = settings._replace(root=history.state.root_of(options.state))
    return opened(settings, options)


def _arguments(words: Sequence[str]) -> str | dict[str, str]:
    """Return the arguments of a tool: JSON, that of standard input, or `key=value` texts."""
    if len(words) == 1 and "=" not in words[0].partition("{")[0]:
        return input_text() if words[0] == "-" else words[0]
    found = dict(word.split("=", 1) for word in words if "=" in word.lstrip("="))
    if len(found) < len(words):
        raise InvalidArgumentError("Give the arguments as JSON, or each once as NAME=VALUE.")
    return found
