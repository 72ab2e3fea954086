"""Branches: workspaces on an overlay of a tree, each for one agent, which are merged back by lines."""

from agentfs.branches.branch import Branch, names_of, open_branch

__all__ = ["Branch", "names_of", "open_branch"]
