"""The question for the user's permission during one request of a client.

Until the protocol of 2025-11-25, the server sends a request of its own and waits. From 2026-07-28 on, the
client's request ends with the question, and the client sends the request again with the answer.
"""

import asyncio
import hashlib
import inspect
import json
from collections.abc import Awaitable, Mapping
from typing import Any

from mcp import MCPError, types
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from agentfs.base.advice import plural
from agentfs.base.visible import visible
from agentfs.permissions import READING, Allow, Deny, PermissionRequest
from agentfs.workspace import Workspace

ANSWER_SECONDS = 600.0  # for a user to answer
_SHOWN_CHARS = 40_000
_PATHS = 20
_ACTIONS = {"delete": "delete", "move": "move", "undo": "take back", "run": "run a command that changes"}
_NO_FIELDS: dict[str, Any] = {"type": "object", "properties": {}}  # the user only accepts or declines
_CANNOT_ASK = (
    "The user must be asked before this call, and this client cannot ask (MCP's elicitation). The user can "
    "change the rules of the server, or use a client that can ask"
)


class Questions:
    """The questions of one request and the answers that came with it.

    Attributes:
        required: The question that the request must end with, or None.
    """

    def __init__(self, request: Any, answers: Any) -> None:
        self.required: types.InputRequiredResult | None = None
        self._resends = request.protocol_version in MODERN_PROTOCOL_VERSIONS
        self._session, self._request_id = request.session, request.request_id
        self._answers: dict[str, Any] = getattr(answers, "input_responses", None) or {}
        # Only this server can have made it: `RequestStateBoundary` checks that.
        state = json.loads(getattr(answers, "request_state", None) or "{}")
        self._allowed: list[str] = state.get("allowed", [])
        self._asked: str | None = state.get("asked")

    def permission(self, request: PermissionRequest) -> Allow | Deny | Awaitable[Allow | Deny]:
        """Ask the user about a call, as the callback of a policy."""
        capabilities = self._session.client_capabilities
        modes = capabilities.elicitation if capabilities else None
        if modes is None or (modes.form is None and modes.url is not None):
            return Deny(_CANNOT_ASK)
        params = types.ElicitRequestFormParams(message=_text(request), requested_schema=_NO_FIELDS)
        if not self._resends:
            return self._elicit(params.message)
        # The digest is that of the whole change, because the message may be cut.
        digest = hashlib.sha256(repr(request).encode("utf-8", "surrogatepass")).hexdigest()
        answer = self._answers.get("permission") if digest == self._asked else None
        if isinstance(answer, types.ElicitResult):
            decided = _decided(answer)
            self._allowed += [digest] if isinstance(decided, Allow) else []
            return decided
        if digest in self._allowed:
            return Allow()
        state = json.dumps({"allowed": self._allowed, "asked": digest})
        question = types.ElicitRequest(params=params)
        self.required = types.InputRequiredResult(
            input_requests={"permission": question}, request_state=state
        )
        return Deny("The user is asked.")

    async def _elicit(self, message: str) -> Allow | Deny:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                answer = await self._session.elicit_form(
                    message, _NO_FIELDS, related_request_id=self._request_id
                )
        except TimeoutError:
            return Deny(f"The user did not answer within {ANSWER_SECONDS:g} seconds")
        except (MCPError, ValidationError):
            return Deny("The client could not ask the user")
        return _decided(answer)


def _decided(answer: types.ElicitResult) -> Allow | Deny:
    if answer.action == "accept":
        return Allow()
    closed = "The user closed the question without an answer"
    return Deny(closed if answer.action == "cancel" else "The user did not allow this call")


def _text(request: PermissionRequest) -> str:
    """Return the question: the call, its paths, and the diff or the arguments."""
    shown = request.diff
    if not shown:
        method = getattr(Workspace, request.method, None)  # another tool has none, and shows all
        known: Mapping[str, inspect.Parameter] = inspect.signature(method).parameters if method else {}
        given = [
            (name, value)
            for name, value in request.arguments.items()
            if not method or (name in known and value != known[name].default)
        ]
        shown = visible("\n".join(f"{name}={value!r}" for name, value in given))
    if len(shown) > _SHOWN_CHARS:
        left_out = f"[{plural(len(shown) - _SHOWN_CHARS, 'character')} not shown]"
        shown = f"{left_out}\n{shown[:_SHOWN_CHARS]}\n{left_out}"
    more = len(request.paths) - _PATHS
    paths = ", ".join("the root directory" if path == "." else path for path in request.paths[:_PATHS])
    paths += f" and {plural(more, 'more file', 'more files')}" if more > 0 else ""
    changes = "change" if request.effect not in READING else "use"
    action = _ACTIONS.get(request.method, changes)
    wants = f"{request.tool or request.method} wants to {action} {paths or 'files that it finds'}"
    return f"{wants}. Allow it?\n\n{shown}".rstrip()
