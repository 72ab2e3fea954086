"""Files of the user that no workspace should change, such as a policy or a token."""

import os

from agentfs.errors import FileIOError, InvalidArgumentError
from agentfs.fs.path import is_in, quote

_MAX_BYTES = 1024 * 1024


def read_settings(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a file of at most 1 MiB."""
    try:
        with open(path, "rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None
    if len(data) > _MAX_BYTES:
        raise InvalidArgumentError(f"{quote(os.fspath(path))} is over {_MAX_BYTES:,} bytes.")
    return data


def places_inside(root: str | os.PathLike[str], path: str | os.PathLike[str]) -> list[str]:
    """Return the places of a file, or of the link to it, that lie in a directory, relative to it.

    Raises `io` if there is no such file.
    """
    try:
        places = os.path.abspath(path), os.path.realpath(path, strict=True)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None
    tops = os.path.abspath(root), os.path.realpath(root)
    return [
        os.path.relpath(place, top)
        for place, top in dict.fromkeys(zip(places, tops, strict=True))
        if is_in(place, top.rstrip("/"))
    ]


def _unreadable(path: str | os.PathLike[str], error: OSError | ValueError) -> FileIOError:
    reason = getattr(error, "strerror", None) or str(error)  # ValueError: a NUL in the path
    return FileIOError(f"{quote(os.fspath(path))} cannot be read: {reason}.")
