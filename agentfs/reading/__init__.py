"""Read files in bounded memory: pages of text, large files, images, notebooks and PDFs."""

from agentfs.reading.page import ReadRequest
from agentfs.reading.read import read_path, read_paths

__all__ = ["ReadRequest", "read_path", "read_paths"]
