"""What a dialect is: offers over a workspace, a preset of limits and policy, words, and a renderer."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from agentfs.calls.outcome import refused
from agentfs.dialects.words import Words, footer_reworded, reworded
from agentfs.errors import AgentFSError, UnknownToolError
from agentfs.limits import Limits
from agentfs.policy import Policy
from agentfs.results import ToolResult
from agentfs.signatures.offers import Answer, Offer
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
        words: What a text that names a method or a parameter is to say instead, by its name. By default that
            is what the tools that offer it call it.
        render: Makes each result from the one there would be, after the offer's own `render`, for answers,
            refusals and failures alike.
    """

    name: str
    offers: Callable[[Workspace], Sequence[Offer]]
    limits: Mapping[str, Any] = field(default_factory=dict[str, Any])
    policy: Mapping[str, Any] = field(default_factory=dict[str, Any])
    words: Mapping[str, str] = field(default_factory=dict[str, str])
    render: Callable[[Answer], ToolResult] | None = None

    def offered(
        self, workspace: Workspace, names: Sequence[str] | None = None, *, prefix: str = ""
    ) -> list[Offer]:
        """Make the tools of this dialect over a workspace.

        Args:
            workspace: The workspace. Its memory and its root are shared, and what its programmer set stands:
                the preset is in place only of what was left at the default.
            names: The tools to offer; by default all.
            prefix: What is to stand before the name of each tool.

        Raises:
            AgentFSError: `unknown_tool` for a name that is none of its tools.
        """
        offers = {_name(offer): offer for offer in self.offers(self.view(workspace))}
        for name in names or ():
            if name not in offers:
                raise UnknownToolError(
                    f"The dialect {self.name} has no tool {name!r}.",
                    hint=f"Its tools are {', '.join(offers)}.",
                )
        chosen = [offers[name] for name in (offers if names is None else names)]
        words = Words.of(chosen, self.words, prefix)
        return [replace(offer, render=self._renderer(offer, words)) for offer in chosen]

    def view(self, workspace: Workspace) -> Workspace:
        """Return the workspace under the preset of this dialect.

        Args:
            workspace: The workspace; it stays as it is.
        """
        return workspace.view(
            limits=_preset(workspace.limits, self.limits), policy=_preset(workspace.policy, self.policy)
        )

    def _renderer(self, offer: Offer, words: Words) -> Callable[[Answer], ToolResult]:
        def render(answer: Answer) -> ToolResult:
            if isinstance(answer.outcome, AgentFSError):
                error = reworded(answer.outcome, offer, words)
                told = replace(refused(error), file_path=answer.result.file_path)
                answer = Answer(told, error, answer.arguments)
            else:
                shown = footer_reworded(answer.result.content, answer.outcome, offer, words)
                answer = answer._replace(result=replace(answer.result, content=shown))
            for show in (offer.render, self.render):
                if show is not None:
                    answer = answer._replace(result=show(answer))
            return answer.result

        return render


def _preset(own: _Rules, preset: Mapping[str, Any]) -> _Rules:
    """Return limits or a policy with the preset in place of what was left at the default."""
    usual = type(own)()
    left = {name: value for name, value in preset.items() if getattr(own, name) == getattr(usual, name)}
    return replace(own, **left) if left else own


def _name(offer: Offer) -> str:
    return offer.name or str(getattr(offer.target, "__name__", ""))
