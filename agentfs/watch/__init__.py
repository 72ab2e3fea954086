"""The kept tree of a watched workspace, behind the same seam as the disk: `Directory`."""

from typing import TYPE_CHECKING

from agentfs.lazy import lazy_names

if TYPE_CHECKING:
    from agentfs.watch.kept_tree import Watch

__all__ = ["Watch"]

__getattr__ = lazy_names(__name__, {"agentfs.watch.kept_tree": ["Watch"]})
