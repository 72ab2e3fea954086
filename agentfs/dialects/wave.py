"""The dialect `wave`: the tools of Claude Code's models, and each tool as a plugin with a context.

`docs/reference/dialects/wave.md` compares it with the contract.
"""

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, TypeAlias, cast

from agentfs import AgentFSError, Allow, Edit, PermissionRequest, Policy, ToolResult, Workspace
from agentfs.dialects import toolkit as kit
from agentfs.errors import ClosedError, InvalidArgumentError
from agentfs.results import EditResult, GlobResult, GrepResult, ListResult, ReadResult, WriteResult

_FILE = {"path": "file_path"}
# By its name in the contract, a mode, and the rules that make the callbacks of a context decide about every
# call that the mode does not decide.
_MODES: dict[str, tuple[kit.Mode, Sequence[str]]] = {
    "default": ("default", ("*",)),
    "acceptEdits": ("accept_edits", ("read", "delete")),
    "plan": ("plan", ("read",)),
    "bypassPermissions": ("bypass", ()),
}
_COMPACT_CHARS = 120
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


def _render(context: kit.RenderContext, _: Workspace) -> WaveResult:
    return WaveResult(**vars(context.result))


class _Tools(kit.Tools):
    @kit.offer(name="Read", effect="read", renames=_FILE)
    def read(self, file_path: str, offset: int = 1, limit: int | None = None) -> ReadResult:
        """Read a file; each line of text is shown as its number, `|`, and the line.

        Args:
            file_path: File, absolute or relative to the working directory.
            offset: First line, from 1; negative counts from the end (-20: the last 20).
            limit: Most lines to show; by default as many as fit.
        """
        return self.workspace.read(file_path, offset or 1, limit)

    @kit.offer(name="Write", effect="write", renames=_FILE)
    def write(self, file_path: str, content: str) -> WriteResult:
        """Create a file, or replace one you have read in full; to change parts of a file, use Edit.

        Args:
            file_path: File, absolute or relative to the working directory; missing directories are made.
            content: The full text of the file, with the line ends to write.
        """
        return self.workspace.write(file_path, content, newline="given")

    @kit.offer(name="Edit", effect="write", renames=_FILE)
    def edit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> EditResult:
        """Replace a piece of text in a file; the rest stays as it is.

        Args:
            file_path: File, absolute or relative to the working directory.
            old_string: The text to replace, as the file has it, without line numbers; it must occur exactly
                once, so include enough lines around it. An empty one creates a missing file.
            new_string: The text to put in its place.
            replace_all: Replace every occurrence.
        """
        return self.workspace.edit(file_path, old_string, new_string, replace_all)

    @kit.offer(name="MultiEdit", effect="write", renames=_FILE)
    def multi_edit(self, file_path: str, edits: list[Edit]) -> EditResult:
        """Make several replacements in one file, in order, each on the result of the previous one.

        All are made, or none.

        Args:
            file_path: File, absolute or relative to the working directory.
            edits: The replacements, each as in Edit.
        """
        return self.workspace.multi_edit(file_path, edits)

    @kit.offer(name="LS", effect="read")
    def ls(self, path: str, ignore: list[str] | None = None) -> ListResult:
        """List a directory: directories first, then files, by name.

        Args:
            path: Directory, absolute or relative to the working directory.
            ignore: Globs of entries to leave out.
        """
        return self.workspace.ls(path, ignore=ignore)

    @kit.offer(name="Glob", effect="read")
    def glob(self, pattern: str, path: str = ".") -> GlobResult:
        """Find files by name.

        Args:
            pattern: Glob such as `*.py`, `src/**/test_*.{js,ts}`; without `/` it matches names at any depth.
            path: Directory to search, absolute or relative to the working directory.
        """
        return self.workspace.glob(pattern, path)

    @kit.offer(name="Grep", effect="read")
    def grep(
        self,
        pattern: str,
        path: str = ".",
        glob: str | None = None,
        output_mode: Literal["content", "files_with_matches", "count"] = "files_with_matches",
        before: Annotated[int | None, kit.Name("-B")] = None,
        after: Annotated[int | None, kit.Name("-A")] = None,
        context: Annotated[int | None, kit.Name("-C")] = None,
        line_numbers: Annotated[bool, kit.Name("-n")] = True,
        ignore_case: Annotated[bool, kit.Name("-i")] = False,
        type: str | None = None,  # noqa: A002 - the contract's name
        limit: Annotated[int | None, kit.Name("head_limit")] = None,
        multiline: bool = False,
    ) -> GrepResult:
        """Search the contents of files with a regular expression.

        Args:
            pattern: Regular expression; escape `( ) [ . *` to match them literally.
            path: File or directory to search, absolute or relative to the working directory.
            glob: Only files that match, such as `*.py` or `src/**`.
            output_mode: File names, matching lines, or the number of matching lines in each file.
            before: Lines to show before each match.
            after: Lines to show after each match.
            context: Lines to show around each match; by default none.
            line_numbers: Number the lines in the text.
            ignore_case: Match upper and lower case alike.
            type: Only files of a type, such as `py`, `js`, `rust`.
            limit: Most matches, or files, to return. 0: as many as usual.
            multiline: Let a match span lines, and `.` match line ends.
        """
        given: dict[str, Any] = {
            **locals(),
            "glob": kit.globs_from_root(self.workspace, path, glob),
            "limit": limit or None,
        }
        del given["self"]
        return kit.grep(self.workspace, kit.GrepOptions(**given))


DIALECT = kit.Dialect("wave", _Tools.make, render=_render)


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
    permission_manager: kit.OnAsk | None = None
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
    """

    name: str
    config: dict[str, Any]
    workspace: Workspace

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
        if (tool_context.permission_mode or "default") not in _MODES:
            unknown = kit.literal(tool_context.permission_mode)
            return _failure("refused", f"The permission mode {unknown} is not known.")
        policy = _policy(self.workspace.policy, tool_context, (self.name, args))
        try:
            workspace = self.workspace.view(policy=policy, workdir=tool_context.workdir)
        except ClosedError as error:
            return _failure(error.code, error.message)
        except AgentFSError as error:
            return _failure(error.code, f"The workdir of the context cannot be used: {error.message}")
        tools = DIALECT.tools(workspace)
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
            parts.append(f"({kit.plural(len(cast('Sized', edits)), 'edit')})")
        line = kit.visible(" ".join(parts)).replace("\n", " ")
        return line if len(line) <= _COMPACT_CHARS else f"{line[: _COMPACT_CHARS - 1]}…"

    formatCompactParams = format_compact_params  # noqa: N815 - the contract's name


def plugins(workspace: Workspace) -> list[ToolPlugin]:
    """Return the tools of a workspace as plugins."""
    schemas = DIALECT.tools(workspace).schemas("openai")
    return [ToolPlugin(schema["function"]["name"], schema, workspace) for schema in schemas]


def _policy(policy: Policy, context: ToolContext, call: tuple[str, Any]) -> Policy:
    """Return the policy of one call, with the callbacks and the mode of its context."""
    callbacks = [] if context.permission_manager is None else [context.permission_manager]
    if (callback := context.can_use_tool_callback) is not None:
        callbacks.append(lambda _: callback(*call))
    mode = policy.mode
    if context.permission_mode is not None and mode != "plan":
        mode, _ = _MODES[context.permission_mode or "default"]
    asked = dict(_MODES.values())[mode] if callbacks else ()
    own = [] if policy.on_ask is None else [policy.on_ask]
    return replace(policy, mode=mode, on_ask=_asking_all([*own, *callbacks]), ask=[*policy.ask, *asked])


def _asking_all(callbacks: Sequence[kit.OnAsk]) -> kit.OnAsk | None:
    """Return one callback that asks several in order, each about the call as the one before changed it."""

    def ask(request: PermissionRequest) -> kit.PermissionAnswer:
        changed: dict[str, Any] = {}
        for callback in callbacks:
            answer: kit.PermissionAnswer = kit.call_back(callback, request)
            if isinstance(answer, Allow):
                changed |= answer.arguments or {}
                # The diff belongs to the arguments before the answer.
                given = {**request.arguments, **changed}
                request = replace(request, arguments=given, diff="", changes=()) if changed else request
            elif answer is not True:
                return answer
        return Allow(changed or None)

    return ask if callbacks else None


def _failure(code: str, message: str) -> WaveResult:
    return WaveResult(False, message, kit.first_line(message), {"code": code, "message": message})


def _relative(path: str, workdir: str) -> str:
    relative = path.removeprefix(f"{workdir.rstrip('/')}/") if os.path.isabs(workdir) else path
    return relative or path
