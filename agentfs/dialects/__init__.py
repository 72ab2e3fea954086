"""Dialects: the tools of other contracts over a workspace, found by name.

`ws.tools(dialect="wave")` looks here. A dialect of your own is a `Dialect` that is registered; it needs one
file, as `examples/own_dialect.py` shows.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, TypeVar

from agentfs.dialects.rendering import (
    Problem,
    absolute_in,
    as_json,
    content_of,
    left_out,
    lines_of,
    problem_of,
)
from agentfs.errors import InvalidArgumentError, UnknownToolError
from agentfs.limits import Limits
from agentfs.nearest import nearest
from agentfs.policy import Policy
from agentfs.results import ToolResult
from agentfs.tools.spec import RenderContext, ToolSpec
from agentfs.tools.toolset import Toolset
from agentfs.workspace import Workspace, view_for_dialect

__all__ = [
    "BUILT_IN",
    "Dialect",
    "Problem",
    "absolute_in",
    "as_json",
    "content_of",
    "find",
    "left_out",
    "lines_of",
    "names",
    "problem_of",
    "register",
]

_Settings = TypeVar("_Settings", Limits, Policy)

# The dialects of the package; the module of each (its name with `_` for `-`) defines `DIALECT`.
BUILT_IN = (*("wave", "text-editor", "apply-patch", "rye", "dominds"), *("tree-sitter-analyzer", "codescout"))
_registered: dict[str, "Dialect"] = {}


@dataclass(frozen=True)
class Dialect:
    """The tools of another contract over a workspace.

    Attributes:
        name: The name that `Workspace.tools(dialect=…)` takes.
        specs: Returns the tools over a workspace, in order: methods under other names, or functions that call
            methods.
        limits: Fields of `Limits` that replace the defaults.
        policy: Fields of `Policy` that replace the defaults; never those that confine or protect.
        options: Fields of `agentfs.policy.DialectOptions`, for which no method has a parameter.
        render: Makes the final result of each call, after the tool's own `render`, given the workspace with
            the preset: of successes, refusals and failures, also where there is no such tool.
    """

    name: str
    specs: Callable[[Workspace], Sequence[ToolSpec]]
    limits: Mapping[str, Any] = field(default_factory=dict[str, Any])
    policy: Mapping[str, Any] = field(default_factory=dict[str, Any])
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    render: Callable[[RenderContext, Workspace], ToolResult] | None = None

    def tools(
        self,
        workspace: Workspace,
        names: Sequence[str] | None = None,
        *,
        expose: Mapping[str, Sequence[str]] | None = None,
        prefix: str = "",
    ) -> Toolset:
        """Make the tools of this dialect over a workspace.

        Args:
            workspace: The workspace; its root and read history are shared. The preset replaces only settings
                that are at their default.
            names: The tools to include; by default all.
            expose: For a method, by its name, parameters after the `*` that the model sees too.
            prefix: Put before the name of each tool.

        Raises:
            AgentFSError: `unknown_tool` for a name that is none of its tools.
        """
        view = self.view(workspace)
        specs = {spec.name or spec.target.__name__: spec for spec in self.specs(view)}
        for name in names or ():
            if name not in specs:
                hint = f"Its tools are {', '.join(specs)}."
                raise UnknownToolError(f"The dialect {self.name} has no tool {name!r}.", hint=hint)
        render = self.render
        return Toolset(
            [specs[name] for name in (specs if names is None else names)],
            expose=expose,
            prefix=prefix,
            on_event=workspace.on_event,
            render=None if render is None else lambda context: render(context, view),
            timeout=view.limits.timeout,
        )

    def view(self, workspace: Workspace) -> Workspace:
        """Return a view of a workspace with the preset of this dialect."""
        limits = with_preset(workspace.limits, self.limits, Limits())
        # Whether lines have numbers is a part of the contract.
        policy = replace(with_preset(workspace.policy, self.policy, Policy()), line_numbers=True)
        return view_for_dialect(workspace.view(limits=limits, policy=policy), **self.options)


def register(dialect: Dialect) -> Dialect:
    """Make a dialect known by its name, and return it; registering the same one again changes nothing.

    Raises:
        InvalidArgumentError: Another one has that name (`invalid_argument`).
    """
    name = dialect.name
    if _registered.get(name, dialect) is not dialect or name in (*BUILT_IN, "agentfs"):
        raise InvalidArgumentError(f"There is another dialect named {name!r}.", hint="Choose another name.")
    _registered[name] = dialect
    return dialect


def names() -> tuple[str, ...]:
    """Return the names of all dialects but `agentfs` itself: those of the package, then those registered."""
    return (*BUILT_IN, *_registered)


def find(name: str) -> Dialect:
    """Return the dialect of a name.

    Raises:
        InvalidArgumentError: There is none of that name; the nearest is named (`invalid_argument`).
    """
    if name in _registered:
        return _registered[name]
    if name in BUILT_IN:
        dialect: Dialect = import_module(f"agentfs.dialects.{name.replace('-', '_')}").DIALECT
        return dialect
    known = ("agentfs", *names())
    near = nearest(str(name).lower(), known)
    meant = f" Did you mean {near!r}?" if near else ""
    raise InvalidArgumentError(
        f"There is no dialect {name!r}.{meant}",
        hint=f"The dialects are {', '.join(known)}; `agentfs.dialects.register` adds one.",
        details={"dialect": name, "dialects": list(known), "nearest": near},
    )


def with_preset(settings: _Settings, preset: Mapping[str, Any], default: _Settings) -> _Settings:
    """Return the settings with the preset in place of the fields that are at their default."""
    unset = [name for name in preset if getattr(settings, name) == getattr(default, name)]
    return replace(settings, **{name: preset[name] for name in unset}) if unset else settings
