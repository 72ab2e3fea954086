"""MCP over streamable HTTP, on the SDK's transport: the address, the token, and the names of the server."""

import hmac
import ipaddress
import socket
import sys
from collections.abc import Sequence
from typing import Any

import uvicorn
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.lowlevel import Server
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import AnyHttpUrl

from agentfs.errors import FileIOError, InvalidArgumentError, RefusedError
from agentfs.mcp.stdio import MAX_FRAME_BYTES

PATH = "/mcp"
MIN_TOKEN_CHARS = 16
_MAX_SESSIONS = 100
_MAX_CONNECTIONS = 500
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
            app,
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
