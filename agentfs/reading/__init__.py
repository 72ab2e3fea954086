"""Reading: one page of a file, whatever it holds, exactly and in bounded memory."""

from agentfs.reading.page import ReadRequest
from agentfs.reading.read import directory_result, read_file, read_files, read_text

__all__ = ["ReadRequest", "directory_result", "read_file", "read_files", "read_text"]
