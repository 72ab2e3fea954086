"""The implementation of `ls`, `glob` and `grep`."""

from typing import TYPE_CHECKING

from agentfs.base.lazy import lazy_submodules

if TYPE_CHECKING:
    from agentfs.search import grep_text as grep_text
    from agentfs.search import listing as listing
    from agentfs.search import missing_paths as missing_paths
    from agentfs.search import options as options

__getattr__ = lazy_submodules(__name__)
