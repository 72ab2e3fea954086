"""What `read` does: one page of a file, exactly, in bounded memory."""

from agentfs.reading.answer import directory_answer
from agentfs.reading.read import read_file

__all__ = ["directory_answer", "read_file"]
