"""The journal: what a workspace changed, undo and redo, checkpoints, one patch for all of it."""

from agentfs.journal.journal import Journal, Travel
from agentfs.journal.patch import git_patch, line_counts
from agentfs.journal.report import conflict_error, file_changes, file_lines, patch_lines
from agentfs.journal.steps import Step, Sum, is_move, summed, taken_back
from agentfs.journal.store import Store

__all__ = [
    "Journal",
    "Step",
    "Store",
    "Sum",
    "Travel",
    "conflict_error",
    "file_changes",
    "file_lines",
    "git_patch",
    "is_move",
    "line_counts",
    "patch_lines",
    "summed",
    "taken_back",
]
