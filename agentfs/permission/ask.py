"""The question to the user about a call, and the errors of calls without permission.

A framework or an MCP server that runs a call can answer it: its policy has the callback `ask`.
"""

from collections.abc import Awaitable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import deepcopy
from dataclasses import replace
from typing import Any

from agentfs import history
from agentfs.base import call_context
from agentfs.base.visible import one_line, visible
from agentfs.errors import AgentFSError, RefusedError
from agentfs.fs import Change, Root
from agentfs.fs.oserrors import read_only
from agentfs.permission.decide import Decision
from agentfs.permissions import (
    DO_NOT_RETRY,
    Allow,
    Deny,
    Effect,
    OnAsk,
    PermissionAnswer,
    PermissionRequest,
)  # fmt: skip
from agentfs.policy import Policy

NOT_ASKED = "The user could not be asked, so this call is refused."  # the callback has raised
NOBODY = "This call needs permission, and there is nobody to ask."
_answer: ContextVar[OnAsk | None] = ContextVar("agentfs_answer", default=None)


def not_permitted(reason: str, tool: str, paths: Sequence[str], hint: str = DO_NOT_RETRY) -> RefusedError:
    """Return the error for a call without permission."""
    return RefusedError(f"{reason.rstrip('.')}.", hint=hint, details={"method": tool, "paths": list(paths)})


def refused(policy: Policy, decision: Decision, tool: str, paths: Sequence[str]) -> AgentFSError:
    """Return the error for a call that a rule, the mode or `read_only` refuses."""
    if decision.rule is not None:
        return not_permitted(f"The rule `{decision.rule.text}` denies this call", tool, paths)
    if policy.read_only:
        return read_only()
    hint = "Tell the user what you would change."
    return not_permitted("Nothing is changed in plan mode", tool, paths, hint)


def ask_user(policy: Policy, request: PermissionRequest) -> Allow:
    """Return the permission that the callback gives; raise `refused` if it gives none, fails or is missing.

    The callback gets a copy of the arguments, so that only `Allow.arguments` changes the call.
    """
    if policy.on_ask is None:
        raise not_permitted(NOBODY, request.method, request.paths)
    shown = replace(request, arguments=deepcopy(dict(request.arguments)))
    try:
        answer = call_context.call_back(policy.on_ask, shown)
    except call_context.BusyLoopError:
        raise
    except Exception as error:
        raise not_permitted(NOT_ASKED, request.method, request.paths) from error
    if answer is True:
        return Allow()
    if isinstance(answer, Allow):
        return answer
    reason = answer.reason if isinstance(answer, Deny) else ""
    raise not_permitted(reason or "The user did not allow this call.", request.method, request.paths)


def called_as() -> str | None:
    """Return the name of the tool that a model called, or None if the program called a method."""
    context = call_context.current.get()
    return one_line(context.tool) if context and context.tool else None


def request_about(
    changes: Sequence[Change], name: str, effect: Effect, arguments: Mapping[str, Any], root: Root
) -> PermissionRequest:
    """Return the question about some changes; contents that may not be shown are left out."""
    diff, shown = history.report.proposed_changes(changes, root)
    paths = tuple(dict.fromkeys(one_line(change.path) for change in changes))
    return PermissionRequest(name, effect, arguments, paths, visible(diff), called_as(), changes=shown)


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
