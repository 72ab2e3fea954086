"""Read files in bounded memory: pages of text, large files, images, notebooks and PDFs."""

from typing import TYPE_CHECKING

from agentfs.base.lazy import lazy_submodules

if TYPE_CHECKING:
    from agentfs.reading import page as page
    from agentfs.reading import read as read

__getattr__ = lazy_submodules(__name__)
