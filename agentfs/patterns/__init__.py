"""Regular expressions: syntax, bounded compilation, required literals, and the search of lines."""

from typing import TYPE_CHECKING

from agentfs.base.lazy import lazy_submodules

if TYPE_CHECKING:
    from agentfs.patterns import syntax as syntax

__getattr__ = lazy_submodules(__name__)
