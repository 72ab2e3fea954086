"""The decision about every call: rules and modes, command lines, the files that a call may use."""

from typing import TYPE_CHECKING

from agentfs.base.lazy import lazy_submodules

if TYPE_CHECKING:
    from agentfs.permission import decide as decide
    from agentfs.permission import method_call as method_call

__getattr__ = lazy_submodules(__name__)
