"""`agentfs review`: what has changed, hunk by hunk, and the decisions about it."""

import json
from contextlib import closing
from typing import Any, cast

from agentfs import history
from agentfs.cli.command_options import CommandOptions
from agentfs.cli.output import print_text
from agentfs.errors import AgentFSError, InvalidArgumentError
from agentfs.fs import Root, quote
from agentfs.fs.settings_file import read_settings
from agentfs.limits import Limits
from agentfs.policy import Policy
from agentfs.shown.outputs import OutputStore
from agentfs.shown.read_tracker import ReadTracker
from agentfs.shown.workspace_context import Context
from agentfs.workspace import Workspace


def show_review(options: CommandOptions) -> int:
    """Print a review as text, JSON or a page, or apply decisions."""
    state = options.state or ""
    if options.apply:
        marks = _decisions(options.apply)
        with Workspace(history.state.root_of(state), state=state) as workspace:
            print_text(str(workspace.apply_review(**marks)))
        return 0
    with (
        closing(history.state.read_journal(state, options.root)) as journal,
        Root(history.state.root_of(state), Policy(read_only=True)) as root,
    ):
        context = Context(root, ReadTracker(), Limits(), OutputStore())
        review = history.review.review(journal, context, options.since, options.paths)
    print_text(review.to_html() if options.html else review.to_json() if options.json else str(review))
    return 0


def _decisions(path: str) -> dict[str, Any]:
    """Read a file of decisions: ids to accept and to reject, and new texts by id."""
    marks: Any
    try:
        marks = json.loads(read_settings(path))
    except (ValueError, RecursionError) as error:
        if isinstance(error, AgentFSError):
            raise
        marks = None
    kinds = {"accept": list, "reject": list, "edit": dict}
    named = cast("dict[str, Any]", marks) if isinstance(marks, dict) else {"": None}
    if not named.keys() <= kinds.keys() or not all(isinstance(named[key], kinds[key]) for key in named):
        raise InvalidArgumentError(
            f"{quote(path)} has no decisions of a review.", hint="Save them from the page of --html."
        )
    return named
