"""The options of all commands. The parser is made from their types and descriptions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from agentfs.errors import InvalidArgumentError
from agentfs.policy import Mount


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
        found: dict[str, Mount] = {}
        for text in self.mount:
            name, _, source = text.partition("=")
            if not name or not source or name in found:
                problem = "appears twice" if name in found else "is not NAME=PATH"
                raise InvalidArgumentError(
                    f"The mount {text!r} {problem}.", hint="Write for example --mount deps=/path:ro."
                )
            found[name] = mount_of(source)
        return found


def mount_of(source: str) -> Mount:
    """Return the mount of a directory, written as PATH or PATH:ro."""
    return Mount(source.removesuffix(":ro"), read_only=source.endswith(":ro"))
