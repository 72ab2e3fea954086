"""Callables as tools of a language model: specs, schemas, argument coercion and calls."""

from typing import TYPE_CHECKING

from agentfs.lazy import lazy_names

if TYPE_CHECKING:
    from agentfs.tools.toolset import Toolset, toolset_of

__all__ = ["Toolset", "toolset_of"]

__getattr__ = lazy_names(__name__, {"agentfs.tools.toolset": ["Toolset", "toolset_of"]})
