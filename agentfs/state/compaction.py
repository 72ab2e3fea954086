"""The file of a journal, written anew without what no step needs any more."""

from collections.abc import Iterator

from agentfs.disk.log_file import LogFile
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
    names = sum(len(name) + 2 * HEAD_BYTES for name in said.checkpoints)
    contents = sum(said.places[digest][1] + HEAD_BYTES for digest in said.needed)
    return names + contents + sum(len(entries.step_payload(step)) + 2 * HEAD_BYTES for step in said.steps)


def rewritten(log: LogFile, said: Replayed) -> Iterator[bytes]:
    """Write the file of a journal anew, without what no step needs any more.

    Args:
        log: The file.
        said: What it comes to.

    Yields:
        Its records.
    """
    yield record(entries.HEADER, HEADER)
    written: set[str] = set()
    names: dict[int, list[str]] = {}
    for name, place in said.checkpoints.items():
        names.setdefault(place, []).append(name)
    for number in range(len(said.steps) + 1):
        for name in names.get(number, ()):
            yield record(entries.CHECKPOINT, entries.checkpoint_payload(name, number))
        if number == len(said.steps):
            break
        step = said.steps[number]
        yield from _contents(log, said, step, written)
        yield record(entries.STEP, entries.step_payload(step)) + record(entries.DONE)
    if said.at < len(said.steps):
        travel = entries.travel_payload(len(said.steps), said.at)
        yield record(entries.TRAVEL, travel) + record(entries.DONE)
    match said.pending:
        case Step() as step:
            yield from _contents(log, said, step, written)
            yield record(entries.STEP, entries.step_payload(step))
        case (start, end):
            yield record(entries.TRAVEL, entries.travel_payload(start, end))
        case None:
            pass


def _contents(log: LogFile, said: Replayed, step: Step, written: set[str]) -> Iterator[bytes]:
    for digest in sorted(entries.digests_of(step) - written):
        written.add(digest)
        yield record(CONTENT, log.read(*said.places[digest]))
