"""What was under way when a process died: the tree shows whether it was made."""

from collections.abc import Iterator

from agentfs.errors import AgentFSError, NotFoundError
from agentfs.fs import Change, DirectoryNode, Root, quote
from agentfs.journal import MOST_BYTES, Found, Step, Sum, looking, summed, taken_back
from agentfs.state.ledger import KeptLedger
from agentfs.state.replay import Replayed

_NAMES_SHOWN = 5


def settled(said: Replayed, ledger: KeptLedger, root: Root) -> tuple[str, ...]:
    """Settle what was under way when a process died, by what the tree shows.

    Args:
        said: What the file of the journal comes to; what was under way is added to it as far as it was made.
        ledger: The ledger of that file.
        root: The tree.

    Returns:
        What was found, in words.
    """
    pending = said.pending
    if pending is None:
        return ()
    if isinstance(pending, Step):
        found = Found(pending.changes, looking(root))
        ledger.settle(found.made, whole=found.whole)
        if found.made:
            said.line.add(Step(found.made, pending.time))
        else:
            _remove_directories(found.unmade, root)
    else:
        way = _way(said, *pending)
        found = Found(way.changes, looking(root))
        ledger.settle((), whole=found.whole)
        if found.whole:
            said.line.go(pending[1])
    said.pending = None
    return tuple(_told(found, travel=not isinstance(pending, Step)))


def _way(said: Replayed, start: int, end: int) -> Sum:
    steps = said.line.between(min(start, end), max(start, end))
    return taken_back(steps) if end < start else summed(steps)


def _told(found: Found, *, travel: bool) -> Iterator[str]:
    what = "undoing or redoing" if travel else "a change of"
    files = [c for c in (*found.made, *found.unmade, *found.odd) if not _is_directory(c)]
    paths = _listed(tuple(files) or (*found.made, *found.unmade, *found.odd))
    if found.whole:
        yield f"{what} {paths} was made when a process died, and stands in the journal now"
    elif not found.made and not found.odd:
        yield f"{what} {paths} was under way when a process died, and was not made"
    else:
        yield f"{what} {paths} was under way when a process died"
        if found.made:
            stands = "is not in the journal" if travel else "stands in the journal"
            yield f"of it, {_listed(found.made)} was made, and {stands}"
        if found.unmade:
            yield f"of it, {_listed(found.unmade)} was not made"
        if found.odd:
            yield f"{_listed(found.odd)} is neither as before nor as it was to be: look at it"


def _listed(changes: tuple[Change, ...]) -> str:
    names = [quote(path) for path in sorted(change.path for change in changes)[:_NAMES_SHOWN]]
    more = f" and {len(changes) - _NAMES_SHOWN} more" if len(changes) > _NAMES_SHOWN else ""
    return ", ".join(names) + more


def _is_directory(change: Change) -> bool:
    return isinstance(change.before or change.after, DirectoryNode)


def _remove_directories(unmade: tuple[Change, ...], root: Root) -> None:
    """Remove the directories that were made for files which were not."""
    made = [change.reversed() for change in unmade if change.before is None and _is_directory(change)]
    for change in sorted(made, key=lambda change: change.path, reverse=True):
        try:
            root.apply([change], max_bytes=MOST_BYTES, conflict=lambda change, _: NotFoundError(change.path))
        except AgentFSError:
            continue  # it was never made, or this workspace may only be read
