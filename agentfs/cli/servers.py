"""`agentfs mcp` and `agentfs serve`: tools for MCP clients, and the remote side of `agentfs.connect`."""

import contextlib
import os
import sys
from collections.abc import Sequence
from dataclasses import replace

import agentfs
from agentfs import remote
from agentfs.cli.command_options import CommandOptions
from agentfs.cli.output import FAILED, print_error
from agentfs.cli.tool_commands import words_of
from agentfs.errors import EncodingError, InvalidArgumentError, RefusedError
from agentfs.fs.settings_file import places_inside, read_settings
from agentfs.limits import Limits
from agentfs.policy import Policy


def serve_mcp(options: CommandOptions) -> int:
    """Serve the tools over MCP."""
    try:
        from agentfs.mcp import LIMITS, HttpAddress, WorkspaceServer  # noqa: PLC0415 - needs the extra
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing in {"", "agentfs"}:
            raise
        print_error(
            f"agentfs: {missing!r} is not installed. Install the extra `mcp`: pip install mcp anyio uvicorn"
        )
        return FAILED
    settings = _policy_of(options, LIMITS)
    address = None
    mounts = {**settings.mounts, **options.mounts}
    root = None if settings.root == "" else settings.root or "."
    token = _token(options, [root or ".", *(mount.source for mount in mounts.values())])
    if options.http is not None:
        address = HttpAddress(options.http, token=token, names=options.http_name)
    elif token is not None or options.http_name:
        raise InvalidArgumentError("--token-file, --token-env and --http-name need --http HOST:PORT.")
    limits = settings.limits
    if options.watch_bytes is not None:
        limits = replace(limits, watch_bytes=options.watch_bytes)
    server = WorkspaceServer(
        root,
        mounts=mounts,
        names=[name.strip() for name in options.tools.split(",")] if options.tools else None,
        prefix=settings.prefix or "",
        dialect=settings.dialect or "agentfs",
        policy=settings.policy,
        state=options.state,
        command=None if options.connect is None else words_of(options.connect),
        limits=limits,
        watch=not options.no_watch,
    )
    if address is None and sys.stdin is not None and sys.stdin.isatty():  # pyright: ignore[reportUnnecessaryComparison] - None if it is closed
        print_error("agentfs: waiting for an MCP client, which starts this command itself. Ctrl-C ends it.")
    with contextlib.suppress(KeyboardInterrupt):
        server.run(address)
    return 0


def _policy_of(options: CommandOptions, limits: Limits) -> agentfs.PolicyFile:
    """Return the settings of the policy file and of the options, which add rules and replace the others."""
    settings = agentfs.PolicyFile(options.policy or "", Policy(), limits)
    if options.policy is not None:
        settings = agentfs.PolicyFile.read(options.policy, limits=limits)
    policy = settings.policy
    policy = replace(
        policy,
        deny=[*policy.deny, *options.deny],
        ask=[*policy.ask, *options.ask],
        allow=[*policy.allow, *options.allow],
        protect=replace(policy.protect, read=[*policy.protect.read, *options.protect]),
        read_only=options.read_only or policy.read_only,
    )
    root = options.root if options.root is not None else settings.root or "."
    if options.policy is not None and options.connect is None:
        for place in [root or ".", *(each.source for each in options.mounts.values() if not each.read_only)]:
            settings.check_outside(place)
    return replace(
        settings,
        policy=policy,
        root=root,
        dialect=options.dialect or settings.dialect,
        prefix=options.prefix or settings.prefix,
    )


def _token(options: CommandOptions, places: Sequence[str | os.PathLike[str]]) -> str | None:
    """Return the bearer token, or None if there is no option for one."""
    if options.token_env is not None and options.token_file is not None:
        raise InvalidArgumentError("--token-file and --token-env exclude each other.")
    if options.token_env is not None:
        if not (token := os.environ.get(options.token_env)):
            raise InvalidArgumentError(f"The environment variable {options.token_env} is not set.")
        return token
    if options.token_file is None:
        return None
    if any(places_inside(place, options.token_file) for place in places):
        raise RefusedError("The token file is in the workspace, so a model could read it.", hint="Move it.")
    try:
        return read_settings(options.token_file).decode().strip()
    except UnicodeDecodeError:
        raise EncodingError(f"{options.token_file} is not text in UTF-8.") from None


def serve_stdio(options: CommandOptions) -> int:
    """Serve a client of `agentfs.connect`."""
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison] - as above
        raise InvalidArgumentError("Standard input is closed.")
    settings = _policy_of(options, Limits())
    served = remote.server.Options(settings.root or ".", settings.policy, options.state, options.mounts)
    return remote.server.serve(served)
