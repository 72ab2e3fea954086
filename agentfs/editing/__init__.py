"""Changing files: `write`, `edit`, `multi_edit`, `edit_lines` and `splice`.

`replace` and `delete_move` are imported from their modules, as they load much that an edit does not need.
"""

from agentfs.editing.edit import EditTarget, edit_file, splice_file
from agentfs.editing.edit_lines import edit_lines_file
from agentfs.editing.write import write_file

__all__ = ["EditTarget", "edit_file", "edit_lines_file", "splice_file", "write_file"]
