"""Transactions: steps that belong together, and are taken back if the block raises."""

import math
import os
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from functools import partial

from agentfs.base import call_context
from agentfs.errors import AgentFSError, RefusedError
from agentfs.fs import Root
from agentfs.history.journal import Journal
from agentfs.history.report import name_paths
from agentfs.history.undo import roll_back_transaction
from agentfs.shown.workspace_context import Context


@contextmanager
def transaction(journal: Journal, context: Context) -> Generator[tuple[Root, Journal]]:
    """Give a root and a journal whose steps are one for undo. If the block raises, take them back.

    Lines that others have changed meanwhile stay; a note on the exception names their files.
    """
    root, inner = context.root.unrecorded, journal.in_group()
    root.recorder = inner
    process = os.getpid()
    try:
        # A change that one call of a tool begins must not end the deadline of the tool.
        is_in_tool = call_context.current.get() is not None
        with call_context.tool_limited(math.inf) if is_in_tool else nullcontext():
            yield root, inner
        if os.getpid() != process:
            raise RefusedError(  # noqa: TRY301 - nothing is taken back in a child
                "This transaction belongs to the process from which this one was forked.",
                hint="Nothing was changed. Begin a transaction in this process.",
            )
    except BaseException as error:
        if os.getpid() == process:
            with call_context.uncounted(), call_context.limited(context.limits.timeout):
                take_back = partial(_take_back, inner, context._replace(root=root), error)
                call_context.run_to_end(take_back)
        raise
    finally:
        inner.ended = True
        journal.flush()


def _take_back(journal: Journal, context: Context, error: BaseException) -> None:
    try:
        clashes = roll_back_transaction(journal, context)
    except AgentFSError as failed:
        error.add_note(f"The changes of the transaction could not be taken back: {failed.message}")
        return
    if clashes:
        paths = name_paths([context.root.display_path(each.path) for each in clashes])
        error.add_note(f"Changed by others meanwhile, so not taken back: {paths}")
