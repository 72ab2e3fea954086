"""The gate before every method: modes, rules, and the permission callback, asked with no lock held.

A method runs only after the gate has let it through, and only on the files that it was let through for: the
root that it is given asks again on the real path of each file that it opens or changes (`access`).
"""

import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, Protocol, TypeVar, cast

from agentfs import call_context
from agentfs.access import JUDGED_BY_FILE, Access, below, covered, denied, refusal
from agentfs.errors import InvalidArgumentError, StaleError
from agentfs.interrupts import run_to_end
from agentfs.limits import Limits
from agentfs.permissions import GROUPS, Action, Allow, Deny, PermissionAnswer, PermissionRequest
from agentfs.policy import Policy

if TYPE_CHECKING:  # a workspace loads them when it is opened
    from agentfs.fs import Root
    from agentfs.output_store import OutputStore

_P = ParamSpec("_P")
_R = TypeVar("_R")
_PATHS = ("path", "paths", "to", "files")
_Granted = Callable[[str], bool] | None  # a test of a real path, or no limit


class Guarded(Protocol):
    """What a workspace has that its gate needs."""

    policy: Policy
    limits: Limits
    _root: "Root"
    _outputs: "OutputStore"


_W = TypeVar("_W", bound=Guarded)
_Method = Callable[Concatenate[_W, _P], _R]


def gated(act: Action) -> Callable[[_Method[_W, _P, _R]], _Method[_W, _P, _R]]:
    """Return a decorator that puts a method of a workspace behind the gate.

    Args:
        act: What the method does.
    """

    def decorate(method: _Method[_W, _P, _R]) -> _Method[_W, _P, _R]:
        changes = act in GROUPS["change"]

        @functools.wraps(method)
        def through(self: _W, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
            with call_context.limited(self.limits.timeout, _seconds(kwargs.get("timeout"))):
                if self.policy.guards:
                    ask = _Asking(self, method, act, args, kwargs)
                    return cast("_R", ask.through())
                if not changes:
                    return method(self, *args, **kwargs)
                return run_to_end(lambda: method(self, *args, **kwargs))

        return through

    return decorate


def _seconds(timeout: object) -> float | None:
    """Return what a caller passes as `timeout`; whether it may pass that is for the method to say."""
    return timeout if isinstance(timeout, (int, float)) else None


class _Asking:
    """One call on its way through the gate."""

    def __init__(
        self,
        workspace: Guarded,
        method: Callable[..., Any],
        act: Action,
        args: Any,
        kwargs: Mapping[str, Any],
    ) -> None:
        signature = inspect.signature(method)
        bound = signature.bind(workspace, *args, **kwargs)
        bound.apply_defaults()
        self.parameters = list(signature.parameters)[1:]
        self.arguments = {name: bound.arguments[name] for name in self.parameters}
        self.workspace = workspace
        self.method = method
        self.act: Action = act

    def through(self) -> Any:
        granted: _Granted | Literal["ask"] = self._to_end(lambda: self._verdict(self._paths()))
        if granted == "ask":
            granted = self._be_allowed()
        return self._run(granted)

    def _be_allowed(self) -> _Granted:
        expected, before, paths = self._to_end(lambda: (self._revision(), self._diff(), self._paths()))
        answer = self._ask(paths, before)
        if isinstance(answer, Deny):
            self._refuse(answer.reason or "The user did not allow this call.")
        if isinstance(answer, Allow) and answer.arguments is not None:
            if unknown := answer.arguments.keys() - set(self.parameters):
                raise InvalidArgumentError(f"{self._name} has no parameter {', '.join(sorted(unknown))}.")
            self.arguments |= answer.arguments
            self._to_end(lambda: self._verdict(self._paths()))  # a preview would tell of what is denied
            expected, before, paths = self._to_end(lambda: (self._revision(), self._diff(), self._paths()))
        if expected is not None:
            self.arguments["expect_revision"] = expected
        elif self._diff() != before:
            raise StaleError(
                "What the call would do has changed since it was allowed; nothing was done.",
                hint="Read the file again, then decide anew.",
            )
        return below(paths) if paths else None

    @property
    def _name(self) -> str:
        return self.method.__name__

    @property
    def _changes(self) -> bool:
        return self.act in GROUPS["change"]

    def _run(self, granted: _Granted, *, preview: bool = False) -> Any:
        """Run the method on a root that lets it use what was granted, and nothing that is denied."""
        root = self.workspace._root  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - as below
        access = Access(
            self._name, self.act, self.workspace.policy.deny_rules, granted=granted, folds=root.ignores_case
        )
        workspace = copy(self.workspace)
        workspace._root = root.for_call(access)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - as below
        arguments = {**self.arguments, **({"preview": True} if preview else {})}
        return self._to_end(lambda: self.method(workspace, **arguments))

    def _to_end(self, work: Callable[[], _R]) -> _R:
        return run_to_end(work) if self._changes else work()

    def _diff(self) -> str:
        if "preview" not in self.parameters or self.arguments["preview"]:
            return ""
        would = self._run(None, preview=True)
        return str(getattr(would, "diff", ""))

    def _revision(self) -> str | None:
        """Return the version that is about to be changed, for a method that can be held to one."""
        if self.arguments.get("expect_revision", "") is not None:  # given already, or no parameter
            return None
        from agentfs.fs import revision_of  # noqa: PLC0415 - as above

        root = self.workspace._root  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - as below
        with root.open_file(self.arguments["path"]) as found:
            data = found.read(self.workspace.limits.file_bytes + 1)
        # A larger file is refused by the preview, and no revision of it is needed.
        return revision_of(data) if len(data) <= self.workspace.limits.file_bytes else None

    def _ask(self, paths: tuple[str, ...], diff: str) -> PermissionAnswer:
        callback = self.workspace.policy.permission
        if callback is None:
            return Deny("No rule allows this call, and there is nobody to ask.")
        call = call_context.current.get()
        shown = {name: value for name, value in self.arguments.items() if name != "preview"}
        request = PermissionRequest(self._name, self.act, shown, paths, diff, call.tool if call else None)
        with call_context.uncounted():
            answer = callback(request)
            if inspect.isawaitable(answer):
                answer = cast("PermissionAnswer", call_context.wait_for(_coroutine(answer)))
        if answer is True:
            return Allow()
        return answer if isinstance(answer, (Allow, Deny)) else Deny()

    def _verdict(self, paths: tuple[str, ...]) -> _Granted | Literal["ask"]:
        """Return what is granted, or that somebody is to be asked.

        Rules that refuse come first, then the mode, then rules that allow.
        """
        policy = self.workspace.policy
        folds = self.workspace._root.ignores_case  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - as below
        changes = self._changes
        for rule in policy.deny_rules:
            unknown = changes and not paths
            everywhere = rule.glob is None or (unknown and self._name not in JUDGED_BY_FILE)
            if rule.names(self._name, self.act) and (
                everywhere or any(denied(rule, path, folds) for path in paths)
            ):
                self._refuse(f"The rule `{rule.text}` does not allow this call.")
        preview = self.arguments.get("preview") is True
        if changes and policy.mode == "plan" and not preview:
            self._refuse("Nothing is changed in plan mode.", "Tell the user what you would change.")
        if preview or policy.mode == "bypass":
            return None
        if policy.mode == "accept_edits" and self.act in ("edit", "write"):
            return None
        for rule in policy.allow_rules:
            everywhere = rule.glob is None or (bool(paths) and all(covered(rule, path) for path in paths))
            if rule.names(self._name, self.act) and everywhere:
                return None if rule.glob is None else partial(covered, rule)
        if policy.permission is not None or (changes and policy.allow):
            return "ask"
        return None

    def _refuse(self, reason: str, hint: str = "") -> None:
        raise refusal(reason, self._name, self._paths(), hint)

    def _paths(self) -> tuple[str, ...]:
        root = self.workspace._root  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - the gate is the workspace's own
        asked: list[str] = []
        for name in _PATHS:
            if name == "to" and "path" not in self.arguments:
                continue  # the checkpoint of a rollback
            value = self.arguments.get(name)
            asked += [value] if isinstance(value, str) else value if isinstance(value, (list, tuple)) else []
        meant = [root.path_from_top(self._meant(path) or ".") for path in asked]
        return tuple(dict.fromkeys(place or "." for path in meant for place in root.top.resolve(path)))

    def _meant(self, path: str) -> str:
        """Return the file that a name of a kept page stands for, which rules are about."""
        kept = self.workspace._outputs.get(path)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - as above
        return path if kept is None else kept.path or path


async def _coroutine(awaitable: Awaitable[Any]) -> Any:
    return await awaitable
