"""The journal and the read history of a workspace, new or from a state directory."""

import os
from typing import TYPE_CHECKING

from agentfs import history
from agentfs.fs import Root
from agentfs.history.journal import Journal, node_reader
from agentfs.limits import Limits
from agentfs.policy import Durability
from agentfs.shown.read_tracker import ReadTracker

if TYPE_CHECKING:
    from agentfs.history.storage.state import MakeLedger, State


def open_history(
    state: str | os.PathLike[str] | None,
    root: Root,
    durability: Durability,
    limits: Limits,
    make_ledger: "MakeLedger | None" = None,
) -> "tuple[Journal, ReadTracker, State | None]":
    """Return the journal and the read history of a root: new ones, or those of a state directory."""
    if state is None:
        root.recorder = journal = Journal(read_node=node_reader(root))
        return journal, ReadTracker(), None
    opened = history.storage.state.open_state(state, root, durability, limits, make_ledger)
    root.recovery_notes += opened.messages
    root.recorder = opened.journal
    return opened.journal, opened.read_tracker, opened
