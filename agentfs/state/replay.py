"""Reading the file of a journal: what it comes to, and what was under way when its process died."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from agentfs.fs import Change
from agentfs.fs.log_file import LogFile
from agentfs.journal import Step, Timeline
from agentfs.state import entries
from agentfs.state.contents import CONTENT, DIGEST_BYTES
from agentfs.state.entries import Load, NotWrittenHereError
from agentfs.state.records import Damage, Record, records

HEADER = b"agentfs journal 1"
Travel = tuple[int, int]


@dataclass
class Replayed:
    """What the file of a journal comes to.

    Attributes:
        line: The steps, those that were undone too.
        places: Where each content is: start and size.
        pending: What was begun and not settled: a step, or from where to where the journal was to go.
        end: Where the last whole record ends.
    """

    line: Timeline = field(default_factory=Timeline)
    places: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    pending: Step | Travel | None = None
    end: int = 0

    @property
    def needed(self) -> set[str]:
        """The hashes of the contents that steps name."""
        steps = self.line.between(self.line.first, self.line.end)
        named = (step.changes for step in steps)
        return entries.digests_of(
            change for changes in (self.line.base.sum().changes, *named) for change in changes
        )


def replayed(log: LogFile, load: Load) -> Replayed:
    """Read the file of a journal.

    Args:
        log: The file.
        load: Returns what loads a content, by its hash, once all is read.

    Returns:
        What it comes to.

    Raises:
        Damage: It does not fit together.
    """
    said = Replayed()
    for found in records(log.read, log.size, passing={CONTENT: DIGEST_BYTES}):
        if (found.place == 0) != (found.kind == entries.HEADER):
            raise Damage(found.place, "it does not begin as a journal does")
        try:
            _take(said, found, load)
        except (NotWrittenHereError, IndexError):
            raise Damage(found.place, "a record says what no journal does") from None
        said.end = found.end
    if not said.end:
        raise Damage(0, "it is empty")
    return said


def _take(said: Replayed, found: Record, load: Load) -> None:
    # An interrupt may leave what was begun and never done before the next, or have a note made twice.
    payload, pending = found.payload, said.pending
    if found.kind != CONTENT:
        said.pending = None
    match found.kind:
        case entries.HEADER if payload == HEADER:
            pass
        case 2:  # CONTENT
            said.places[payload.hex()] = found.start, found.size
        case entries.STEP:
            said.pending = entries.step_in(payload, load)
            _check_known(said, said.pending.changes)
        case entries.TRAVEL:
            start, end = entries.travel_in(payload)
            if start != said.line.at or not said.line.first <= end <= said.line.end:
                raise NotWrittenHereError
            said.pending = start, end
        case entries.DONE:
            _settle(said, pending)
        case entries.PART if isinstance(pending, Step):
            said.line.add(entries.part_in(payload, pending))
        case entries.PART if pending is None:
            pass
        case entries.VOID:
            pass
        case entries.CHECKPOINT:
            name, place = entries.checkpoint_in(payload)
            if place != said.line.at:
                raise NotWrittenHereError
            said.line.name(name)
        case entries.TOGETHER:
            place = entries.together_in(payload)
            if not said.line.first < place <= said.line.at:
                raise NotWrittenHereError
            said.line.put_together(place)
        case entries.BASE if not said.line.end:
            base, first = entries.base_in(payload, load)
            _check_known(said, base.changes)
            said.line.begin(base, first)
        case _:
            raise NotWrittenHereError


def _settle(said: Replayed, pending: Step | Travel | None) -> None:
    if isinstance(pending, Step):
        said.line.add(pending)
    elif pending is not None:
        said.line.go(pending[1])


def _check_known(said: Replayed, changes: Iterable[Change]) -> None:
    if not entries.digests_of(changes) <= said.places.keys():
        raise NotWrittenHereError
