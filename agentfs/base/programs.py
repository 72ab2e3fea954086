"""Programs of the system, found where only the system puts programs.

`PATH` may name a directory of a workspace, such as `.venv/bin`, in which a model can write a program of any
name. Nothing of `PATH` is run outside a sandbox, except by the user's own commands.
"""

import os
from functools import cache

_PLACES = """
/usr/local/bin /usr/bin /bin /usr/local/sbin /usr/sbin /sbin /run/current-system/sw/bin /opt/homebrew/bin
"""


@cache
def system_program(name: str) -> str | None:
    """Return the absolute path of a program of the system, or None if it has none of that name."""
    found = (os.path.join(place, name) for place in _PLACES.split())
    return next((path for path in found if os.path.isfile(path) and os.access(path, os.X_OK)), None)
