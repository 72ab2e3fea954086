"""File tools for LLM agent loops, confined to one directory tree.

Result classes are in `agentfs.results`, the leaves of the error tree in `agentfs.errors`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from agentfs.errors import (
    AccessError,
    AgentFSError,
    ArgumentError,
    ContentError,
    EditError,
    OperationalError,
    PathError,
)
from agentfs.lazy import lazy_names, set_finder
from agentfs.limits import Limits
from agentfs.permissions import Allow, Deny, PermissionRequest
from agentfs.policy import Policy, Protect

if TYPE_CHECKING:
    from agentfs.events import Event
    from agentfs.remote.client import connect
    from agentfs.results import Edit, LineChange, ToolResult
    from agentfs.tools.toolset import Toolset
    from agentfs.workspace import Workspace

__version__ = "0.1.0"

__all__ = [
    "AccessError",
    "AgentFSError",
    "Allow",
    "ArgumentError",
    "ContentError",
    "Deny",
    "Edit",
    "EditError",
    "Event",
    "Limits",
    "LineChange",
    "OperationalError",
    "PathError",
    "PermissionRequest",
    "Policy",
    "Protect",
    "ToolResult",
    "Toolset",
    "Workspace",
    "connect",
]

set_finder(lambda name: import_module("agentfs.dialects").find(name))

_LAZY = {
    "agentfs.events": ["Event"],
    "agentfs.remote.client": ["connect"],
    "agentfs.results": ["Edit", "LineChange", "ToolResult"],
    "agentfs.tools.toolset": ["Toolset"],
    "agentfs.workspace": ["Workspace"],
}
__getattr__ = lazy_names(__name__, _LAZY)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
