"""The options of all commands. The parser is made from their types and descriptions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass
class CommandOptions:
    """The options of a command; those that it does not have are at their default.

    Attributes:
        given: The arguments of a tool.
        root: The directory to work in (default: AGENTFS_ROOT, or the one that the state directory or the
            policy file names, or the current one).
        state: A directory that keeps the journal and the read history (default: AGENTFS_STATE, if set).
        connect: A command prefix that reaches the host of the root, such as 'ssh host'.
        dialect: Offer the tools of this dialect.
        json: Print JSON: the whole result, or an object for each entry of a list.
        color: Colors (default: auto).
        regexp: Search for this pattern; may be repeated, and all other arguments are paths.
        null: Print data, with a NUL after each path instead of a line feed (for `xargs -0`).
        name: The tool, such as read.
        arguments: Its arguments as a JSON object; `-` reads standard input.
        format: The provider (default: openai).
        strict: Schemas for the provider's strict mode.
        limit: Most steps to show (default: all).
        since: Only changes after this checkpoint (default: all).
        paths: Only what changed at or below this path; may be repeated.
        words: The command, after `--` if it has options; one word is a text for the shell.
        mode: How it runs (default: staged).
        preview: Show what it would change, and apply nothing.
        timeout: Seconds until it is stopped (default: 3600).
        action: What to do with the tree.
        url: The store, such as s3://bucket/prefix.
        directory: The cache: the directory with the files.
        read_only: Change nothing.
        tools: The tools to offer, separated by commas.
        prefix: A prefix for each tool's name.
        structured: Also send typed data, for clients that are programs.
        watch_bytes: Bytes of text to keep in memory for searches (default: 128 MiB).
        no_watch: Keep nothing in memory between searches.
        policy: A policy file (TOML); the options add to it.
        deny: Refuse these calls, such as 'edit(src/**)'; may be repeated.
        ask: Ask the user before these calls, such as 'edit(src/**)'; may be repeated.
        allow: Of all changes, allow these, such as 'edit(src/**)'; may be repeated.
        protect: A name whose contents are neither shown nor changed; may be repeated.
        http: Serve over streamable HTTP at HOST:PORT instead; port 0 takes a free one.
        http_name: Another name of the server in clients' URLs; may be repeated.
        token_file: A file with the bearer token that clients send.
        token_env: The environment variable with this token.
        session: The only session to serve.
        any_policy: Let the client choose any policy, limits and state.
    """

    given: Mapping[str, Any] = field(default_factory=dict[str, Any])
    root: str | None = None
    state: str | None = None
    connect: str | None = None
    dialect: str | None = None
    json: bool = False
    color: Literal["auto", "always", "never"] = "auto"
    regexp: Sequence[str] = ()
    null: bool = False
    name: str = ""
    arguments: str = ""
    format: str = "openai"
    strict: bool = False
    limit: int | None = None
    since: str | None = None
    paths: Sequence[str] | None = None
    words: Sequence[str] = ()
    mode: Literal["staged", "recorded"] = "staged"
    preview: bool = False
    timeout: float = 3600.0
    action: Literal["pull", "push", "status"] = "status"
    url: str = ""
    directory: str = ""
    read_only: bool = False
    tools: str = ""
    prefix: str = ""
    structured: bool = False
    watch_bytes: int | None = None
    no_watch: bool = False
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
