"""Everything that a dialect imports besides `agentfs`, `agentfs.results` and `agentfs.errors`."""
# pyright: reportPrivateUsage=false
# ruff: noqa: SLF001 - the toolkit calls what a workspace has for dialects alone

import os
import posixpath
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, TypeVar, cast

from agentfs import Limits, Policy, ToolResult, Toolset, Workspace, results
from agentfs.arguments.docstrings import read_docstring
from agentfs.arguments.hints import Name
from agentfs.base.advice import Advice, Joined, Names, NextCall, Retry, call, plural, say
from agentfs.base.call_context import call_back, check
from agentfs.base.visible import first_line, literal, one_line, to_json, visible
from agentfs.editing.change_options import EditLinesOptions, InsertOptions, SpliceOptions
from agentfs.editing.explain import explain_ambiguous, explain_no_match
from agentfs.editing.match import occurrences, tolerant_matches
from agentfs.errors import AgentFSError, PastEndError, UnknownToolError
from agentfs.fs import quote
from agentfs.permissions import Effect, Mode, OnAsk, PermissionAnswer
from agentfs.reading.page import ReadOptions
from agentfs.search.excerpts import without_marks
from agentfs.search.left_out import skip_report
from agentfs.search.options import MAX_CONTEXT, GlobOptions, GrepOptions, parse_filesize, parse_types
from agentfs.search.other_globs import globs_below
from agentfs.text.display import cut_line, estimate_tokens, most_that_fit
from agentfs.text.lines import count_lines, newline_of
from agentfs.text.nearest import nearest
from agentfs.tools.result import AFTER_AN_EXCEPTION
from agentfs.tools.tool import RenderContext, Tool, declarations, tool, tool_of
from agentfs.tree.globs import compile_globs

# The names that it hands on, beside its own.
__all__ = ["Mode", "Name", "OnAsk", "PermissionAnswer", "RenderContext", "Tool", "read_docstring", "tool_of"]
__all__ += ["Advice", "Joined", "Names", "NextCall", "Retry", "call", "call_back", "check", "nearest", "say"]
__all__ += ["first_line", "literal", "one_line", "plural", "quote", "to_json", "visible"]
__all__ += ["EditLinesOptions", "GlobOptions", "GrepOptions", "ReadOptions", "SpliceOptions"]
__all__ += ["count_lines", "cut_line", "estimate_tokens", "most_that_fit", "newline_of", "occurrences"]
__all__ += ["MAX_CONTEXT", "compile_globs", "parse_filesize", "parse_types", "skip_report", "without_marks"]
__all__ += ["explain_ambiguous", "explain_no_match", "tolerant_matches"]

_Settings = TypeVar("_Settings", Limits, Policy)
_F = TypeVar("_F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Dialect:
    """A workspace's methods as the tools of another product.

    Attributes:
        name: The name that `Workspace.tools(dialect=…)` takes.
        make: Returns the tools of a workspace, in order. Their functions do everything by calling methods of
            the workspace, which check their own calls. A function that does more has the effect "execute".
        limits: Fields of `Limits` that replace the defaults.
        policy: Fields of `Policy` that replace the defaults; never those that confine or protect.
        render: Makes the final result of every call, even of one that fails or names an unknown tool. It gets
            the workspace with the preset. A tool with a `render` of its own does not get here.
    """

    name: str
    make: Callable[[Workspace], Sequence[Tool]]
    limits: Mapping[str, Any] = field(default_factory=dict[str, Any])
    policy: Mapping[str, Any] = field(default_factory=dict[str, Any])
    render: Callable[[RenderContext, Workspace], ToolResult] | None = None

    def tools(
        self,
        workspace: Workspace,
        names: Sequence[str] | None = None,
        *,
        expose: Mapping[str, Sequence[str]] | None = None,
        prefix: str = "",
    ) -> Toolset:
        """Make the tools of this dialect for a workspace.

        Args:
            workspace: The workspace. The preset replaces only its settings that are at their default.
            names: The tools to include; by default all.
            expose: More parameters that the model sees, by method: parameters after the `*`.
            prefix: A prefix for the name of each tool.

        Returns:
            The tools.

        Raises:
            AgentFSError: `unknown_tool` for a name that the dialect does not have.
        """
        view = self.view(workspace)
        made = {tool.name: tool for tool in self.make(view)}
        for name in names or ():
            if name not in made:
                hint = f"Its tools are {', '.join(made)}."
                raise UnknownToolError(f"The dialect {self.name} has no tool {name!r}.", hint=hint)
        render = self.render
        return Toolset(
            [_calling_methods(made[name], view) for name in (made if names is None else names)],
            expose=expose,
            prefix=prefix,
            render=None if render is None else lambda context: render(context, view),
            workspace=view,
        )

    def view(self, workspace: Workspace) -> Workspace:
        """Return a view of a workspace with the preset of this dialect.

        Args:
            workspace: The workspace.

        Returns:
            The view, as `Workspace.view` makes it.
        """
        limits = with_preset(workspace.limits, self.limits, Limits())
        policy = with_preset(workspace.policy, self.policy, Policy())
        return workspace.view(limits=limits, policy=policy)


class Tools:
    """The tools of a workspace: each method of a subclass that `offer` declares, in order of definition.

    Attributes:
        workspace: The workspace, with the preset of the dialect.
    """

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace

    @classmethod
    def make(cls, workspace: Workspace) -> list[Tool]:
        """Return the tools; this is a `Dialect.make`.

        Args:
            workspace: The workspace, with the preset of the dialect.
        """
        tools = cls(workspace)
        return [replace(tool, function=getattr(tools, name)) for name, tool in declarations(cls).items()]


def offer(*, effect: Effect, **fields: Any) -> Callable[[_F], _F]:
    """Declare a method of a subclass of `Tools` as a tool.

    Args:
        effect: The effect, as for `agentfs.tool`.
        **fields: More fields of `Tool`.

    Returns:
        A decorator that returns the method itself.
    """
    return tool(effect=effect, **fields)


# The methods with the options that only dialects need. Each runs under the rules of its method, over
# `connect` too. An options object is plain data, except for a `SpliceOptions.spans` that is a function.


def read(workspace: Workspace, options: ReadOptions) -> results.ReadResult:
    """Read as `Workspace.read` does."""
    return cast("results.ReadResult", workspace._carry_out(options))


def read_range(workspace: Workspace, options: ReadOptions, requested: str, valid: str) -> results.ReadResult:
    """Read as `read` does, with a `past_end` error in the parameters of a tool.

    Args:
        workspace: The workspace.
        options: The options.
        requested: The lines that the call requests, such as "start_line 7".
        valid: The beginning of a correct request, such as "a start_line from 1 to".
    """
    try:
        return read(workspace, options)
    except PastEndError as error:
        if (total := error.details.get("total_lines")) is None:
            raise
        raise PastEndError(
            f"{quote(error.details['path'])} has {plural(total, 'line')}; {requested} is past its end.",
            hint=f"Pass {valid} {total}." if total else "The file is empty.",
            details=error.details,
        ) from None


def glob(workspace: Workspace, options: GlobOptions) -> results.GlobResult:
    """Find files as `Workspace.glob` does, or as `fd`: by regular expression, size, time and extension."""
    return cast("results.GlobResult", workspace._carry_out(options))


def grep(workspace: Workspace, options: GrepOptions) -> results.GrepResult:
    """Search as `Workspace.grep` does, with more options of `rg`."""
    return cast("results.GrepResult", workspace._carry_out(options))


def edit(workspace: Workspace, options: EditLinesOptions | SpliceOptions) -> results.EditResult:
    """Replace lines as `Workspace.edit_lines` does, or ranges of characters, given by their offsets."""
    return cast("results.EditResult", workspace._carry_out(options))


def insert(workspace: Workspace, path: str, line: int, text: str) -> results.EditResult:
    """Insert a text as lines of its own after a line; 0 is the beginning of the file."""
    return cast("results.EditResult", workspace._carry_out(InsertOptions(path, line, text)))


def keep(workspace: Workspace, kept: results.Result | str, kind: str = "out") -> str:
    """Keep a text or the file of a page, and return the name that `read` and `grep` accept as a path.

    Args:
        workspace: The workspace.
        kept: A text, or a result. The name of a page of a file refers to the file as it is later.
        kind: The beginning of the name, after the `@`.
    """
    return workspace._keep(kept, kind)


def _calling_methods(tool: Tool, workspace: Workspace) -> Tool:
    """Return a tool with its method's advice. It is asked about as a whole only if it may do anything."""
    method = getattr(workspace, tool.event_name, None)
    advice = tool.advice or (tool_of(method).advice_text() if callable(method) else "")
    return replace(tool, permission_inside=tool.effect != "execute", advice=advice)


class Problem(NamedTuple):
    """Why a call failed.

    Attributes:
        code: The code of the error; "internal" for an unexpected exception.
        message: What was wrong, and the places concerned, one a line.
        hint: What to do or call next, or "".
    """

    code: str
    message: str
    hint: str


def problem_of(context: RenderContext) -> Problem | None:
    """Return why a call failed, or None if it succeeded."""
    error = context.outcome
    if isinstance(error, AgentFSError):
        return Problem(error.code, "\n".join([error.message, *error.places()]), error.hint)
    if context.result.error is None:
        return None
    return Problem(context.result.error["code"], context.result.error["message"], AFTER_AN_EXCEPTION)


def as_json(context: RenderContext, value: Any) -> ToolResult:
    """Return the result of a call with a value as its data, and the value's JSON as its text."""
    return replace(context.result, content=to_json(value), data=value)


def absolute_in(workspace: Workspace) -> Callable[[str], str]:
    """Return a function that makes displayed paths absolute, with the system's separator."""
    root, start = workspace.root.rstrip("/\\"), workspace.workdir
    return lambda path: f"{root}/{posixpath.normpath(posixpath.join(start, path))}".replace("/", os.sep)


def relative_in(workspace: Workspace, path: str) -> str:
    """Return a path relative to the working directory, without `.`, `..` and a final `/`."""
    start = posixpath.join(workspace.root, workspace.workdir)
    return posixpath.relpath(posixpath.join(start, path), start)


def left_out(skipped: results.Skipped, *, without: Collection[str] = ()) -> dict[str, Any]:
    """Return what a search left out: the fields of `Skipped` that are set, except `rules`."""
    return {name: value for name, value in vars(skipped).items() if value and name not in {"rules", *without}}


def left_out_field(skipped: results.Skipped, *, without: Collection[str] = ()) -> dict[str, Any]:
    """Return the field `left_out` of a JSON reply, or {} if nothing was left out."""
    return without_empty(left_out=left_out(skipped, without=without))


def lines_of(read: results.ReadResult) -> list[str]:
    """Return the exact lines of a page, without their line ends."""
    end = "\r" if read.newline == "\r" else "\n"
    *ended, rest = read.content.split(end)
    lines = [line.removesuffix("\r") for line in ended] if end == "\n" else ended
    return [*lines, rest] if rest else lines


def cut_lines(read: results.ReadResult, line_chars: int) -> tuple[str, list[int]]:
    """Return the text of a page with lines cut after `line_chars`, and the numbers of the cut lines."""
    end = "\r" if read.newline == "\r" else "\n"
    lines = read.content.split(end)
    shown = [_cut(line, line_chars) for line in lines]
    pairs = enumerate(zip(lines, shown, strict=True), read.start_line)
    return end.join(shown), [number for number, (line, cut) in pairs if line != cut]


def _cut(line: str, most: int) -> str:
    body = line.removesuffix("\r")
    return line if len(body) <= most else body[:most] + line[len(body) :]


def content_of(match: results.Match) -> dict[str, Any]:
    """Return the exact line of a match as `content`, and as `cut` how much is omitted at either end."""
    return {"content": without_marks(match)[0], **({"cut": list(match.cut)} if any(match.cut) else {})}


def case_options(case: Literal["sensitive", "insensitive", "smart"]) -> dict[str, Any]:
    """Return the arguments of `grep` for a case mode."""
    return {"ignore_case": case == "insensitive", "smart_case": case == "smart"}


def globs_from_root(workspace: Workspace, path: str, globs: str | Sequence[str] | None) -> list[str] | None:
    """Return globs that start at the working directory, as for ripgrep, as globs for a search of `path`.

    A glob that can match nothing below `path` from there is returned unchanged, so it starts at `path`.
    """
    below = relative_in(workspace, path)
    found: list[str] = []
    for glob in [globs] if isinstance(globs, str) else globs or ():
        negation = "!" if glob.startswith("!") else ""
        readings = globs_below(glob.removeprefix("!"), below.split("/")) if "/" in glob else ()
        found += [f"{negation}{each}" for each in readings] or [glob]
    return found or None


def glob_notes(found: results.GlobResult | results.GrepResult) -> list[str]:
    """Return the notes on globs that a search did not read literally."""
    return [found.glob_note] if found.glob_note else []


def without_empty(**fields: Any) -> dict[str, Any]:
    """Return the fields whose value is not None, empty or false."""
    return {name: value for name, value in fields.items() if value}


def with_preset(settings: _Settings, preset: Mapping[str, Any], default: _Settings) -> _Settings:
    """Replace the settings that are at their default by those of a preset."""
    unset = [name for name in preset if getattr(settings, name) == getattr(default, name)]
    return replace(settings, **{name: preset[name] for name in unset}) if unset else settings
