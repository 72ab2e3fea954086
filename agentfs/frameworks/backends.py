"""The workspace below a backend of a framework, and its limits."""

import os
import posixpath
from dataclasses import replace

from agentfs.limits import Limits
from agentfs.policy import Policy, Run
from agentfs.workspace import Workspace

Place = str | os.PathLike[str] | Workspace
# The frameworks cut what their models see; time, memory and what undo keeps stay bounded.
_KEPT = (
    *("timeout", "run_timeout", "apply_timeout"),
    *("file_bytes", "snapshot_bytes", "walk_entries", "watch_bytes"),
)
_MOST_RESULTS = 100_000
# Frameworks transfer files of a little more than 10 MiB in their own suites.
_OPENED = Limits(file_bytes=64 * 2**20)
NO_TIMEOUT = 1e9  # seconds


def uncut(limits: Limits) -> Limits:
    """Return limits whose results are complete, with the same bounds on time and memory."""
    bounds = {name: getattr(limits, name) for name in _KEPT}
    bounds |= dict.fromkeys(("glob_results", "grep_results"), _MOST_RESULTS)
    return replace(Limits.unlimited(), **bounds)


def open_below(place: Place, policy: Policy | None, run: Run | None) -> Workspace:
    """Return the workspace of a backend: a directory is opened; an open workspace gets a view."""
    if isinstance(place, (str, os.PathLike)):
        rules = policy or Policy()
        opened = Workspace(place, policy=replace(rules, run=rules.run or run), limits=_OPENED)
        return opened.view(limits=uncut(opened.limits))
    return place.view(limits=uncut(place.limits), policy=policy)


def directory_of(workspace: Workspace) -> str:
    """Return the absolute path of the directory in which the commands of a workspace start."""
    return posixpath.normpath(posixpath.join(workspace.root, workspace.workdir))
