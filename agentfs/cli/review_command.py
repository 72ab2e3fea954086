"""`agentfs review`: decide about changes hunk by hunk, as in `git add -p`."""

import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from itertools import zip_longest
from typing import cast

from agentfs import history
from agentfs.cli.colors import color_style, uses_color
from agentfs.cli.command_options import CommandOptions
from agentfs.cli.output import print_error, print_text
from agentfs.errors import AgentFSError, FileIOError, InvalidArgumentError
from agentfs.fs import Root, quote
from agentfs.fs.settings_file import read_settings
from agentfs.history.review import hunk_lines
from agentfs.limits import Limits
from agentfs.policy import Policy
from agentfs.results import FileReview, Hunk, Review
from agentfs.shown.outputs import OutputStore
from agentfs.shown.read_tracker import ReadTracker
from agentfs.shown.workspace_context import Context
from agentfs.text import one_line, styled_diff
from agentfs.workspace import Workspace

_HELP = """y - keep the change, and do not show it again
n - take the change back, in a step that `agentfs undo` takes back
e - edit the new lines
s - split the change into lines, and decide about each
q - quit; the rest stays as it is
? - print this help"""


def show_review(options: CommandOptions) -> int:
    """Print a review as text, JSON or a page, apply decisions, or ask about each hunk."""
    state = options.state or ""
    asks = sys.stdin.isatty() and sys.stdout.isatty()
    if options.apply or (asks and not (options.json or options.html)):
        with Workspace(history.storage.state.root_of(state), state=state) as workspace:
            if options.apply:
                print_text(str(workspace.apply_review(_marks(options.apply))))
                return 0
            return _Dialog(workspace, options).run()
    with (
        closing(history.storage.state.read_journal(state, options.root)) as journal,
        Root(history.storage.state.root_of(state), Policy(read_only=True)) as root,
    ):
        context = Context(root, ReadTracker(), Limits(), OutputStore())
        review = history.review.review(journal, context, options.since, options.paths)
    print_text(review.to_html() if options.html else review.to_json() if options.json else str(review))
    return 0


def _marks(path: str) -> dict[str, object]:
    """Read a file of decisions."""
    try:
        marks = json.loads(read_settings(path))
    except (ValueError, RecursionError) as error:
        if isinstance(error, AgentFSError):
            raise
        marks = None
    if not isinstance(marks, dict):
        raise InvalidArgumentError(
            f"{quote(path)} has no decisions of a review.", hint="Save them from the page of --html."
        )
    return cast("dict[str, object]", marks)


class _Dialog:
    """Asks about each hunk."""

    def __init__(self, workspace: Workspace, options: CommandOptions) -> None:
        self._workspace, self._options = workspace, options
        self._colors = uses_color(options.color)
        self._review = workspace.review(options.since, options.paths)

    def run(self) -> int:
        """Ask until all hunks are decided or the user quits."""
        for file in self._review.files:
            whole = file.kind not in ("changed", "created")
            for hunk in file.hunks[:1] if whole else file.hunks:
                if not self._decide(file, hunk, whole=whole):
                    break
            else:
                continue
            break
        print_text(self._review.message())
        return 0

    def _decide(self, file: FileReview, hunk: Hunk, *, whole: bool) -> bool:
        """Ask about a hunk, or about all of a file; return False to quit."""
        ids = [each.id for each in (file.hunks if whole else [hunk])]
        print_text(f"{file.kind} {quote(file.path)}, {one_line(hunk.where)}, by {one_line(hunk.by)}")
        for each in file.hunks if whole else [hunk]:
            self._show(each)
        while True:
            answer = _ask("Keep this change [y,n,e,s,q,?]? ")
            try:
                if answer == "y":
                    self._review.accept(ids)
                elif answer == "n":
                    self._review.reject(ids)
                elif answer == "e" and not whole:
                    self._review.edit(hunk.id, _edited("".join(hunk.new_lines)))
                elif answer == "s" and not whole and len(_pieces(hunk)) > 1:
                    return self._split(hunk)
                elif answer == "q":
                    return False
                else:
                    print_text(_HELP)
                    continue
            except AgentFSError as error:
                print_error(f"agentfs: {error}")
            return True

    def _split(self, hunk: Hunk) -> bool:
        """Ask about each line of a hunk; return False to quit, which changes nothing of it."""
        kept: list[str] = []
        taken = False
        for old, new in _pieces(hunk):
            self._show(Hunk("", hunk.path, 1, old, 1, new, ()))
            while (answer := _ask("Keep these lines [y,n,q]? ")) not in ("y", "n", "q"):
                print_text("y - keep them\nn - take them back\nq - quit")
            if answer == "q":
                return False
            kept += new if answer == "y" else old
            taken |= answer == "n"
        if not taken:
            self._review.accept(hunk.id)
            return True
        self._review.edit(hunk.id, "".join(kept))
        rest = self._workspace.review(self._options.since, self._options.paths)
        place = next(each for each in reversed(self._review.places) if each.path == hunk.path)
        first, last = place.line, place.line + max(place.lines - 1, 0)
        left = [each.id for each in _within(rest, hunk.path, first - 1, last)]
        if left:
            rest.accept(left)
        return True

    def _show(self, hunk: Hunk) -> None:
        for line in hunk_lines(hunk):
            print_text(styled_diff(line).render(color_style()) if self._colors else line)


def _within(review: Review, path: str, first: int, last: int) -> Iterator[Hunk]:
    """Yield the hunks of a file in a range of lines."""
    for hunk in review.hunks:
        if hunk.path == path and first <= hunk.new_start <= last:
            yield hunk


def _pieces(hunk: Hunk) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return the pairs of old and new lines."""
    pairs = zip_longest(hunk.old_lines, hunk.new_lines)
    return [((old,) if old else (), (new,) if new else ()) for old, new in pairs]


def _ask(question: str) -> str:
    try:
        return input(question).strip().lower()
    except EOFError:
        return "q"


def _edited(text: str) -> str:
    """Return a text after the user has changed it in an editor."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.NamedTemporaryFile("w+", suffix=".txt", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        try:
            subprocess.run([*shlex.split(editor), file.name], check=True)  # noqa: S603 - the user's own editor
        except (OSError, subprocess.CalledProcessError) as error:
            raise FileIOError(f"The editor {quote(editor)} failed: {error}; nothing was changed.") from None
        return read_settings(file.name).decode("utf-8", "replace")
