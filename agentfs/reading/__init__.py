"""What `read` does: one page of a file, exactly, in bounded memory."""

from agentfs.reading.read import read_file, read_kept
from agentfs.reading.read_many import read_several
from agentfs.reading.result import directory_answer

__all__ = ["directory_answer", "read_file", "read_kept", "read_several"]
