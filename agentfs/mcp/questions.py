"""Questions of one request to its client: the client's roots, and the user's permission.

Until the protocol of 2025-11-25, the server sends a request of its own and waits. From 2026-07-28 on, the
client's request ends with the question, and the client sends the request again with the answer.
"""

import asyncio
import hashlib
import inspect
import json
from collections.abc import Awaitable
from typing import Any

from mcp import MCPError, types
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from agentfs.base.advice import plural
from agentfs.base.visible import one_line, visible
from agentfs.errors import RefusedError
from agentfs.permissions import CHANGING, Allow, Deny, PermissionRequest
from agentfs.workspace import Workspace

ROOTS_SECONDS = 10.0  # for a client to list its roots
ANSWER_SECONDS = 600.0  # for a user to answer
_DIFF_CHARS = 40_000  # shown to the user
_ARGUMENTS_CHARS = 2000
_PATHS = 20
_ACTIONS = {
    "delete": "delete {named}",
    "move": "move {named}",
    "copy": "copy {named}",
    "undo": "take back {steps} of the journal",
    "redo": "make {steps} of the journal again",
    "rollback": "take the files back to the checkpoint {to}",
}
_ROOTS, _PERMISSION = "roots", "permission"  # the names of the questions
_NO_FIELDS: dict[str, Any] = {"type": "object", "properties": {}}  # the user only accepts or declines
_CANNOT_ASK = (
    "The user must be asked before this call, and this client cannot ask (MCP's elicitation). The user can "
    "change the rules of the server, or use a client that can ask"
)


class InputRequired(Exception):  # noqa: N818 - named as the protocol's answer
    """Raised to end a request with a question, for a client that then sends the request again."""

    def __init__(self, result: types.InputRequiredResult) -> None:
        super().__init__("input required")
        self.result = result


class Questions:
    """The questions of one request and the answers that came with it.

    Attributes:
        resends: True if the client sends the request again with the answer.
        required: The question that the request must end with, or None.
    """

    def __init__(self, context: Any, params: Any) -> None:
        self.resends = context.protocol_version in MODERN_PROTOCOL_VERSIONS
        self.required: types.InputRequiredResult | None = None
        self._session = context.session
        self._request_id = context.request_id
        self._answers: dict[str, Any] = getattr(params, "input_responses", None) or {}
        # Only this server can have made it: `RequestStateBoundary` checks that.
        state = json.loads(getattr(params, "request_state", None) or "{}")
        self._roots: list[str] | None = state.get("roots")
        self._allowed: list[str] = state.get("allowed", [])
        self._asked: str | None = state.get("asked")

    @property
    def has_roots(self) -> bool:
        """True if the client has roots."""
        capabilities = self._session.client_capabilities
        return capabilities is not None and capabilities.roots is not None

    async def roots(self) -> list[str]:
        """Return the URIs of the client's roots.

        Raises:
            InputRequired: The client must send the request again with them.
            RefusedError: The client did not list them (`refused`).
        """
        try:
            if not self.resends:
                async with asyncio.timeout(ROOTS_SECONDS):
                    listed = await self._session.send_request(
                        types.ListRootsRequest(),
                        types.ListRootsResult,
                        metadata=ServerMessageMetadata(related_request_id=self._request_id),
                    )
                return [str(root.uri) for root in listed.roots]
        except (MCPError, TimeoutError, ValidationError) as error:
            raise RefusedError(
                "The client has roots but did not list them, so no tool may be used.",
                hint="Nothing was changed. Try again, or tell the user.",
            ) from error
        if self._roots is None:
            answer = self._answers.get(_ROOTS)
            if not isinstance(answer, types.ListRootsResult):
                raise InputRequired(self._ending_with(_ROOTS, types.ListRootsRequest()))
            self._roots = [str(root.uri) for root in answer.roots]
        return self._roots

    def permission(self, request: PermissionRequest) -> Allow | Deny | Awaitable[Allow | Deny]:
        """Ask the user about a call, as the callback of a policy."""
        if not self._can_elicit:
            return Deny(_CANNOT_ASK)
        params = types.ElicitRequestFormParams(message=_text(request), requested_schema=_NO_FIELDS)
        question = types.ElicitRequest(params=params)
        if not self.resends:
            return self._elicit(question)
        # The digest is that of the whole change, because the message may be cut.
        digest = hashlib.sha256(repr(request).encode("utf-8", "surrogatepass")).hexdigest()
        answer = self._answers.get(_PERMISSION) if digest == self._asked else None
        if isinstance(answer, types.ElicitResult):
            decided = _decided(answer)
            self._allowed += [digest] if isinstance(decided, Allow) else []
            return decided
        if digest in self._allowed:
            return Allow()
        self._asked = digest
        self.required = self._ending_with(_PERMISSION, question)
        return Deny("The user is asked.")

    @property
    def _can_elicit(self) -> bool:
        capabilities = self._session.client_capabilities
        modes = capabilities.elicitation if capabilities else None
        return modes is not None and (modes.form is not None or modes.url is None)

    async def _elicit(self, question: types.ElicitRequest) -> Allow | Deny:
        params: Any = question.params
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                answer = await self._session.elicit_form(
                    params.message, params.requested_schema, related_request_id=self._request_id
                )
        except TimeoutError:
            return Deny(f"The user did not answer within {ANSWER_SECONDS:g} seconds")
        except (MCPError, ValidationError):
            return Deny("The client could not ask the user")
        return _decided(answer)

    def _ending_with(self, name: str, question: types.InputRequest) -> types.InputRequiredResult:
        state = {"roots": self._roots, "allowed": self._allowed, "asked": self._asked}
        return types.InputRequiredResult(input_requests={name: question}, request_state=json.dumps(state))


def _decided(answer: types.ElicitResult) -> Allow | Deny:
    if answer.action == "accept":
        return Allow()
    closed = "The user closed the question without an answer"
    return Deny(closed if answer.action == "cancel" else "The user did not allow this call")


def _text(request: PermissionRequest) -> str:
    """Return the question: the call, its paths, and the diff or the arguments."""
    shown, most = request.diff, _DIFF_CHARS
    if not shown:
        method = getattr(Workspace, request.method, _text)  # a subclass may have other methods
        defaults = {each.name: each.default for each in inspect.signature(method).parameters.values()}
        given = [each for each in request.arguments.items() if each not in defaults.items()]
        shown, most = visible("\n".join(f"{name}={value!r}" for name, value in given)), _ARGUMENTS_CHARS
    if len(shown) > most:
        left_out = f"[{plural(len(shown) - most, 'character')} not shown]"
        shown = f"{left_out}\n{shown[:most]}\n{left_out}"
    action = _ACTIONS.get(request.method, "change {named}" if request.effect in CHANGING else "use {named}")
    steps = plural(request.arguments.get("steps", 1), "step")
    wants = action.format(named=_paths(request), steps=steps, to=one_line(repr(request.arguments.get("to"))))
    if request.files is not None:
        wants += f" ({plural(request.files, 'file')})"
    return f"{request.tool or request.method} wants to {wants}. Allow it?\n\n{shown}".rstrip()


def _paths(request: PermissionRequest) -> str:
    more = len(request.paths) - _PATHS
    names = ("the root directory" if path == "." else path for path in request.paths[:_PATHS])
    shown = ", ".join(names) or "files that it finds"
    return f"{shown} and {plural(more, 'more file', 'more files')}" if more > 0 else shown
