"""The steps of a journal in order, how many of them are done, and its checkpoints. Pure.

What takes memory is bounded by number: the oldest steps are put together into one base, which says what they
come to and is not taken apart again.
"""

from collections.abc import Sequence

from agentfs.journal.steps import Step, Sum, Total

MAX_STEPS = 10_000
MAX_CHANGES = 20_000  # of all steps that are kept, and of the base
MAX_CHECKPOINTS = 10_000
_SPARE = 8  # an eighth more than the most is kept, so that steps are put together many at a time


class Timeline:
    """Steps, and a place among them. A place is a number of steps, counted from the beginning of the journal.

    Args:
        bounded: Whether steps are put together when there are many.

    Attributes:
        base: What the oldest steps come to, which were put together.
        first: How many steps those were.
        at: The place: how many steps are done.
        checkpoints: The place of each checkpoint, by its name.
        generation: How often the steps or the place have changed: the numbers may be the same again.
    """

    def __init__(self, *, bounded: bool = True) -> None:
        self._bounded = bounded
        self.base = Total()
        self.first = 0
        self.at = 0
        self.checkpoints: dict[str, int] = {}
        self.generation = 0
        self._steps: list[Step] = []
        self._changes = 0

    @property
    def end(self) -> int:
        """The place behind the last step, which may be undone."""
        return self.first + len(self._steps)

    def between(self, start: int, end: int) -> Sequence[Step]:
        """Return the steps from one place to a later one, both not before `first`."""
        return self._steps[start - self.first : end - self.first]

    def since(self, start: int) -> Sum:
        """Return what is done since a place comes to.

        Args:
            start: The place: 0, or one that is not before `first`.
        """
        total = Total(self.base.sum() if start < self.first else None)
        for step in self.between(max(start, self.first), self.at):
            total.add(step.changes)
        return total.sum()

    def add(self, step: Step) -> None:
        """Do a step, in the place of those that were undone."""
        for dropped in self.between(self.at, self.end):
            self._changes -= len(dropped.changes)
        del self._steps[self.at - self.first :]
        self.checkpoints = {name: place for name, place in self.checkpoints.items() if place <= self.at}
        self._steps.append(step)
        self._changes += len(step.changes)
        self.go(self.at + 1)

    def go(self, place: int) -> None:
        """Go to a place that is not before `first`."""
        self.at = place
        self.generation += 1

    def name(self, checkpoint: str) -> bool:
        """Give the place a name; return whether it was the name of another one before."""
        moved = self.checkpoints.pop(checkpoint, self.at) != self.at
        self.checkpoints[checkpoint] = self.at
        while len(self.checkpoints) > MAX_CHECKPOINTS:
            del self.checkpoints[next(iter(self.checkpoints))]
        return moved

    def due(self) -> int:
        """Return the place before which steps are to be put together; `first` where none are."""
        over = len(self._steps) > MAX_STEPS + MAX_STEPS // _SPARE
        if not self._bounded or (not over and self._changes <= MAX_CHANGES + MAX_CHANGES // _SPARE):
            return self.first
        place, steps, changes = self.first, len(self._steps), self._changes
        while place < self.at - 1 and (steps > MAX_STEPS or changes > MAX_CHANGES):
            changes -= len(self._steps[place - self.first].changes)
            steps -= 1
            place += 1
        return place

    def put_together(self, place: int) -> None:
        """Add the steps before a place, all of them done, to the base."""
        for step in self.between(self.first, place):
            self.base.add(step.changes)
            self._changes -= len(step.changes)
        self.base.cut(MAX_CHANGES)
        del self._steps[: place - self.first]
        self.first = place
        self.checkpoints = {name: there for name, there in self.checkpoints.items() if there >= place}

    def begin(self, base: Sum, first: int) -> None:
        """Begin with a base.

        Args:
            base: What its steps come to.
            first: How many they are.
        """
        self.base = Total(base)
        self.first = self.at = first
