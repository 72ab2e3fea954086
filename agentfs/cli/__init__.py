"""The command line `agentfs`: every tool as a command, history, schemas, `mcp` and `serve`."""

from agentfs.cli.commands import main

__all__ = ["main"]
