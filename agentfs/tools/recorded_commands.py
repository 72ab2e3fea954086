"""Permission rules about what a recorded command changes.

It runs in the tree itself, so its changes are judged when it has ended, and taken back if they are refused.
"""
# pyright: reportPrivateUsage=false
# ruff: noqa: SLF001 - the check is a part of the workspace

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from agentfs.base.visible import to_json
from agentfs.errors import AgentFSError, RefusedError
from agentfs.fs import quote
from agentfs.history.log import net_changes
from agentfs.history.report import name_paths
from agentfs.history.scan import Scan
from agentfs.permission.ask import not_permitted
from agentfs.permission.decide import Subject, covers_path
from agentfs.permissions import GROUPS, Rule
from agentfs.results import RunResult

_CHANGES = GROUPS["change"]


def run_recorded(
    workspace: Any, host: Any, arguments: Mapping[str, Any], run: Callable[[], RunResult]
) -> RunResult:
    """Run a command, and judge its changes.

    Args:
        workspace: The workspace, whose root judges changes.
        host: The same workspace, without rules.
        arguments: The arguments of `run`.
        run: Runs the command.

    Raises:
        AgentFSError: `refused` before the command if its changes could not be taken back; after it for a
            change that a rule or the user refuses.
    """
    _check_beforehand(workspace, in_background=arguments.get("background") is True)
    position = workspace._journal.log.position
    try:
        result = run()
    except BaseException:  # cancelled, for example
        _judge(workspace, host, position, None)
        raise
    _judge(workspace, host, position, result)
    return result


def _judge(workspace: Any, host: Any, position: int, result: RunResult | None) -> None:
    """Judge the changes of commands after a position in the journal; take them back if they are refused."""
    log, label = workspace._journal.log, result and result.changes.label
    steps = [each for each in log.after(position) if each.author == ("command", label or each.author[1])]
    changes = [each for each in net_changes(steps) if not each.changes_nothing]
    lost = sorted({path for step in steps for path in step.lost})
    try:
        workspace._root.judge(changes)
        _check_covered(workspace, lost)
    except AgentFSError as error:
        status = "" if result is None else f" with exit status {result.exit_status}"
        rest = f", except {name_paths(lost)}, whose content is not kept" if lost else ""
        outcome = f"The command ended{status}; what it has changed was taken back{rest}."
        try:
            host.undo(len(steps), [host._root.display_path(each.path) for each in changes])
        except AgentFSError as failed:
            outcome = f"The command ended{status}; what it has changed was not taken back: {failed.message}"
        error.details["places"] = [*error.places(), outcome]
        raise


def _check_beforehand(workspace: Any, *, in_background: bool) -> None:
    policy, root = workspace.policy, workspace._root
    about = _about_changes((*policy.deny_rules, *policy.ask_rules))
    if in_background and (about or _about_changes(policy.allow_rules)):
        raise RefusedError(
            "Rules are about what a command changes, and a command in the background is not judged by them.",
            hint=f"Run it in the foreground: {to_json({'background': False})}.",
        )
    if about:
        seen = Scan(workspace._journal.contents, {}, root.unrecorded, workspace.limits, ignored=False).paths
        _check_covered(workspace, [path for path, each in seen.items() if each.reason])


def _about_changes(rules: Iterable[Rule]) -> list[Rule]:
    """Return the rules about changes of some paths."""
    return [each for each in rules if each.glob and not _CHANGES.isdisjoint(GROUPS.get(each.name, ()))]


def _check_covered(workspace: Any, paths: Iterable[str]) -> None:
    """Raise `refused` if a deny or ask rule is about one of these paths, whose contents are not kept."""
    policy = workspace.policy
    about = _about_changes((*policy.deny_rules, *policy.ask_rules))
    for path in paths:
        subject = Subject((path, f"{path}/entry"), ignores_case=workspace._root.ignores_case)
        if rule := next((each for each in about if covers_path(each, subject)), None):
            reason = f"The rule `{rule.text}` covers {quote(path)}, whose content a recording does not keep"
            raise not_permitted(reason, "run", [path], 'With Policy(run="staged") the command may run.')
