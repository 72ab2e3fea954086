"""Change files: `write`, `append`, the edits, `replace`, `delete` and `move`."""

from typing import TYPE_CHECKING

from agentfs.base.lazy import lazy_submodules

if TYPE_CHECKING:
    from agentfs.editing import change_options as change_options
    from agentfs.editing import commit as commit
    from agentfs.editing import delete_move as delete_move
    from agentfs.editing import edit as edit
    from agentfs.editing import edit_lines as edit_lines
    from agentfs.editing import replace as replace
    from agentfs.editing import write as write

__getattr__ = lazy_submodules(__name__)
