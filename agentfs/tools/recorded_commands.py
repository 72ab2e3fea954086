"""Permission rules about what a recorded command changes.

It runs in the tree itself, so its changes are judged when it has ended, and taken back if they are refused.
"""
# pyright: reportPrivateUsage=false
# ruff: noqa: SLF001 - the check is a part of the workspace

from collections.abc import Callable, Mapping
from typing import Any

from agentfs.base.visible import to_json
from agentfs.errors import AgentFSError, RefusedError
from agentfs.fs import quote
from agentfs.history.log import net_changes
from agentfs.history.scan import Scan
from agentfs.permission.ask import not_permitted
from agentfs.permission.decide import Subject, covers_path
from agentfs.permissions import GROUPS
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
    label = None if result is None else result.changes.label
    steps = [
        each
        for each in workspace._journal.log.after(position)
        if each.author == ("command", label or each.author[1])
    ]
    changes = [each for each in net_changes(steps) if not each.changes_nothing]
    try:
        workspace._root.judge(changes)
    except AgentFSError as error:
        status = "" if result is None else f" with exit status {result.exit_status}"
        outcome = f"The command ended{status}; what it has changed was taken back."
        try:
            host.undo(len(steps), [host._root.display_path(each.path) for each in changes])
        except AgentFSError as failed:
            outcome = f"The command ended{status}; what it has changed was not taken back: {failed.message}"
        error.details["places"] = [*error.places(), outcome]
        raise


def _check_beforehand(workspace: Any, *, in_background: bool) -> None:
    policy, root = workspace.policy, workspace._root
    about = [
        rule
        for rule in (*policy.deny_rules, *policy.ask_rules)
        if rule.glob is not None and not _CHANGES.isdisjoint(GROUPS.get(rule.name, ()))
    ]
    allowing = [rule for rule in policy.allow_rules if not _CHANGES.isdisjoint(GROUPS.get(rule.name, ()))]
    if in_background and (about or allowing):
        raise RefusedError(
            "Rules are about what a command changes, and a command in the background is not judged by them.",
            hint=f"Run it in the foreground: {to_json({'background': False})}.",
        )
    if not about:
        return
    seen = Scan(workspace._journal.contents, {}, root.unrecorded, workspace.limits, ignored=False).paths
    for path in (path for path, each in seen.items() if each.reason):
        subject = Subject((path, f"{path}/entry"), ignores_case=root.ignores_case)
        if rule := next((each for each in about if covers_path(each, subject)), None):
            reason = f"The rule `{rule.text}` covers {quote(path)}, whose content a recording does not keep"
            raise not_permitted(
                reason, "run", [path], 'Tell the user; a command in Policy(run="staged") may run.'
            )
