"""Texts in the words of a toolset: methods and parameters are named as the model knows them. Pure."""

import inspect
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentfs.errors import AgentFSError
from agentfs.results import EditResult, GlobResult, GrepResult, ListResult, WriteResult
from agentfs.signatures.offers import Offer
from agentfs.text.render import continuation

_QUOTED = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_CALL = re.compile(r"\b(?P<name>[a-z_]+)(?P<open>\(| with )(?=[a-z_]+=)(?P<rest>[^).]*)(?P<close>\)?)")
_ARGUMENT = re.compile(r"\b([a-z_]+)=")
_VALUE = re.compile(r"\b(?P<name>[a-z_]+)=(?:\0(?P<held>[0-9]+)\0|(?P<number>-?[0-9]+))")
_HELD = re.compile("\0([0-9]+)\0")
# A method is told from an ordinary word by what stands before it, or by a call's arguments.
_METHOD = (
    r"(?:(?<=\b[Cc]all )|(?<=\bor )|(?<=\band )|(?<=\b[Uu]se ))(?P<name>{0})\b|\b(?P<called>{0})(?=\(|\0)"
)
# A parameter is told from one by backquotes, by an underscore, or by the value after it.
_PARAMETER = re.compile(r"`(?P<quoted>[a-z_]+)`|\b(?P<bare>[a-z]+(?:_[a-z]+)+|[a-z]+(?==))")
_ADVICE = re.compile(r"(?: \(|: )pass include_ignored=true(?: for hidden and ignored\))?")


@dataclass(frozen=True)
class Words:
    """What a toolset calls the methods.

    Attributes:
        tools: What is said for a method, by its name.
        parameters: For a method, what its parameters are called.
        own: What is said for a method or a parameter, whichever tool is called.
        following: The tools that make calls of methods in a way of their own, by their names.
    """

    tools: Mapping[str, str]
    parameters: Mapping[str, Mapping[str, str]]
    own: Mapping[str, str]
    following: Mapping[str, Offer]

    @classmethod
    def of(cls, offers: Sequence[Offer], words: Mapping[str, str], prefix: str) -> "Words":
        """Read the words off offers.

        Args:
            offers: What is offered.
            words: What is said instead of a name, whatever the tools are called.
            prefix: What stands before the name of each tool.
        """
        own = {str(getattr(offer.target, "__name__", "")): offer for offer in offers}
        tools = {method: f"{prefix}{offer.name or method}" for method, offer in own.items()}
        return cls(
            {**tools, **words},
            {method: offer.parameters for method, offer in own.items()},
            words,
            {tools[method]: offer for method, offer in own.items() if offer.follow is not None},
        )

    @property
    def plain(self) -> bool:
        """Whether everything is called by its own name."""
        renamed = [name for method, name in self.tools.items() if method != name]
        return not (renamed or any(self.parameters.values()) or self.own or self.following)

    def followed(self, method: str, arguments: Mapping[str, Any]) -> str:
        """Return a call of a method as a tool makes it that has a way of its own, or "".

        Args:
            method: The method.
            arguments: What it is called with.
        """
        for name, offer in self.following.items():
            made = offer.follow and offer.follow({"name": method, "arguments": dict(arguments)})
            if made:
                return continuation({"name": name, "arguments": dict(made)}).removeprefix("more: ")
        return ""


def reworded(error: AgentFSError, offer: Offer, words: Words) -> AgentFSError:
    """Return an error that speaks of what is offered.

    Args:
        error: As a method raised it.
        offer: The tool that was called.
        words: What the methods are called.
    """
    # Arguments are refused in the words of the offer already.
    if "problems" in error.details or words.plain:
        return error
    parameters = {**words.own, **offer.parameters}
    message = _Text(error.message).parameters(parameters).whole()
    hint = _Text(error.hint).calls(words).parameters(parameters).methods(words).whole()
    return type(error)(message, hint=hint, details=error.details)


def footer_reworded(text: str, outcome: Any, offer: Offer, words: Words) -> str:
    """Return the text of an answer whose footer names what is offered, and advises nothing else.

    Args:
        text: What the model is shown.
        outcome: What was found or done.
        offer: The tool that was called.
        words: What the methods are called.
    """
    body, line_end, last = text.rpartition("\n")
    if isinstance(outcome, (WriteResult, EditResult)):
        # No line of a diff begins with a bracket.
        told = _Text(last).methods(words).whole() if last.startswith("[") else last
        return f"{body}{line_end}{told}"
    if not isinstance(outcome, (ListResult, GlobResult, GrepResult)):
        return text
    if (
        "include_ignored" in inspect.signature(offer.target).parameters
        and "include_ignored" not in offer.hide
    ):
        return text
    found = outcome.total_lines if isinstance(outcome, GrepResult) else outcome.total
    # What was found stands above the footer and is left as it is.
    return f"{body}{line_end}{_ADVICE.sub('', last)}" if found else _ADVICE.sub("", text)


class _Text:
    """A text under change: what it quotes, such as paths, and what is done with already is held apart."""

    def __init__(self, text: str) -> None:
        self._held: list[str] = []
        self._text = _QUOTED.sub(lambda quoted: self._hold(quoted[0]), text.replace("\0", ""))

    def calls(self, words: Words) -> "_Text":
        def call(found: re.Match[str]) -> str:
            given = {
                value["name"]: json.loads(
                    self._held[int(value["held"])] if value["held"] else value["number"]
                )
                for value in _VALUE.finditer(found["rest"])
            }
            if followed := words.followed(found["name"], given):
                return self._hold(followed)
            renamed = {**words.own, **words.parameters.get(found["name"], {})}
            rest = _ARGUMENT.sub(lambda name: f"{renamed.get(name[1], name[1])}=", found["rest"])
            return f"{found['name']}{self._hold(found['open'] + rest + found['close'])}"

        self._text = _CALL.sub(call, self._text)
        return self

    def parameters(self, renamed: Mapping[str, str]) -> "_Text":
        def parameter(found: re.Match[str]) -> str:
            name = found["quoted"] or found["bare"]
            shown = renamed.get(name, name)
            return f"`{shown}`" if found["quoted"] else shown

        self._text = _PARAMETER.sub(parameter, self._text)
        return self

    def methods(self, words: Words) -> "_Text":
        if words.tools:
            named = _METHOD.format("|".join(sorted(map(re.escape, words.tools), key=len, reverse=True)))
            self._text = re.sub(
                named, lambda found: words.tools[found["name"] or found["called"]], self._text
            )
        return self

    def whole(self) -> str:
        text = self._text
        while _HELD.search(text):  # a call that is held holds what it quotes
            text = _HELD.sub(lambda found: self._held[int(found[1])], text)
        return text

    def _hold(self, text: str) -> str:
        self._held.append(text)
        return f"\0{len(self._held) - 1}\0"
