"""What a dialect is: offers over a workspace, a preset of limits and policy, and a renderer."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from agentfs.errors import UnknownToolError
from agentfs.limits import Limits
from agentfs.policy import Policy
from agentfs.results import ToolResult
from agentfs.tools.offer import RenderContext, ToolOffer
from agentfs.tools.toolset import Toolset
from agentfs.workspace import Workspace

_Rules = TypeVar("_Rules", Limits, Policy)


@dataclass(frozen=True)
class Dialect:
    """Another contract's tools over a workspace.

    Attributes:
        name: What it is found by.
        offers: Makes its tools over a workspace, in order. A tool is a method under another contract's names,
            or a function that calls methods; none reaches the disk by itself.
        limits: What its document has in place of the defaults of `Limits`.
        policy: What it has in place of the defaults of `Policy`; never what confines or protects.
        render: Makes each result from the one there would be, after the offer's own `render`: of answers,
            refusals and failures alike, also where there is no such tool.
    """

    name: str
    offers: Callable[[Workspace], Sequence[ToolOffer]]
    limits: Mapping[str, Any] = field(default_factory=dict[str, Any])
    policy: Mapping[str, Any] = field(default_factory=dict[str, Any])
    render: Callable[[RenderContext], ToolResult] | None = None

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
            workspace: The workspace. Its memory and its root are shared, and what its programmer set stands:
                the preset is in place only of what was left at the default.
            names: The tools to offer; by default all.
            expose: For a method, by its name, parameters after the `*` that the model sees too.
            prefix: What stands before the name of each tool.

        Raises:
            AgentFSError: `unknown_tool` for a name that is none of its tools.
        """
        view = self.view(workspace)
        offers = {_name(offer): offer for offer in self.offers(view)}
        for name in names or ():
            if name not in offers:
                raise UnknownToolError(
                    f"The dialect {self.name} has no tool {name!r}.",
                    hint=f"Its tools are {', '.join(offers)}.",
                )
        chosen = [offers[name] for name in (offers if names is None else names)]
        return Toolset(
            chosen,
            expose=expose,
            prefix=prefix,
            on_event=workspace.on_event,
            render=self.render,
            timeout=view.limits.timeout,
        )

    def view(self, workspace: Workspace) -> Workspace:
        """Return the workspace under the preset of this dialect.

        Args:
            workspace: The workspace; it stays as it is.
        """
        return workspace.view(
            limits=_preset(workspace.limits, self.limits), policy=_preset(workspace.policy, self.policy)
        )


def _preset(own: _Rules, preset: Mapping[str, Any]) -> _Rules:
    """Return limits or a policy with the preset in place of what was left at the default."""
    usual = type(own)()
    left = {name: value for name, value in preset.items() if getattr(own, name) == getattr(usual, name)}
    return replace(own, **left) if left else own


def _name(offer: ToolOffer) -> str:
    return offer.name or str(getattr(offer.target, "__name__", ""))
