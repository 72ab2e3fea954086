"""OpenAI Agents: function tools with images and approval; an editor, a shell and a sandbox on a workspace."""

import io
import shlex
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from agents import (
    ApplyPatchEditor,
    ApplyPatchOperation,
    ApplyPatchResult,
    FunctionTool,
    RunContextWrapper,
    ShellCallOutcome,
    ShellCommandOutput,
    ShellCommandRequest,
    ShellExecutor,
    ShellResult,
    SpanError,
    get_current_span,
)
from agents.sandbox import Manifest
from agents.sandbox.errors import (
    ErrorCode,
    ExecTimeoutError,
    WorkspaceArchiveWriteError,
    WorkspaceIOError,
    WorkspaceReadNotFoundError,
)
from agents.sandbox.session import BaseSandboxSession, SandboxSessionState
from agents.sandbox.snapshot import NoopSnapshot
from agents.sandbox.types import ExecResult, User
from agents.tool import FunctionToolCustomDataContext, ToolOutputImageDict, ToolOutputTextDict
from agents.tool_context import ToolContext

from agentfs.async_workspace import AsyncWorkspace
from agentfs.dialects.apply_patch import NAME, read_patch
from agentfs.errors import AgentFSError, InvalidArgumentError, NotFoundError
from agentfs.frameworks.backends import refusal_output
from agentfs.frameworks.versions import warn_if_newer
from agentfs.permissions import Allow, Deny, PermissionAnswer, PermissionRequest
from agentfs.providers.openai import REFUSED, command_output, patch_of
from agentfs.providers.provider import data_url
from agentfs.results import ToolResult
from agentfs.tools.approval import answering, needs_approval
from agentfs.tools.tool import Tool
from agentfs.tools.toolset import Toolset
from agentfs.workspace import Workspace

warn_if_newer("openai-agents", "0.24")

_CUT = b"[output cut]\n"


def tools(toolset: Toolset, *, strict: bool = False, approval: bool = False) -> list[FunctionTool]:
    """Return tools as those of the OpenAI Agents SDK, for `Agent(tools=...)`.

    The SDK shows a model a failure as text. It is also an error of the call's span, and the item's
    `custom_data` has `success` and the `code` of the error. With `approval` and the `Policy.on_ask`
    `ask`, a call that needs approval is an interruption of the run, which `RunState.approve` or
    `RunState.reject` answers. `CallContext.context` of a tool is the `ToolContext`.

    Args:
        toolset: The tools. Pass their `instructions()` to the agent.
        strict: Ask the provider to enforce the schemas.
        approval: Find out before each call whether the rules may ask the user about it. Nothing is run for
            that. The SDK then also asks about calls whose arguments are not JSON.

    Returns:
        One tool for each, in order.
    """
    schemas: list[Any] = toolset.schemas("openai-responses", strict=strict)
    return [_tool(toolset, tool, schema, approval) for tool, schema in zip(toolset, schemas, strict=True)]


def _tool(toolset: Toolset, tool: Tool, schema: dict[str, Any], approval: bool) -> FunctionTool:
    results: WeakKeyDictionary[ToolContext[Any], ToolResult] = WeakKeyDictionary()

    async def invoke(context: ToolContext[Any], arguments: str) -> Any:
        def answer(_: PermissionRequest) -> PermissionAnswer:
            if context.is_tool_approved(tool.name, context.tool_call_id):
                return Allow()
            return Deny("The user must be asked before this call, and was not.")

        with answering(answer):
            result = results[context] = await toolset.acall(tool.name, arguments, context=context)
        return _output(result)

    async def may_ask(_: RunContextWrapper[Any], arguments: dict[str, Any], call_id: str) -> bool:
        del call_id
        return needs_approval(toolset, tool.name, arguments)

    def custom_data(context: FunctionToolCustomDataContext) -> dict[str, Any] | None:
        result = results.get(context.tool_context)
        return None if result is None else {"success": result.success, "code": _code(result)}

    return FunctionTool(
        name=tool.name,
        description=schema["description"],
        params_json_schema=schema["parameters"],
        on_invoke_tool=invoke,
        strict_json_schema=schema["strict"],
        needs_approval=may_ask if approval else False,
        custom_data_extractor=custom_data,
    )


def _code(result: ToolResult) -> str | None:
    return None if result.error is None else result.error["code"]


def _output(result: ToolResult) -> str | list[ToolOutputTextDict | ToolOutputImageDict]:
    text = result.content_with_notes
    if not result.success and (span := get_current_span()) is not None:
        span.set_error(SpanError(message=result.short_result, data={"code": _code(result)}))
    if not result.images:
        return text
    images = [ToolOutputImageDict(type="image", image_url=data_url(image)) for image in result.images]
    return [ToolOutputTextDict(type="text", text=text), *images]


def editor(workspace: Workspace) -> ApplyPatchEditor:
    """Return an editor of files for `ApplyPatchTool(editor=...)`.

    Each operation is a call of the dialect `apply-patch`, with its tolerance, errors and undo.

    Args:
        workspace: The workspace.

    Returns:
        The editor.
    """
    return _Editor(workspace.tools(dialect="apply-patch"))


class _Editor:
    def __init__(self, toolset: Toolset) -> None:
        self._toolset = toolset

    async def update_file(self, operation: ApplyPatchOperation) -> ApplyPatchResult:
        patch = patch_of(operation)
        try:
            # The framework may have asked its user about this file only.
            changed = [(each.path, each.to) for each in read_patch(patch)]
            if changed != [(operation.path.strip(), operation.move_to)]:
                raise InvalidArgumentError("The diff is not about its file only; nothing was changed.")
        except AgentFSError as error:
            return ApplyPatchResult("failed", str(error))
        result = await self._toolset.acall(NAME, {"input": patch}, context=operation.ctx_wrapper)
        return ApplyPatchResult("completed" if result.success else "failed", result.content_with_notes)

    create_file = delete_file = update_file


def shell(workspace: Workspace) -> ShellExecutor:
    """Return an executor of commands for `ShellTool(executor=...)`.

    Each command is a call of `run`, so `Policy.run` must be set. Each has a shell of its own.

    Args:
        workspace: The workspace.

    Returns:
        The executor.
    """
    toolset = workspace.tools(["run"])

    async def execute(request: ShellCommandRequest) -> ShellResult:
        action, outputs = request.data.action, list[ShellCommandOutput]()
        timeout = {} if action.timeout_ms is None else {"timeout": action.timeout_ms / 1000}
        for command in action.commands:
            given = {"command": command, **timeout}
            result = await toolset.acall("run", given, context=request.ctx_wrapper)
            made = command_output(result, action.max_output_length)
            outcome = ShellCallOutcome(**made["outcome"])
            outputs.append(ShellCommandOutput(made["stdout"], made["stderr"], outcome, command))
        return ShellResult(outputs, action.max_output_length)

    return execute


def sandbox(workspace: Workspace) -> BaseSandboxSession:
    """Return a session for `SandboxRunConfig(session=...)`, whose root is that of the workspace.

    Commands are `run`, so `Policy.run` must be set; there are no terminals. Reading and writing are
    `read_bytes` and `write_bytes`. The workspace stays open when the session ends.

    Args:
        workspace: The workspace.

    Returns:
        The session.
    """
    return _Session(workspace)


class _Session(BaseSandboxSession):
    def __init__(self, workspace: Workspace) -> None:
        self._workspace = AsyncWorkspace(workspace)
        manifest, snapshot = Manifest(root=workspace.root), NoopSnapshot(id="agentfs")
        self.state = SandboxSessionState(type="agentfs", manifest=manifest, snapshot=snapshot)

    async def _exec_internal(self, *command: str | Path, timeout: float | None = None) -> ExecResult:  # noqa: ASYNC109
        return await self._run(shlex.join(map(str, command)), timeout)

    async def _run(self, line: str, timeout: float | None = None, stdin: bytes | None = None) -> ExecResult:  # noqa: ASYNC109
        try:
            seconds = timeout or self._workspace.limits.run_timeout
            done = await self._workspace.run(line, seconds, stdin=stdin)
        except AgentFSError as error:
            stdout, stderr = refusal_output(error)
            return ExecResult(stdout=stdout, stderr=stderr, exit_code=REFUSED)
        if done.timed_out:
            raise ExecTimeoutError(command=[line], timeout_s=timeout)
        more = _CUT if done.truncated else b""
        return ExecResult(stdout=done.stdout, stderr=done.stderr + more, exit_code=done.exit_status or 0)

    async def read(self, path: Path, *, user: str | User | None = None) -> io.IOBase:
        del user
        try:
            return io.BytesIO(await self._workspace.read_bytes(path))
        except NotFoundError as error:
            raise WorkspaceReadNotFoundError(path=path, cause=error) from error
        except AgentFSError as error:
            raise _unreadable(path, str(error)) from error

    async def write(self, path: Path, data: io.IOBase, *, user: str | User | None = None) -> None:
        del user
        try:
            await self._workspace.write_bytes(path, data.read())
        except AgentFSError as error:
            raise WorkspaceArchiveWriteError(path=path, message=str(error), cause=error) from error

    async def running(self) -> bool:
        try:
            return await self._workspace.exists(".")
        except AgentFSError:
            return False

    async def persist_workspace(self) -> io.IOBase:
        done = await self._run("tar -cf - .")
        if done.exit_code or done.stderr.endswith(_CUT):
            raise _unreadable(self._workspace.root, done.stderr.decode("utf-8", "replace"))
        return io.BytesIO(done.stdout)

    async def hydrate_workspace(self, data: io.IOBase) -> None:
        done = await self._run("tar -xf -", stdin=data.read())
        if done.exit_code:
            message = done.stderr.decode("utf-8", "replace")
            raise WorkspaceArchiveWriteError(path=Path(self._workspace.root), message=message)


def _unreadable(path: str | Path, reason: str) -> WorkspaceIOError:
    code = ErrorCode.WORKSPACE_ARCHIVE_READ_ERROR
    return WorkspaceIOError(message=reason, error_code=code, op="read", context={"path": str(path)})
