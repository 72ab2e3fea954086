"""The server of a branch, which runs in its sandbox."""

import json

from agentfs.base.lazy import ctypes
from agentfs.policy import Policy, Protect
from agentfs.remote.server import serve

STATE = "/run/agentfs"  # the directory of the branch's own journal, as the server sees it
JOURNAL = "journal"
_SET_DUMPABLE = 4  # an option of `prctl`


def server_settings(policy: Policy) -> str:
    """Return the settings of `serve_branch` for a branch of a workspace."""
    protect = policy.protect
    return json.dumps([run_of(policy), [*protect.read], [*protect.write]])


def run_of(policy: Policy) -> str | None:
    """Return `Policy.run` of a branch: the sandbox stages its commands already."""
    return "recorded" if policy.run else None


def serve_branch(root: str, settings: str) -> None:
    """Serve the workspace of a branch on standard input and output."""
    run, read, write = json.loads(settings)
    ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0)  # no command can trace the server
    serve(root, policy=Policy(run=run, protect=Protect(read, write)), state=STATE)
