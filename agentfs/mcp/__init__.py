"""The MCP server for one workspace, on the official SDK (the extra `mcp`): `agentfs mcp --root DIR`."""

from agentfs.mcp.streamable_http import HttpAddress
from agentfs.mcp.workspace_server import LIMITS, WorkspaceServer

__all__ = ["LIMITS", "HttpAddress", "WorkspaceServer"]
