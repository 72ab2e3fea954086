"""The options of a command, read from the command line."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from agentfs.tools.spec import Tool


@dataclass
class CommandOptions:
    """The options of every command, each at the default of a command that does not have it.

    Attributes:
        run: The function that runs the command and returns its exit status.
        tool: The tool, if the command is one.
        given: The given arguments of the tool.
    """

    run: Callable[["CommandOptions"], int]
    tool: Tool | None = None
    given: dict[str, Any] = field(default_factory=dict[str, Any])
    # Options that several commands have.
    root: str | None = None
    state: str | None = None
    connect: str | None = None
    dialect: str | None = None
    json: bool = False
    color: Literal["auto", "always", "never"] = "auto"
    read_only: bool = False
    # Options of tools.
    regexp: Sequence[str] = ()
    null: bool = False
    # Of `call` and `schemas`.
    name: str = ""
    arguments: str = ""
    format: str = ""
    strict: bool = False
    # Of `log` and `diff`.
    limit: int | None = None
    since: str | None = None
    paths: Sequence[str] | None = None
    # Of `mcp` and `serve`.
    tools: str | None = None
    prefix: str = ""
    structured: bool = False
    watch_bytes: int | Literal["limits"] | None = "limits"
    policy: str | None = None
    deny: Sequence[str] = ()
    ask: Sequence[str] = ()
    allow: Sequence[str] = ()
    protect: Sequence[str] = ()
    http: str | None = None
    http_name: Sequence[str] = ()
    token_file: str | None = None
    token_env: str | None = None
    session: str | None = None
    any_policy: bool = False
