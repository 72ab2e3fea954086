"""Changing files: `write`, `edit`, `multi_edit`, `edit_lines`, `splice`, `replace`, `delete` and `move`."""

from typing import TYPE_CHECKING

from agentfs.lazy import lazy_names

if TYPE_CHECKING:
    from agentfs.editing.change_file import EditTarget
    from agentfs.editing.delete_move import delete_path, move_path
    from agentfs.editing.edit import edit_file, splice_file
    from agentfs.editing.edit_lines import edit_lines_file
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

__getattr__ = lazy_names(
    __name__,
    {
        "agentfs.editing.delete_move": ["delete_path", "move_path"],
        "agentfs.editing.change_file": ["EditTarget"],
        "agentfs.editing.edit": ["edit_file", "splice_file"],
        "agentfs.editing.edit_lines": ["edit_lines_file"],
        "agentfs.editing.replace": ["ReplaceOptions", "replace_in_files"],
        "agentfs.editing.write": ["write_file"],
    },
)
