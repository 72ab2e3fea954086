"""Approval by the framework or the MCP server that runs a call: the callback `ask`, and its answers."""

from collections.abc import Awaitable, Generator
from contextlib import contextmanager
from contextvars import ContextVar

from agentfs.base import call_context
from agentfs.permissions import Deny, OnAsk, PermissionAnswer, PermissionRequest

_answer: ContextVar[OnAsk | None] = ContextVar("agentfs_answer", default=None)


class Paused(call_context.Interruption):
    """Raised by an answer to leave the call, before it has changed anything.

    Attributes:
        request: The question that has no answer yet.
        reason: The framework's exception for it, if any.
    """

    def __init__(self, request: PermissionRequest, reason: Exception | None = None) -> None:
        super().__init__(request.method)
        self.request = request
        self.reason = reason


def ask(request: PermissionRequest) -> PermissionAnswer | Awaitable[PermissionAnswer]:
    """Ask by the mechanism of the framework that runs the call: a `Policy.on_ask`.

    Args:
        request: The call to decide about.

    Returns:
        The user's answer, or a refusal if no adapter runs the call.
    """
    answer = _answer.get()
    if answer is None:
        return Deny("No framework runs this call, so the user cannot be asked.")
    return answer(request)


@contextmanager
def answering(answer: OnAsk) -> Generator[None]:
    """Answer the questions of the calls in this block; raise the reason of a pause in place of it."""
    token = _answer.set(answer)
    try:
        yield
    except Paused as pause:
        if pause.reason is None:
            raise
        raise pause.reason from None
    finally:
        _answer.reset(token)
