"""The kept tree of a watched workspace, behind the same seam as the disk: `Directory`."""

from agentfs.watch.kept_tree import Watch

__all__ = ["Watch"]
