"""The journal: what a workspace changed, undo and redo, checkpoints, one patch for all of it."""

from agentfs.journal.found import MOST_BYTES, Found, Look, looking
from agentfs.journal.journal import Journal, Travel
from agentfs.journal.ledger import Ledger
from agentfs.journal.steps import Step, Sum, is_move, summed, taken_back
from agentfs.journal.store import Content, Store
from agentfs.journal.timeline import Timeline

__all__ = [
    "MOST_BYTES",
    "Content",
    "Found",
    "Journal",
    "Ledger",
    "Look",
    "Step",
    "Store",
    "Sum",
    "Timeline",
    "Travel",
    "is_move",
    "looking",
    "summed",
    "taken_back",
]
