"""The options of all commands. The parser is made from their types and descriptions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from agentfs.errors import InvalidArgumentError
from agentfs.policy import Mount


@dataclass
class CommandOptions:
    """The options of a command; those that it does not have are at their default.

    Attributes:
        given: The arguments of a tool.
        root: The directory to work in (default: AGENTFS_ROOT, or the one that the state directory or the
            policy file names, or the current one). Several appear side by side, each under its name.
        mount: A directory or file to show at a path, as PATH=SOURCE or PATH=SOURCE:ro; may be repeated.
        state: A directory that keeps the journal and the read history (default: AGENTFS_STATE, if set).
        connect: A command that runs the server of the root, such as 'ssh host agentfs serve'.
        dialect: Offer the tools of this dialect.
        json: Print JSON: the whole result, or an object for each entry of a list.
        color: Colors (default: auto).
        regexp: Search for this pattern; may be repeated, and all other arguments are paths.
        only_matching: Print only the matched parts, each on a line.
        quiet: Print nothing; the exit status tells whether there is a match.
        long: Print the type, size and time of each entry.
        null: Print data, with a NUL after each path instead of a line feed (for `xargs -0`).
        name: The tool, such as read.
        arguments: Its arguments as a JSON object; `-` reads standard input.
        format: The provider (default: openai).
        strict: Schemas for the provider's strict mode.
        limit: Most steps to show (default: all).
        since: Only changes after this checkpoint (default: all).
        paths: Only what changed at or below this path; may be repeated.
        html: Print the review as a page for a browser.
        apply: Carry out the decisions in this file, which the page saves.
        words: The command, after `--` if it has options; one word is a text for the shell.
        mode: How it runs (default: staged).
        preview: Show what it would change, and apply nothing.
        timeout: Seconds until it is stopped (default: 3600).
        read_only: Change nothing.
        tools: The tools to offer, separated by commas.
        prefix: A prefix for each tool's name.
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
    """

    given: Mapping[str, Any] = field(default_factory=dict[str, Any])
    root: str | None = None
    mount: Sequence[str] = ()
    state: str | None = None
    connect: str | None = None
    dialect: str | None = None
    json: bool = False
    color: Literal["auto", "always", "never"] = "auto"
    regexp: Sequence[str] = ()
    only_matching: bool = False
    quiet: bool = False
    long: bool = False
    null: bool = False
    name: str = ""
    arguments: str = ""
    format: str = "openai"
    strict: bool = False
    limit: int | None = None
    since: str | None = None
    paths: Sequence[str] | None = None
    html: bool = False
    apply: str | None = None
    words: Sequence[str] = ()
    mode: Literal["staged", "recorded"] = "staged"
    preview: bool = False
    timeout: float = 3600.0
    read_only: bool = False
    tools: str = ""
    prefix: str = ""
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

    @property
    def place(self) -> str:
        """The root."""
        return self.root or "."

    @property
    def mounts(self) -> dict[str, Mount]:
        """The mounts by path; raises `invalid_argument` for a malformed one."""
        found: dict[str, Mount] = {}
        for text in self.mount:
            path, _, source = text.partition("=")
            if not path or not source or path in found:
                problem = "appears twice" if path in found else "is not PATH=SOURCE"
                raise InvalidArgumentError(
                    f"The mount {text!r} {problem}.", hint="Write for example --mount deps=/path:ro."
                )
            read_only = source.endswith(":ro")
            found[path] = Mount(source.removesuffix(":ro"), read_only=read_only)
        return found
