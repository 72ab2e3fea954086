"""Files outside that decide what happens in a workspace: settings of the user, programs of the system."""

import os
from functools import cache

from agentfs.errors import FileIOError
from agentfs.fs.path import is_in, quote

_MAX_LINKS = 40
_PLACES = """
/usr/local/bin /usr/bin /bin /usr/local/sbin /usr/sbin /sbin /run/current-system/sw/bin /opt/homebrew/bin
"""


@cache
def system_program(name: str) -> str | None:
    """Return the absolute path of a program, found where only the system puts programs, or None.

    `PATH` may name a directory of a workspace, such as `.venv/bin`, in which a model can write a program of
    any name. Nothing of `PATH` is run outside a sandbox, except by the user's own commands.
    """
    found = (os.path.join(place, name) for place in _PLACES.split())
    return next((path for path in found if os.path.isfile(path) and os.access(path, os.X_OK)), None)


def read_settings(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a file of the user."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)  # ValueError: a NUL in the path
        raise FileIOError(f"{quote(os.fspath(path))} cannot be read: {reason}.") from None


def places_inside(root: str | os.PathLike[str], path: str | os.PathLike[str]) -> list[str]:
    """Return the places in a directory, relative to it, that decide what the path of a file leads to."""
    places, tops = link_chain(os.fspath(path)), {os.path.abspath(root), os.path.realpath(root)}
    found = (os.path.relpath(place, top) for place in places for top in tops if is_in(place, top.rstrip("/")))
    return [*dict.fromkeys(found)]


def link_chain(path: str) -> list[str]:
    """Return where a path leads, link by link: each place as written, and with the links above resolved."""
    found: list[str] = []
    for _ in range(_MAX_LINKS):
        place = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        found += [os.path.abspath(path), os.path.normpath(place)]
        if not os.path.islink(place):
            break
        path = os.path.join(os.path.dirname(place), os.readlink(place))
    return found
