"""The gate: the rules, time and output limit of every tool of a toolset that is not a method of a workspace.

Methods check their own calls (`agentfs.tools.guard`), because programs and functions call them too.
"""

import inspect
import posixpath
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

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
from agentfs.permissions import GROUPS, PermissionRequest, Rule
from agentfs.policy import Policy
from agentfs.results import ToolResult
from agentfs.text.display import head_and_tail
from agentfs.text.nearest import nearest
from agentfs.tools.binding import bind
from agentfs.tools.tool import Tool

_GRACE = 2.0  # seconds for a cancelled async function to end
_PATHS = ("path", "to", "paths")  # the parameters of methods that rules are about


def permit(workspace: Any, tool: Tool, values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Decide about a call, ask the user if necessary, and return the values, which the user may change.

    Raises:
        AgentFSError: The call is refused (`refused`, `read_only`).
    """
    if not must_ask(workspace, tool, values):
        return values
    policy, subject = workspace.policy, _subject(workspace, tool, values)
    if policy.on_ask is None:
        raise not_permitted(NOBODY, tool.name, subject.paths)
    context = call_context.current.get()
    called_as = one_line(context.tool) if context and context.tool else None
    paths = tuple(map(one_line, subject.paths))
    request = PermissionRequest(tool.name, tool.effect, values, paths, tool=called_as)
    if changed := ask_user(policy.on_ask, request).arguments:
        values, _ = bind(tool, {**values, **changed})
        must_ask(workspace, tool, values)  # it may be refused now
    return values


def must_ask(workspace: Any, tool: Tool, values: Mapping[str, Any]) -> bool:
    """Return True if the user must be asked about a call; raise the error if it is refused."""
    subject = _subject(workspace, tool, values)
    decision = decide(workspace.policy, rule_names(tool), tool.effect, subject)
    if decision.outcome == "refuse":
        raise refused(workspace.policy, decision, tool.name, subject.paths)
    return decision.outcome == "ask"


def may_ask(workspace: Any, tool: Tool, values: Mapping[str, Any]) -> bool:
    """Return True if the user may be asked about a call, which may be one of a method."""
    if not tool.checks_itself:
        return must_ask(workspace, tool, values)
    policy, subject = workspace.policy, _subject(workspace, tool, values)
    effects: tuple[Judged, ...] = ("create", "edit", "delete") if tool.effect == "write" else (tool.effect,)
    if any(decide(policy, tool.stands_for, each, subject).outcome == "ask" for each in effects):
        return True
    finds_its_files = tool.effect == "write" and not subject.paths
    return finds_its_files and any(rule.glob and rule.name in GROUPS for rule in policy.ask_rules)


def rule_names(tool: Tool) -> list[str]:
    """Return the names by which rules may name a tool."""
    return [*dict.fromkeys([tool.name, tool.own_name])]


def check_tool_rules(policy: Policy, names: Sequence[str], own: Iterable[Tool]) -> None:
    """Raise `invalid_argument` for a rule that names none of the tools, or whose text matches nothing."""
    for rule in (*policy.deny_rules, *policy.ask_rules, *policy.allow_rules):
        if rule.name not in GROUPS and rule.name not in names:
            near = nearest(rule.name, (*GROUPS, *names))
            raise InvalidArgumentError(
                f"The rule `{rule.text}` names no tool{f' (did you mean `{near}`?)' if near else ''}.",
                hint=f"The tools are {', '.join(names)}; rules about paths are "
                f"{', '.join(GROUPS)}. Add all tools of the program at once.",
                details={"rule": rule.text, "nearest": near},
            )
        named = [tool for tool in own if rule.name in rule_names(tool) and rule.name not in GROUPS]
        for tool in named if rule.subject is not None else ():
            if tool.rule_parameter is None:
                _check_paths(rule, tool)


def _check_paths(rule: Rule, tool: Tool) -> None:
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


def _subject(workspace: Any, tool: Tool, values: Mapping[str, Any]) -> Subject:
    """Return what rules about a call are matched with: its declared parameter, or else its paths."""
    if tool.rule_parameter is not None:
        text = str(values.get(tool.rule_parameter.name, tool.rule_parameter.default))
        return Subject(command=text) if tool.effect == "execute" else Subject(text=text)
    of_method = {tool.renames.get(each, each) for each in _PATHS} if tool.checks_itself else set[str]()
    found: list[str] = []
    for parameter in tool.parameters:
        is_named = parameter.target in of_method
        if is_named or _takes_paths(parameter):
            given: Any = values.get(parameter.name, None if is_named else parameter.default)
            for path in cast("Any", given) if isinstance(given, list) else [given]:
                found += [] if path is None else _spellings(workspace, str(path))
    return Subject(tuple(dict.fromkeys(found)))


def _spellings(workspace: Any, path: str) -> list[str]:
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


def within_output_limit(result: ToolResult, limits: Limits, workspace: Any, names: Names) -> ToolResult:
    """Return a result whose text is within `Limits.output_tokens`; the full text is kept under a name."""
    content = result.content.encode("utf-8", "backslashreplace").decode()  # no API carries a lone surrogate
    shown = head_and_tail(content, limits)
    if shown is content:
        return result if content == result.content else replace(result, content=content)
    following = None
    if workspace is not None:
        keep = workspace._keep  # noqa: SLF001 # of its workspace
        following = names.call(call("read", path=keep(content)))
    reading = (Advice("full text: ", following),) if following else ()
    return replace(result, content=str(head_and_tail(content, limits, *reading)), next=following)
