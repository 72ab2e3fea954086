"""MCP over streamable HTTP, on the SDK's transport: the address, the token, and the names of the server."""

import asyncio
import hmac
import ipaddress
import math
import socket
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

import uvicorn
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.lowlevel import Server
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import AnyHttpUrl
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from agentfs.errors import FileIOError, InvalidArgumentError, RefusedError
from agentfs.mcp.stdio import MAX_FRAME_BYTES

PATH = "/mcp"
MIN_TOKEN_CHARS = 16
_MAX_SESSIONS = 100
_MAX_CONNECTIONS = 500
_MAX_WAITING = 100  # connections without a request under way
_HEAD_SECONDS = 10.0  # for the head of a request
_BODY_SECONDS = 120.0  # for the body of a request, and for its turn
_SMALL_BODY = 256 * 1024  # bytes; a larger body waits for its turn
_GRACE_SECONDS = 3  # for open streams, when the server ends
_IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


class HttpAddress:
    """An address that the server listens on, and who may use it.

    Browsers of the same machine reach a loopback address from any page. So a request must name the server in
    its header `Host`, and its `Origin`, if any, must be the server.
    """

    def __init__(self, address: str, *, token: str | None = None, names: Sequence[str] = ()) -> None:
        """Listen on an address.

        Args:
            address: The address as `HOST:PORT`; port 0 takes a free one.
            token: The bearer token that each request must have. Only a loopback address needs none.
            names: More names of the server in the URLs of clients, with a port unless it is that of the URL's
                scheme, such as `files.example.com`.

        Raises:
            AgentFSError: `invalid_argument` for a malformed address or token; `refused` without a token on an
                address that other machines reach; `io` if the address is in use.
        """
        host, _, port = address.rpartition(":")
        if not host or not (port.isascii() and port.isdigit()) or int(port) > 65535:
            raise InvalidArgumentError(f"{address!r} is not HOST:PORT, such as 127.0.0.1:8765.")
        if token is not None and not (token.isascii() and token.isprintable() and " " not in token):
            raise InvalidArgumentError("The token must be printable ASCII without spaces.")
        if token is not None and len(token) < MIN_TOKEN_CHARS:
            raise InvalidArgumentError(f"The token must have at least {MIN_TOKEN_CHARS} characters.")
        self._token = token
        bare = host.removeprefix("[").removesuffix("]")
        self.socket, bound = _listening(bare, int(port), has_token=token is not None)
        port = str(self.socket.getsockname()[1])
        own = {host, str(bound), *(("localhost", "127.0.0.1", "::1") if bound.is_loopback else ())}
        if bound.is_unspecified and not names:
            self.socket.close()
            hint = "Name the server with --http-name."
            raise InvalidArgumentError(f"A client cannot use {bound} in a URL.", hint=hint)
        self._hosts = [*(f"{_bracketed(name)}:{port}" for name in sorted(own)), *names]
        self.url = f"http://{_bracketed(host)}:{port}{PATH}"

    async def serve(self, server: Server[Any]) -> None:
        """Serve clients until the process gets SIGINT or SIGTERM."""
        security = TransportSecuritySettings(
            allowed_hosts=self._hosts,
            allowed_origins=[f"{scheme}://{host}" for host in self._hosts for scheme in ("http", "https")],
        )
        issuer = AnyHttpUrl(self.url)  # required, but only served to clients of OAuth
        app = server.streamable_http_app(
            streamable_http_path=PATH,
            transport_security=security,
            max_request_body_size=MAX_FRAME_BYTES,
            max_sessions=_MAX_SESSIONS,
            auth=AuthSettings(issuer_url=issuer, resource_server_url=None) if self._token else None,
            token_verifier=_OneToken(self._token) if self._token else None,
        )
        config = uvicorn.Config(
            _BoundedBodies(app),
            http=_Connection,
            log_level="warning",
            access_log=False,
            server_header=False,
            limit_concurrency=_MAX_CONNECTIONS,
            timeout_graceful_shutdown=_GRACE_SECONDS,
        )
        print(f"agentfs: serving {self.url}", file=sys.stderr, flush=True)  # noqa: T201 - for the person who started it
        await uvicorn.Server(config).serve(sockets=[self.socket])


def _listening(host: str, port: int, *, has_token: bool) -> tuple[socket.socket, _IpAddress]:
    """Return a socket that listens, and its IP address."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, place = found[0]
        bound = ipaddress.ip_address(str(place[0]).partition("%")[0])
        if not has_token and not bound.is_loopback:
            raise RefusedError(
                f"Other machines reach {bound}, so the server needs a token.",
                hint="Give it --token-file or --token-env, or listen on 127.0.0.1.",
            )
        listening = socket.socket(family, kind, protocol)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(place)
            listening.listen()  # clients that come at once wait
        except OSError:
            listening.close()
            raise
    except (OSError, UnicodeError) as error:  # UnicodeError: a name that DNS cannot have
        if isinstance(error, RefusedError):
            raise
        reason = getattr(error, "strerror", None) or error
        raise FileIOError(f"The server cannot listen on {host}, port {port}: {reason}.") from None
    return listening, bound


class _Connection(H11Protocol):
    """A connection whose client must send its requests soon, or give way to others.

    Connections without a request need no token, so they must not take the places of those that have one. If
    too many wait, the oldest one of the address with most of them is closed.
    """

    deadline: asyncio.TimerHandle | None = None  # set while no request is under way

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a request, and close another connection if too many wait."""
        super().connection_made(transport)
        self._watch()
        waiting: dict[_Connection, float] = {
            each: each.deadline.when()
            for each in self.connections
            if isinstance(each, _Connection) and each.deadline is not None
        }
        if len(waiting) > _MAX_WAITING:
            counts = Counter(each.address for each in waiting)
            min(waiting, key=lambda each: (-counts[each.address], waiting[each])).close()

    def data_received(self, data: bytes) -> None:
        """Handle the next part of a request."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        super().connection_lost(exc)
        self.close()

    @property
    def address(self) -> str:
        """The address of the client."""
        return self.client[0] if self.client else ""

    def close(self) -> None:
        """Close the connection when all answers are sent."""
        self._stop_waiting()
        self.transport.close()

    def _watch(self) -> None:
        """Start or stop the time for the head of the next request."""
        if not getattr(self.cycle, "response_complete", True):  # None before the first request
            self._stop_waiting()
        elif self.deadline is None and not self.transport.is_closing():
            self.deadline = self.loop.call_later(_HEAD_SECONDS, self.close)

    def _stop_waiting(self) -> None:
        if self.deadline is not None:
            self.deadline.cancel()
            self.deadline = None


class _BoundedBodies:
    """An application whose large request bodies together take no more memory than the largest one.

    Authentication reads no body, so a body without a token never takes a place.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._free = MAX_FRAME_BYTES
        self._freed = asyncio.Condition()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request; it is answered with 503 or 408 if its body comes too late."""
        headers = Headers(scope=scope) if scope["type"] == "http" else Headers()
        size = MAX_FRAME_BYTES if "transfer-encoding" in headers else int(headers.get("content-length", 0))
        size = min(size, MAX_FRAME_BYTES)
        taken, ends = 0, 0.0

        async def receive_in_turn() -> Message:
            nonlocal taken, ends
            if size <= _SMALL_BODY or ends == math.inf:
                return await receive()
            try:
                async with asyncio.timeout_at(
                    ends := ends or asyncio.get_running_loop().time() + _BODY_SECONDS
                ):
                    if not taken:
                        async with self._freed:
                            await self._freed.wait_for(lambda: self._free >= size)
                            self._free -= size
                            taken = size
                    message = await receive()
            except TimeoutError:
                raise HTTPException(408 if taken else 503, headers={"Retry-After": "10"}) from None
            if not message.get("more_body", False):
                ends = math.inf
            return message

        try:
            await self._app(scope, receive_in_turn, send)
        finally:
            async with self._freed:
                self._free += taken
                self._freed.notify_all()


class _OneToken:
    """Verifies that a token is the one of this server."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return the access of the token, or None if it is another one."""
        if not hmac.compare_digest(token.encode("utf-8", "surrogatepass"), self._token):
            return None
        return AccessToken(token=token, client_id="agentfs", scopes=[])


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host
