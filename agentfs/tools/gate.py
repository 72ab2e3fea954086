"""The gate: the rules, time and output limit of every tool of a toolset that is not a method of a workspace.

Methods check their own calls (`agentfs.tools.guard`), because programs and functions call them too.
"""

import inspect
import posixpath
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Protocol, cast

from agentfs.arguments.kinds import ListOf, PathOf
from agentfs.arguments.parameters import Parameter
from agentfs.base import call_context
from agentfs.base.advice import Advice, Names, call
from agentfs.base.visible import one_line
from agentfs.concurrency.runner import run_until, run_until_on_loop
from agentfs.errors import AgentFSError, DeadlineExceededError, InvalidArgumentError
from agentfs.limits import Limits
from agentfs.permission.ask import NOBODY, ask_user, not_permitted, refused
from agentfs.permission.decide import Judged, Subject, check_rule, decide
from agentfs.permissions import GROUPS, Action, PermissionRequest, Rule
from agentfs.policy import Policy
from agentfs.results import ToolResult
from agentfs.text.display import head_and_tail
from agentfs.text.nearest import nearest
from agentfs.tools.tool import Tool

_GRACE = 2.0  # seconds for a cancelled async function to end


class GatedBy(Protocol):
    """The attributes of a workspace that the gate uses."""

    policy: Policy
    limits: Limits

    @property
    def root(self) -> str:
        """The absolute path of the root."""
        ...

    def _keep(self, kept: str) -> str:
        """Keep a text under a name that `read` accepts."""
        ...


def permission_of(
    workspace: GatedBy, tool: Tool, values: Mapping[str, Any]
) -> Callable[[], Mapping[str, Any]] | None:
    """Decide about a call; return None if it is allowed, or the function that asks the user.

    The function returns the arguments that the user changes.

    Raises:
        AgentFSError: The call is refused (`refused`, `read_only`).
    """
    policy, subject = workspace.policy, _subject(workspace, tool, values)
    decision = decide(policy, rule_names(tool), tool.effect, subject)
    if decision.outcome == "refuse":
        raise refused(policy, decision, tool.name, subject.paths)
    if decision.outcome == "allow":
        return None
    context = call_context.current.get()
    called_as = one_line(context.tool) if context and context.tool else None
    paths = tuple(map(one_line, subject.paths))

    def ask() -> Mapping[str, Any]:
        if policy.on_ask is None:
            raise not_permitted(NOBODY, tool.name, subject.paths)
        request = PermissionRequest(tool.name, tool.effect, values, paths, tool=called_as)
        return ask_user(policy.on_ask, request).arguments or {}

    return ask


_CHANGES: tuple[Action, ...] = ("create", "edit", "delete")


def may_ask(workspace: GatedBy, tool: Tool, values: Mapping[str, Any]) -> bool:
    """Return True if the user may be asked about a call; an error is raised if it is refused."""
    if not tool.checks_itself:
        return permission_of(workspace, tool, values) is not None
    policy = workspace.policy
    effects: Sequence[Judged] = _CHANGES if tool.effect == "write" else (tool.effect,)
    named = {tool.renames.get(each, each) for each in ("path", "to", "paths")}
    given: list[Any] = [
        values[each.name] for each in tool.parameters if each.target in named and each.name in values
    ]
    paths: list[Any] = []
    for each in given:
        paths += each if isinstance(each, list) else [each]
    spellings = [spelling for path in paths for spelling in _spellings(workspace, str(path))]
    command = values.get("command") if tool.effect == "execute" else None
    subject = Subject(tuple(spellings), command=command)
    if any(decide(policy, tool.stands_for, each, subject).outcome == "ask" for each in effects):
        return True
    unnamed = [rule for rule in policy.ask_rules if rule.glob and rule.name in GROUPS]
    return tool.effect == "write" and not paths and bool(unnamed)  # it finds its files by itself


def rule_names(tool: Tool) -> list[str]:
    """Return the names by which rules may name a tool."""
    return [*dict.fromkeys([tool.name, tool.own_name])]


def check_tool_rule(rule: Rule, names: Sequence[str], own: Iterable[Tool]) -> None:
    """Raise `invalid_argument` for a rule that names none of the tools, or whose text matches nothing."""
    if rule.name not in names:
        near = nearest(rule.name, (*GROUPS, *names))
        raise InvalidArgumentError(
            f"The rule `{rule.text}` names no tool{f' (did you mean `{near}`?)' if near else ''}.",
            hint=f"The tools are {', '.join(names)}; rules about paths are "
            f"{', '.join(GROUPS)}. Add all tools of the program at once.",
            details={"rule": rule.text, "nearest": near},
        )
    for tool in own:
        if rule.name not in rule_names(tool) or rule.subject is None or tool.rule_parameter is not None:
            continue
        if not any(map(_takes_paths, tool.parameters)):
            raise InvalidArgumentError(
                f"The rule `{rule.text}` has a text, but {tool.name} does not say what it is about.",
                hint='Declare a parameter of it: @tool(effect="execute", rule="command"), or give a '
                "parameter the hint pathlib.Path.",
                details={"rule": rule.text},
            )
        check_rule(rule)


def _takes_paths(parameter: Parameter) -> bool:
    kind = parameter.value_kind
    return isinstance(kind.item if isinstance(kind, ListOf) else kind, PathOf)


def _subject(workspace: GatedBy, tool: Tool, values: Mapping[str, Any]) -> Subject:
    """Return what rules about a call are matched with: its declared parameter, or else its paths."""
    if tool.rule_parameter is not None:
        value = values.get(tool.rule_parameter.name, tool.rule_parameter.default)
        text = value if isinstance(value, str) else str(value)
        return Subject(command=text) if tool.effect == "execute" else Subject(text=text)
    found: list[str] = []
    for parameter in filter(_takes_paths, tool.parameters):
        given: Any = values.get(parameter.name, parameter.default)
        for path in cast("Any", given) if isinstance(given, list) else [given]:
            found += [] if path is None else _spellings(workspace, str(path))
    return Subject(tuple(dict.fromkeys(found)))


def _spellings(workspace: GatedBy, path: str) -> list[str]:
    """Return the paths relative to the root that a path of a tool may mean; an outer path stays absolute."""
    root: Any = getattr(workspace, "_root", None)  # without one, the files are at a remote side
    if root is not None:
        with suppress(AgentFSError):  # outside of the root
            return [each or "." for each in root.top.spellings(root.path_from_top(path))]
    top = workspace.root.rstrip("/")
    plain = posixpath.normpath(posixpath.join(top, path))
    return [posixpath.relpath(plain, top) if f"{plain}/".startswith(f"{top}/") else plain]


def run_in_time(tool: Tool, seconds: float | None, function: Callable[[], Any]) -> Any:
    """Run a tool's function in a thread, and raise `timeout` when its time is over.

    Without a limit it runs in this thread. An async function is cancelled; if it blocks its event loop, it is
    left behind like a plain one.
    """
    if seconds is None:
        outcome = function()
        return call_context.run_awaitable(outcome) if inspect.isawaitable(outcome) else outcome
    try:
        with call_context.tool_limited(seconds) as seconds_left:

            def work() -> Any:
                outcome = function()
                if not inspect.isawaitable(outcome):
                    return outcome
                return call_context.run_awaitable(run_until_on_loop(seconds_left, outcome))

            grace = _GRACE if tool.is_async else 0.0
            return run_until(lambda: seconds_left() + grace, work)
    except call_context.OverTimeError:
        rest = "It was cancelled." if tool.is_async else "It may still run, and its result is dropped."
        raise DeadlineExceededError(
            f"{tool.name} did not end within {seconds:g} seconds. {rest}",
            hint="Ask for less at once, or go on without it.",
            details={"seconds": seconds},
        ) from None


def within_output_limit(
    result: ToolResult, limits: Limits, workspace: GatedBy | None, names: Names
) -> ToolResult:
    """Return a result whose text is within `Limits.output_tokens`; the full text is kept under a name."""
    content = result.content.encode("utf-8", "backslashreplace").decode()  # no API carries a lone surrogate
    shown = head_and_tail(content, limits)
    if shown is content:
        return result if content == result.content else replace(result, content=content)
    reading: tuple[str, ...] = ()
    following = None
    if workspace is not None:
        keep = workspace._keep  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] # of its workspace
        following = names.call(call("read", path=keep(content)))
        reading = (Advice("full text: ", following),) if following else ()
    return replace(result, content=str(head_and_tail(content, limits, *reading)), next=following)
