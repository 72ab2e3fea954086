"""Workspaces on other machines and in containers: both sides of `agentfs.connect`."""

from typing import TYPE_CHECKING

from agentfs.base.lazy import lazy_submodules

if TYPE_CHECKING:
    from agentfs.remote import server as server

__getattr__ = lazy_submodules(__name__)
