"""Tools for agent frameworks: one module for each, which is imported only when it is asked for.

    from agentfs.frameworks import deepagents, langchain, openai_agents, pydantic_ai

They make the framework's own tools of a `Toolset`: our schemas, images as images, errors as the framework's
failed results. Calls that need approval wait for it by the framework's own mechanism, if `ask` is the
`Policy.on_ask` of the workspace. The backends of deepagents and pydantic-ai have a workspace below them.
"""

from agentfs.base.lazy import lazy_submodules
from agentfs.tools.approval import ask

__all__ = ["ask"]

__getattr__ = lazy_submodules(__name__)
