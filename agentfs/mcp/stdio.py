"""MCP's frames over standard input and output, on the SDK's transport.

`_Frames` replaces the SDK's own reader (2.3), which keeps a frame of any length, replaces bytes that are not
UTF-8, does not answer a broken frame, and reads in a thread that no signal ends. `_Output` replaces its
writer, which keeps a frame that a client did not take before it left; Python 3.13 reports that at its end.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
import threading
from collections.abc import AsyncGenerator, Generator
from typing import Any, BinaryIO, Self, cast

import anyio
from mcp import types
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage

from agentfs.errors import FileIOError
from agentfs.fs.file import write_all

# The largest file that may be edited fits, even with every character escaped.
MAX_FRAME_BYTES = 64 * 1024 * 1024
_REFUSAL = f"The frame is not a JSON-RPC message in UTF-8 of at most {MAX_FRAME_BYTES:,} bytes."
_Streams = tuple[Any, Any]  # the SDK's generic types


@contextlib.asynccontextmanager
async def stdio() -> AsyncGenerator[_Streams]:
    """Open the streams for a server on standard input and output.

    Until the end, file descriptor 0 is empty and 1 is standard error, so that no other output or input mixes
    with the frames.
    """
    if sys.stdin is None or sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison] - None if it is closed
        raise FileIOError("The server needs standard input and output, and one of them is closed.")
    async with await anyio.open_file(os.devnull, "r+b", 0) as file:
        empty = file.wrapped.fileno()
        stray = empty if sys.stderr is None else 2  # pyright: ignore[reportUnnecessaryComparison] - as above
        with _private(0, empty) as source, _private(1, stray) as sink:
            frames = _Frames(os.fdopen(source, "rb", closefd=False))
            streams: Any = frames, _Output(sink)
            async with stdio_server(*streams) as (incoming, outgoing):
                frames.outgoing = outgoing
                with _ended_by_interrupt(frames):
                    yield incoming, outgoing
                sys.stdout.flush()  # while descriptor 1 is still standard error
                frames.end()


class _Frames:
    """Yields the valid frames of a client; answers the others with an error."""

    def __init__(self, source: BinaryIO) -> None:
        self.outgoing: Any = None
        self._source = source
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[bytes] = asyncio.Queue()
        self._room = threading.Semaphore()  # for one line: input is read only as fast as it is used
        # A daemon, because it may wait for input forever.
        threading.Thread(target=self._read, name="agentfs-mcp-input", daemon=True).start()

    def end(self) -> None:
        """End the input."""
        self._lines.put_nowait(b"")

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        while line := await self._lines.get():
            self._room.release()
            try:
                text = line.decode()
                if len(line) <= MAX_FRAME_BYTES:
                    types.jsonrpc_message_adapter.validate_json(text, by_name=False)
                    return text
            except ValueError:  # includes the error of pydantic
                pass
            with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                await self.outgoing.send(SessionMessage(_refusal(line)))
        raise StopAsyncIteration

    def _read(self) -> None:
        with contextlib.suppress(RuntimeError, OSError):  # the loop has ended, or reading failed
            while line := self._source.readline(MAX_FRAME_BYTES + 1):
                rest = line
                while len(line) > MAX_FRAME_BYTES and rest and not rest.endswith(b"\n"):
                    rest = self._source.readline(MAX_FRAME_BYTES)
                if line.strip():
                    self._room.acquire()
                    self._loop.call_soon_threadsafe(self._lines.put_nowait, line)
            self._loop.call_soon_threadsafe(self.end)


class _Output:
    """Writes the frames for a client at once."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    async def write(self, frame: str) -> None:
        await anyio.to_thread.run_sync(write_all, self._fd, frame.encode())

    async def flush(self) -> None:
        """Do nothing: no frame is kept."""


def _refusal(line: bytes) -> types.JSONRPCError:
    """Return the answer to an invalid frame, with the id of the frame if it can be read."""
    identity: Any = None
    with contextlib.suppress(ValueError, RecursionError):
        frame: Any = json.loads(line) if len(line) <= MAX_FRAME_BYTES else None
        identity = cast("dict[str, Any]", frame).get("id") if isinstance(frame, dict) else None
    known = identity if type(identity) in (int, str) else None
    return types.JSONRPCError(
        jsonrpc="2.0", id=known, error=types.ErrorData(code=types.PARSE_ERROR, message=_REFUSAL)
    )


@contextlib.contextmanager
def _private(descriptor: int, other: int) -> Generator[int]:
    """Duplicate a standard stream; during the block, its descriptor leads to another file."""
    private = os.dup(descriptor)
    os.dup2(other, descriptor)
    try:
        yield private  # never closed: a thread may still use it, and another file must not get its number
    finally:
        os.dup2(private, descriptor)


@contextlib.contextmanager
def _ended_by_interrupt(frames: _Frames) -> Generator[None]:
    """Treat the first SIGINT as the end of input, so that the server ends in order."""
    loop = asyncio.get_running_loop()

    def end() -> None:
        loop.remove_signal_handler(signal.SIGINT)  # the next one interrupts at once
        frames.end()

    unable = (ValueError, RuntimeError, NotImplementedError)  # not the main thread, or Windows
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # ignored in the background
        with contextlib.suppress(*unable):
            loop.add_signal_handler(signal.SIGINT, end)
    try:
        yield
    finally:
        with contextlib.suppress(*unable):
            loop.remove_signal_handler(signal.SIGINT)
