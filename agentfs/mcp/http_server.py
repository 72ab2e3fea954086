"""The server over streamable HTTP, with the SDK's means against foreign tokens, hosts and origins."""

import hmac
import socket
import sys
from collections.abc import Sequence

import uvicorn
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import AnyHttpUrl

from agentfs.errors import InvalidArgumentError, RefusedError
from agentfs.mcp.tool_server import tool_server
from agentfs.tools.toolset import Toolset

_PATH = "/mcp"
_LOOPBACK = ("127.0.0.1", "[::1]", "localhost")
_MIN_TOKEN_CHARS = 16
_MAX_BODY_BYTES = 64 * 1024 * 1024  # fits the largest file that may be edited, all escaped
_GRACE_SECONDS = 3  # for open streams, when the server ends


def serve_http(tools: Toolset, address: str, *, token: str | None = None, names: Sequence[str] = ()) -> None:
    """Serve clients at an address until the process gets SIGINT or SIGTERM.

    Slow clients and floods of connections are for a proxy in front of it to stop.

    Args:
        tools: The tools, which all clients share.
        address: The address as `HOST:PORT`; port 0 takes a free one.
        token: The bearer token that each request must have. Only a loopback address needs none.
        names: The server's names in the URLs of clients, with the port if the URL has one; needed if the
            address is not a loopback address. Requests for other hosts, and from pages of other origins, are
            refused.

    Raises:
        AgentFSError: `invalid_argument` for a malformed address or token; `refused` without a token on an
            address that other machines reach.
        OSError: The address cannot be used.
    """
    host, _, port = address.rpartition(":")
    if not host or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise InvalidArgumentError(f"{address!r} is not HOST:PORT, such as 127.0.0.1:8765.")
    if token is not None and (len(token) < _MIN_TOKEN_CHARS or not token.isascii() or " " in token):
        raise InvalidArgumentError(f"The token must be {_MIN_TOKEN_CHARS} or more ASCII characters.")
    if host not in _LOOPBACK and token is None:
        raise RefusedError(
            f"Other machines reach {host}, so the server needs a token.",
            hint="Give it --token-env, or listen on 127.0.0.1.",
        )
    if host not in _LOOPBACK and not names:
        raise InvalidArgumentError(
            f"The server at {host} needs a name that clients use.", hint="Give --http-name HOST:PORT."
        )
    family = socket.AF_INET6 if host.startswith("[") else socket.AF_INET
    with socket.create_server((host.strip("[]"), int(port)), family=family) as listening:
        own = [f"{each}:{listening.getsockname()[1]}" for each in _LOOPBACK]
        url = f"http://{own[_LOOPBACK.index(host)] if host in _LOOPBACK else names[0]}{_PATH}"
        app = tool_server(tools).streamable_http_app(
            streamable_http_path=_PATH,
            transport_security=_security([*own, *names]),
            max_request_body_size=_MAX_BODY_BYTES,
            auth=AuthSettings(issuer_url=AnyHttpUrl(url), resource_server_url=None) if token else None,
            token_verifier=_OneToken(token) if token else None,
        )
        config = uvicorn.Config(
            app, log_level="warning", server_header=False, timeout_graceful_shutdown=_GRACE_SECONDS
        )
        print(f"agentfs: serving {url}", file=sys.stderr, flush=True)  # noqa: T201 - for the person who started it
        uvicorn.Server(config).run(sockets=[listening])


def _security(hosts: Sequence[str]) -> TransportSecuritySettings:
    """Return the hosts to accept, and the origins of their own pages."""
    origins = [f"{scheme}://{host}" for host in hosts for scheme in ("http", "https")]
    return TransportSecuritySettings(allowed_hosts=list(hosts), allowed_origins=origins)


class _OneToken:
    """Verifies that a token is the one of this server."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return the access of the token, or None if it is another one."""
        if not hmac.compare_digest(token.encode("utf-8", "surrogatepass"), self._token):
            return None
        return AccessToken(token=token, client_id="agentfs", scopes=[])
