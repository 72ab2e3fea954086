"""The commands for what was done over a state directory: look at it, take it back, make it again."""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

from agentfs.cli_output import print_error, print_json, print_patch, print_text
from agentfs.fs import name_matcher
from agentfs.journal import Journal, Step
from agentfs.journal.report import changes_result, file_changes, step_words
from agentfs.policy import Policy
from agentfs.results import Result
from agentfs.state import read_journal, root_of
from agentfs.workspace import Workspace

_TIME = "%Y-%m-%d %H:%M:%S"


def add_commands(commands: Any) -> None:
    """Add the commands to those of the command line.

    Args:
        commands: What makes subcommands.
    """
    log = _command(commands, "log", "list the steps that were made, the latest first", _log)
    log.add_argument("--limit", type=int, metavar="N", help="most steps to show (default: all)")
    for name, done in (("undo", "take the last steps back"), ("redo", "make undone steps again")):
        command = _command(commands, name, f"{done}, all of them or none", _travel)
        command.add_argument(
            "steps", type=int, nargs="?", default=1, metavar="N", help="how many (default: 1)"
        )
        command.set_defaults(method=name)
    diff = _command(commands, "diff", "print all that was changed as one patch, which git apply takes", _diff)
    diff.add_argument("--since", metavar="CHECKPOINT", help="only what was changed since (default: all)")
    checkpoint = _command(
        commands, "checkpoint", "name the present place, for rollback and diff", _checkpoint
    )
    checkpoint.add_argument("name", nargs="?", metavar="NAME", help="the name (default: a number)")
    rollback = _command(commands, "rollback", "take the files back to a checkpoint, or forth", _rollback)
    rollback.add_argument("to", metavar="CHECKPOINT", help="its name")


def _command(
    commands: Any, name: str, told: str, run: Callable[[argparse.Namespace], int]
) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(
        name, help=told, description=told.capitalize() + "."
    )
    command.add_argument(
        "--state", required=True, metavar="DIR", help="the state directory, which keeps the journal"
    )
    command.add_argument("--root", metavar="DIR", help="the workspace (default: that of the state directory)")
    command.add_argument("--json", action="store_true", help="print the whole result as JSON")
    command.set_defaults(run=run)
    return command


def opened(root: str | None, state: str | None) -> Workspace:
    """Open a workspace, and tell on standard error what had to be put right.

    Args:
        root: Its root; None for that of the state directory.
        state: The state directory, or None.

    Raises:
        AgentFSError: As `Workspace`.
    """
    if root is None and state is not None:
        root = root_of(state)
    workspace = Workspace(root or ".", state=state)
    for told in workspace.recovery_notes:
        print_error(f"agentfs: {told}")
    return workspace


def _log(arguments: argparse.Namespace) -> int:
    rows = list(_rows(read_journal(arguments.state, arguments.root)))[: arguments.limit]
    if arguments.json:
        print_json([row for row, _ in rows])
        return 0
    width = len(str(rows[0][0]["step"])) if rows else 1
    for row, words in rows:
        for name in row["checkpoints"]:
            print_text(f"{'':{width}}  checkpoint {json.dumps(name, ensure_ascii=False)}")
        if row["step"]:
            when = time.strftime(_TIME, time.localtime(row["time"])) if row["time"] else f"{'earlier':19}"
            undone = "undone: " if row["undone"] else ""
            print_text(f"{row['step']:{width}}  {when}  {undone}{words}")
    return 0


def _rows(journal: Journal) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield each step, the latest first, with the checkpoints after it; at last those of the beginning."""
    stand, first = journal.steps, journal.put_together
    steps: list[Step] = [*stand, *journal.ahead]
    names: dict[int, list[str]] = {}
    for name, place in journal.checkpoints.items():
        names.setdefault(place, []).append(name)
    for number, step in reversed(list(enumerate(steps, first + 1))):
        row = {
            "step": number,
            "time": step.time,
            "undone": number > first + len(stand),
            "checkpoints": names.get(number, []),
            "files": [vars(file) for file in file_changes(step.changes, counted=False)],
        }
        yield row, step_words(step)
    if first or 0 in names:
        files = [vars(file) for file in file_changes(journal.base.changes, counted=False)]
        row = {
            "step": first,
            "time": None,
            "undone": False,
            "checkpoints": names.get(first, []),
            "files": files,
        }
        yield row, "the steps up to here, put together"


def _travel(arguments: argparse.Namespace) -> int:
    with opened(arguments.root, arguments.state) as workspace:
        return _show(getattr(workspace, arguments.method)(arguments.steps), arguments)


def _rollback(arguments: argparse.Namespace) -> int:
    with opened(arguments.root, arguments.state) as workspace:
        return _show(workspace.rollback(arguments.to), arguments)


def _checkpoint(arguments: argparse.Namespace) -> int:
    with opened(arguments.root, arguments.state) as workspace:
        return _show(workspace.checkpoint(arguments.name), arguments)


def _diff(arguments: argparse.Namespace) -> int:
    # By the names that are protected now: the workspace that made the changes may have protected fewer.
    protected = name_matcher(Policy().protect.read).covers
    total = read_journal(arguments.state, arguments.root).since(arguments.since)
    changes = changes_result(total, arguments.since, lambda path: not protected(path))
    for note in changes.notes:
        print_error(f"agentfs: {note}")
    if arguments.json:
        return _show(changes, arguments)
    print_patch(changes.patch)
    return 0


def _show(result: Result, arguments: argparse.Namespace) -> int:
    if arguments.json:
        print_json(result.to_dict())
    else:
        print_text(result.text)
    return 0
