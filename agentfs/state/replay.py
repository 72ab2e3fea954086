"""Reading the file of a journal: what it comes to, and what was under way when its process died."""

from dataclasses import dataclass, field

from agentfs.disk.log_file import LogFile
from agentfs.journal import Step
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
        steps: The steps, those that were taken back too.
        at: How many of them stand.
        checkpoints: How many steps stood at each checkpoint.
        places: Where each content is: start and size.
        pending: What was begun and not settled: a step, or from where to where the journal was to go.
        end: Where the last whole record ends.
    """

    steps: list[Step] = field(default_factory=list[Step])
    at: int = 0
    checkpoints: dict[str, int] = field(default_factory=dict[str, int])
    places: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    pending: Step | Travel | None = None
    end: int = 0

    @property
    def needed(self) -> set[str]:
        """The hashes of the contents that steps name."""
        return {digest for step in self.steps for digest in entries.digests_of(step)}

    def add(self, step: Step) -> None:
        """Let a step stand, in the place of those that were taken back."""
        del self.steps[self.at :]
        for name in [name for name, place in self.checkpoints.items() if place > self.at]:
            del self.checkpoints[name]
        self.steps.append(step)
        self.at += 1


def replayed(log: LogFile, load: Load) -> Replayed:
    """Read the file of a journal.

    Args:
        log: The file.
        load: Returns a content by its hash, once all is read.

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
            if not entries.digests_of(said.pending) <= said.places.keys():
                raise NotWrittenHereError
        case entries.TRAVEL:
            start, end = entries.travel_in(payload)
            if start != said.at or not 0 <= end <= len(said.steps):
                raise NotWrittenHereError
            said.pending = start, end
        case entries.DONE:
            _settle(said, pending)
        case entries.PART if isinstance(pending, Step):
            said.add(entries.part_in(payload, pending))
        case entries.PART if pending is None:
            pass
        case entries.VOID:
            pass
        case entries.CHECKPOINT:
            name, place = entries.checkpoint_in(payload)
            if place != said.at:
                raise NotWrittenHereError
            said.checkpoints.pop(name, None)
            said.checkpoints[name] = place
        case _:
            raise NotWrittenHereError


def _settle(said: Replayed, pending: Step | Travel | None) -> None:
    if isinstance(pending, Step):
        said.add(pending)
    elif pending is not None:
        said.at = pending[1]
