"""Workspaces on other machines and in containers: both sides of `agentfs.connect`."""
