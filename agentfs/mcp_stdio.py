"""MCP's frames over standard input and output.

The SDK's own transport (2.3) does not answer a line that is no JSON-RPC message, so that its sender waits for
ever; takes bytes that are no UTF-8 for other text; and reads in a thread that no signal ends.
"""

import asyncio
import contextlib
import json
import os
import queue
import re
import signal
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from functools import partial
from typing import NamedTuple, Self

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp import MCPError, types
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from agentfs.errors import FileIOError

# A file of the largest size that may be changed, with every character escaped, fits.
MAX_FRAME_BYTES = 64 * 1024 * 1024
_CHUNK = 256 * 1024
# What JSON is made of; a text that is not closed is taken to its end.
_TOKEN = re.compile(rb'"(?>[^"\\]+|\\.)*"?|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.DOTALL)
_NO_MESSAGE = "The frame is no JSON-RPC request, notification or answer."
_OPEN, _CLOSE = (b"{", b"["), (b"}", b"]")
_ID = re.compile(rb'-?\d[\d.eE+-]{0,30}|"[ !#-\[\]-~]{0,200}"')

Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]


class _Envelope(NamedTuple):
    """What the outermost object of a frame has."""

    id: bytes  # as it is written, or null where it is none
    has_id: bool
    may_be_request: bool  # neither a notification nor a response


class _Line(NamedTuple):
    """A line of input, None at its end, and what is set when it is dealt with."""

    text: bytes | None
    taken: threading.Event


class Outgoing:
    """The stream of what the server sends; each message is written before `send` returns."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._work: queue.SimpleQueue[tuple[bytes, asyncio.Future[None]] | None] = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._closed = False
        _in_thread(self._write, "agentfs-mcp-output")

    async def send(self, item: SessionMessage, /) -> None:
        """Send a message; `BrokenResourceError` where the client has gone."""
        try:
            text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        except ValueError:  # a text with half of a surrogate pair
            identity = json.dumps(getattr(item.message, "id", None)).encode()
            await self.refuse(identity, types.INTERNAL_ERROR, "The answer cannot be written as UTF-8.")
            return
        await self._send(text.encode())

    async def refuse(self, identity: bytes, code: int, message: str) -> None:
        """Answer a request, by its id in JSON, with an error of JSON-RPC."""
        error = json.dumps({"code": code, "message": message}).encode()
        await self._send(b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (identity, error))

    async def aclose(self) -> None:
        """Close the stream."""
        if not self._closed:
            self._closed = True
            self._work.put(None)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, exc_type: object, exc_val: object, exc_tb: object) -> None:
        await self.aclose()

    async def _send(self, frame: bytes) -> None:
        if self._closed:
            raise anyio.ClosedResourceError
        written: asyncio.Future[None] = self._loop.create_future()
        self._work.put((frame + b"\n", written))
        try:
            await written
        except OSError as error:
            raise anyio.BrokenResourceError from error

    def _write(self) -> None:
        while (work := self._work.get()) is not None:
            rest, written = memoryview(work[0]), work[1]
            failure: OSError | None = None
            try:
                while rest:
                    rest = rest[os.write(self._fd, rest) :]
            except OSError as error:
                failure = error
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(_set_result, written, failure)


@contextlib.asynccontextmanager
async def stdio() -> AsyncGenerator[tuple[Incoming, Outgoing]]:
    """Give the streams for a server on standard input and output: what comes, and where to send.

    Meanwhile standard input is empty and standard output is standard error, so that nothing else gets among
    the frames.
    """
    if sys.stdin is None or sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison] - as Python has it
        raise FileIOError("The server speaks over standard input and output, and one of them is closed.")
    nothing, writable = os.pipe()
    os.close(writable)
    with _diverted(0, nothing) as incoming_fd, _diverted(1, 2) as outgoing_fd:
        os.close(nothing)
        outgoing = Outgoing(outgoing_fd)
        into, incoming = anyio.create_memory_object_stream[SessionMessage | Exception]()
        lines: asyncio.Queue[_Line] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        _in_thread(partial(_read_lines, incoming_fd, lines, loop), "agentfs-mcp-input")
        taking = asyncio.create_task(_take(lines, into, outgoing))
        try:
            with _ended_by_interrupt(lines):
                yield incoming, outgoing
        finally:
            taking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await taking
            await outgoing.aclose()
            incoming.close()
            sys.stdout.flush()  # what was printed meanwhile is for standard error


@contextlib.contextmanager
def _ended_by_interrupt(lines: asyncio.Queue[_Line]) -> Generator[None]:
    """Take the first SIGINT for the end of input, which lets the server end in order."""
    loop = asyncio.get_running_loop()

    def end() -> None:
        loop.remove_signal_handler(signal.SIGINT)  # another one interrupts at once
        lines.put_nowait(_Line(None, threading.Event()))

    unable = (ValueError, RuntimeError, NotImplementedError)  # this is no main thread, or no such system
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # as it is for what runs in the background
        with contextlib.suppress(*unable):
            loop.add_signal_handler(signal.SIGINT, end)
    try:
        yield
    finally:
        with contextlib.suppress(*unable):
            loop.remove_signal_handler(signal.SIGINT)


async def _take(
    lines: asyncio.Queue[_Line], into: MemoryObjectSendStream[SessionMessage | Exception], outgoing: Outgoing
) -> None:
    """Pass on each line that is a message, and answer each that is none, until the client goes."""
    with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError), into:
        while (line := await lines.get()).text is not None:
            if line.text.strip():
                try:
                    message = _message_of(line.text)
                except MCPError as error:
                    envelope = _envelope(line.text)
                    if envelope.may_be_request:
                        await outgoing.refuse(envelope.id, error.code, error.message)
                else:
                    await into.send(SessionMessage(message))
            line.taken.set()


def _message_of(line: bytes) -> types.JSONRPCMessage:
    if len(line) > MAX_FRAME_BYTES:
        raise MCPError(types.INVALID_REQUEST, f"The frame is over {MAX_FRAME_BYTES:,} bytes.")
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        raise MCPError(types.PARSE_ERROR, f"The frame is no UTF-8 at byte {error.start}.") from None
    try:
        message: types.JSONRPCMessage = types.jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        if first["type"] == "json_invalid":
            raise MCPError(types.PARSE_ERROR, f"{first['msg']}.") from None
        raise MCPError(types.INVALID_REQUEST, _NO_MESSAGE) from None
    if isinstance(message, types.JSONRPCNotification) and _envelope(line).has_id:
        raise MCPError(types.INVALID_REQUEST, "The id is neither a string nor an integer.")
    return message


def _envelope(frame: bytes) -> _Envelope:
    """Find the id and the method of a frame, however deep or broken the rest of it is."""
    depth, key, last = 0, b"", b""
    found: dict[bytes, bytes] = {}
    for token in (each[0] for each in _TOKEN.finditer(frame, 0, MAX_FRAME_BYTES)):
        if depth == 1 and token == b":":
            key = last
        elif depth == 1 and key:
            found.setdefault(key, token)
            key = b""
        last = token
        depth += (token in _OPEN) - (token in _CLOSE)
    identity, has_id = found.get(b'"id"', b""), b'"id"' in found
    is_response = b'"result"' in found or b'"error"' in found
    is_notification = b'"method"' in found and not has_id
    return _Envelope(
        identity if _ID.fullmatch(identity) else b"null", has_id, not (is_response or is_notification)
    )


def _read_lines(fd: int, lines: "asyncio.Queue[_Line]", loop: asyncio.AbstractEventLoop) -> None:
    """Hand over lines and their end, each once the one before was taken."""
    taken = threading.Event()
    with contextlib.suppress(RuntimeError):  # the loop has ended: nobody listens any more
        for line in _lines(fd):
            taken.clear()
            loop.call_soon_threadsafe(lines.put_nowait, _Line(line, taken))
            taken.wait()
        loop.call_soon_threadsafe(lines.put_nowait, _Line(None, taken))


def _lines(fd: int) -> Iterator[bytes]:
    kept = bytearray()
    with contextlib.suppress(OSError):
        while chunk := os.read(fd, _CHUNK):
            *ended, rest = chunk.split(b"\n")
            for part in ended:
                kept += part[: MAX_FRAME_BYTES + 1 - len(kept)]
                yield bytes(kept)
                kept.clear()
            kept += rest[: MAX_FRAME_BYTES + 1 - len(kept)]
    if kept:
        yield bytes(kept)


@contextlib.contextmanager
def _diverted(fd: int, instead: int) -> Generator[int]:
    """Give a duplicate of a descriptor, which meanwhile is a duplicate of another one."""
    kept = os.dup(fd)
    os.set_blocking(kept, True)
    os.dup2(instead, fd)
    try:
        yield kept
    finally:
        os.dup2(kept, fd)
        # `kept` stays open: a thread may still wait on it, and another file must not get its number.


def _in_thread(target: Callable[[], None], name: str) -> None:
    # A daemon: it may wait for input or a reader for ever, and the process need not wait for it.
    threading.Thread(target=target, name=name, daemon=True).start()


def _set_result(written: asyncio.Future[None], failure: OSError | None) -> None:
    if not written.cancelled():
        written.set_result(None) if failure is None else written.set_exception(failure)
