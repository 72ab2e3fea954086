"""Reading files: text by pages, large files, images, notebooks and PDFs, in bounded memory."""

from agentfs.reading.page import ReadRequest
from agentfs.reading.read import read_path, read_paths

__all__ = ["ReadRequest", "read_path", "read_paths"]
