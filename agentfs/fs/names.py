"""The names in a directory, for what is worth a short look only."""

import os
import time
from collections.abc import Iterator

from agentfs.fs import syscalls

LOOK = 0.1  # seconds


def first_names(handle: int) -> Iterator[str]:
    """Yield names in a directory, as many as the system gives in a short time.

    Args:
        handle: The directory.

    Yields:
        The names, in the system's order.

    Raises:
        OSError: The system fails.
    """
    end = time.monotonic() + LOOK
    opened = syscalls.open_directory(handle, ".")
    try:
        with os.scandir(opened) as found:
            for entry in found:
                yield entry.name
                if time.monotonic() > end:
                    return
    finally:
        syscalls.close(opened)
