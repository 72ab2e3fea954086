"""Permission rules about what a recorded command changes.

It runs in the tree itself, so its changes are judged when it has ended, and taken back if they are refused.
"""
# pyright: reportPrivateUsage=false
# ruff: noqa: SLF001 - the check is a part of the workspace

from collections.abc import Callable, Mapping
from typing import Any

from agentfs.base.visible import to_json
from agentfs.errors import AgentFSError, RefusedError
from agentfs.fs import directories_above, quote
from agentfs.history.log import net_changes
from agentfs.history.report import name_paths
from agentfs.history.scan import LEFT_OUT, Scan
from agentfs.permission.ask import not_permitted
from agentfs.permission.decide import Subject, covers_path
from agentfs.permissions import is_about_changes
from agentfs.results import RunResult
from agentfs.search.other_globs import globs_below


def run_recorded(workspace: Any, arguments: Mapping[str, Any], run: Callable[[], RunResult]) -> RunResult:
    """Run a command, and judge its changes.

    Args:
        workspace: The workspace, whose root judges changes.
        arguments: The arguments of `run`.
        run: Runs the command.

    Raises:
        AgentFSError: `refused` before the command if its changes could not be taken back; after it for a
            change that a rule or the user refuses.
    """
    policy, root = workspace.policy, workspace._root
    if arguments.get("background") is True and any(
        map(is_about_changes, (*policy.change_rules, *policy.allow_rules))
    ):
        raise RefusedError(
            "Rules are about what a command changes, and a command in the background is not judged by them.",
            hint=f"Run it in the foreground: {to_json({'background': False})}.",
        )
    if policy.change_rules:
        contents, limits = workspace._journal.contents, workspace.limits
        seen = Scan(contents, {}, root.view(recorder=None), limits, ignored=policy.judges_ignored).paths
        _check_covered(workspace, {path: each.reason for path, each in seen.items() if each.reason})
    position, result = workspace._journal.log.position, None
    try:
        result = run()
        return result
    finally:  # also if it is cancelled, for example
        _judge(workspace, position, result)


def _judge(workspace: Any, position: int, result: RunResult | None) -> None:
    """Judge the changes of commands after a position in the journal; take them back if they are refused."""
    log, label = workspace._journal.log, result and result.changes.label
    steps = [each for each in log.after(position) if each.author == ("command", label or each.author[1])]
    changes = [each for each in net_changes(steps) if not each.changes_nothing]
    lost = sorted({path for step in steps for path in step.lost})
    try:
        workspace._root.judge(changes)
        _check_covered(workspace, dict.fromkeys(lost, ""))
    except AgentFSError as error:
        ended = f"The command ended{'' if result is None else f' with exit status {result.exit_status}'}"
        rest = f", except {name_paths(lost)}, whose content is not kept" if lost else ""
        outcome = f"{ended}; what it has changed was taken back{rest}."
        try:
            host, paths = workspace.host, {each.path for each in changes}
            tops = [each for each in paths if paths.isdisjoint(directories_above(each))]
            host.undo(len(steps), [*map(host._root.display_path, tops)])
        except AgentFSError as failed:
            outcome = f"{ended}; what it has changed was not taken back: {failed.message}"
        error.details["places"] = [*error.places(), outcome]
        raise


def _check_covered(workspace: Any, reasons: Mapping[str, str]) -> None:
    """Raise `refused` if a deny or ask rule is about a path whose content is not kept, for a reason."""
    for path, reason in reasons.items():
        subject = Subject((path,), ignores_case=workspace._root.ignores_case)
        for rule in workspace.policy.change_rules:
            is_below = reason in LEFT_OUT and any(globs_below(rule.glob, path.split("/")))
            if is_below or covers_path(rule, subject):
                said = f"The rule `{rule.text}` covers {quote(path)}, whose content a recording does not keep"
                raise not_permitted(said, "run", [path], 'With Policy(run="staged") the command may run.')
