"""The tools over MCP, on the official SDK's server (the extra `mcp`): `agentfs mcp --root DIR`."""

from agentfs.mcp.http_server import serve_http
from agentfs.mcp.tool_server import offered, sdk_tools, serve_stdio, tool_server

__all__ = ["offered", "sdk_tools", "serve_http", "serve_stdio", "tool_server"]
