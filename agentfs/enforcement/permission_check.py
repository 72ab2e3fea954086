"""The permission check before a method, and again for each file that the method opens or changes.

Mode, rules and the permission callback decide before the call, with no lock held. A link may be swapped after
that, and a search opens files that no argument names. So the root asks `Access` with the canonical path of
each file.
"""
# pyright: reportPrivateUsage=false, reportUnknownMemberType=false
# ruff: noqa: SLF001 - the check is a part of the workspace

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from itertools import takewhile
from typing import Any, NamedTuple, TypeVar

from agentfs import history, search
from agentfs.arguments.checks import ArgumentChecker
from agentfs.base import call_context
from agentfs.base.visible import one_line, visible
from agentfs.enforcement.guard import Guarded, perform
from agentfs.errors import (
    AccessError,
    AgentFSError,
    InvalidArgumentError,
    OperationalError,
    PathError,
    RefusedError,
    StaleError,
    UnreadError,
)
from agentfs.fs import Change, Root, quote
from agentfs.permissions import (
    CHANGING,
    DO_NOT_RETRY,
    GROUPS,
    Effect,
    PermissionRequest,
    Rule,
    check_path_rule,
    parse_rule,
)
from agentfs.tools.rules import (
    Subject,
    ask_user,
    first_covering,
    matches_path,
    not_permitted,
    path_and_parents,
    rule_catches,
    rules_allow,
)
from agentfs.tree.globs import compile_globs, expand

_R = TypeVar("_R")
_PATH_PARAMETERS = ("path", "paths", "to")
# Errors of a change that reveal no content, so they are raised before the user is asked.
_UNASKED = (PathError, AccessError, UnreadError, OperationalError)
_WILDCARD = re.compile(r"[*?\[\]{}\\]")
_Test = Callable[[str], bool]


def check_rule(rule: Rule) -> None:
    """Raise `invalid_argument` for a rule about a method whose glob is malformed or not relative."""
    check_path_rule(rule)
    if rule.glob is None:
        return
    try:
        alternatives = expand(rule.glob)
        compile_globs([rule.glob])
    except AgentFSError as error:
        raise InvalidArgumentError(
            f"The rule `{rule.text}` has a wrong glob. {error.message}",
            hint="" if isinstance(error, AccessError) else error.hint,  # the hint is for a search
        ) from None
    if rule.glob.startswith("/"):
        raise InvalidArgumentError(
            f"The rule `{rule.text}` begins with `/`.",
            hint=f"Rules are about paths relative to the root: write `{rule.name}(./src/**)` for its `src`.",
            details={"rule": rule.text},
        )
    for each in alternatives:
        alternative = parse_rule(f"{rule.name}({each})")
        check_path_rule(alternative)
        if alternative.glob != each or each[0] == "/":
            raise InvalidArgumentError(
                f"The rule `{rule.text}` has {quote(each)} in its braces, not a plain relative path.",
                hint="Write a rule for each path.",
            )


class _Grant(NamedTuple):
    """Tests for the canonical paths that a call may read and change; None if all are granted."""

    read: _Test | None = None
    change: _Test | None = None
    unasked: Sequence[Rule] = ()  # rules that ask about files; the call was made without asking


class _Planned(call_context.Interruption):
    """Raised before the first change of a call that is only planned."""

    def __init__(self, changes: Sequence[Change]) -> None:
        super().__init__()
        self.changes = changes


class _Plan(NamedTuple):
    """The effect of a call before it is made, for a permission request."""

    request: PermissionRequest
    grant: _Grant  # the access of the call if this request is allowed
    changes: Sequence[Change]
    error: AgentFSError | None  # raised by the call


class GuardedCall:
    """One call of a method, from the permission check to the result."""

    def __init__(
        self,
        workspace: Guarded,
        method: Callable[..., Any],
        effect: Effect,
        bound: inspect.BoundArguments,
        checker: ArgumentChecker,
    ) -> None:
        bound.apply_defaults()
        _, *arguments = bound.arguments.items()
        self.arguments: dict[str, Any] = dict(arguments)
        self.workspace = workspace
        self.method = method
        self.name = method.__name__
        self.effect: Effect = effect
        self.changes = effect in CHANGING
        # The steps of `undo` may have changed any file: each is checked when it is opened.
        self.names_files = "path" in self.arguments or self.name == "read_many"
        # A method of a subclass may change something before its first file, so it is not run to plan it.
        defined = (vars(cls).get(self.name) for cls in type(workspace).__mro__)
        self._can_plan = any(getattr(each, "_agentfs_plannable", False) for each in defined)
        # `replace` finds its own files, so rules about changes must not hide files from its search.
        self.finds_files = self.changes and "glob" in self.arguments
        self.paths: tuple[str, ...] = ()  # in the arguments, as `_decide` has resolved them
        self._checker = checker
        policy = workspace.policy
        self.deny_rules = _through_links(policy.deny_rules, workspace._root)
        self.ask_rules = _through_links(policy.ask_rules, workspace._root)

    def run(self) -> Any:
        """Ask for permission unless a rule decides, and run the method with the granted access."""
        if self.effect == "execute":
            return self._call(self._judge_command())
        grant = self._to_end(self._decide)
        if grant is not None:
            return self._call(Access(self, grant))
        staged = self.workspace._staged_calls
        reads = self._granted("read", self.paths)
        if staged is not None and self.changes and self.workspace.policy.askers and reads is not None:
            staged.append(self.name)  # the end of the transaction asks about all of its changes
            return self._call(Access(self, _Grant()))
        return self._call(self._ask_permission())

    def _decide(self) -> _Grant | None:
        """Return the granted access, or None to ask.

        Deny rules and plan mode are checked first, then ask rules, then the other modes, then allow rules.
        """
        paths = self.paths = self._paths()
        for rule in self.deny_rules:
            anywhere = rule.glob is None or (self.changes and self.names_files and not paths)
            if self.is_about(rule) and (
                anywhere or first_covering([rule], paths, self.workspace._root.ignores_case)
            ):
                raise self._refusal(f"The rule `{rule.text}` denies this call.")
        effect = self._present_effect()
        if effect in CHANGING and self.workspace.policy.mode == "plan":
            raise self._refusal("Nothing is changed in plan mode.", "Tell the user what you would change.")
        return self._granted(effect, paths)

    def _judge_command(self) -> "Access":
        """Judge a command by its text, and return the access that judges its changes path by path.

        A staged command is asked about with its changes, unless a rule asks about its text.
        """
        policy, staged = self.workspace.policy, self.workspace.policy.run == "staged"
        subject = Subject(command=self.arguments["command"])
        for rule in self._about_command(policy.deny_rules):
            if rule_catches(rule, subject, True):
                raise self._refusal(f"The rule `{rule.text}` denies this call.")
        if policy.mode == "plan" and self.arguments.get("preview") is not True:
            raise self._refusal("Nothing is changed in plan mode.", "Tell the user what you would change.")
        asks = any(rule_catches(rule, subject, True) for rule in self._about_command(policy.ask_rules))
        allowed = policy.mode == "bypass" or rules_allow(self._about_command(policy.allow_rules), subject)
        unanswered = not allowed and bool(policy.allow or (policy.askers and not policy.ask))
        if not policy.askers and (asks or unanswered):
            raise self._refusal("This call needs permission, and there is nobody to ask.")
        if asks or (unanswered and not staged):
            self.ask_about(())
            unanswered = False
        return _CommandAccess(self, _Grant(unasked=self.ask_rules), asks_always=unanswered, asked=asks)

    def _about_command(self, rules: Iterable[Rule]) -> list[Rule]:
        """Return the rules about commands; a group with a text in parentheses is about paths."""
        return [
            rule
            for rule in rules
            if rule.name == self.name or (rule.subject is None and rule.names(self.name, self.effect))
        ]

    def ask_about(self, changes: Sequence[Change]) -> None:
        """Ask about a command, or about the changes that it has made."""
        request = self._request(changes)
        for asker in self.workspace.policy.askers:
            if ask_user(asker, request, request.paths).arguments:
                raise InvalidArgumentError("The arguments of a command cannot be changed.")

    def _present_effect(self) -> Effect:
        """Return the effect of the call; a preview of a change only reads."""
        return "read" if self.arguments.get("preview") is True else self._judged_as()[1]

    def _judged_as(self) -> tuple[str, Effect]:
        """Return the method and effect whose rules grant the call; an edit that creates is a `write`."""
        given = self.arguments
        if self.name in ("edit", "multi_edit") and given.get("insert_line") is None:
            first: Any = [*given.get("edits", ()), None][0]
            if (first.old_string if first else given.get("old_string")) == "":
                return "write", "write"
        return self.name, self.effect

    def is_about(self, rule: Rule) -> bool:
        """Return True if a rule names the call, by its own name or as what it is judged as."""
        return rule.names(self.name, self.effect) or rule.names(*self._judged_as())

    def _granted(self, effect: Effect, paths: Sequence[str]) -> _Grant | None:
        """Return the access that the mode and the rules grant for an effect, or None to ask."""
        policy, asking = self.workspace.policy, self.ask_rules
        if any(self._is_asked_by(rule, effect, paths) for rule in asking):
            return None
        accepts = policy.mode == "accept_edits" and self.effect in ("edit", "write")
        if accepts or policy.mode == "bypass":
            return _Grant(unasked=asking)
        judged = self._judged_as()
        for rule in policy.allow_rules:
            if rule.names(*judged) or rule.names(judged[0], effect):
                if rule.glob is None:
                    return _Grant(unasked=asking)
                if paths and all(matches_path(rule.glob, path) for path in paths):
                    test = functools.partial(matches_path, rule.glob)
                    return _Grant(test, test, asking)
        if effect in CHANGING and (policy.allow or (policy.askers and not policy.ask)):
            return None
        return _Grant(unasked=asking)

    def _is_asked_by(self, rule: Rule, effect: Effect, paths: Sequence[str]) -> bool:
        """Return True if an ask rule covers the call, or a file that it names and would read."""
        previews = effect == "read" != self.effect
        covers = rule.names(effect, effect) if previews else self.is_about(rule)
        if rule.glob is None:
            return covers
        if effect in CHANGING and not self.names_files:
            return covers or not {*CHANGING}.isdisjoint(GROUPS.get(rule.name, ()))
        if covers and effect in CHANGING and self.finds_files:
            return True
        names_one = first_covering([rule], paths, self.workspace._root.ignores_case) is not None
        return names_one and (covers or rule.names("read", "read"))

    def _ask_permission(self) -> "Access":
        """Ask, apply changed arguments, and make sure that the call does what the request showed."""
        plan = self._to_end(self._plan)
        if not self.workspace.policy.askers:
            raise self._refusal("This call needs permission, and there is nobody to ask.")
        for asker in self.workspace.policy.askers:
            answer = ask_user(asker, plan.request, self.paths)
            if answer.arguments is None:
                continue
            if unknown := answer.arguments.keys() - self.arguments.keys():
                raise InvalidArgumentError(f"{self.name} has no parameter {', '.join(sorted(unknown))}.")
            _, changed = self._checker.check((), dict(answer.arguments))
            self.arguments |= changed
            self._to_end(self._decide)  # before the plan, which could show denied contents
            plan = self._to_end(self._plan)
        if plan.error is not None:
            raise plan.error
        return Access(self, plan.grant, plan.changes)

    def _call(self, access: "Access") -> Any:
        """Run the method on a root that enforces the grant and the deny rules."""
        workspace = copy(self.workspace)
        workspace._root = self.workspace._root.for_call(access)
        workspace._guarded_by = self.name  # an override may call the method that it overrides
        planned = access.is_planned
        return perform(workspace, self.method, (), self.arguments, self.effect, planned=planned)

    def _to_end(self, work: Callable[[], _R]) -> _R:
        return call_context.run_to_end(work) if self.changes else work()

    def _plan(self) -> _Plan:
        """Run the call up to its first change, and return what it is about to do."""
        # Without a test, the diff or the error could show any other file.
        test = _within(self.paths, self._globs()) if self.paths else None
        grant = _Grant(test, test)
        changes: Sequence[Change] = ()
        error = None
        if self._can_plan and self._present_effect() in CHANGING:
            try:
                self._call(Access(self, grant, planned=True))
            except _Planned as planned:
                changes = planned.changes
            except _UNASKED:
                raise
            except AgentFSError as raised:
                if self._granted("read", self.paths) is not None:
                    raise
                error = raised  # it may quote contents that need permission
        if self.finds_files:
            grant = _Grant(test, _within(self._resolved(change.path for change in changes)))
        return _Plan(self._request(changes), grant, changes, error)

    def _request(self, changes: Sequence[Change]) -> PermissionRequest:
        arguments = {name: value for name, value in self.arguments.items() if name != "preview"}
        root = self.workspace._root.for_call(Access(self, _Grant()))
        for change in changes:  # a change that would be refused is not asked about
            root.check_may_change(change.path)
        request = request_about(changes, self.name, self._present_effect(), arguments, root)
        named = () if self.finds_files else map(one_line, self.paths)
        files = None
        if self.name == "delete":
            files = sum(not change.of_directory for change in changes)
        return replace(request, paths=tuple(dict.fromkeys((*named, *request.paths))), files=files)

    def _refusal(self, reason: str, hint: str = DO_NOT_RETRY) -> RefusedError:
        return not_permitted(reason, self.name, self.paths, hint)

    def _paths(self) -> tuple[str, ...]:
        """Return the paths in the arguments, in every spelling that leads to them, relative to the root."""
        if not self.names_files:  # `to` of a rollback is the name of a checkpoint
            return ()
        # In `grep`, a list of `files` replaces `path`; the files of a result do not.
        names = ("files",) if isinstance(self.arguments.get("files"), Sequence) else _PATH_PARAMETERS
        named: list[str] = []
        for value in map(self.arguments.get, names):
            named += [value] if isinstance(value, str) else value or []
        return self._resolved([self._file_of(path) or "." for path in named])

    def _globs(self) -> tuple[tuple[str, str], ...]:
        """Return the globs in the arguments, each as a canonical directory and a pattern for files below it.

        Only `paths` may contain globs. In other parameters a wildcard is a character of a name.
        """
        given = self.arguments.get("paths", ()) if self.names_files else ()
        if not given:
            return ()
        root = self.workspace._root
        found: list[tuple[str, str]] = []
        for path in (given,) if isinstance(given, str) else given:
            if search.options.is_glob(root, path):
                *above, last = path.split("/")
                literal = "/".join(takewhile(lambda part: not search.options.has_wildcard(part), above))
                pattern = path[len(literal) :] if above else last
                found.append((root.top.resolve(root.path_from_top(literal or "."))[1], pattern))
        return tuple(found)

    def _resolved(self, paths: Iterable[str]) -> tuple[str, ...]:
        root = self.workspace._root
        found: list[str] = []
        for path in paths:
            found += root.top.spellings(root.path_from_top(path))
        return tuple(dict.fromkeys([each or "." for each in found]))

    def _file_of(self, path: str) -> str:
        """Return the path of the file that a name of the output store refers to."""
        return self.workspace._outputs.resolve(path, self.workspace._root).path or path


class Access:
    """The access of one call to each file, by the file's canonical path."""

    def __init__(
        self, call: GuardedCall, grant: _Grant, expected: Sequence[Change] = (), *, planned: bool = False
    ) -> None:
        # A file that may not be read is closed to every method. A rule without a glob was checked before.
        self._expected = _by_path(expected)
        self.is_planned = planned
        self._read: list[Rule] = []
        self._change: list[Rule] = []
        changes = CHANGING if call.changes and not call.names_files else ()
        for rule in (*call.deny_rules, *grant.unasked):
            if rule.glob is not None:
                about, reads = call.is_about(rule), rule.names("read", "read")
                if reads or (about and not call.finds_files):
                    self._read.append(rule)
                if reads or about or {*changes} & {*GROUPS.get(rule.name, ())}:
                    self._change.append(rule)
        self._name = call.name
        self._grant = grant
        self._ignores_case = call.workspace._root.ignores_case

    def denies_reading(self, real_path: str) -> bool:
        """Return True if a rule denies this call the contents of a file."""
        return first_covering(self._read, [real_path], self._ignores_case) is not None

    def begin(self, changes: Sequence[Change]) -> None:
        """End a call that is only planned; raise `stale` if the changes are not those that were allowed."""
        if self.is_planned:
            raise _Planned(changes)
        if self._expected and _by_path(changes) != self._expected:
            raise StaleError(
                "The files have changed since the call was allowed; nothing was changed.",
                hint="Read the file again, then decide again.",
            )

    def check_read(self, real_path: str) -> None:
        """Raise `refused` if a rule denies reading a file, or reading it was not granted."""
        self._check(real_path, self._read, self._grant.read)

    def check_change(self, real_path: str) -> None:
        """Raise `refused` if a rule denies changing a file, or changing it was not granted."""
        self._check(real_path, self._change, self._grant.change)

    def _check(self, real_path: str, rules: Sequence[Rule], granted: _Test | None) -> None:
        if rule := first_covering(rules, [real_path], self._ignores_case):
            if rule in self._grant.unasked:
                reason = f"The rule `{rule.text}` asks the user before {self._name} uses {quote(real_path)}."
                raise not_permitted(reason, self._name, [real_path], "Call it with this path alone.")
            raise not_permitted(f"The rule `{rule.text}` denies {self._name} here.", self._name, [real_path])
        if granted is not None and not granted(real_path):
            reason = f"{quote(real_path)} is not one of the files that {self._name} was allowed to use."
            raise not_permitted(reason, self._name, [real_path])


class _CommandAccess(Access):
    """The access of a command, which is asked about when its changes are known."""

    def __init__(self, call: GuardedCall, grant: _Grant, *, asks_always: bool, asked: bool) -> None:
        super().__init__(call, grant)
        self._call, self._asks_always, self._asked = call, asks_always, asked
        rules = [rule for rule in self._change if rule.name != call.name]
        self._asking = [rule for rule in rules if rule in grant.unasked]
        self._change = [rule for rule in rules if rule not in grant.unasked]
        self._read = [rule for rule in self._read if rule.name != call.name]

    def begin(self, changes: Sequence[Change]) -> None:
        """Ask about the changes, unless rules allow them all; raise `refused` for a rule."""
        paths = [change.path for change in changes]
        for path in paths:
            self.check_change(path)
        asks = self._asks_always or first_covering(self._asking, paths, self._ignores_case)
        if asks and not self._asked:
            self._call.ask_about(changes)


def may_show_unasked(workspace: Guarded) -> Callable[[str], bool]:
    """Return a test for the paths whose recorded contents `changes` would show without asking the user."""
    method: Callable[..., Any] = getattr(type(workspace), "changes")  # noqa: B009 - `Guarded` does not have it
    checker = ArgumentChecker(method)
    call = GuardedCall(workspace, method, "read", checker.signature.bind(workspace), checker)
    for rule in (*call.deny_rules, *call.ask_rules):
        if rule.glob is None and (rule.names("changes", "read") or rule.names("read", "read")):
            return lambda _: False
    return workspace._root.for_call(Access(call, _Grant(unasked=call.ask_rules))).may_show


def request_about(
    changes: Sequence[Change], name: str, effect: Effect, arguments: Mapping[str, Any], root: Root
) -> PermissionRequest:
    """Return the question about some changes; contents that may not be shown are left out."""
    context = call_context.current.get()
    tool = one_line(context.tool) if context and context.tool else None
    diff, shown = history.report.proposed_changes(changes, root.may_show, root.display_path)
    paths = tuple(dict.fromkeys(one_line(change.path) for change in changes))
    return PermissionRequest(name, effect, arguments, paths, visible(diff), tool, changes=shown)


def ask_about(workspace: Guarded, changes: Sequence[Change]) -> None:
    """Ask about all changes of a transaction before they are made."""
    root = workspace._root
    request = request_about(changes, "transaction", "write", {}, root)
    for asker in workspace.policy.askers:
        if ask_user(asker, request, request.paths).arguments:
            raise InvalidArgumentError("The arguments of a transaction cannot be changed.")


def _by_path(changes: Iterable[Change]) -> dict[str, Change]:
    return {change.path: change for change in changes}


def _through_links(rules: Sequence[Rule], root: Root) -> tuple[Rule, ...]:
    """Add for each rule whose glob begins with a link a rule about the target of the link.

    Otherwise another path to the same files, such as the one without the link, would lead around the rule.
    """
    found: list[Rule] = []
    for rule in rules:
        found.append(rule)
        parts = (rule.glob or "").strip("/").split("/")
        literal = [*takewhile(lambda part: part and not search.options.has_wildcard(part), parts)]
        with suppress(AgentFSError):  # a link out of the root leads nowhere
            _, *links, target = root.unrestricted.spellings("/".join(literal) or ".", follow=True)
            if links:
                below = parts[len(literal) :]
                target = _WILDCARD.sub(r"\\\g<0>", target)
                found.append(rule._replace(glob="/" + "/".join([*filter(None, [target]), *below] or ["**"])))
    return tuple(found)


def _within(paths: Iterable[str], globs: Iterable[tuple[str, str]] = ()) -> Callable[[str], bool]:
    """Return a test for canonical paths at or below `paths`, or matched by one of `globs`."""
    known = frozenset(paths)
    matchers = [(f"{above}/" if above else "", compile_globs([pattern])) for above, pattern in globs]

    def granted(real_path: str) -> bool:
        return not known.isdisjoint((".", *path_and_parents(real_path))) or any(
            real_path.startswith(above) and matches(real_path[len(above) :]) for above, matches in matchers
        )

    return granted
