"""Changing files: `write`, `edit`, `multi_edit`, `edit_lines` and `splice`."""

from agentfs.editing.apply_edit import EditOptions
from agentfs.editing.delete_move import delete_path, move_path
from agentfs.editing.edit import edit_file
from agentfs.editing.edit_lines import edit_lines_file
from agentfs.editing.splice import splice_file
from agentfs.editing.write import WriteTerms, write_file

__all__ = [
    "EditOptions",
    "WriteTerms",
    "delete_path",
    "edit_file",
    "edit_lines_file",
    "move_path",
    "splice_file",
    "write_file",
]
