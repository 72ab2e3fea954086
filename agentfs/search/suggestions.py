"""Where else in the tree a file or directory may be, when it is not where it was looked for."""

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from itertools import islice

from agentfs.errors import AgentFSError, NotFoundError
from agentfs.fs import Root, display_name, quote
from agentfs.messages import Joined
from agentfs.tree.ignore_sources import slashed
from agentfs.tree.walk import Walk

_ENTRIES = 100_000
_SECONDS = 0.2  # it is but a hint
_NAMED = 3


def add_suggestions(root: Root, path: str, error: NotFoundError) -> None:
    """Add to an error where files of the same name are, as far as a short walk finds them.

    Args:
        root: The confined root.
        path: What was not found.
        error: Its hint and `details["elsewhere"]` are added to; left alone where nothing is found.
    """
    wanted = path.rstrip("/").rpartition("/")[2].casefold()
    known = set(error.details.get("similar", ()))
    if not wanted:
        return
    files = map(root.display_path, _walked(root, lambda name: name.casefold() == wanted, directories=False))
    found = list(islice((path for path in files if path not in known), _NAMED))
    if found:
        error.details["elsewhere"] = found
        named = " and ".join(quote(other) for other in found)
        error.hint = Joined(" ", f"There is {named}.", error.hint)


@contextmanager
def suggesting(root: Root) -> Generator[None]:
    """Add to a `not_found` the directories elsewhere whose path ends so, when no name beside it was alike.

    Args:
        root: The confined root.
    """
    try:
        yield
    except NotFoundError as error:
        path = error.details.get("path")
        if isinstance(path, str) and not error.details.get("similar"):
            parts = [part for part in path.split("/") if part not in ("", ".", "..")]
            ending = "/" + "/".join(parts)
            there = _walked(root, lambda name: name == parts[-1], directories=True) if parts else ()
            alike = (path for path in there if f"/{display_name(path)}".endswith(ending))
            found = [root.display_path(path) for path in islice(alike, _NAMED)]
            if found:
                error.details["similar"] = found
                meant = " or ".join(quote(each) for each in found)
                error.hint = Joined(" ", f"Did you mean {meant}?", error.hint)
        raise


def _walked(root: Root, wanted: Callable[[str], bool], *, directories: bool) -> Iterator[str]:
    """Yield the real paths whose name is wanted: those of files, or with `directories` of directories."""
    deadline = time.monotonic() + _SECONDS
    walk = Walk(
        root.top,
        root.usable_directories,
        max_entries=_ENTRIES,
        deadline=deadline,
        directories=directories,
        others=directories,
    )
    with suppress(AgentFSError):
        for visit in walk:
            if not directories:
                found = [entry.name for entry in visit.files if wanted(entry.name)]
            else:
                found = [visit.child.name] if visit.child is not None and wanted(visit.child.name) else []
            real = slashed(visit.directory.real_path)
            yield from (real + name for name in found)
