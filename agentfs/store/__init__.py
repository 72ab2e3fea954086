"""Trees in object stores: many machines, one tree, nothing overwritten. Needs the extra `store`."""

from agentfs.store.stored_tree import StoredTree

__all__ = ["StoredTree"]
