"""Where a directory that does not exist may have been meant to be."""

import time
from collections.abc import Generator
from contextlib import contextmanager

from agentfs.disk import Root, quote, show_name
from agentfs.errors import AgentFSError, NotFoundError
from agentfs.search.rules import slashed
from agentfs.search.walk import Walk

_ENTRIES = 50_000
_SECONDS = 0.2
_MOST = 3


@contextmanager
def suggesting(root: Root) -> Generator[None]:
    """Add to a `not_found` the directories elsewhere whose path ends so, when no name beside it was alike.

    Args:
        root: The door to the disk.
    """
    try:
        yield
    except NotFoundError as error:
        path = error.details.get("path")
        if isinstance(path, str) and not error.details.get("similar"):
            found = _elsewhere(root, path)
            if found:
                error.details["similar"] = found
                meant = " or ".join(quote(each) for each in found)
                error.hint = f"Did you mean {meant}? {error.hint}"
        raise


def _elsewhere(root: Root, path: str) -> list[str]:
    parts = [part for part in path.split("/") if part not in ("", ".", "..")]
    found: list[str] = []
    if not parts:
        return found
    walk = Walk(
        root, ".", max_entries=_ENTRIES, deadline=time.monotonic() + _SECONDS, directories=True, others=True
    )
    try:
        for visit in walk:
            if visit.child is not None and visit.child.name == parts[-1]:
                here = slashed(visit.path) + show_name(visit.child.name)
                if f"/{here}".endswith("/" + "/".join(parts)):
                    found.append(here)
                    if len(found) == _MOST:
                        break
    except AgentFSError:
        return found
    return found
