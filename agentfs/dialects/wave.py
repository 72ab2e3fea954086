"""The dialect `wave`: the tools of Claude Code's models, and each tool as a plugin with a context.

`docs/reference/dialects/wave.md` compares it with the contract.
"""

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from inspect import signature
from typing import Any, Literal, TypeAlias, cast

from agentfs import AgentFSError, PermissionRequest, Policy, ToolResult, Toolset, Workspace
from agentfs.dialects.toolkit import (
    Dialect,
    Mode,
    OnAsk,
    RenderContext,
    ToolSpec,
    first_line,
    globs_from_root,
    literal,
    plural,
    read_docstring,
    visible,
)
from agentfs.errors import ClosedError, InvalidArgumentError
from agentfs.results import GrepResult, ListResult

_FILE = {"path": "file_path"}
_UNCHANGED: Mapping[str, str] = {}
# Words of the workspace's docstrings, and those that replace them.
_WORDS = {
    "relative to the workspace root": "absolute or relative to the working directory",
    "use edit": "use Edit",
    "as in edit": "as in Edit",
}
_MODES: dict[str, Mode] = {
    "default": "default",
    "acceptEdits": "accept_edits",
    "plan": "plan",
    "bypassPermissions": "bypass",
}
# The rules that make the callbacks of a context decide about every call that its mode does not decide.
_ASKED: dict[Mode, Sequence[str]] = {
    "default": ("*",),
    "accept_edits": ("read", "search", "manage", "execute"),
    "plan": ("read", "search"),
    "bypass": (),
}
_COMPACT_CHARS = 120
# The parameters of Grep by their names in the contract.
_GREP_NAMES = {
    "before": "-B",
    "after": "-A",
    "context": "-C",
    "line_numbers": "-n",
    "ignore_case": "-i",
    "limit": "head_limit",
}
# The fields of `ToolContext` by their names in the contract.
_CONTEXT_FIELDS = {
    "workdir": "workdir",
    "permissionManager": "permission_manager",
    "permissionMode": "permission_mode",
    "canUseToolCallback": "can_use_tool_callback",
}

CanUseTool: TypeAlias = Callable[[str, Any], bool | Awaitable[bool]]


@dataclass(frozen=True)
class WaveResult(ToolResult):
    """A result whose `to_dict` follows the contract."""

    def to_dict(self) -> dict[str, Any]:
        """Return `success`, `content`, and the other fields of the contract that have a value."""
        optional = {
            "shortResult": self.short_result,
            "error": self.error["message"] if self.error else None,
            "images": [{"data": image.data, "mediaType": image.media_type} for image in self.images],
            "filePath": self.file_path,
        }
        present = {name: value for name, value in optional.items() if value}
        return {"success": self.success, "content": self.content, **present}


def _render(context: RenderContext, _: Workspace) -> WaveResult:
    return WaveResult(**vars(context.result))


class _Tools:
    """The tools of a workspace that are not its methods."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def ls(self, path: str, ignore: list[str] | None = None) -> ListResult:
        return self._workspace.ls(path=path, ignore=ignore)

    def grep(
        self,
        pattern: str,
        path: str = ".",
        glob: str | None = None,
        output_mode: Literal["content", "files_with_matches", "count"] = "files_with_matches",
        before: int | None = None,
        after: int | None = None,
        context: int | None = None,
        line_numbers: bool = True,
        ignore_case: bool = False,
        type: str | None = None,  # noqa: A002 - the contract's name
        limit: int | None = None,
        multiline: bool = False,
    ) -> GrepResult:
        given: dict[str, Any] = {
            **locals(),
            "glob": globs_from_root(self._workspace, path, glob),
            "limit": limit or None,
        }
        del given["self"]
        return self._workspace.grep(**given)


def specs(workspace: Workspace) -> Sequence[ToolSpec]:
    """Return the seven tools."""
    tools = _Tools(workspace)
    return (
        _spec(workspace.read, "Read", parameters=_FILE, hide=("column", "encoding", "raw")),
        _spec(
            workspace.write,
            "Write",
            {"content": "The full text of the file, with the line ends to write."},
            parameters=_FILE,
            preset={"newline": "given"},
        ),
        _spec(
            workspace.edit,
            "Edit",
            {"old_string": "{} An empty one creates a missing file."},
            parameters=_FILE,
            hide=("raw",),
        ),
        _spec(workspace.multi_edit, "MultiEdit", parameters=_FILE, hide=("raw",)),
        _spec(tools.ls, "LS"),
        _spec(workspace.glob, "Glob", hide=("limit", "offset", "include_ignored")),
        _spec(
            tools.grep,
            "Grep",
            {
                "output_mode": "File names, matching lines, or the number of matching lines in each file.",
                "limit": "{} 0: as many as usual.",
            },
            parameters=_GREP_NAMES,
        ),
    )


def _spec(
    target: Callable[..., Any], name: str, descriptions: Mapping[str, str] = _UNCHANGED, **options: Any
) -> ToolSpec:
    """Describe a tool with the docstring of the workspace's method, in the words of the contract.

    In a description of `descriptions`, `{}` stands for that of the method.
    """
    texts = read_docstring(_in_words(getattr(Workspace, target.__name__).__doc__))
    shown = {each: texts.parameters[each] for each in signature(target).parameters}
    changed = {each: text.replace("{}", shown[each]) for each, text in descriptions.items()}
    return ToolSpec(
        target, name=name, description=texts.description, descriptions={**shown, **changed}, **options
    )


def _in_words(text: str) -> str:
    for ours, theirs in _WORDS.items():
        text = text.replace(ours, theirs)
    return text


DIALECT = Dialect("wave", specs, render=_render)


@dataclass(frozen=True)
class ToolContext:
    """The working directory and the permission callbacks of a plugin's call.

    Attributes:
        workdir: The directory inside the root in which relative paths start. The boundary stays the root.
        permission_manager: A callback as for `Policy.on_ask`, or None.
        permission_mode: `default`, `acceptEdits`, `plan` or `bypassPermissions`; any other mode denies every
            call. A workspace in plan mode stays in plan mode.
        can_use_tool_callback: A function of the tool's name and arguments, or None. Only `True` allows the
            call.
        others: The other fields of the context.
    """

    workdir: str = "."
    permission_manager: OnAsk | None = None
    permission_mode: str | None = None
    can_use_tool_callback: CanUseTool | None = None
    others: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        for callback in (self.permission_manager, self.can_use_tool_callback):
            if callback is not None and not callable(callback):
                raise InvalidArgumentError(f"A permission callback must be callable, not {callback!r}.")
        for name in ("workdir", "permission_mode"):
            value = getattr(self, name)
            if not isinstance(value, str) and (value is not None or name == "workdir"):
                raise InvalidArgumentError(f"ToolContext.{name} must be a string, not {value!r}.")

    @classmethod
    def of(cls, context: "ToolContext | Mapping[str, Any]") -> "ToolContext":
        """Convert a mapping with the names of the contract to a context."""
        if isinstance(context, ToolContext):
            return context
        known = {field: context[name] for name, field in _CONTEXT_FIELDS.items() if name in context}
        others = {name: value for name, value in context.items() if name not in _CONTEXT_FIELDS}
        return cls(**known, others=others)


@dataclass(frozen=True)
class ToolPlugin:
    """One tool in the form of the contract.

    Attributes:
        name: Its name.
        config: Its schema: `{"type": "function", "function": {name, description, parameters}}`.
        workspace: The workspace that it works on.
        tools: The seven tools of the workspace, which all plugins share.
    """

    name: str
    config: dict[str, Any]
    workspace: Workspace
    tools: Toolset = field(repr=False)

    async def execute(self, args: Mapping[str, Any], context: ToolContext | Mapping[str, Any]) -> WaveResult:
        """Call the tool. Whatever a model sends, failures are results.

        Args:
            args: The arguments.
            context: The context, or a mapping with the names of the contract.

        Returns:
            The result.

        Raises:
            InvalidArgumentError: The context is malformed (`invalid_argument`).
        """
        tool_context = ToolContext.of(context)
        mode = _MODES.get(tool_context.permission_mode or "default")
        if mode is None:
            unknown = literal(tool_context.permission_mode)
            return _failure("refused", f"The permission mode {unknown} is not known.")
        policy = _policy(self.workspace.policy, tool_context, mode, (self.name, args))
        try:
            workspace = self.workspace.view(policy=policy, workdir=tool_context.workdir)
        except ClosedError as error:
            return _failure(error.code, error.message)
        except AgentFSError as error:
            return _failure(error.code, f"The workdir of the context cannot be used: {error.message}")
        tools = self.tools.rebound(specs(DIALECT.view(workspace)))
        return cast("WaveResult", await tools.acall(self.name, args))

    def format_compact_params(
        self, params: Mapping[str, Any], context: ToolContext | Mapping[str, Any]
    ) -> str:
        """Return the arguments of a call as one short line for a person.

        Args:
            params: The arguments.
            context: As for `execute`. Paths inside its `workdir` are shown relative to it.

        Returns:
            The line.
        """
        path = params.get("file_path", params.get("path"))
        parts = [str(params["pattern"])] if "pattern" in params else []
        if path is not None:
            relative = _relative(str(path), ToolContext.of(context).workdir)
            parts.append(f"in {relative}" if parts else relative)
        edits = params.get("edits")
        if isinstance(edits, list):
            parts.append(f"({plural(len(cast('Sized', edits)), 'edit')})")
        line = visible(" ".join(parts)).replace("\n", " ")
        return line if len(line) <= _COMPACT_CHARS else f"{line[: _COMPACT_CHARS - 1]}…"

    formatCompactParams = format_compact_params  # noqa: N815 - the contract's name


def plugins(workspace: Workspace) -> list[ToolPlugin]:
    """Return the tools of a workspace as plugins."""
    tools = DIALECT.tools(workspace)
    schemas: list[Any] = tools.schemas("openai")
    return [ToolPlugin(schema["function"]["name"], schema, workspace, tools) for schema in schemas]


def _policy(policy: Policy, context: ToolContext, mode: Mode, call: tuple[str, Any]) -> Policy:
    """Return the policy of one call, with the callbacks and the mode of its context."""
    callbacks = [] if context.permission_manager is None else [context.permission_manager]
    callback = context.can_use_tool_callback
    if callback is not None:

        def can_use_tool(_: PermissionRequest) -> bool | Awaitable[bool]:
            return callback(*call)

        callbacks.append(can_use_tool)
    if context.permission_mode is None or policy.mode == "plan":
        mode = policy.mode
    asked = _ASKED[mode] if callbacks else ()
    return replace(policy, mode=mode, on_ask=[*policy.askers, *callbacks], ask=[*policy.ask, *asked])


def _failure(code: str, message: str) -> WaveResult:
    return WaveResult(False, message, first_line(message), {"code": code, "message": message})


def _relative(path: str, workdir: str) -> str:
    relative = path.removeprefix(f"{workdir.rstrip('/')}/") if os.path.isabs(workdir) else path
    return relative or path
