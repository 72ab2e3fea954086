"""The methods that a client may call, and the policy of a server, which a client can only narrow.

Both sides compute the policy, so neither can widen it.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from agentfs.errors import InvalidArgumentError, RefusedError
from agentfs.policy import Policy, Protect
from agentfs.workspace import Workspace

_LOCAL = {"close", "tools", "recorded", "branch"}
# The methods and properties that a client can name, and what a toolkit needs.
SENT = {
    name: each
    for name, each in vars(Workspace).items()
    if name in {"_carry_out", "_keep", "_first_versions"} or not (name.startswith("_") or name in _LOCAL)
}


def check_server_policy(policy: Policy) -> None:
    """Raise `invalid_argument` for a policy of a server that needs somebody to ask."""
    if policy != replace(policy, mode="default", allow=(), ask=(), on_ask=None):
        raise InvalidArgumentError(
            "A server's policy has no `mode`, `allow`, `ask` and `on_ask`: whoever connects is asked.",
            hint="Write deny rules, or pass it to `connect`.",
        )


def narrowed(policy: Policy, server: Policy) -> Policy:
    """Return the policy of a client, narrowed to what the server's own policy allows."""
    if policy.run not in (None, server.run):
        raise RefusedError(
            f"The remote side runs no {policy.run} commands.",
            hint=f'Write run = "{policy.run}" into the file of `agentfs serve --policy FILE`.',
        )
    own, given = server.protect, policy.protect
    return replace(
        policy,
        read_only=policy.read_only or server.read_only,
        symlinks="never" if server.symlinks == "never" else policy.symlinks,
        overwrite="never" if server.overwrite == "never" else policy.overwrite,
        protect=Protect(_protected(own.read, given.read), _protected(own.write, given.write)),
        deny=_union(server.deny, policy.deny),
        run_paths=server.run_paths,
    )


def _protected(own: Sequence[str], given: Sequence[str]) -> Sequence[str]:
    """Return the server's names with those of a client, without the client's exceptions."""
    return _union(own, [each for each in given if not each.startswith("!")])


def _union(own: Sequence[Any], given: Sequence[Any]) -> Sequence[Any]:
    return (*own, *(each for each in given if each not in own))
