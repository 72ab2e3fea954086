"""The checks around every method: open workspace, deadline, permission, kept names."""
# pyright: reportPrivateUsage=false, reportUnknownMemberType=false
# ruff: noqa: SLF001 - the check is a part of the workspace

import functools
import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar

from agentfs import permission, search
from agentfs.arguments.hints import resolve_hints
from agentfs.arguments.kinds import as_text
from agentfs.base import call_context
from agentfs.errors import InvalidArgumentError, NotFoundError
from agentfs.events import is_debugging, reports_calls
from agentfs.fs import quote
from agentfs.permissions import GROUPS, READING, Effect
from agentfs.policy import Policy
from agentfs.tools.recorded_commands import run_recorded
from agentfs.tools.tool import declaration_of, declarations

_C = TypeVar("_C", bound=type)
_CarryOut = Callable[[Any, Any], Any]
# Methods that make options of their arguments; `guard_options` checks the call that carries these out.
OPTION_METHODS = frozenset({"read", "ls", "glob", "grep", "edit_lines"})


def guard_methods(cls: _C) -> _C:
    """Make the public methods of a class check that it is open, and those that are tools the permission."""
    for name, method in vars(cls).items():
        if not isinstance(method, types.FunctionType) or name.startswith("_") or name == "close":
            continue
        declared = declaration_of(method)
        effect = declared.effect if declared else "none"
        is_checked_later = effect == "none" or name in OPTION_METHODS
        checked = check_open(method) if is_checked_later else _check_call(method, effect)
        checked = checked if declared is None else reports_calls(checked)
        checked.__dict__["_agentfs_guarded"] = True
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


def check_open(method: Callable[..., Any]) -> Callable[..., Any]:
    """Make a method check that the workspace is open."""

    @functools.wraps(method)
    def checked(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        self._check_open()
        return method(self, *args, **kwargs)

    return checked


def _check_call(method: Callable[..., Any], effect: Effect) -> Callable[..., Any]:
    """Make a method check its permission, and run within a deadline; paths are passed to it as text."""
    changes = effect not in READING
    signature = functools.cache(lambda: inspect.signature(method))

    @functools.wraps(method)
    def checked(self: Any, /, *args: Any, **kwargs: Any) -> Any:
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
                bound = signature().bind(self, *positional, **named)
                return permission.method_call.MethodCall(self, method, effect, bound, act).run()
            return _perform(self, method, positional, named, effect)

    def act(workspace: Any, arguments: dict[str, Any]) -> Any:
        run = functools.partial(_perform, workspace, method, (), arguments, effect)
        if effect != "execute" or workspace.policy.run != "recorded":
            return run()
        return run_recorded(workspace, arguments, run)

    return checked


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


def _explain_missing(workspace: Any, name: str, error: NotFoundError) -> None:
    """Add the nearest names to the error for a path that does not exist."""
    workspace._root.check_open()  # nothing is found in a root that was removed during the call
    _refuse_kept_names(workspace, str(error.details.get("path", "")))
    search.missing_paths.explain_missing(workspace._context, name, error)


def _perform(
    workspace: Any, method: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], effect: Effect
) -> Any:
    """Run a method as the author of its changes, and explain a path that does not exist."""
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
