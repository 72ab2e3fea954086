"""The ledger of a journal that outlives its process: what is to be done is written down before it is."""

from collections.abc import Callable

from agentfs.disk import Change, DirectoryState, State
from agentfs.disk.log_file import LogFile
from agentfs.errors import AgentFSError
from agentfs.journal import Ledger, Step
from agentfs.state import entries
from agentfs.state.records import record

MOST_BYTES = 200 * 1024 * 1024  # the largest file that any workspace changes
Look = Callable[[str], State | None]


class KeptLedger(Ledger):
    """Writes a journal to its file.

    Args:
        log: The file.
        look: Returns what stands at a path of the tree.
    """

    def __init__(self, log: LogFile, look: Look) -> None:
        self._log = log
        self.look = look
        self._owed = b""

    def begin_step(self, step: Step) -> None:
        """Write down what is about to be changed, with its contents, and bring it to the disk."""
        self._write(record(entries.STEP, entries.step_payload(step)), sync=True)

    def begin_travel(self, start: int, end: int) -> None:
        """Write down which steps are about to be taken back, or made again."""
        self._write(record(entries.TRAVEL, entries.travel_payload(start, end)), sync=True)

    def settle(self, made: tuple[Change, ...], *, whole: bool) -> None:
        """Write down what came of it.

        It is not brought to the disk: after a power cut the tree tells it as well.
        """
        if whole:
            self._owed = record(entries.DONE)
        elif made:
            self._owed = record(entries.PART, entries.part_payload(made))
        else:
            self._owed = record(entries.VOID)
        self._pay()

    def checkpoint(self, name: str, place: int) -> None:
        """Write down a checkpoint; a later step brings it to the disk."""
        self._write(record(entries.CHECKPOINT, entries.checkpoint_payload(name, place)))

    def standing(self, changes: tuple[Change, ...]) -> tuple[Change, ...]:
        """Return those of some changes that the tree shows to be made."""
        return Found(changes, self.look).made

    def close(self) -> None:
        """Write down what could not be written before, if there is room by now."""
        self._pay()

    def _write(self, content: bytes, *, sync: bool = False) -> None:
        self._log.append(self._owed + content, sync=sync)
        self._owed = b""

    def _pay(self) -> None:
        try:
            if self._owed:
                self._write(b"")
        except AgentFSError:
            return  # the next to write here does it, or whoever opens the file and looks at the tree


class Found:
    """What the tree shows of changes that were begun.

    Args:
        changes: The changes.
        look: Returns what stands at a path.

    Attributes:
        made: Those that were made.
        unmade: Those that were not.
        odd: Those whose path is neither as before nor as after.
    """

    def __init__(self, changes: tuple[Change, ...], look: Look) -> None:
        self.made: tuple[Change, ...] = ()
        self.unmade: tuple[Change, ...] = ()
        self.odd: tuple[Change, ...] = ()
        for change in changes:
            try:
                present = look(change.path)
            except AgentFSError:
                self.odd += (change,)
                continue
            if present == change.after:
                self.made += (change,)
            elif present == change.before:
                self.unmade += (change,)
            else:
                self.odd += (change,)
        if all(_makes_directory(change) for change in self.made) and (self.unmade or self.odd):
            # Directories are made on the way to a file; without the file nothing was made.
            self.unmade += self.made
            self.made = ()
        if self.made:
            # A directory stays where something else is in it.
            self.made += tuple(change for change in self.unmade if _removes_directory(change))
            self.unmade = tuple(change for change in self.unmade if not _removes_directory(change))

    @property
    def whole(self) -> bool:
        """Whether all was made."""
        return not self.unmade and not self.odd


def _makes_directory(change: Change) -> bool:
    return change.before is None and isinstance(change.after, DirectoryState)


def _removes_directory(change: Change) -> bool:
    return isinstance(change.before, DirectoryState) and change.after is None
