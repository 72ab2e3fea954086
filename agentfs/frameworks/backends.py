"""The workspace below a backend of a framework, and its limits."""

import os
import posixpath
from copy import copy
from dataclasses import replace
from typing import Any

from agentfs.async_workspace import AsyncWorkspace
from agentfs.errors import AgentFSError
from agentfs.limits import LARGEST, Limits
from agentfs.policy import Policy, Run
from agentfs.workspace import Workspace

Place = str | os.PathLike[str] | Workspace | AsyncWorkspace
# The frameworks cut what their models see; time, memory and what undo keeps stay bounded.
_UNCUT = ("read_lines", "read_bytes", "line_chars", "list_entries", "glob_results", "grep_results")
_MOST_RESULTS = 100_000
# Frameworks transfer files of a little more than 10 MiB in their own suites.
_OPENED = Limits(file_bytes=64 * 2**20)
NO_TIMEOUT = 1e9  # seconds


def uncut(limits: Limits) -> Limits:
    """Return limits whose results are complete, with the same bounds on time and memory."""
    most: dict[str, Any] = dict.fromkeys(_UNCUT, LARGEST)
    most |= dict.fromkeys(("glob_results", "grep_results"), _MOST_RESULTS)
    return replace(limits, **most, output_tokens=LARGEST, grep_line_chars=LARGEST)


def open_below(place: Place, policy: Policy | None, run: Run | None) -> Workspace:
    """Return the workspace of a backend: a directory is opened; an open workspace gets a view."""
    if isinstance(place, AsyncWorkspace):
        place = place.workspace
    if not isinstance(place, Workspace):
        policy = policy or Policy()
        place = Workspace(place, policy=replace(policy, run=policy.run or run), limits=_OPENED)
        return place.view(limits=uncut(place.limits))
    view = place.view(limits=uncut(place.limits), policy=policy)
    if view.policy.run is None and run is not None and type(view) is Workspace:
        view = _running(view, run)
    return view


def _running(workspace: Workspace, run: Run) -> Workspace:
    """Return a view that runs commands, for a workspace whose policy does not say how."""
    other = copy(workspace)
    other.policy = replace(workspace.policy, run=run)
    other._root = workspace._root.for_host(other.policy)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    return other


def directory_of(workspace: Workspace) -> str:
    """Return the absolute path of the directory in which the commands of a workspace start."""
    return posixpath.normpath(posixpath.join(workspace.root, workspace.workdir))


def refusal_output(error: AgentFSError) -> tuple[bytes, bytes]:
    """Return what a command had written before its changes were refused; the reason is in its errors."""
    written = (str(error.details.get("stdout", "")), f"{error.details.get('stderr', '')}{error}\n")
    stdout, stderr = (each.encode("utf-8", "surrogateescape") for each in written)
    return stdout, stderr
