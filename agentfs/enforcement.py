"""The permission check before every method, and again on each file that the method opens or changes.

Mode, rules and the permission callback decide before the call, with no lock held. Links may be swapped after
that, and a search opens files that no argument names; so the root that the method is given asks `Access`,
with the real path of each file.
"""
# pyright: reportPrivateUsage=false, reportUnknownMemberType=false
# ruff: noqa: SLF001 - the check is a part of the workspace

import functools
import inspect
import types
import unicodedata
from collections.abc import Awaitable, Callable, Iterable, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, cast

from agentfs import call_context
from agentfs.errors import InvalidArgumentError, NotFoundError, RefusedError, StaleError
from agentfs.limits import Limits
from agentfs.permissions import GROUPS, Allow, Deny, Effect, PermissionAnswer, PermissionRequest, Rule
from agentfs.policy import Policy
from agentfs.results import ReplaceResult
from agentfs.tools.declaration import declaration_of

if TYPE_CHECKING:  # a workspace loads it when it is opened
    from agentfs.cache import OutputStore
    from agentfs.fs import Root
    from agentfs.history import Journal
    from agentfs.tools.checking import ArgumentChecker

_R = TypeVar("_R")
_C = TypeVar("_C", bound=type)
_PATH_PARAMETERS = ("path", "paths", "to", "files")
_Granted = Callable[[str], bool] | None  # a test of a real path, or no limit


class Guarded(Protocol):
    """What the check needs of a workspace."""

    policy: Policy
    limits: Limits
    _root: "Root"
    _journal: "Journal"
    _outputs: "OutputStore"


def guard_methods(cls: _C) -> _C:
    """Check the arguments of each public method of a class, and the permission for each that is a tool."""
    for name, method in list(vars(cls).items()):
        if isinstance(method, types.FunctionType) and (name == "__init__" or not name.startswith("_")):
            declared = declaration_of(method)
            effect = declared.effect if declared else "none"
            setattr(
                cls, name, check_arguments(method if effect == "none" else _guard(_explained(method), effect))
            )
    return cls


def check_arguments(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that checks the types of its arguments before it does anything."""
    checker: ArgumentChecker | None = None

    @functools.wraps(method)
    def checked(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        nonlocal checker
        if checker is None:
            from agentfs.tools.checking import ArgumentChecker  # noqa: PLC0415 - not at `import agentfs`

            checker = ArgumentChecker(method)
        positional, named = checker.check(args, kwargs)
        return method(self, *positional, **named)

    return checked


def _explained(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let a method say what a path that does not exist was probably meant to be."""

    @functools.wraps(method)
    def explained(self: Guarded, /, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, *args, **kwargs)
        except NotFoundError as error:
            from agentfs.search import explain_missing  # noqa: PLC0415 - only a missing path needs it

            explain_missing(self._root, self.limits, method.__name__, error)
            raise

    return explained


def _guard(method: Callable[..., Any], effect: Effect) -> Callable[..., Any]:
    changes = effect in GROUPS["change"]
    signature = functools.cache(lambda: inspect.signature(method))  # most methods are never called

    @functools.wraps(method)
    def guarded(self: Guarded, /, *args: Any, **kwargs: Any) -> Any:
        timeout = kwargs.get("timeout")
        seconds = timeout if isinstance(timeout, (int, float)) else None
        with call_context.limited(self.limits.timeout, seconds):
            if self.policy.guards:
                return _GuardedCall(self, method, effect, signature().bind(self, *args, **kwargs)).run()
            if not changes:
                return method(self, *args, **kwargs)
            return call_context.run_to_end(lambda: _flushed(self, lambda: method(self, *args, **kwargs)))

    return guarded


def _flushed(workspace: Guarded, change: Callable[[], _R]) -> _R:
    try:
        return change()
    finally:
        workspace._journal.flush()


class _GuardedCall:
    """One call of a method, from the check to its result."""

    def __init__(
        self, workspace: Guarded, method: Callable[..., Any], effect: Effect, bound: inspect.BoundArguments
    ) -> None:
        bound.apply_defaults()
        _, *arguments = bound.arguments.items()
        self.arguments: dict[str, Any] = dict(arguments)
        self.workspace = workspace
        self.method = method
        self.name = method.__name__
        self.effect: Effect = effect
        self.changes = effect in GROUPS["change"]
        # A method without a path, such as `undo`, may change any file: each is checked when it is opened.
        self.names_files = "path" in self.arguments or "paths" in self.arguments
        # Of a method that changes files which it finds by itself, rules about changes do not hide any.
        self.finds_files = self.changes and "glob" in self.arguments
        self.files: tuple[str, ...] | None = None  # that it would change, once the preview was shown

    def run(self) -> Any:
        granted = self._to_end(self._decide)
        return self._call(self._ask_permission() if granted == "ask" else granted)

    def _decide(self) -> _Granted | Literal["ask"]:
        """Return what is granted, or "ask": refusing rules come first, then the mode, then allowing rules."""
        policy, paths = self.workspace.policy, self._paths()
        for rule in policy.deny_rules:
            anywhere = rule.glob is None or (self.changes and self.names_files and not paths)
            if rule.names(self.name, self.effect) and (
                anywhere or _denying([rule], paths, self.workspace._root.ignores_case)
            ):
                raise self._refusal(f"The rule `{rule.text}` does not allow this call.")
        preview = self.arguments.get("preview") is True
        if self.changes and policy.mode == "plan" and not preview:
            raise self._refusal("Nothing is changed in plan mode.", "Tell the user what you would change.")
        if preview or policy.mode == "bypass":
            return None
        if policy.mode == "accept_edits" and self.effect in ("edit", "write"):
            return None
        for rule in policy.allow_rules:
            if rule.names(self.name, self.effect):
                if rule.glob is None:
                    return None
                if paths and all(_matches(rule.glob, path) for path in paths):
                    return functools.partial(_matches, rule.glob)
        return "ask" if policy.permission is not None or (self.changes and policy.allow) else None

    def _ask_permission(self) -> _Granted:
        """Ask, apply changed arguments, and make sure that the call will do what the request showed."""
        revision, diff, paths = self._to_end(self._preview)
        answer = self._answer(self.files or paths, diff)
        if isinstance(answer, Deny):
            raise self._refusal(answer.reason or "The user did not allow this call.")
        if answer.arguments is not None:
            if unknown := answer.arguments.keys() - self.arguments.keys():
                raise InvalidArgumentError(f"{self.name} has no parameter {', '.join(sorted(unknown))}.")
            self.arguments |= answer.arguments
            self._to_end(self._decide)  # before the preview, which would show what is denied
            revision, diff, paths = self._to_end(self._preview)
        files = self.files
        if revision is not None:
            self.arguments["expect_revision"] = revision
        elif self._preview()[1] != diff:
            raise StaleError(
                "What the call would do has changed since it was allowed; nothing was done.",
                hint="Read the file again, then decide again.",
            )
        self.files = files  # those that the request showed
        return _within(paths) if paths else None

    def _answer(self, paths: tuple[str, ...], diff: str) -> Allow | Deny:
        callback = self.workspace.policy.permission
        if callback is None:
            return Deny("No rule allows this call, and there is nobody to ask.")
        call = call_context.current.get()
        arguments = {name: value for name, value in self.arguments.items() if name != "preview"}
        tool = call.tool if call else None
        request = PermissionRequest(self.name, self.effect, arguments, paths, diff, tool)
        with call_context.uncounted():
            answer = callback(request)
            if inspect.isawaitable(answer):
                answer = cast("PermissionAnswer", call_context.wait_for(_coroutine(answer)))
        if answer is True:
            return Allow()
        return answer if isinstance(answer, (Allow, Deny)) else Deny()

    def _call(self, granted: _Granted, *, preview: bool = False) -> Any:
        """Run the method on a root that lets it use what was granted, and nothing that is denied."""
        workspace = copy(self.workspace)
        workspace._root = self.workspace._root.for_call(Access(self, granted))
        arguments = {**self.arguments, **({"preview": True} if preview else {})}
        return self._to_end(lambda: _flushed(workspace, lambda: self.method(workspace, **arguments)))

    def _to_end(self, work: Callable[[], _R]) -> _R:
        return call_context.run_to_end(work) if self.changes else work()

    def _preview(self) -> tuple[str | None, str, tuple[str, ...]]:
        """Return the revision that is about to be changed, the diff, and the paths that it is about."""
        revision, diff, self.files = self._revision(), "", None
        if not self.arguments.get("preview", True):  # else it is one already, or the method has none
            result = self._call(None, preview=True)
            diff = result.diff
            if isinstance(result, ReplaceResult):
                self.files = self._resolved(result.files)
        return revision, diff, self._paths()

    def _revision(self) -> str | None:
        """Return the revision that is about to be changed, for a method with `expect_revision`."""
        if self.arguments.get("expect_revision", "") is not None:  # given already, or no parameter
            return None
        from agentfs.fs import revision_of  # noqa: PLC0415 - as above

        limit = self.workspace.limits.file_bytes
        with self.workspace._root.open_file(self.arguments["path"]) as file:
            data = file.read(limit + 1)
        # A larger file is refused by the preview, and no revision of it is needed.
        return revision_of(data) if len(data) <= limit else None

    def _refusal(self, reason: str, hint: str = "") -> RefusedError:
        return _refusal(reason, self.name, self._paths(), hint)

    def _paths(self) -> tuple[str, ...]:
        """Return the paths that the arguments name, and where links lead them, relative to the root."""
        named: list[str] = []
        for parameter in _PATH_PARAMETERS if self.names_files else ():  # `to` of a rollback is no path
            value = self.arguments.get(parameter)
            named += [value] if isinstance(value, str) else value if isinstance(value, (list, tuple)) else []
        return self._resolved(self._file_of(path) or "." for path in named)

    def _resolved(self, paths: Iterable[str]) -> tuple[str, ...]:
        root = self.workspace._root
        found = (each for path in paths for each in root.top.resolve(root.path_from_top(path)))
        return tuple(dict.fromkeys(each or "." for each in found))

    def _file_of(self, path: str) -> str:
        """Return the file that a name of the output store refers to, which rules are about."""
        kept = self.workspace._outputs.get(path)
        return path if kept is None else kept.path or path


class Access:
    """What the rules, and what was granted, allow one call on each file, by the file's real path."""

    def __init__(self, call: _GuardedCall, granted: _Granted) -> None:
        # What may not be read is closed to every method; a rule without a glob is about the whole method.
        rules = [rule for rule in call.workspace.policy.deny_rules if rule.glob is not None]
        own = [rule for rule in rules if rule.names(call.name, call.effect)]
        self._read = [rule for rule in rules if rule.names("read", "read")]
        if not call.finds_files:
            self._read += own
        changes = GROUPS["change"] if call.changes and not call.names_files else ()
        self._change = [
            *self._read, *own, *(rule for rule in rules if {*changes} & {*GROUPS.get(rule.name, ())})
        ]  # fmt: skip
        self._name = call.name
        self._granted = granted
        self._granted_change = granted if call.files is None else _within(call.files)
        self._ignores_case = call.workspace._root.ignores_case

    def denies_reading(self, real_path: str) -> bool:
        """Return whether a rule keeps the contents of a file from this call."""
        return _denying(self._read, [real_path], self._ignores_case) is not None

    def check_read(self, real_path: str) -> None:
        """Raise `refused` where a rule denies reading a file, or it is not among what was granted."""
        self._check(real_path, self._read, self._granted)

    def check_change(self, real_path: str) -> None:
        """Raise `refused` where a rule denies changing a file, or it is not among what was granted."""
        self._check(real_path, self._change, self._granted_change)

    def _check(self, real_path: str, rules: Sequence[Rule], granted: _Granted) -> None:
        if rule := _denying(rules, [real_path], self._ignores_case):
            raise _refusal(
                f"The rule `{rule.text}` does not allow {self._name} here.", self._name, [real_path]
            )
        if granted is not None and not granted(real_path):
            from agentfs.fs import quote  # noqa: PLC0415 - as above

            reason = f"{quote(real_path)} is not among the files that {self._name} was allowed to use."
            raise _refusal(reason, self._name, [real_path])


def _refusal(reason: str, method: str, paths: Sequence[str], hint: str = "") -> RefusedError:
    hint = hint or "Do not try it again, nor another way; tell the user, or go on without it."
    return RefusedError(f"{reason.rstrip('.')}.", hint=hint, details={"method": method, "paths": list(paths)})


def _denying(rules: Sequence[Rule], paths: Sequence[str], ignores_case: Callable[[str], bool]) -> Rule | None:
    """Return the first rule about one of some paths, under any spelling the file system takes for it."""
    for rule in rules:
        glob = rule.glob or ""
        for path in paths if glob else ():
            if (
                _matches(glob, path)
                or _matches(unicodedata.normalize("NFC", glob), unicodedata.normalize("NFC", path))
                or (_matches(_fold(glob), _fold(path)) and ignores_case(path))
            ):
                return rule
    return None


def _within(paths: Iterable[str]) -> Callable[[str], bool]:
    """Return a test whether a real path is one of some paths or globs, or lies below one."""
    known = frozenset(paths)
    globs = [path for path in known if any(mark in path for mark in "*?[{")]

    def granted(real_path: str) -> bool:
        above = known.intersection((".", *_path_and_parents(real_path)))
        return bool(above) or any(_matches(glob, real_path) for glob in globs)

    return granted


def _matches(glob: str, path: str) -> bool:
    """Return whether a glob matches a path, or a directory above it."""
    return any(map(_compiled(glob), _path_and_parents(path)))


def _path_and_parents(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]


@functools.cache
def _compiled(glob: str) -> Callable[[str], bool]:
    from agentfs.tree.globs import compile_globs  # noqa: PLC0415 - loaded when a rule first needs it

    return compile_globs([glob])


def _fold(text: str) -> str:
    from agentfs.fs.protect import fold_letters  # noqa: PLC0415 - a workspace loads it when it is opened

    return fold_letters(text)


async def _coroutine(awaitable: Awaitable[Any]) -> Any:
    return await awaitable
