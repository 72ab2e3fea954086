"""The permission of one call of a method: before it, and for each file that it opens or changes.

The files of a call are known when they are opened, and its changes before the first is made. So a call runs
up to its first change; if the user must be asked about the changes, it is left there, the user is asked with
no lock held, and it runs again.
"""
# pyright: reportPrivateUsage=false
# ruff: noqa: SLF001 - the check is a part of the workspace

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from itertools import takewhile
from typing import Any, Literal

from agentfs import errors
from agentfs.arguments.kinds import as_text
from agentfs.base import call_context
from agentfs.base.visible import one_line
from agentfs.fs import Change, Root, quote
from agentfs.permission.ask import NOBODY, ask_user, not_permitted, refused, request_about
from agentfs.permission.decide import Decision, Subject, covers_path, decide, is_caught, path_and_parents
from agentfs.permissions import GROUPS, Action, Effect, PermissionRequest, Rule
from agentfs.policy import Policy
from agentfs.search.options import has_wildcard

_ACTIONS: tuple[Action, ...] = ("create", "edit", "delete")
# Errors of a change that reveal no content, so they are raised before the user is asked.
_UNASKED = (errors.PathError, errors.AccessError, errors.UnreadError, errors.OperationalError)


class _Unanswered(call_context.Interruption):
    """Raised before the first change of a call about which the user must be asked."""

    def __init__(self, changes: Sequence[Change]) -> None:
        super().__init__()
        self.changes = changes


# The changes that a call is about to make, or the error that it raises.
_Plan = tuple[Sequence[Change], errors.AgentFSError | None]


class MethodCall:
    """One call of a method, from the decision to the result.

    Args:
        workspace: The workspace.
        name: The name of the method.
        effect: Its effect.
        arguments: The arguments by name, with defaults.
        perform: Runs the method on a workspace, whose files are then judged.
    """

    def __init__(
        self,
        workspace: Any,
        name: str,
        effect: Effect,
        arguments: Mapping[str, Any],
        perform: Callable[[Any, Mapping[str, Any]], Any],
    ) -> None:
        self.arguments = {**arguments}
        self.workspace = workspace
        self.policy = _with_link_targets(workspace.policy, workspace._root)
        self.name = name
        self.only_reads = effect == "read"
        self.is_preview = self.arguments.get("preview") is True
        self.effect: Effect = "read" if self.is_preview else effect
        self.is_command = effect == "execute"
        self.names = () if self.is_command else (self.name,)  # rules about `run` are about its text
        self.paths: tuple[str, ...] = ()  # in the arguments, in every spelling
        self._spellings: dict[str, tuple[str, ...]] = {}  # those of each canonical path
        self._perform = perform

    def run(self) -> Any:
        """Decide about the call, ask the user if necessary, and run it."""
        if self.is_command:
            return self._call(self._judge_command())
        if self._to_end(self._must_be_asked_about):
            changes, error = self._to_end(self._plan)
        else:
            try:
                return self._call(CallAccess(self))
            except _Unanswered as unanswered:
                changes, error = unanswered.changes, None
        answer = ask_user(self.policy, self._request(changes))
        if answer.arguments is not None:
            self._change_arguments(answer.arguments)
            self._to_end(self._must_be_asked_about)  # it may be refused now
            changes, error = self._to_end(self._plan)
        if error is not None:
            raise error
        return self._call(CallAccess(self, granted=True, expected=changes))

    def _must_be_asked_about(self) -> bool:
        """Return True if the user must be asked whatever the call changes; raise if it is refused."""
        self.paths = self._paths()
        subject = Subject(self.paths, ignores_case=self.workspace._root.ignores_case)
        if not self.only_reads:
            for path in self.paths or ("",):
                self.check_change(path)
        if self.effect == "read":
            decision = decide(self.policy, self.names, self.effect, subject)
            if decision.outcome == "refuse":
                raise self.refusal(decision)
            return decision.outcome == "ask"
        if rule := self._rule_before(self.policy.deny_rules, subject):
            raise self.refusal(Decision("refuse", rule))
        return self._rule_before(self.policy.ask_rules, subject) is not None

    def _rule_before(self, rules: Sequence[Rule], subject: Subject) -> Rule | None:
        """Return the first rule about a change, before it is known: about the tool, or reading its paths."""

        def is_about(rule: Rule) -> bool:
            if rule.name not in GROUPS:
                return is_caught(rule, self.names, self.effect, subject)
            return rule.glob is not None and is_caught(rule, (), "read", subject)

        return next(filter(is_about, rules), None)

    def _judge_command(self) -> "CallAccess":
        """Judge a command by its text, and return the access that judges its changes path by path.

        A staged command is asked about with its changes, unless a rule asks about its text. A recorded one is
        refused beforehand if a rule is about reading, because nothing hides files from it.
        """
        staged = self.policy.run == "staged"
        subject = Subject(command=self.arguments["command"])
        decision = decide(self.policy, (self.name,), "command" if staged else "execute", subject)
        if decision == ("refuse", None) and self.effect == "read":  # a preview applies nothing
            decision = Decision("allow")
        if not staged:
            for rules, outcome in ((self.policy.ask_rules, "ask"), (self.policy.deny_rules, "refuse")):
                if rule := next((each for each in rules if each.glob and _is_about(each, "read")), None):
                    decision = Decision(outcome, rule)  # type: ignore[arg-type] # of the two
        if decision.outcome == "refuse":
            raise self.refusal(decision)
        asks = decision.outcome == "ask"
        now = asks and (decision.rule is not None or not staged)
        if asks and self.policy.on_ask is None:
            raise not_permitted(NOBODY, self.name, self.paths)
        if now:
            self.ask_about(())
        return _CommandAccess(self, is_answered=not asks or now, is_asked=now)

    def ask_about(self, changes: Sequence[Change]) -> None:
        """Ask about a command, or about the changes that it has made."""
        if ask_user(self.policy, self._request(changes)).arguments:
            raise errors.InvalidArgumentError("The arguments of a command cannot be changed.")

    def refusal(self, decision: Decision, paths: Sequence[str] | None = None) -> errors.AgentFSError:
        """Return the error for a refused call."""
        return refused(self.policy, decision, self.name, self.paths if paths is None else paths)

    def judge(self, change: Change) -> Decision:
        """Decide about one change; raise if it is refused."""
        if (decision := self._decide(action_of(change), self.subject(change.path))).outcome == "refuse":
            raise self.refusal(decision, [change.path])
        return decision

    def check_change(self, path: str) -> None:
        """Raise an error if no change of a path is allowed."""
        subject = self.subject(path) if path else Subject()
        decisions = [self._decide(action, subject) for action in _ACTIONS]
        if all(each.outcome == "refuse" for each in decisions):
            raise self.refusal(decisions[0], [path] if path else ())

    def _decide(self, action: Action, subject: Subject) -> Decision:
        """Decide about an action; only deny rules refuse a preview, because it changes nothing."""
        decision = decide(self.policy, self.names, action, subject)
        is_denied = decision.outcome == "refuse" and decision.rule is not None
        return Decision("allow") if self.is_preview and not is_denied else decision

    def subject(self, path: str) -> Subject:
        """Return a canonical path with its other spellings in the arguments, for rules about it."""
        spellings = (path, *self._spellings.get(path, ()))
        return Subject(spellings, ignores_case=self.workspace._root.ignores_case)

    def _plan(self) -> _Plan:
        """Run the call up to its first change, and return what it is about to do."""
        if self.effect == "read":
            return (), None
        try:
            self._call(CallAccess(self, granted=True, leaves="always"))
        except _Unanswered as planned:
            return planned.changes, None
        except errors.AgentFSError as raised:
            reading = decide(self.policy, (), "read", Subject(self.paths))
            if isinstance(raised, _UNASKED) or reading.outcome == "allow":
                raise
            return (), raised  # it may quote contents that need permission
        return (), None

    def _request(self, changes: Sequence[Change]) -> PermissionRequest:
        arguments = {name: value for name, value in self.arguments.items() if name != "preview"}
        request = request_about(changes, self.name, self.effect, arguments, self.workspace._root)
        named = () if "glob" in self.arguments and changes else map(one_line, self.paths)
        files = sum(not change.of_directory for change in changes) if self.name == "delete" else None
        return replace(request, paths=tuple(dict.fromkeys((*named, *request.paths))), files=files)

    def _change_arguments(self, changed: Any) -> None:
        if unknown := changed.keys() - self.arguments.keys():
            raise errors.InvalidArgumentError(f"{self.name} has no parameter {', '.join(sorted(unknown))}.")
        self.arguments |= {name: as_text(value) for name, value in changed.items()}

    def _call(self, access: "CallAccess") -> Any:
        """Run the method on a root that judges each file."""
        workspace = copy(self.workspace)
        workspace._root = self.workspace._root.view(access=access)
        workspace._guarded_by = self.name
        return self._perform(workspace, self.arguments)

    def _to_end(self, work: Callable[[], Any]) -> Any:
        return work() if self.effect == "read" else call_context.run_to_end(work)

    def _paths(self) -> tuple[str, ...]:
        """Return the paths in the arguments, in every spelling that leads to them, relative to the root."""
        # `to` of a rollback is the name of a checkpoint. If `files` is given, it replaces the default path.
        if (at := self.arguments.get("path")) is None or (at in (".", ["."]) and self.arguments.get("files")):
            return ()
        root, found = self.workspace._root, list[str]()
        for given in (at, self.arguments.get("to")):
            for path in [given] if isinstance(given, str) else given or ():
                kept = self.workspace._outputs.resolve(path, root).path
                *others, real_path = root.top.spellings(root.path_from_top(kept or path or "."))
                self._spellings[real_path] = tuple(each or "." for each in others)
                found += [*others, real_path]
        return tuple(dict.fromkeys(each or "." for each in found))


class CallAccess:
    """The files that one call may read and change, by their canonical paths.

    Args:
        call: The call.
        granted: True if the user is asked about the paths in the arguments.
        leaves: When the call is left before its first change: if the user must be "asked", or "always".
        expected: The changes that the user has allowed.
    """

    def __init__(
        self,
        call: MethodCall,
        *,
        granted: bool = False,
        leaves: Literal["asked", "always"] = "asked",
        expected: Sequence[Change] = (),
    ) -> None:
        self._call, self._leaves = call, leaves
        self._expected = _by_path(expected)
        self._granted = frozenset(call.paths if granted else ())
        policy = call.policy
        # A rule without a glob was checked before the call. If the user was asked, that is about the paths.
        self._denied = [each for each in policy.deny_rules if each.glob and self._judges_reading(each)]
        self._asked = [
            each for each in policy.ask_rules if (each.glob or self._granted) and self._judges_reading(each)
        ]

    def _judges_reading(self, rule: Rule) -> bool:
        if rule.name in GROUPS:
            return _is_about(rule, "read")
        return rule.name in self._call.names and self._call.only_reads

    def _covering(self, rules: Iterable[Rule], path: str) -> Rule | None:
        subject = self._call.subject(path)
        return next((rule for rule in rules if rule.glob is None or covers_path(rule, subject)), None)

    def _is_granted(self, path: str) -> bool:
        return not self._granted.isdisjoint((".", *path_and_parents(path)))

    def denies_reading(self, real_path: str) -> bool:
        """Return True if a rule denies this call the contents of a file, or asks about it."""
        is_asked = self._covering(self._asked, real_path) and not self._is_granted(real_path)
        return bool(is_asked or self._covering(self._denied, real_path))

    def check_read(self, real_path: str) -> None:
        """Raise `refused` if a rule denies reading a file, or asks about it and the user was not asked."""
        if rule := self._covering(self._denied, real_path):
            raise self._call.refusal(Decision("refuse", rule), [real_path])
        if (rule := self._covering(self._asked, real_path)) and not self._is_granted(real_path):
            name = self._call.name
            reason = f"The rule `{rule.text}` asks the user before {name} uses {quote(real_path)}"
            raise not_permitted(reason, name, [real_path], "Call it with this path alone.")

    def check_change(self, real_path: str) -> None:
        """Raise `refused` if no change of a path is allowed; `begin` judges what happens to it."""
        self._call.check_change(real_path)

    def begin(self, changes: Sequence[Change]) -> None:
        """Judge the changes of a call before the first is made; leave the call if the user must be asked."""
        decisions = [self._call.judge(change) for change in changes]
        if self._expected and _by_path(changes) != self._expected:
            raise errors.StaleError(
                "The files have changed since the call was allowed; nothing was changed.",
                hint="Read the file again, then decide again.",
            )
        asks = self._leaves == "asked" and any(each.outcome == "ask" for each in decisions)
        if not self._expected and (asks or self._leaves == "always"):
            raise _Unanswered(changes)


class _CommandAccess(CallAccess):
    """The access of a command, which is asked about when its changes are known.

    Args:
        call: The call.
        is_answered: True if a rule, the mode or the user has allowed the command.
        is_asked: True if the user has.
    """

    def __init__(self, call: MethodCall, *, is_answered: bool, is_asked: bool) -> None:
        super().__init__(call)
        self._is_asked = is_asked
        # If no rule allows changes of paths, a command that is allowed may change them.
        allowing = [GROUPS[each.name] for each in call.policy.allow_rules if each.name in GROUPS]
        self._covers_changes = is_answered and all(map(GROUPS["change"].isdisjoint, allowing))
        self._is_answered = is_answered

    def check_change(self, real_path: str) -> None:
        """Leave the judgement to `begin`."""

    def begin(self, changes: Sequence[Change]) -> None:
        """Ask about the changes, unless rules allow them all; raise `refused` for a rule."""
        asking = [each for each in map(self._call.judge, changes) if each.outcome == "ask"]
        asks = not self._is_answered or any(each.rule or not self._covers_changes for each in asking)
        if asks and not self._is_asked:
            self._call.ask_about(changes)


def _is_about(rule: Rule, action: str) -> bool:
    return action in GROUPS.get(rule.name, ())


def _by_path(changes: Iterable[Change]) -> dict[str, Change]:
    return {change.path: change for change in changes}


def action_of(change: Change) -> Action:
    """Return what a change does to its path."""
    is_gone = change.after is None or change.turns
    return "create" if change.before is None else "delete" if is_gone else "edit"


def may_show_recorded(workspace: Any) -> Callable[[str], bool]:
    """Return a test that is True for a path whose recorded contents may be shown without asking the user."""
    root = workspace._root
    policy = _with_link_targets(workspace.policy, root)

    def test(path: str) -> bool:
        subject = Subject((path,), ignores_case=root.ignores_case)
        return decide(policy, ("changes",), "read", subject).outcome == "allow" and root.may_show(path)

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
    literal = [*takewhile(lambda name: name and not has_wildcard(name), names)]
    with suppress(errors.AgentFSError):  # a link out of the root leads nowhere
        _, *links, target = root.unrestricted.spellings("/".join(literal) or ".", follow=True)
        if links:
            glob = "/".join(filter(None, [target, *names[len(literal) :]])) or "**"
            yield rule._replace(glob=f"/{glob}")
