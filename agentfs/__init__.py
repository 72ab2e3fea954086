"""File tools for LLM agent loops, confined to one directory tree.

Result classes are in `agentfs.results`, the leaves of the error tree in `agentfs.errors`.
"""

import sys

if sys.argv[:1] == ["-m"] and {"agentfs", "-magentfs"} & {*sys.orig_argv} and not sys.flags.safe_path:
    # `python -m agentfs` puts the working directory first, which may be a root whose modules a model writes.
    del sys.path[0]

from importlib import import_module
from typing import TYPE_CHECKING, Any

from agentfs.base.lazy import above as _above
from agentfs.errors import (
    AccessError,
    AgentFSError,
    ArgumentError,
    ContentError,
    EditError,
    OperationalError,
    PathError,
)
from agentfs.limits import Limits
from agentfs.permissions import Allow, Deny, PermissionRequest
from agentfs.policy import AfterChange, Mount, Policy, Protect

if TYPE_CHECKING:
    from agentfs.events import Event
    from agentfs.remote.client import connect
    from agentfs.results import Edit, LineChange, ToolResult
    from agentfs.tools.tool import CallContext, tool
    from agentfs.tools.toolset import Toolset
    from agentfs.workspace import Workspace

__version__ = "0.1.0"

__all__ = [
    "AccessError",
    "AfterChange",
    "AgentFSError",
    "Allow",
    "ArgumentError",
    "CallContext",
    "ContentError",
    "Deny",
    "Edit",
    "EditError",
    "Event",
    "Limits",
    "LineChange",
    "Mount",
    "OperationalError",
    "PathError",
    "PermissionRequest",
    "Policy",
    "Protect",
    "ToolResult",
    "Toolset",
    "Workspace",
    "connect",
    "tool",
]

_above["dialects"] = lambda: import_module("agentfs.dialects")
_above["branches"] = lambda: import_module("agentfs.branches")

_LAZY = {
    "CallContext": "tools.tool",
    "Edit": "results",
    "Event": "events",
    "LineChange": "results",
    "ToolResult": "results",
    "Toolset": "tools.toolset",
    "Workspace": "workspace",
    "connect": "remote.client",
    "tool": "tools.tool",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = getattr(import_module(f"agentfs.{_LAZY[name]}"), name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
