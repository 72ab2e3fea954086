"""The change of a text file: open, decode, compute the new text (pure), replace, record, render.

The text of the result has the diff, bounded, and warnings about placeholders for left-out text.
"""

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple, TypeVar

from agentfs import call_context
from agentfs.advice import Advice, Joined, NextCall, ParameterName, ToolName, call
from agentfs.editing.document import Document, Draft, Edited, changed_ranges
from agentfs.errors import AlreadyExistsError, BinaryError, NotFoundError, StaleError, UnreadError
from agentfs.fs import Current, Root, quote, revision_of
from agentfs.limits import Limits
from agentfs.policy import Overwrite
from agentfs.read_tracker import Hunk, ReadTracker
from agentfs.results import EditResult, WriteResult
from agentfs.text import (
    CUT_MARK,
    Shrink,
    around_changes,
    bounded_lines,
    carriage_return_note,
    count_lines,
    declared_encoding,
    decode,
    fitted,
    footer,
    is_binary,
    lf_view,
    line_changes,
    line_ranges,
    newline_of,
    plural,
    quoted,
    unified_diff,
)

_OLD, _NEW = ParameterName("old_string"), ParameterName("new_string")
_FOUND_BY = {
    "trailing_whitespace": Advice(_OLD, " was found with white space at line ends ignored"),
    "indentation": Advice(_OLD, " was found at another indentation, and ", _NEW, " shifted to it"),
    "typography": Advice(_OLD, " was found with typographic characters taken for plain ones"),
    "visible_escapes": Advice(_OLD, " was found with ⟦U+…⟧ taken for the character shown so"),
}

_DIFF_LINES = 120
_EXTERNAL_DIFF_LINES = 40
_DIFF_CHARS = 8000
# Of more consecutive lines that came in, or were replaced, so many are shown at either end.
_RUN_ENDS = 4
# Possessive: a run of millions of lines is passed without a record of each.
_SENT_LINES = re.compile(r"^(?:\+.*+\n){13,}+|^(?:-.*+\n){13,}+", re.MULTILINE)
_MOST_WARNINGS = 3
_MOST_CANDIDATES = 1000
# Each repeat is bounded, and those before the text possessive: a line may have millions of blanks.
_COMMENT = re.compile(
    r"^\+[ \t]{0,200}+"
    r"(?:(?:#{1,9}+|/{2,9}+|/\*{1,9}+|<!--|\{/\*|--|;{1,9}+|%{1,9}+|[(\[<])[ \t]{0,9}+|(?=\.\.\.|…))"
    r"(?=[^\n]{0,80}(?:exist|rest|remain|unchanged|omitted|previous|original|same))"
    r"([^\r\n]{4,80}?)[ \t]{0,9}(?:\*/\}?|-->|[)\]>])?[ \t]{0,9}\r?$",
    re.MULTILINE | re.IGNORECASE,
)
_CUT_LINE = re.compile(rf"^\+.*?({CUT_MARK})", re.MULTILINE)
_ELLIPSIS = re.compile(r"^\W{0,2}(?:\.\.\.|…)|(?:\.\.\.|…)\W{0,2}$")
_LEFT_OUT = re.compile(
    r"\b(?:existing|rest|remaining|remainder|unchanged|omitted|previous|original|same)\b", re.IGNORECASE
)
_OMISSION_WORD = re.compile(
    rf"{_LEFT_OUT.pattern}|the|of|your|this|all|my|other|and|in|for|keep|as|before|is|are|remains?|stays?|here|goes|no"
    "|changes?|code|file|contents?|class(?:es)?|methods?|functions?|implementation|module|body|imports?|tests?"
    "|logic|component|configuration|script|document|section|lines|text|page"
)


R = TypeVar("R", EditResult, WriteResult)


class ExternalChanges(NamedTuple):
    """How a file differs from what was read of it last: a note, its diff for a model, the lines replaced."""

    note: str
    diff: tuple[str, ...]
    hunks: tuple[Hunk, ...]


@dataclass(frozen=True)
class EditTarget:
    """A file, its codec, the only version of it that may be changed, and how the change is made.

    With `preview` nothing is written, with `raw` the file may become unreadable as what it is.
    """

    root: Root
    tracker: ReadTracker
    limits: Limits
    path: str
    encoding: str | None = None
    expect_revision: str | None = None
    preview: bool = False
    raw: bool = False


def change_file(
    target: EditTarget, compute: Callable[[Draft, Current], Edited], *, unit: str, diff_if_many: bool = True
) -> EditResult:
    """Change a text file as `compute` makes it of a draft; `unit` is what the result counts.

    Without `diff_if_many` the text of a result with several replacements only says which lines they are in.
    """
    tracker, limits, preview = target.tracker, target.limits, target.preview

    def change(current: Current) -> tuple[bytes, tuple[Document, Edited, ExternalChanges | None, str]]:
        before = _decode(current, target.encoding)
        check_revision(current, before.text, tracker, target.expect_revision)
        edited = compute(Draft(before, current.path, limits, raw=target.raw), current)
        # What takes time is done before the file is replaced: from then on nothing ends the call.
        known = tracker.knows(current.real_path)
        external = external_changes(tracker, current, before.text) if known else None
        call_context.check()
        diff = unified_diff(before.text, edited.document.text, current.path, changes=edited.hunks)
        warnings = (*placeholder_notes(diff), *_encoding_notes(before, edited.document))
        call_context.check()
        edited = edited._replace(notes=(*edited.notes, *warnings))
        return edited.document.data, (before, edited, external, diff)

    changed, (before, edited, external, diff) = target.root.update(
        target.path, change, max_bytes=limits.file_bytes, preview=preview
    )
    text = edited.document.text
    total = count_lines(text)
    if not preview:
        record_edit(tracker, changed.real_path, before, edited.document, edited.hunks, external)
    ranges = changed_ranges(edited.hunks, total)
    notes = (*changed.notes, *edited.notes, *([external.note] if external else ()))
    done = "Would edit (preview: nothing was written)" if preview else "Edited"
    counted = f"{done} {quote(changed.path)}: {plural(edited.replacements, unit)}"
    found_by = [_FOUND_BY[step] for step in edited.applied_via.split(", ") if step in _FOUND_BY]
    head = Advice(Joined("; ", counted, *found_by), f", {line_ranges(ranges)}.")
    result = EditResult(
        path=changed.path,
        replacements=edited.replacements,
        applied_via=edited.applied_via,
        diff=diff,
        changed=ranges,
        revision=changed.revision,
        newline=newline_of(before.text),
        notes=notes,
        lines_changed=edited.lines,
    )
    known = edited.replacements > 1 and not diff_if_many and not preview
    return with_diff(result, limits, "" if known else diff, [head, *notes], external.diff if external else ())


def _encoding_notes(before: Document, after: Document) -> list[str]:
    """Return a warning where a file has come to name another encoding than the one that it keeps."""
    if after.text.isascii():
        return []
    named = declared_encoding(after.text)
    if named in {None, after.decoded.encoding, declared_encoding(before.text)}:
        return []
    kept = f"and is still in {after.decoded.encoding}; to convert it, write all of it"
    return [f"warning: the file names the encoding {named} now, {kept}"]


def record_edit(
    tracker: ReadTracker,
    real_path: str,
    before: Document,
    after: Document,
    hunks: Sequence[Hunk],
    external: ExternalChanges | None,
) -> None:
    """Carry what was read of a file over to what a change made of it."""
    if not tracker.knows(real_path):
        return
    revision = revision_of(before.data)
    if external is not None:
        tracker.record_external_change(real_path, revision, before.text, external.hunks)
    total = count_lines(after.text)
    tracker.record_edit(real_path, revision, revision_of(after.data), after.text, hunks=hunks, total=total)


def _decode(current: Current, encoding: str | None) -> Document:
    if current.data is None:
        glob = Advice(ToolName("glob"), " to find the file")
        write = Advice(ToolName("write"), f" to create {quote(current.path)}")
        raise NotFoundError(
            f"{quote(current.path)} does not exist, so there is nothing to edit.",
            hint=Advice("Call ", Joined(", or ", glob, write), "."),
            details={"path": current.path},
        )
    try:
        return Document.of(current.data, encoding)
    except BinaryError as error:
        raise BinaryError(
            f"{quote(current.path)} is binary, and only text can be edited.",
            hint="Leave the file as it is, or choose another path.",
            details={**error.details, "path": current.path},
        ) from None


def diff_lines(diff: str, max_lines: int = _DIFF_LINES) -> list[str]:
    """Return the lines of a diff of one file for a model: bounded, without the names of the files."""
    start = diff.find("\n@@ ") + 1
    if not start:
        return []
    count = diff.count("\n", start)
    end = start
    for _ in range(min(max_lines, count)):
        end = diff.index("\n", end) + 1
    lines = diff[start:end].split("\n")[:-1]
    if diff.count("\r\n", start) == count - diff.count("\n@@ ") - diff.count("\n\\ "):
        # The whole file has them: on every line they would only be in the way.
        lines = [line.removesuffix("\r") for line in lines]
    shown = bounded_lines(around_changes(lines), _DIFF_CHARS)
    if more := count - len(shown):
        way = Advice("call ", ToolName("read"), " to see the file")
        shown.append(footer(f"{plural(more, 'more line')} of the diff", way))
    note = carriage_return_note("".join(shown))
    return [*shown, footer(note)] if note else shown


def with_diff(result: R, limits: Limits, diff: str, before: Sequence[str], after: Sequence[str] = ()) -> R:
    """Give a result its text: as much of the diff as the limits allow, between other lines.

    Of a long run of lines that came in or were replaced, which the model has just sent, it has the ends.
    """
    shortened = _SENT_LINES.sub(_ends_of_run, diff)

    def render(max_lines: int) -> R:
        return replace(result, text=Joined("\n", *before, *diff_lines(shortened, max_lines), *after))

    def render_without(_: int) -> R:
        omitted = [footer("the diff is not shown")] if diff else []
        return replace(result, text=Joined("\n", *before, *omitted, *after))

    return fitted(limits, Shrink(_DIFF_LINES, render), Shrink(1, render_without))


def _ends_of_run(run: re.Match[str]) -> str:
    first = run[0].split("\n", _RUN_ENDS)[:-1]
    last = run[0].rsplit("\n", _RUN_ENDS + 1)[1:]
    how = "came in, as sent" if run[0].startswith("+") else "were removed"
    omitted = footer(f"{run[0].count(chr(10)) - 2 * _RUN_ENDS} more lines {how}")
    return "\n".join([*first, omitted, *last])


def placeholder_notes(diff: str) -> list[str]:
    """Return a warning for each line of a new text that looks like a placeholder for left-out text."""
    candidates = islice(_COMMENT.finditer(diff), _MOST_CANDIDATES)
    comments = dict.fromkeys(found[0][1:].strip() for found in candidates if _omits(found[1]))
    marks = dict.fromkeys(found[1] for found in islice(_CUT_LINE.finditer(diff), _MOST_CANDIDATES))
    if not (suspected := [*islice(comments, _MOST_WARNINGS), *islice(marks, _MOST_WARNINGS)]):
        return []
    removed = "\n".join(re.findall("^-.*", diff, re.MULTILINE))
    how = "looks like a placeholder for left-out text; it was written as it is"
    return [f'warning: "{quoted(line)}" {how}' for line in suspected if line not in removed]


def _omits(body: str) -> bool:
    """Return whether the text of a comment says nothing but that other text is left out."""
    words = re.findall(r"[a-z]+", body.lower())
    others = sum(_OMISSION_WORD.fullmatch(word) is None for word in words)
    if "'" in body or '"' in body or not _LEFT_OUT.search(body):
        return False
    if _ELLIPSIS.search(body):
        return others <= 2 and len(words) <= 9 and (len(words) > 1 or words[0] in {"unchanged", "omitted"})
    return not others and (len(words) > 2 or words[0] in {"existing", "unchanged"})


def external_changes(tracker: ReadTracker, current: Current, text: str) -> ExternalChanges | None:
    """Compare a file with the version read last; None where they are the same, or none is known."""
    last = tracker.last(current.real_path)
    revision = current.revision or ""
    if last is None or last.revision == revision or tracker.fully_read(current.real_path, revision):
        return None
    if last.text is None:
        # Which lines are still the same is not known, so none of them counts as read.
        every = Hunk(0, sys.maxsize, 0, sys.maxsize)
        return ExternalChanges("the file had changed since it was shown", (), (every,))
    hunks = tuple(Hunk(*change) for change in line_changes(lf_view(last.text), lf_view(text)))
    now = [(hunk.new_start + 1, max(hunk.new_end, hunk.new_start + 1)) for hunk in hunks]
    where = f"before this edit, {line_ranges(now)}" if hunks else "in its line ends only"
    lines = diff_lines(unified_diff(last.text, text, "file"), _EXTERNAL_DIFF_LINES)
    head = [footer("what had changed since it was shown")] if lines else []
    return ExternalChanges(f"the file had changed since it was shown: {where}", (*head, *lines), hunks)


def check_revision(current: Current, text: str, tracker: ReadTracker, expected: str | None) -> None:
    """Refuse to change a version other than the one expected."""
    if expected is None or expected == current.revision:
        return
    records = tracker.versions_with_text(current.real_path)
    before = next((record.text for record in records if record.revision == expected), None)
    raise _stale(current, text, before, expected)


def check_overwrite(current: Current, tracker: ReadTracker, overwrite: Overwrite) -> None:
    """Refuse to replace a file whose present version this workspace has not read whole."""
    if current.data is None or current.revision is None or overwrite == "always":
        return
    path, details = quote(current.path), {"path": current.path, "revision": current.revision}
    if overwrite == "never":
        edit = Advice("call ", ToolName("edit"), " to change a part of it")
        raise AlreadyExistsError(
            f"{path} exists already, and existing files are not replaced here.",
            hint=Advice(Joined(", or ", "Choose another path", edit), "."),
            details={"path": current.path},
        )
    if tracker.fully_read(current.real_path, current.revision):
        return
    last = tracker.last(current.real_path)
    read = call("read", path=current.path)
    binary = is_binary(current.data)
    if last is None and binary:
        other = Joined(", or ", "choose another path", Advice("delete it first with ", ToolName("delete")))
        raise UnreadError(
            f"{path} is a binary file that was not shown: all of it would be replaced.",
            hint=Joined(
                " ",
                Advice("Call ", read, " first if it is an image."),
                Advice("No read shows other binaries: ", other, "."),
            ),
            details=details,
        )
    if last is None:
        raise UnreadError(
            f"{path} exists already and has not been read: writing would replace all of it.",
            hint=_read_or_edit(read, "it"),
            details=details,
        )
    text = None if binary else decode(current.data).text
    if last.revision != current.revision:
        raise _stale(current, text, last.text, last.revision)
    missing = last.missing()
    count = sum(end - start + 1 for start, end in missing)
    start, end = missing[0]
    raise UnreadError(
        f"Only a part of {path} has been read: {line_ranges(missing)} "
        f"({count} of {plural(last.total, 'line')}) would be replaced unseen.",
        hint=_read_or_edit(call("read", path=current.path, offset=start, limit=end - start + 1), "the file"),
        details={**details, "unread_lines": [list(lines) for lines in missing]},
    )


def _stale(current: Current, text: str | None, before: str | None, expected: str) -> StaleError:
    """Return the error for another version than expected, with the difference where both texts are known."""
    details: dict[str, object] = {
        "path": current.path,
        "revision": current.revision,
        "shown_revision": expected,
    }
    message = f"{quote(current.path)} has changed since it was shown"
    read = call("read", path=current.path)
    hint = Advice("Call ", read, ", then make the change again with that taken in.")
    if before is None or text is None:
        return StaleError(f"{message}.", hint=hint, details=details)
    diff = unified_diff(before, text, current.path)
    details |= {"diff": diff, "places": diff_lines(diff)}
    return StaleError(f"{message}; this is what changed:", hint=hint, details=details)


def _read_or_edit(read: NextCall, what: str) -> Advice:
    ways = Joined(", or ", Advice(read, " first"), Advice(ToolName("edit"), f" to change a part of {what}"))
    return Advice("Call ", ways, ".")
