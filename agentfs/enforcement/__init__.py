"""The checks around every method of a workspace."""

from typing import TYPE_CHECKING

from agentfs.base.lazy import lazy_submodules

if TYPE_CHECKING:
    from agentfs.enforcement import permission_check as permission_check

__getattr__ = lazy_submodules(__name__)
