"""The gate: the checks around every call, of a method of a workspace and of a tool of the program's own.

Methods check their own calls, because programs and functions call them too. For the program's own tools, the
toolset asks here: their rules, time and output limit.
"""
# pyright: reportPrivateUsage=false, reportUnknownMemberType=false
# ruff: noqa: SLF001 - the check is a part of the workspace

import functools
import inspect
import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from itertools import product
from typing import Any, TypeVar, is_typeddict

from agentfs import permission, search
from agentfs.arguments.kinds import MapOf, PathOf, Record, as_text, has_items
from agentfs.arguments.parameters import Kind
from agentfs.base import call_context
from agentfs.base.advice import Advice, Names, call
from agentfs.base.runner import run_until, run_until_on_loop
from agentfs.base.visible import one_line
from agentfs.errors import AgentFSError, DeadlineExceededError, InvalidArgumentError, NotFoundError
from agentfs.events import reports_calls
from agentfs.fs import quote
from agentfs.limits import Limits
from agentfs.permission.ask import ask_user, called_as, refused
from agentfs.permission.decide import Judged, Subject, check_rule, decide
from agentfs.permissions import GROUPS, READING, Effect, PermissionRequest
from agentfs.policy import Policy
from agentfs.results import ToolResult
from agentfs.text.display import head_and_tail
from agentfs.text.nearest import nearest
from agentfs.tools.binding import bind
from agentfs.tools.recorded_commands import run_recorded
from agentfs.tools.tool import Tool, declaration_of, declarations

_C = TypeVar("_C", bound=type)
_Method = Callable[..., Any]
# Methods that make options of their arguments; `guard_options` checks the call that carries these out.
OPTION_METHODS = frozenset({"read", "ls", "glob", "grep", "edit_lines"})

_GRACE = 2.0  # seconds for a cancelled async function to end
_PATHS = ("path", "to", "paths")  # the parameters of methods that rules are about


def guard_methods(cls: _C) -> _C:
    """Make the public methods of a class check that it is open, and those that are tools the permission."""
    for name, method in vars(cls).items():
        if not inspect.isfunction(method) or name.startswith("_") or name == "close":
            continue
        declared = declaration_of(method)
        effect = declared.effect if declared else "none"
        checked: _Method = method
        if name not in OPTION_METHODS:
            checked = check_open(method) if effect == "none" else check_permission(method, effect)
        checked = checked if declared is None else reports_calls(checked)
        checked.__dict__["_agentfs_guarded"] = True
        setattr(cls, name, checked)
    return cls


def guard_options(carry_out: _Method) -> _Method:
    """Make the method that carries out options check the permission of the method that they are for."""

    @functools.wraps(carry_out)
    def checked(self: Any, options: Any) -> Any:
        self._root.check_open()
        kind = options.__class__
        if kind.effect == "read" and not self.policy.guards:  # nobody is asked: most searches and reads
            with call_context.limited(self.limits.timeout, getattr(options, "timeout", None)):
                return _perform(self, kind.method, kind.effect, functools.partial(carry_out, self, options))

        def work(workspace: Any, **given: Any) -> Any:
            return carry_out(workspace, kind(**given))

        given = {each.name: getattr(options, each.name) for each in fields(options)}
        return _check_call(self, kind.method, kind.effect, given, work)

    return checked


def check_rules(cls: type[Any], policy: Policy) -> None:
    """Raise `invalid_argument` for a wrong rule about methods; a toolset checks the rules about tools."""
    for rule in (*policy.deny_rules, *policy.ask_rules, *policy.allow_rules):
        declared = declarations(cls).get(rule.name)
        if rule.name in GROUPS or (declared is not None and declared.effect in ("read", "write")):
            check_rule(rule)


def check_open(method: _Method) -> _Method:
    """Make a method check that the workspace is open."""

    @functools.wraps(method)
    def checked(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        self._check_open()
        return method(self, *args, **kwargs)

    return checked


def check_permission(method: _Method, effect: Effect) -> _Method:
    """Make a method check its permission, and run within a deadline; paths are passed to it as text."""
    signature = functools.cache(lambda: inspect.signature(method))
    positional = method.__code__.co_varnames[1 : method.__code__.co_argcount]  # without the workspace

    @functools.wraps(method)
    def checked(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        self._root.check_open()
        given = dict(zip(positional, args, strict=False)) | kwargs
        if self.policy.guards or len(given) < len(args) + len(kwargs):  # rules and users see each argument
            bound = signature().bind(self, *args, **kwargs)
            bound.apply_defaults()
            given = dict([*bound.arguments.items()][1:])
        given = {name: as_text(value) for name, value in given.items()}
        return _check_call(self, method.__name__, effect, given, method)

    return checked


def _check_call(workspace: Any, name: str, effect: Effect, given: Mapping[str, Any], work: _Method) -> Any:
    """Run a method if its permission allows it, within a deadline; `work` gets a workspace and arguments."""
    if effect not in READING:
        for parameter in ("path", "to") if "path" in given else ("paths",):
            _refuse_kept_names(workspace, given.get(parameter) or ())
    timeout = None if effect == "execute" else given.get("timeout")  # a command's time is its own

    def act(judged: Any, arguments: Mapping[str, Any]) -> Any:
        run = functools.partial(_perform, judged, name, effect, functools.partial(work, judged, **arguments))
        is_recorded = effect == "execute" and judged.policy.run == "recorded"
        return run_recorded(judged, arguments, run) if is_recorded else run()

    with call_context.limited(workspace.limits.timeout, timeout, apart=bool(workspace._journal.groups)):
        if workspace.policy.guards and workspace._guarded_by != name:
            return permission.method_call.MethodCall(workspace, name, effect, given, act).run()
        return _perform(workspace, name, effect, functools.partial(work, workspace, **given))


def _refuse_kept_names(workspace: Any, paths: str | Sequence[str]) -> None:
    """Raise `invalid_argument` if a path is the name of a kept text or page, where only files will do."""
    for path in [paths] if isinstance(paths, str) else paths:
        if kept := workspace._outputs.get(path, workspace._root):
            what = "a kept text" if kept.path is None else f"a page of {quote(kept.path)}"
            raise InvalidArgumentError(
                f"{quote(path)} is the name of {what}, which can only be read and searched.",
                hint="Pass the path of a file.",
                details={"path": path},
            )


def _perform(workspace: Any, name: str, effect: Effect, work: Callable[[], Any]) -> Any:
    """Run a method as the author of its changes, and explain a path that does not exist."""
    token = None
    if effect not in READING:
        execution = call_context.current.get()
        tool = execution.tool if execution is not None and execution.tool else name
        token = call_context.author.set(("program" if workspace._is_host else "tool", tool))
    try:
        # A command can be interrupted.
        return call_context.run_to_end(work) if effect == "write" else work()
    except NotFoundError as error:
        workspace._root.check_open()  # nothing is found in a root that was removed during the call
        _refuse_kept_names(workspace, str(error.details.get("path", "")))
        search.missing_paths.explain_missing(workspace._context, name, error)
        raise
    finally:
        if token is not None:
            workspace._journal.flush()
            call_context.author.reset(token)


def permit(workspace: Any, tool: Tool, values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Decide about a call, ask the user if necessary, and return the values, which the user may change.

    Raises:
        AgentFSError: The call is refused (`refused`, `read_only`).
    """
    if not must_ask(workspace, tool, values):
        return values
    paths = tuple(map(one_line, _subject(workspace, tool, values).paths))
    request = PermissionRequest(tool.name, tool.effect, values, paths, tool=called_as())
    if changed := ask_user(workspace.policy, request).arguments:
        values, _ = bind(tool, {**values, **changed})
        must_ask(workspace, tool, values)  # it may be refused now
    return values


def must_ask(workspace: Any, tool: Tool, values: Mapping[str, Any]) -> bool:
    """Return True if the user must be asked about a call; raise the error if it is refused."""
    subject = _subject(workspace, tool, values)
    decision = decide(workspace.policy, (tool.name, tool.own_name), tool.effect, subject)
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
        if rule.subject is None or rule.name in GROUPS:
            continue
        for tool in own:
            if rule.name not in (tool.name, tool.own_name) or tool.rule_parameter is not None:
                continue
            if not any(_takes_paths(each.kind) for each in tool.parameters):
                raise InvalidArgumentError(
                    f"The rule `{rule.text}` has a text, but {tool.name} does not say what it is about.",
                    hint='Declare a parameter of it: @tool(effect="execute", rule="command"), or give a '
                    "parameter the hint pathlib.Path.",
                    details={"rule": rule.text},
                )
            check_rule(rule)


def _takes_paths(kind: Kind) -> bool:
    parts = [each.kind for each in kind.members] if isinstance(kind, Record) else kind.parts
    return isinstance(kind, PathOf) or any(map(_takes_paths, parts))


def _paths_in(kind: Kind, value: Any) -> Iterator[Any]:
    """Yield the paths in a value of a kind, at any depth: in lists, objects, records and unions."""
    if isinstance(kind, PathOf):
        yield value
    elif isinstance(kind, Record):
        member_of: Any = value.get if is_typeddict(kind.make) else functools.partial(getattr, value)
        for member in kind.members:
            yield from _paths_in(member.kind, member_of(member.target, None))
    items: Any = value.values() if isinstance(kind, MapOf) else value if has_items(value) else ()
    for part, each in product(kind.parts, (value, *items)):
        if part.fits(each):
            yield from _paths_in(part, each)


def _subject(workspace: Any, tool: Tool, values: Mapping[str, Any]) -> Subject:
    """Return what rules about a call are matched with: its declared parameter, or else its paths."""
    if tool.rule_parameter is not None:
        text = str(values.get(tool.rule_parameter.name, tool.rule_parameter.default))
        return Subject(command=text) if tool.effect == "execute" else Subject(text=text)
    of_method = {tool.renames.get(each, each) for each in _PATHS} if tool.checks_itself else set[str]()
    given: list[Any] = []
    for parameter in tool.parameters:
        value = values.get(parameter.name, None if tool.checks_itself else parameter.default)
        if parameter.target in of_method:
            given += value if isinstance(value, list) else [value]
        given += _paths_in(parameter.kind, value)
    found = (each for path in given if path is not None for each in _spellings(workspace, str(path)))
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
        return call_context.awaited(function())
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
    following = None if workspace is None else names.call(call("read", path=workspace._keep(content)))
    reading = (Advice("full text: ", following),) if following else ()
    return replace(result, content=str(head_and_tail(content, limits, *reading)), next=following)
