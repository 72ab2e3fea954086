"""`agentfs mcp` and `agentfs serve`: tools for MCP clients, and the remote side of `agentfs.connect`."""

import os
import sys
from dataclasses import replace

from agentfs.cli.command_options import CommandOptions
from agentfs.cli.policy_file import opened, settings_of
from agentfs.errors import InvalidArgumentError, UnsupportedSystemError
from agentfs.limits import MIB, Limits
from agentfs.permission.ask import ask
from agentfs.remote.server import serve

_WATCH_BYTES = 128 * MIB  # a server may be one of several on a machine


def serve_mcp(options: CommandOptions) -> int:
    """Serve the tools over MCP."""
    settings = settings_of(options, Limits(watch_bytes=_WATCH_BYTES))
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
            missing, hint = (error.name or "mcp").partition(".")[0], "pip install mcp anyio uvicorn"
            message = f"{missing!r} is not installed. Install the extra `mcp`: {hint}"
            raise UnsupportedSystemError(message) from None
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
