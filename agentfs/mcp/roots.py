"""The view of a workspace inside the client's roots."""

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from agentfs.mcp.questions import Questions
from agentfs.tools.toolset import Toolset
from agentfs.workspace import Workspace


@dataclass(frozen=True)
class ClientView:
    """The part of a workspace that a client may use, the directory of its paths, and its tools."""

    workspace: Workspace
    directory: str
    tools: Toolset


class ClientRoots:
    """Follows the roots of one client, which are requested once and after each change."""

    def __init__(self, whole: ClientView, make_tools: Callable[[Workspace], Toolset]) -> None:
        self._whole = self._view = whole
        self._make_tools = make_tools
        self._only: list[str] | None = None
        self._announced, self._known = 1, 0
        self._request: asyncio.Task[None] | None = None

    def changed(self) -> None:
        """Ask for the roots again before the next call."""
        self._announced += 1

    async def view(self, questions: Questions) -> ClientView:
        """Return the view inside the client's roots; raise `refused` if the client does not list them."""
        if questions.resends:  # a request of its own
            await self._narrow(await questions.roots())
        elif self._known != self._announced:
            # Concurrent calls wait for the same answer.
            if self._request is None or self._request.done():
                self._request = asyncio.create_task(self._ask(questions))
                # Waiting calls raise its error. If no call waits, asyncio must not log it.
                self._request.add_done_callback(lambda task: task.cancelled() or task.exception())
            await asyncio.shield(self._request)
        return self._view

    async def _ask(self, questions: Questions) -> None:
        """Narrow the view to the client's roots; ask again if they change before the reply."""
        while self._known != self._announced:
            announced = self._announced
            await self._narrow(await questions.roots())
            self._known = announced

    async def _narrow(self, roots: Sequence[str]) -> None:
        workspace = self._whole.workspace
        only = await asyncio.to_thread(_inside, workspace, roots)
        if only != self._only:
            view, directory = await asyncio.to_thread(_view_of, workspace, only)
            self._view = ClientView(view, directory, self._make_tools(view))
            self._only = only


def path_of(uri: str) -> str | None:
    """Return the path of a `file` URI of this machine, or None."""
    try:
        parts = urlsplit(uri)
    except ValueError:  # not a URL
        return None
    path = unquote(parts.path)
    is_local = parts.scheme == "file" and parts.netloc in ("", "localhost")
    return path if is_local and os.path.isabs(path) and "\0" not in path else None


def _inside(workspace: Workspace, uris: Sequence[str]) -> list[str] | None:
    """Return the part of the workspace in a client's roots, as relative directories; None for all of it.

    A mount that no root of the client names stays, because it was given to all clients.
    """
    paths = [os.path.realpath(path) for path in map(path_of, uris) if path is not None]
    mounts = workspace.mounts
    parts: dict[str, list[str] | None] = {
        at: _part_of(os.path.realpath(mount.source), paths) for at, mount in mounts.items()
    }
    own = _part_of(workspace.root, paths)
    if own is None:  # all of the root, and so all of its mounts
        return None
    found = own
    for at, part in parts.items():
        if not part:
            found.append(at)
        else:
            found += [os.path.join(at, each) for each in part]
    return found


def _part_of(top: str, paths: Sequence[str]) -> list[str] | None:
    """Return the paths in a directory, relative to it; None if one of them contains the directory."""
    if any(os.path.commonpath([top, path]) == path for path in paths):
        return None
    return [os.path.relpath(path, top) for path in paths if os.path.commonpath([top, path]) == top]


def _view_of(workspace: Workspace, only: list[str] | None) -> tuple[Workspace, str]:
    """Return a view on some directories, and where its paths start; with a single one, they start there."""
    if only is None:
        return workspace, workspace.root
    single = os.path.join(workspace.root, only[0]) if len(only) == 1 else ""
    if not os.path.isdir(single):
        return workspace.view(only=only), workspace.root
    return workspace.view(only=only, workdir=only[0]), single
