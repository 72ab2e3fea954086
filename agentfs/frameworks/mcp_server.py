"""The MCP SDK: the tools for a server of one's own, with failed results, images, progress and elicitation."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from typing import Any

from mcp import types
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.tools import Tool
from mcp.server.mcpserver.utilities.func_metadata import func_metadata
from pydantic import PrivateAttr

from agentfs.advice import plural
from agentfs.frameworks.approval import Answer, Paused, answering
from agentfs.permissions import Allow, Deny, PermissionAnswer, PermissionRequest
from agentfs.providers.mcp_format import call_result
from agentfs.tools.toolset import Toolset

_QUESTION = "permission"  # the key of the elicitation in a result that requires input


def tools(toolset: Toolset) -> list[Tool]:
    """Return tools as those of the MCP SDK, for `MCPServer(tools=...)`.

    A call that fails is a result with `is_error`. With the `Policy.permission` `ask`, a call that needs
    approval is an elicitation that shows the diff; without that capability of the client it is refused.
    Long searches report progress.

    Args:
        toolset: The tools. Pass their `instructions()` to the server.

    Returns:
        One tool for each, in order.
    """
    return [_FileTool.of(toolset, types.Tool.model_validate(schema)) for schema in toolset.schemas("mcp")]


class _FileTool(Tool):
    _toolset: Toolset = PrivateAttr()

    @classmethod
    def of(cls, toolset: Toolset, described: types.Tool) -> "_FileTool":
        """Return the tool for a description; `run` replaces the function."""

        def function() -> None: ...

        tool = cls(
            fn=function,
            name=described.name,
            title=described.title,
            description=described.description or "",
            parameters=described.input_schema,
            fn_metadata=func_metadata(function, structured_output=False),
            is_async=False,
            context_kwarg=None,
            annotations=described.annotations,
        )
        tool._toolset = toolset
        return tool

    async def run(
        self, arguments: dict[str, Any], context: Context[Any, Any], convert_result: bool = False
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Run a call, or return the question that its client must answer first."""
        del convert_result
        try:
            with answering(_elicits(context)):
                result = await self._toolset.acall(self.name, arguments, on_progress=_progress(context))
        except Paused as pause:
            question = _question(pause.request)
            asked: types.InputRequests = {_QUESTION: types.ElicitRequest(params=question)}
            return types.InputRequiredResult(input_requests=asked, request_state=_digest(question))
        return types.CallToolResult.model_validate(call_result(result))


def _elicits(context: Context[Any, Any]) -> Answer:
    """Return an answer that asks the client's user.

    Since the protocol of 2026-07-28, a server cannot send a request. The result of the call then has the
    question, and the client repeats the call with the answer.
    """

    async def elicit(question: types.ElicitRequestFormParams) -> PermissionAnswer:
        form = question.message, question.requested_schema
        return _decision(await context.session.elicit_form(*form, related_request_id=context.request_id))

    def answer(request: PermissionRequest) -> PermissionAnswer | Awaitable[PermissionAnswer]:
        capabilities = context.client_capabilities
        if capabilities is None or capabilities.elicitation is None:
            return Deny("This call needs permission, and the client cannot ask its user.")
        question = _question(request)
        if context.session.can_send_request:
            return elicit(question)
        given = (context.input_responses or {}).get(_QUESTION)
        if given is None or context.request_state != _digest(question):  # the files have changed since
            raise Paused(request)
        return _decision(given)

    return answer


def _question(request: PermissionRequest) -> types.ElicitRequestFormParams:
    shown = f"{request.method} {' '.join(request.paths)}\n{request.diff}".rstrip()
    return types.ElicitRequestFormParams(
        message=f"Allow this call?\n{shown}", requested_schema={"type": "object", "properties": {}}
    )


def _digest(question: types.ElicitRequestFormParams) -> str:
    return hashlib.sha256(question.message.encode("utf-8", "surrogatepass")).hexdigest()


def _decision(given: Any) -> PermissionAnswer:
    return Allow() if getattr(given, "action", None) == "accept" else Deny()


def _progress(context: Context[Any, Any]) -> Callable[[int], None]:
    """Return a callback that sends progress from a call's thread."""
    loop = asyncio.get_running_loop()

    def report(entries: int) -> None:
        message = context.report_progress(entries, None, plural(entries, "entry", "entries"))
        asyncio.run_coroutine_threadsafe(message, loop)

    return report
