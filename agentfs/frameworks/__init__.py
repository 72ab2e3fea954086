"""Tools for agent frameworks: one module for each, which is imported only when it is asked for.

    from agentfs.frameworks import acp, anthropic, deepagents, langchain, mcp_server
    from agentfs.frameworks import openai_agents, pydantic_ai

Most make the framework's own tools of a `Toolset`: our schemas, images as images, errors as the framework's
failed results. Calls that need approval wait for it by the framework's own mechanism, if `ask` is the
`Policy.on_ask` of the workspace. The framework's own shells, editors and memories can have a workspace below
them.
"""

from types import ModuleType

from agentfs.base.lazy import lazy_submodules
from agentfs.tools.approval import ask

__all__ = ["ask"]

# The packages that each module needs, by the names that pip knows.
_PACKAGES = {
    "acp": "agent-client-protocol",
    "anthropic": "anthropic",
    "deepagents": "deepagents",
    "langchain": "langchain",
    "mcp_server": "mcp",
    "openai_agents": "openai-agents",
    "pydantic_ai": "pydantic-ai-slim",
}
_submodule = lazy_submodules(__name__)


def __getattr__(name: str) -> ModuleType:
    try:
        return _submodule(name)
    except ModuleNotFoundError as error:
        raise ImportError(
            f"agentfs.frameworks.{name} needs the package {_PACKAGES[name]}: pip install {_PACKAGES[name]}",
            name=error.name,
        ) from error
