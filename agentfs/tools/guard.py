"""The checks around every method: open workspace, argument types, deadline, permission."""
# pyright: reportPrivateUsage=false, reportUnknownMemberType=false
# ruff: noqa: SLF001 - the check is a part of the workspace

import functools
import inspect
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import fields, replace
from itertools import takewhile
from os import PathLike, fspath
from typing import Any, Protocol, TypeVar

from agentfs import permission, search
from agentfs.arguments.hints import resolve_hints
from agentfs.arguments.kinds import as_text
from agentfs.base import call_context
from agentfs.errors import AgentFSError, InvalidArgumentError, NotFoundError
from agentfs.events import is_debugging, reports_calls
from agentfs.fs import Root, quote
from agentfs.history import Journal
from agentfs.limits import Limits
from agentfs.permissions import GROUPS, READING, Effect, Rule
from agentfs.policy import Policy
from agentfs.shown.outputs import OutputStore
from agentfs.shown.workspace_context import Context
from agentfs.tools.recorded_commands import run_recorded
from agentfs.tools.tool import declaration_of, declarations, is_method

_C = TypeVar("_C", bound=type)
_CarryOut = Callable[[Any, Any], Any]
# Methods that make options of their arguments; `guard_options` checks the call that carries these out.
OPTION_METHODS = frozenset({"read", "ls", "glob", "grep", "edit_lines"})


class Guarded(Protocol):
    """The attributes of a workspace that the check uses."""

    policy: Policy
    limits: Limits
    _root: Root
    _journal: Journal
    _outputs: OutputStore
    _guarded_by: str
    _is_host: bool

    @property
    def _context(self) -> Context: ...

    def _check_open(self) -> None: ...


_G = TypeVar("_G", bound=Guarded)


def guard_methods(cls: _C) -> _C:
    """Make the public methods of a class check that it is open, and those that are tools the permission."""
    is_subclass = any(map(declarations, cls.__mro__[1:]))
    of_mixins = {name: getattr(cls, name) for name in declarations(cls)}
    for name, method in (of_mixins | vars(cls)).items():
        if not isinstance(method, types.FunctionType) or name.startswith("_") or is_method(method):
            continue
        declared = declaration_of(method)
        effect = declared.effect if declared else "none"
        is_checked_later = effect == "none" or name in OPTION_METHODS
        checked = check_open(method) if is_checked_later else _check_call(method, effect)
        checked = checked if declared is None else reports_calls(checked)
        checked.__dict__["_agentfs_guarded"] = True
        checked.__dict__["_agentfs_plannable"] = not is_subclass  # it changes files by `Root.apply` alone
        setattr(cls, name, checked)
    return cls


def guard_options(carry_out: _CarryOut) -> _CarryOut:
    """Make the method that carries out options check the permission of the method that they are for."""

    @functools.cache
    def guarded(kind: Any) -> Callable[..., Any]:
        return reports_calls(_check_call(by_field(kind, carry_out), kind.effect))

    @functools.wraps(carry_out)
    def checked(self: Any, options: Any) -> Any:
        kind = options.__class__
        if kind.effect != "read" or self.policy.guards or self.on_event is not None or is_debugging():
            return guarded(kind)(self, **given_fields(options))
        # Nobody is asked and nothing is reported: most searches and reads.
        self._root.check_open()
        with call_context.limited(self.limits.timeout, getattr(options, "timeout", None)):
            try:
                return carry_out(self, options)
            except NotFoundError as error:
                _explain_missing(self, kind.method, error)
                raise

    return checked


def by_field(kind: Any, carry_out: _CarryOut) -> Callable[..., Any]:
    """Return a function that has the fields of options as parameters, and the name of their method."""

    def call(self: Any, /, **given: Any) -> Any:
        return carry_out(self, kind(**given))

    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    call.__name__ = kind.method
    call.__annotations__ = resolve_hints(kind)[0]
    call.__dict__["__signature__"] = inspect.Signature([own, *inspect.signature(kind).parameters.values()])
    return call


def given_fields(options: Any) -> dict[str, Any]:
    """Return the options that differ from their defaults."""
    defaults = {each.name: each.default for each in fields(options)}
    return {name: getattr(options, name) for name in defaults if getattr(options, name) != defaults[name]}


def check_rules(cls: type[Any], policy: Policy) -> None:
    """Raise `invalid_argument` for a wrong rule about methods; a toolset checks the rules about tools."""
    for rule in (*policy.deny_rules, *policy.ask_rules, *policy.allow_rules):
        declared = declarations(cls).get(rule.name)
        if rule.name in GROUPS or (declared is not None and declared.effect in ("read", "write")):
            permission.decide.check_rule(rule)


def view_of(
    workspace: _G,
    limits: Limits | None,
    policy: Policy | None,
    workdir: str | PathLike[str] | None,
    only: Sequence[str | PathLike[str]] | None,
) -> _G:
    """Return a copy of a workspace for `Workspace.view`."""
    other = copy(workspace)
    other._guarded_by = ""
    other.limits = limits or workspace.limits
    other.policy = policy or workspace.policy
    check_rules(type(workspace), other.policy)
    root = workspace._root.with_policy(other.policy)
    if only is not None:
        root = root.restricted_to([fspath(each) for each in only])
        root.recovery_notes = ()  # they name files of all directories
        other._outputs = OutputStore()
    other._root = root if workdir is None else root.starting_in(fspath(workdir))
    return other


def host_policy(policy: Policy) -> Policy:
    """Return a policy without mode, rules and callback, whose `write` needs no read before."""
    free: dict[str, Any] = {"mode": "default", "on_ask": None, "allow": (), "ask": (), "deny": ()}
    return replace(policy, read_only=False, overwrite="always", **free)


def host_of(workspace: _G) -> _G:
    """Return a copy of a workspace for `Workspace.host`."""
    other = copy(workspace)
    other.policy = host_policy(workspace.policy)
    other._root = workspace._root.for_host(other.policy)
    other._guarded_by = ""
    other._is_host = True
    return other


def may_show_recorded(workspace: Guarded) -> Callable[[str], bool]:
    """Return a test that is True for a path whose recorded contents may be shown without asking the user."""
    root = workspace._root
    policy = _with_link_targets(workspace.policy, root)

    def test(path: str) -> bool:
        subject = permission.decide.Subject((path,), ignores_case=root.ignores_case)
        allowed = permission.decide.decide(policy, ("changes",), "read", subject).outcome == "allow"
        return allowed and root.may_show(path)

    return test


def _with_link_targets(policy: Policy, root: Root) -> Policy:
    """Return a policy whose deny and ask rules about a link are also about its target.

    Otherwise the path of the target would lead around the rule.
    """
    other = copy(policy)
    for name in ("deny_rules", "ask_rules"):  # cached properties
        vars(other)[name] = tuple(each for rule in getattr(policy, name) for each in _with_target(rule, root))
    return other


def _with_target(rule: Rule, root: Root) -> Iterable[Rule]:
    yield rule
    names = (rule.glob or "*").split("/")
    literal = [*takewhile(lambda name: name and not search.options.has_wildcard(name), names)]
    with suppress(AgentFSError):  # a link out of the root leads nowhere
        _, *links, target = root.unrestricted.spellings("/".join(literal) or ".", follow=True)
        if links:
            glob = "/".join(filter(None, [target, *names[len(literal) :]])) or "**"
            yield rule._replace(glob=f"/{glob}")


def check_open(method: Callable[..., Any]) -> Callable[..., Any]:
    """Make a method check that the workspace is open."""
    if method.__name__ == "close":
        return method

    @functools.wraps(method)
    def checked(self: Guarded, /, *args: Any, **kwargs: Any) -> Any:
        self._check_open()
        return method(self, *args, **kwargs)

    return checked


def _check_call(method: Callable[..., Any], effect: Effect) -> Callable[..., Any]:
    """Make a method check its permission, and run within a deadline; paths are passed to it as text."""
    changes = effect not in READING
    signature = functools.cache(lambda: inspect.signature(method))

    @functools.wraps(method)
    def checked(self: Guarded, /, *args: Any, **kwargs: Any) -> Any:
        self._root.check_open()
        positional = [*map(as_text, args)]
        named = {name: as_text(value) for name, value in kwargs.items()}
        if changes and self._outputs.has_names:
            given = signature().bind_partial(self, *positional, **named).arguments
            for parameter in ("path", "to") if "path" in given else ("paths",):
                _refuse_kept_names(self, given.get(parameter) or ())
        timeout = None if effect == "execute" else named.get("timeout")  # a command's time is its own
        seconds = timeout if isinstance(timeout, (int, float)) else None
        with call_context.limited(self.limits.timeout, seconds, apart=bool(self._journal.groups)):
            if self.policy.guards and self._guarded_by != method.__name__:
                policy = _with_link_targets(self.policy, self._root)
                bound = signature().bind(self, *positional, **named)
                return permission.method_call.MethodCall(self, policy, method, effect, bound, act).run()
            return perform(self, method, positional, named, effect)

    def act(workspace: Guarded, arguments: dict[str, Any]) -> Any:
        run = functools.partial(perform, workspace, method, (), arguments, effect)
        if effect != "execute" or workspace.policy.run != "recorded":
            return run()
        return run_recorded(workspace, host_of(workspace), arguments, run)

    return checked


def _refuse_kept_names(workspace: Guarded, paths: str | Sequence[str]) -> None:
    """Raise `invalid_argument` if a path is the name of a kept text or page, where only files will do."""
    for path in [paths] if isinstance(paths, str) else paths:
        if kept := workspace._outputs.get(path, workspace._root):
            what = "a kept text" if kept.path is None else f"a page of {quote(kept.path)}"
            raise InvalidArgumentError(
                f"{quote(path)} is the name of {what}, which can only be read and searched.",
                hint="Pass the path of a file.",
                details={"path": path},
            )


def _explain_missing(workspace: Guarded, name: str, error: NotFoundError) -> None:
    """Add the nearest names to the error for a path that does not exist."""
    workspace._root.check_open()  # nothing is found in a root that was removed during the call
    _refuse_kept_names(workspace, str(error.details.get("path", "")))
    search.missing_paths.explain_missing(workspace._context, name, error)


def perform(
    workspace: Guarded,
    method: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    effect: Effect,
) -> Any:
    """Run a method, and add the nearest names to the error for a path that does not exist."""
    token = None
    if effect not in READING:
        execution = call_context.current.get()
        name = execution.tool if execution is not None and execution.tool else method.__name__
        token = call_context.author.set(("program" if workspace._is_host else "tool", name))
    try:
        if effect == "write":  # a command can be interrupted
            return call_context.run_to_end(functools.partial(method, workspace, *args, **kwargs))
        return method(workspace, *args, **kwargs)
    except NotFoundError as error:
        _explain_missing(workspace, method.__name__, error)
        raise
    finally:
        if token is not None:
            workspace._journal.flush()
            call_context.author.reset(token)
