"""The file of a journal, written anew without what no step needs any more."""

from collections.abc import Iterable, Iterator

from agentfs.fs import Change
from agentfs.fs.log_file import LogFile
from agentfs.journal import Step
from agentfs.state import entries
from agentfs.state.contents import CONTENT
from agentfs.state.records import HEAD_BYTES, record
from agentfs.state.replay import HEADER, Replayed


def needed_bytes(said: Replayed) -> int:
    """Return how large the file of a journal need be.

    Args:
        said: What it comes to.
    """
    line = said.line
    names = sum(len(name) + 2 * HEAD_BYTES for name in line.checkpoints)
    contents = sum(said.places[digest][1] + HEAD_BYTES for digest in said.needed)
    base = len(entries.base_payload(line.base.sum(), line.first)) + HEAD_BYTES
    steps = line.between(line.first, line.end)
    return names + contents + base + sum(len(entries.step_payload(step)) + 2 * HEAD_BYTES for step in steps)


def rewritten(log: LogFile, said: Replayed) -> Iterator[bytes]:
    """Write the file of a journal anew, without what no step needs any more.

    Args:
        log: The file.
        said: What it comes to.

    Yields:
        Its records.
    """
    line = said.line
    yield record(entries.HEADER, HEADER)
    written: set[str] = set()
    names: dict[int, list[str]] = {}
    for name, place in line.checkpoints.items():
        names.setdefault(place, []).append(name)
    if line.first:
        base = line.base.sum()
        yield from _contents(log, said, base.changes, written)
        yield record(entries.BASE, entries.base_payload(base, line.first))
    for place, step in enumerate((None, *line.between(line.first, line.end)), line.first):
        if step is not None:
            yield from _contents(log, said, step.changes, written)
            yield record(entries.STEP, entries.step_payload(step)) + record(entries.DONE)
        for name in names.get(place, ()):
            yield record(entries.CHECKPOINT, entries.checkpoint_payload(name, place))
    if line.at < line.end:
        travel = entries.travel_payload(line.end, line.at)
        yield record(entries.TRAVEL, travel) + record(entries.DONE)
    match said.pending:
        case Step() as step:
            yield from _contents(log, said, step.changes, written)
            yield record(entries.STEP, entries.step_payload(step))
        case (start, end):
            yield record(entries.TRAVEL, entries.travel_payload(start, end))
        case None:
            pass


def _contents(log: LogFile, said: Replayed, changes: Iterable[Change], written: set[str]) -> Iterator[bytes]:
    for digest in sorted(entries.digests_of(changes) - written):
        written.add(digest)
        yield record(CONTENT, log.read(*said.places[digest]))
