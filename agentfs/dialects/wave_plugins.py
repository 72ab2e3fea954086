"""The plugins of `wave`: its tools one by one, called with a context that says where, and who is asked."""

import inspect
import os
from collections.abc import Awaitable, Callable, Mapping, Sized
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, cast

from agentfs.dialects.wave import DIALECT, WaveResult
from agentfs.errors import AgentFSError, InvalidArgumentError
from agentfs.permissions import Allow, Deny, Mode, Permission, PermissionAnswer, PermissionRequest
from agentfs.policy import Policy
from agentfs.text import visible
from agentfs.tools.result import first_line
from agentfs.visible import literal
from agentfs.workspace import Workspace

CanUseTool: TypeAlias = Callable[[str, Any], bool | Awaitable[bool]]

_MODES: dict[str, Mode] = {
    "default": "default",
    "acceptEdits": "accept_edits",
    "plan": "plan",
    "bypassPermissions": "bypass",
}
_COMPACT_CHARS = 120


@dataclass(frozen=True)
class ToolContext:
    """Where a plugin works, and who is asked before it acts.

    Attributes:
        workdir: Where relative paths start: a directory inside the root. The boundary stays the root.
        permission_manager: What is asked as `Policy.permission` is, or None.
        permission_mode: `default`, `acceptEdits`, `plan` or `bypassPermissions`; any other denies every
            call. Plan mode of the workspace stays plan mode.
        can_use_tool_callback: What is asked with the tool's name and its arguments, or None; only `True`
            allows.
        others: The other fields of the context, as they came.
    """

    workdir: str = "."
    permission_manager: Permission | None = None
    permission_mode: str | None = None
    can_use_tool_callback: CanUseTool | None = None
    others: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        for asked in (self.permission_manager, self.can_use_tool_callback):
            if asked is not None and not callable(asked):
                raise InvalidArgumentError(f"What is asked for permission must be a callable, not {asked!r}.")

    @classmethod
    def of(cls, context: "ToolContext | Mapping[str, Any]") -> "ToolContext":
        """Return a context, also of an object with the document's names.

        Args:
            context: A context, or `workdir`, `permissionManager`, `permissionMode`, `canUseToolCallback` and
                whatever else.
        """
        if isinstance(context, ToolContext):
            return context
        others = dict(context)
        known = {name: others.pop(written) for name, written in _WRITTEN.items() if written in others}
        return cls(**known, others=others)


_WRITTEN = {
    "workdir": "workdir",
    "permission_manager": "permissionManager",
    "permission_mode": "permissionMode",
    "can_use_tool_callback": "canUseToolCallback",
}


@dataclass(frozen=True)
class ToolPlugin:
    """One tool, as the document has it.

    Attributes:
        name: Its name.
        config: `{"type": "function", "function": {name, description, parameters}}`.
        workspace: Where it works.
    """

    name: str
    config: dict[str, Any]
    workspace: Workspace

    async def execute(self, args: Mapping[str, Any], context: ToolContext | Mapping[str, Any]) -> WaveResult:
        """Call the tool.

        Args:
            args: Its arguments.
            context: Where it works, and who is asked.

        Returns:
            The answer, or the refusal; nothing that a model can send raises.
        """
        asked = ToolContext.of(context)
        mode = _MODES.get(asked.permission_mode or "default")
        if mode is None:
            return _refused("refused", f"The permission mode {literal(asked.permission_mode)} is not known.")
        policy = _policy(self.workspace.policy, asked, mode, (self.name, args))
        try:
            workspace = self.workspace.view(policy=policy, workdir=asked.workdir)
        except AgentFSError as error:
            return _refused(error.code, f"The workdir of the context cannot be used: {error.message}")
        return cast("WaveResult", await DIALECT.tools(workspace).acall(self.name, args))

    def format_compact_params(
        self, params: Mapping[str, Any], context: ToolContext | Mapping[str, Any]
    ) -> str:
        """Return the arguments of a call in one short line, for a person.

        Args:
            params: The arguments.
            context: Where the call works; paths inside its `workdir` are shown from there.
        """
        path = params.get("file_path", params.get("path"))
        parts = [str(params["pattern"])] if "pattern" in params else []
        if path is not None:
            shown = _shortened(str(path), ToolContext.of(context).workdir)
            parts.append(f"in {shown}" if parts else shown)
        edits = params.get("edits")
        if isinstance(edits, list):
            count = len(cast("Sized", edits))
            parts.append(f"({count} edit{'' if count == 1 else 's'})")
        line = visible(" ".join(parts)).replace("\n", " ")
        return line if len(line) <= _COMPACT_CHARS else f"{line[: _COMPACT_CHARS - 1]}…"

    formatCompactParams = format_compact_params  # noqa: N815 - the document's name


def plugins(workspace: Workspace) -> list[ToolPlugin]:
    """Return the tools of `wave` as plugins.

    Args:
        workspace: Where they work.
    """
    schemas = workspace.tools(dialect=DIALECT.name).schemas("openai")
    return [ToolPlugin(schema["function"]["name"], schema, workspace) for schema in schemas]


def _policy(own: Policy, context: ToolContext, mode: Mode, call: tuple[str, Any]) -> Policy:
    """Return the policy under which one call runs."""
    asked = [each for each in (own.permission, context.permission_manager) if each is not None]
    callback = context.can_use_tool_callback
    if callback is not None:

        def ask(_: PermissionRequest) -> bool | Awaitable[bool]:
            return callback(*call)

        asked.append(ask)
    if context.permission_mode is None or own.mode == "plan":
        mode = own.mode
    return replace(own, mode=mode, permission=_all_of(asked) if asked else None)


def _all_of(asked: list[Permission]) -> Permission:
    """Return what asks one after the other, until one says no."""
    if len(asked) == 1:
        return asked[0]

    async def ask(request: PermissionRequest) -> PermissionAnswer:
        changed: dict[str, Any] = {}
        for each in asked:
            answer = each(replace(request, arguments={**request.arguments, **changed}))
            if inspect.isawaitable(answer):
                answer = await answer
            if answer is not True and not isinstance(answer, Allow):
                return answer if isinstance(answer, Deny) else Deny()
            if isinstance(answer, Allow):
                changed |= answer.arguments or {}
        return Allow(changed or None)

    return ask


def _refused(code: str, message: str) -> WaveResult:
    return WaveResult(False, message, first_line(message), {"code": code, "message": message})


def _shortened(path: str, workdir: str) -> str:
    below = path.removeprefix(f"{workdir.rstrip('/')}/") if os.path.isabs(workdir) else path
    return below or path
