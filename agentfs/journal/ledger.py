"""What a journal tells of itself while it is kept: here to nobody."""

from agentfs.fs import Change
from agentfs.journal.found import Found, Look
from agentfs.journal.steps import Step


class Ledger:
    """Where a journal writes itself down, if anywhere.

    What is begun is settled before anything else is begun, under the lock of the journal.

    Args:
        look: Returns what stands at a path of the tree; None where nobody can tell.
    """

    def __init__(self, look: Look | None = None) -> None:
        self._look = look

    def begin_step(self, step: Step) -> None:
        """Write down what is about to be changed.

        Args:
            step: The changes.

        Raises:
            FileIOError: io: it cannot be written, so the change must not be made.
        """

    def begin_travel(self, start: int, end: int) -> None:
        """Write down that steps are about to be taken back, or made again.

        Args:
            start: How many stand.
            end: How many are to stand.

        Raises:
            FileIOError: As `begin_step`.
        """

    def settle(self, made: tuple[Change, ...], *, whole: bool) -> None:
        """Write down what came of that which was begun; it never fails.

        Args:
            made: What was made of a step.
            whole: Whether all was made.
        """

    def put_together(self, place: int) -> None:
        """Write down that the steps before a place were put together; it never fails.

        Args:
            place: The place.
        """

    def checkpoint(self, name: str, place: int) -> None:
        """Write down a checkpoint.

        Args:
            name: Its name.
            place: How many steps stand there.

        Raises:
            FileIOError: io: it cannot be written.
        """

    def standing(self, changes: tuple[Change, ...]) -> tuple[Change, ...]:
        """Return those of some changes that the tree shows to be made.

        Args:
            changes: What was to be made when it was interrupted.
        """
        return Found(changes, self._look).made if self._look is not None else ()

    def close(self) -> None:
        """Let go of what is held."""
