"""Changing files: `write`, `edit` and `multi_edit`."""

from agentfs.editing.edit import edit_file
from agentfs.editing.write import write_file

__all__ = ["edit_file", "write_file"]
