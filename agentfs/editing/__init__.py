"""Changing files: `write`, `edit`, `multi_edit`, `edit_lines`, `splice`, `replace`, `delete` and `move`."""

from agentfs.editing.delete_move import delete_path, move_path
from agentfs.editing.edit import EditTarget, edit_file, splice_file
from agentfs.editing.line_ids import edit_lines_file
from agentfs.editing.replace import ReplaceOptions, replace_in_files
from agentfs.editing.write import write_file

__all__ = [
    "EditTarget",
    "ReplaceOptions",
    "delete_path",
    "edit_file",
    "edit_lines_file",
    "move_path",
    "replace_in_files",
    "splice_file",
    "write_file",
]
