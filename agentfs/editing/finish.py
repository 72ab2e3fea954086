"""Finish the texts of a change: formatters run before they are written, and checks before and after."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from agentfs.editing.rendering import diff_lines
from agentfs.errors import AgentFSError
from agentfs.fs import LinesBy
from agentfs.text import footer, plural, unified_diff
from agentfs.text.diff import git_line_changes, line_count

_PLACE = re.compile(r"\d+")
Texts = Mapping[str, str]  # by real path


class Filtered(NamedTuple):
    """The outcome of one formatter: the texts that it has changed, by real path, and notes."""

    name: str
    texts: Texts
    notes: tuple[str, ...] = ()


class Findings(NamedTuple):
    """The lines that one check has printed, and the most that are shown."""

    name: str
    lines: tuple[str, ...]
    most: int
    notes: tuple[str, ...] = ()


class Finisher(Protocol):
    """Runs the formatters and checks of `Policy.after_change`."""

    def filtered(self, texts: Texts) -> Sequence[Filtered]:
        """Run the formatters on texts that are not written yet."""
        ...

    def findings(self, texts: Texts) -> Sequence[Findings]:
        """Run the checks on files with these texts."""
        ...


class Finished(NamedTuple):
    """The texts of a change after all formatters, and the findings of the checks before it."""

    texts: Texts
    by_others: tuple[LinesBy, ...] = ()
    notes: tuple[str, ...] = ()
    names: tuple[str, ...] = ()  # of the formatters that changed anything
    before: Sequence[Findings] = ()

    def without_formats(self, edited: str, error: AgentFSError) -> "Finished":
        """Return this for the one text as it was edited, because the formatted one cannot be written."""
        note = f"what {', '.join(self.names)} made of it was not written: {error.message}"
        return Finished(dict.fromkeys(self.texts, edited), notes=(*self.notes, note), before=self.before)

    def diff(self, path: str, edited: str, display: str) -> str:
        """Return what the formatters changed in a text, or ""."""
        return unified_diff(edited, self.texts.get(path, edited), display)

    def shown(self, diff: str) -> list[str]:
        """Return the lines for a result about the diff of a formatter."""
        return [footer(f"then changed by {', '.join(self.names)}"), *diff_lines(diff)] if diff else []


def finish(finisher: Finisher | None, before: Texts, edited: Texts) -> Finished:
    """Run the formatters on edited texts, and the checks on the present ones.

    Args:
        finisher: Runs them; None if there are none.
        before: The present texts by real path, without new files.
        edited: The new texts.
    """
    if finisher is None:
        return Finished(edited)
    texts = {**edited}
    authors: dict[str, list[tuple[str, str] | None]] = {}
    names: list[str] = []
    notes: list[str] = []
    for name, changed, said in finisher.filtered(edited):
        notes += said
        for path, text in changed.items():
            old = authors.get(path) or [None] * line_count(texts[path])
            new: list[tuple[str, str] | None] = []
            end = 0
            for start, old_end, new_start, new_end in git_line_changes(texts[path], text):
                new += [*old[end:start], *[("formatter", name)] * (new_end - new_start)]
                end = old_end
            authors[path], texts[path] = [*new, *old[end:]], text
            names += [] if name in names else [name]
    by_others = [each for path, lines in authors.items() for each in LinesBy.of(path, lines)]
    return Finished(texts, tuple(by_others), tuple(notes), tuple(names), finisher.findings(before))


def new_findings(finisher: Finisher | None, finished: Finished) -> tuple[str, ...]:
    """Run the checks on the finished texts, and return a note for each that found something new."""
    if finisher is None:
        return finished.notes
    known = {each.name: Counter(_PLACE.sub("", line) for line in each.lines) for each in finished.before}
    notes = [*finished.notes]
    for name, lines, most, said in finisher.findings(finished.texts):
        left = known.get(name, Counter[str]())
        new: list[str] = []
        for line in lines:
            text = _PLACE.sub("", line)
            if left[text] > 0:
                left[text] -= 1
            else:
                new.append(line)
        more = [f"… ({plural(len(new) - most, 'more line')})"] if len(new) > most else []
        notes += [*said, *(["\n".join([f"new findings of {name}:", *new[:most], *more])] if new else [])]
    return tuple(notes)
