"""Changing files: `write`, `edit`, `multi_edit`, `edit_lines` and `splice`."""

from agentfs.editing.edit import edit_file
from agentfs.editing.edit_lines import edit_lines_file
from agentfs.editing.landing import Terms
from agentfs.editing.removing import delete_path, move_path
from agentfs.editing.splice import splice_file
from agentfs.editing.write import WriteTerms, write_file

__all__ = [
    "Terms",
    "WriteTerms",
    "delete_path",
    "edit_file",
    "edit_lines_file",
    "move_path",
    "splice_file",
    "write_file",
]
