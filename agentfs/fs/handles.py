"""The descriptors of a root and of its mounts, shared by all views."""

from agentfs.fs import syscalls


class RootHandle:
    """The descriptor of the root; -1 if closed. It is closed with the last reference to this object.

    If `close()` closed it at once, the number could name another directory during a call in another thread.
    """

    __slots__ = ("fd",)

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def __del__(self) -> None:
        if self.fd != -1:
            syscalls.close(self.fd)


class SharedHandle:
    """Shares one root handle among copies of a context, so that they close together."""

    __slots__ = ("handle",)

    def __init__(self, handle: RootHandle) -> None:
        self.handle = handle
