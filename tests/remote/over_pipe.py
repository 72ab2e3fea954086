"""`connect` to a server in threads of this process, over two pipes."""

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

import agentfs
from agentfs.remote.client import RemoteWorkspace, connect
from agentfs.remote.protocol import ProtocolError
from agentfs.remote.server import Options, Server
from agentfs.remote.transport import line_reader


class PipeStream:
    """The near ends of two pipes, at whose far ends a server answers."""

    def __init__(self, options: Options) -> None:
        incoming, self._input = os.pipe()
        self._output, outgoing = os.pipe()
        self._reader = os.fdopen(self._output, "rb")
        self._closing, self._ended = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._serve, args=(options, incoming, outgoing), daemon=True)
        self._thread.start()

    def _serve(self, options: Options, incoming: int, outgoing: int) -> None:
        server = Server(options, outgoing)
        with os.fdopen(incoming, "rb") as reader:
            try:
                with suppress(ProtocolError):  # what is cut off is no message
                    server.run(line_reader(reader.readline, 1 << 20))
            finally:
                server.end()
                if server.session is not None:
                    server.session.close()
                os.close(outgoing)

    def write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._input, data) :]

    def readline(self, limit: int = -1) -> bytes:
        return b"" if self._reader.closed else self._reader.readline(limit)

    def close(self) -> None:
        with self._closing:
            if not self._ended.is_set():
                self._ended.set()
                os.close(self._input)
                self._thread.join(30)
                self._reader.close()


def open_pipe(**options: Any) -> Callable[[list[str]], PipeStream]:
    """Return a function for `connect`, which starts a server with options of its command line."""
    return lambda _: PipeStream(Options(root="/", any_policy=True, **options))


class ConnectedWorkspace(RemoteWorkspace):
    """In place of `Workspace` in a run with --connect: opening one connects to a server on the same root."""

    def __new__(cls, root: Any, **options: Any) -> Any:
        return connect(open_pipe(), os.path.abspath(root), push=False, **options)


def connect_all() -> None:
    """Let the tests that are collected from now on have remote workspaces."""
    agentfs.Workspace = ConnectedWorkspace  # type: ignore[misc] # it is what --connect is for

    def missing(self: RemoteWorkspace, name: str) -> Any:
        if name.startswith("_") and not name.startswith("__"):
            pytest.skip("it reaches inside of the workspace")
        raise AttributeError(name)

    RemoteWorkspace.__getattr__ = missing  # type: ignore[attr-defined] # as above
