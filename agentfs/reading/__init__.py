"""What `read` does: one page of a file, exactly, in bounded memory."""

from agentfs.reading.read import read_file

__all__ = ["read_file"]
