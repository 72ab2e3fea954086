"""Files of the person who starts a program: a policy, a token. They should lie outside the workspace."""

import os
from collections.abc import Iterator

from agentfs.errors import FileIOError, InvalidArgumentError
from agentfs.fs.path import quote

_MAX_BYTES = 1024 * 1024


def read_settings(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a file of at most 1 MiB."""
    try:
        with open(path, "rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = getattr(error, "strerror", None) or str(error)
        raise FileIOError(f"{quote(os.fspath(path))} cannot be read: {reason}.") from None
    if len(data) > _MAX_BYTES:
        raise InvalidArgumentError(f"{quote(os.fspath(path))} is over {_MAX_BYTES:,} bytes.")
    return data


def places_inside(root: str | os.PathLike[str], path: str | os.PathLike[str]) -> list[str]:
    """Return the places in a directory, relative to it, that decide what a path leads to.

    These are the file, and every link on the way to it.
    """
    found = (_path_inside(os.fspath(root), place) for place in _places(os.fspath(path)))
    return [place for place in found if place is not None]


def _places(path: str) -> Iterator[str]:
    """Yield the file, and every link on the way to it, each in its canonical directory."""
    directory, names = "/", os.path.join(os.getcwd(), path).split("/")[::-1]
    while names:
        name = names.pop()
        if name in ("", ".", ".."):
            directory = os.path.dirname(directory) if name == ".." else directory
            continue
        here = os.path.join(directory, name)
        if os.path.islink(here):
            yield here
            target = os.readlink(here)
            directory = "/" if target.startswith("/") else directory
            names += target.split("/")[::-1]
        else:
            directory = here
    yield directory


def _path_inside(root: str, place: str) -> str | None:
    """Return a path relative to a directory that it is in, or None if it is outside."""
    above = os.path.dirname(place)
    while not (os.path.exists(root) and os.path.samefile(above, root)):
        if above == "/":
            return None
        above = os.path.dirname(above)
    return os.path.relpath(place, above)
