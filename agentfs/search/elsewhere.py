"""Where else in the tree a name is, when it is not where it was looked for."""

import time

from agentfs.disk import Root, quote, show_name
from agentfs.errors import AgentFSError, NotFoundError
from agentfs.search.walk import Walk

_ENTRIES = 100_000
_SECONDS = 0.2  # it is but a hint
_NAMED = 3


def say_elsewhere(root: Root, path: str, error: NotFoundError) -> None:
    """Add to an error where files of the same name are, as far as a short walk finds them.

    Args:
        root: The door to the disk.
        path: What was not found.
        error: Its hint and `details["elsewhere"]` are added to; left alone where nothing is found.
    """
    wanted = path.rstrip("/").rpartition("/")[2].casefold()
    known = set(error.details.get("similar", ()))
    found = [other for other in _of_name(root, wanted) if other not in known][:_NAMED] if wanted else []
    if found:
        error.details["elsewhere"] = found
        named = " and ".join(quote(other) for other in found)
        error.hint = f"There is {named}. {error.hint}"


def _of_name(root: Root, wanted: str) -> list[str]:
    found: list[str] = []
    walk = Walk(root, "", max_entries=_ENTRIES, deadline=time.monotonic() + _SECONDS)
    try:
        for visit in walk:
            prefix = f"{visit.path}/" if visit.path else ""
            found += [
                prefix + show_name(entry.name) for entry in visit.files if entry.name.casefold() == wanted
            ]
            if len(found) > _NAMED:
                break
    except AgentFSError:
        pass
    return found
