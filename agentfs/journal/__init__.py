"""The journal: what a workspace changed, undo and redo, checkpoints, one patch for all of it."""

from agentfs.journal.journal import Journal, Travel
from agentfs.journal.ledger import Ledger
from agentfs.journal.steps import Step, Sum, is_move, summed, taken_back
from agentfs.journal.store import Store

__all__ = ["Journal", "Ledger", "Step", "Store", "Sum", "Travel", "is_move", "summed", "taken_back"]
