"""`agentfs log`, `agentfs diff` and `agentfs review`: what a state directory has recorded."""

import json
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from typing import Any

from agentfs import history
from agentfs.base.visible import to_json
from agentfs.cli.command_options import CommandOptions
from agentfs.cli.output import print_error, print_text, write_output
from agentfs.errors import InvalidArgumentError, must_be
from agentfs.fs import Root, quote
from agentfs.fs.settings_file import read_settings
from agentfs.history.journal import Journal
from agentfs.history.log import Log, Step
from agentfs.limits import Limits
from agentfs.policy import Policy
from agentfs.shown.outputs import OutputStore
from agentfs.shown.read_tracker import ReadTracker
from agentfs.shown.workspace_context import Context
from agentfs.workspace import Workspace

_TIME = "%Y-%m-%d %H:%M:%S"


def show_log(options: CommandOptions) -> int:
    """List the steps, the latest first."""
    if options.limit is not None and options.limit < 0:
        raise must_be("--limit", "0 or more", options.limit, "Leave it out for all steps.")
    with closing(history.state.read_journal(options.state or "", options.root)) as journal:
        steps = list(_steps(journal.log))[: options.limit]
    if options.json:
        print_text(to_json([row for row, _ in steps]))
        return 0
    width = len(str(steps[0][0]["step"])) if steps else 1
    for row, description in steps:
        for name in row["checkpoints"]:
            print_text(f"{'':{width}}  checkpoint {json.dumps(name, ensure_ascii=False)}")
        if row["step"]:
            when = time.strftime(_TIME, time.localtime(row["time"])) if row["time"] else f"{'earlier':19}"
            print_text(f"{row['step']:{width}}  {when}  {'undone: ' * row['undone']}{description}")
    return 0


def _steps(log: Log) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield each step, the latest first, with the checkpoints after it; then a line for the steps before."""
    first, standing = log.dropped, {part.order[0] for part in log.standing.parts}
    for number, step in reversed([(first, Step(())), *enumerate(log.after(first), first + 1)]):
        row = {
            "step": number,
            "time": step.time or None,
            "label": step.label,
            "undone": number > first and number not in standing,
            "reverts": [of for of, takes_back, _ in step.toggles or () if takes_back],
            "makes_again": [of for of, takes_back, _ in step.toggles or () if not takes_back],
            "checkpoints": [name for name, position in log.checkpoints.items() if position == number],
            "files": [vars(file) for file in history.report.file_changes(step.changes)],
        }
        if number > first:
            yield row, history.report.describe_step(step)
        elif first or row["checkpoints"]:
            yield row, "earlier steps, no longer kept"


def show_diff(options: CommandOptions) -> int:
    """Print all changes as one patch."""
    with _opened(options) as (journal, context):
        changes = history.operations.changes(journal, context, options.since, options.paths)
    for note in changes.notes:
        print_error(f"agentfs: {note}")
    if options.json:
        print_text(to_json(changes.to_dict()))
    elif sys.stdout.isatty():
        print_text(changes.patch.decode("utf-8", "backslashreplace").removesuffix("\n"))
    else:
        write_output(changes.patch)  # byte for byte
    return 0


def show_review(options: CommandOptions) -> int:
    """Print a review as text, JSON or a page, or apply decisions."""
    if options.apply:
        given, state = read_settings(options.apply), options.state or ""
        with Workspace(options.root or history.state.root_of(state), state=state) as workspace:
            try:
                print_text(str(workspace.apply_review(**json.loads(given))))
            except (TypeError, ValueError, RecursionError):
                wrong = f"{quote(options.apply)} has no decisions of a review."
                raise InvalidArgumentError(wrong, hint="Save them from the page of --html.") from None
        return 0
    with _opened(options) as (journal, context):
        review = history.review.review(journal, context, options.since, options.paths)
    print_text(review.to_html() if options.html else review.to_json() if options.json else str(review))
    return 0


@contextmanager
def _opened(options: CommandOptions) -> Generator[tuple[Journal, Context]]:
    """Open a journal and its tree to read, even while a workspace uses them."""
    state = options.state or ""
    # With the default policy, because the workspace that made the changes may have protected fewer names.
    with (
        closing(history.state.read_journal(state, options.root)) as journal,
        Root(history.state.root_of(state), Policy(read_only=True)) as root,
    ):
        yield journal, Context(root, ReadTracker(), Limits(), OutputStore())
