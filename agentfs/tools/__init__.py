"""Callables as tools of a language model: specs, schemas, argument coercion and calls."""

from typing import TYPE_CHECKING

from agentfs.base.lazy import lazy_submodules

if TYPE_CHECKING:
    from agentfs.tools import toolset as toolset

__getattr__ = lazy_submodules(__name__)
