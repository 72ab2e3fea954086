"""The server of a branch, which runs in its sandbox."""

import json
import os
from contextlib import suppress

from agentfs.base.lazy import ctypes
from agentfs.policy import Policy, Protect
from agentfs.remote.server import serve

STATE = "/run/agentfs"  # the directory of the branch's own journal, as the server sees it
_SET_DUMPABLE = 4  # an option of `prctl`
_OF_GIT = ("HEAD", "ORIG_HEAD", "index", "packed-refs", "refs", "logs")


def serve_branch(root: str, settings: str) -> None:
    """Serve the workspace of a branch on standard input and output.

    Args:
        root: The root.
        settings: The protected names, two lists as in `Protect`, and the directories of git, as JSON.
    """
    *protected, repositories = json.loads(settings)
    ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0)  # no command can trace the server
    for git in repositories:
        _take_over(git)
    # The sandbox stages the commands already.
    serve(root, policy=Policy(run="recorded", protect=Protect(*protected)), state=STATE)


def _take_over(git: str) -> None:
    """Copy references and the index into the overlay; else a commit of the parent would change them here."""
    for top in (os.path.join(git, each) for each in _OF_GIT):
        below = [os.path.join(above, name) for above, _, names in os.walk(top) for name in names]
        for path in (top, *below):
            with suppress(OSError):  # it is missing or a directory, or git has just replaced it
                os.close(os.open(path, os.O_RDWR | os.O_NOFOLLOW))
