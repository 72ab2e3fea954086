"""The ledger of a journal that outlives its process: what is to be done is written down before it is."""

from contextlib import suppress

from agentfs.errors import AgentFSError
from agentfs.fs import Change
from agentfs.fs.log_file import LogFile
from agentfs.journal import Ledger, Look, Step
from agentfs.state import entries
from agentfs.state.records import record


class KeptLedger(Ledger):
    """Writes a journal to its file.

    Args:
        log: The file.
        look: Returns what stands at a path of the tree.
    """

    def __init__(self, log: LogFile, look: Look) -> None:
        super().__init__(look)
        self._log = log
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

    def put_together(self, place: int) -> None:
        """Write down that the steps before a place were put together.

        Where that fails they are put together when the file is next opened.
        """
        with suppress(AgentFSError):
            self._write(record(entries.TOGETHER, entries.together_payload(place)))

    def checkpoint(self, name: str, place: int) -> None:
        """Write down a checkpoint; a later step brings it to the disk."""
        self._write(record(entries.CHECKPOINT, entries.checkpoint_payload(name, place)))

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
