"""The names in a directory, for what is worth a short look only."""

import os
import time
from collections.abc import Iterator

from agentfs.fs.backend import Handle
from agentfs.fs.context import RootContext

LOOK = 0.1  # seconds


def first_names(base: RootContext, handle: Handle) -> Iterator[str]:
    """Yield names in a directory, as many as the system gives in a short time.

    Args:
        base: What the system is asked by.
        handle: The directory.

    Yields:
        The names, in the system's order.

    Raises:
        OSError: The system fails.
    """
    end = time.monotonic() + LOOK
    opened = base.backend.open_directory(handle, ".")
    try:
        with os.scandir(opened) as found:
            for entry in found:
                yield entry.name
                if time.monotonic() > end:
                    return
    finally:
        base.backend.close(opened)
