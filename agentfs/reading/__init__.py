"""What `read` does: one page of a file, exactly, in bounded memory."""

from agentfs.reading.answer import directory_answer
from agentfs.reading.many import read_several
from agentfs.reading.read import read_file, read_kept

__all__ = ["directory_answer", "read_file", "read_kept", "read_several"]
