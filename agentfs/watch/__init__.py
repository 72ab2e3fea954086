"""The kept tree of a watched workspace, behind the same seam as the disk: `Directory`."""

from typing import TYPE_CHECKING

from agentfs.lazy import lazy_submodules

if TYPE_CHECKING:
    from agentfs.watch import kept_tree as kept_tree

__getattr__ = lazy_submodules(__name__)
