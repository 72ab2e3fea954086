"""The in-memory tree of a watched workspace, with the same `Directory` interface as the disk."""

from typing import TYPE_CHECKING

from agentfs.base.lazy import lazy_submodules

if TYPE_CHECKING:
    from agentfs.watch import keeper as keeper
    from agentfs.watch import kept_tree as kept_tree

__getattr__ = lazy_submodules(__name__)
