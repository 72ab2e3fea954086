"""`edit` and `multi_edit`: replace texts in one file; dialects also replace ranges.

No earlier read is required, because the old text proves that the caller knows the content.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from operator import itemgetter

from agentfs.base import call_context
from agentfs.base.advice import Advice, Joined, ParameterName, Retry, ToolName, plural
from agentfs.editing.change_options import Spans
from agentfs.editing.commit import EditTarget, commit
from agentfs.editing.draft import AS_JSON, Draft, FileEdit
from agentfs.editing.explain import KnownTexts, explain_ambiguous, explain_no_match, has_other_cause
from agentfs.editing.match import (
    NEW,
    OLD,
    check_line_numbers,
    occurrences,
    shown_characters,
    tolerant_matches,
)
from agentfs.editing.rendering import with_diff
from agentfs.errors import (
    AgentFSError,
    AmbiguousError,
    DeadlineExceededError,
    InvalidArgumentError,
    NoChangeError,
    NoMatchError,
    NotFoundError,
    OverlapError,
    must_be,
)
from agentfs.fs import Current, quote
from agentfs.policy import Matching
from agentfs.results import Edit, EditResult
from agentfs.text.display import line_ranges
from agentfs.text.lines import EditView, Replacement, count_lines, line_start, newline_of

_PLAIN = {"exact", "line_id", "offset"}


def edit_file(target: EditTarget, edits: Sequence[Edit], expect: int | None = None) -> EditResult:
    """Replace texts in a file in order, each in the outcome of the edit before it, all or none."""
    check_any("edits", edits)
    check_expect(expect)

    def compute(draft: Draft) -> FileEdit:
        known = KnownTexts(target.context, draft.current.real_path)
        edited = apply_edits(draft, edits, target.context.root.policy.match, known)
        if expect is not None:
            check_count(expect, edited.replacements, quote(draft.path), path=draft.path)
        is_wide = edited.replacements > 1 and all(edit.replace_all for edit in edits) and not target.preview
        return replace(edited, shows_diff=False) if is_wide else edited

    return change_file(target, compute, "replacement", creates=not edits[0].old_string)


def check_any(name: str, changes: Sequence[object]) -> None:
    """Raise an error for an empty list of changes."""
    if not changes:
        message = Advice(ParameterName(name, quoted=True), " is empty.")
        raise InvalidArgumentError(message, hint="Pass at least one.", details={"parameter": name})


def check_expect(expect: int | None) -> None:
    """Raise an error if `expect` is less than 1."""
    if expect is not None and expect < 1:
        raise must_be("expect", "1 or more", expect, "Leave it out for any number.")


def check_count(expect: int, count: int, where: str, **details: object) -> None:
    """Raise an error if a text was not replaced as often as expected."""
    if count != expect:
        raise AmbiguousError(
            Advice(OLD, f" is {plural(count, 'time')} in {where}, not {expect} as expected."),
            hint=Advice("Nothing was changed. If each is meant, ", Retry({"expect": count}), "."),
            details={"count": count, "expect": expect, **details},
        )


def change_file(
    target: EditTarget, compute: Callable[[Draft], FileEdit], unit: str, *, creates: bool = False
) -> EditResult:
    """Change the text of a file and render the result.

    Args:
        target: The file and the terms.
        compute: Changes a draft and returns the edit.
        unit: The noun for one replacement.
        creates: Begin a missing file.
    """
    limits, preview = target.context.limits, target.preview

    def edited(current: Current) -> FileEdit:
        if current.data is None and not creates:
            glob = Advice(ToolName("glob"), " to find the file")
            write = Advice(ToolName("write"), f" to create {quote(current.path)}")
            raise NotFoundError(
                f"{quote(current.path)} does not exist, so there is nothing to edit.",
                hint=Advice("Call ", Joined(", or ", glob, write), "."),
                details={"path": current.path},
            )
        return compute(Draft(current, limits, target.encoding, raw=target.raw))

    path, edit, final, revision, notes, below = commit(target, edited)
    counts, newline = (edit.replacements, edit.applied_via), newline_of(edit.before.source)
    result = EditResult(
        path, *counts, final.diff, final.changed, revision, edit.lines, newline, edit.creates, notes=notes
    )
    how = ""
    if edit.creates:
        done, diff = "would create" if preview else "Created", ""
        what = f"{quote(path)}: {plural(count_lines(edit.after.source), 'line')}"
    else:
        done, diff = "would edit" if preview else "Edited", edit.shown_diff if edit.shows_diff else ""
        count = f": {edit.replacements} {unit}s" if edit.replacements > 1 else ""
        what = f"{line_ranges(edit.changed)}{count}"
        if edit.applied_via not in _PLAIN:
            how = Advice("; ", OLD, f" was found by {edit.applied_via.replace('_', ' ')}")
    done = f"Preview, nothing was written: {done}" if preview else done
    return with_diff(result, limits, Joined("", f"{done} {what}", how, "."), diff, below)


def insert_lines(target: EditTarget, line: int, text: str) -> EditResult:
    """Insert a text as lines of its own after a line; 0 is the beginning of the file."""

    def span(content: str) -> tuple[Spans, Sequence[str]]:
        total = count_lines(content)
        if not 0 <= line <= total:
            why = f"It should be within the range of lines of the file: [0, {total}]"
            raise InvalidArgumentError(
                f"Invalid `insert_line` parameter: {line}. {why}",
                details={"parameter": "insert_line", "total_lines": total},
            )
        at, body = line_start(content, line + 1, "\n"), text.replace("\r\n", "\n").removesuffix("\n")
        is_begun = content[:at].endswith("\n") or not at  # else the last line has no line end
        return [(at, at, f"{body}\n" if is_begun else f"\n{body}")], ()

    return splice_file(target, span)


def splice_file(
    target: EditTarget, spans: Spans | Callable[[str], tuple[Spans, Sequence[str]]]
) -> EditResult:
    """Replace ranges of the LF view of a file in one write.

    Args:
        target: The file and the terms.
        spans: The ranges and their new texts, or a function of the view that returns them and notes.
    """

    def compute(draft: Draft) -> FileEdit:
        wanted, notes = spans(draft.view.text) if callable(spans) else (spans, ())
        draft.replace(_ordered(draft.view, wanted, draft.path))
        return draft.finish("offset", notes=tuple(notes))

    return change_file(target, compute, "replacement")


def check_edit(edit: Edit) -> None:
    """Raise an error for an edit that no file could accept."""
    for name in ("old_string", "new_string"):  # a program's mapping may have other values
        if not isinstance(value := getattr(edit, name), str):
            raise must_be(name, "a text", value, "")
    if not edit.old_string:
        raise InvalidArgumentError(
            Advice(OLD, " is empty."),
            hint=Joined(
                " ",
                Advice("To insert, pass as ", OLD, " a line next to the place, and as ", NEW, " both."),
                Advice("To create a file or replace its whole content, call ", ToolName("write"), "."),
            ),
            details={"parameter": "old_string"},
        )
    # A program's mapping may have other values than texts; these are a TypeError.
    if str.replace(edit.old_string, "\r\n", "\n") == str.replace(edit.new_string, "\r\n", "\n"):
        message = Advice(
            OLD, " and ", NEW, " are the same, or differ only in line ends, which an edit keeps."
        )
        raise NoChangeError(message, hint=Advice("Set ", NEW, " to the text you want."))


def apply_edits(
    draft: Draft, edits: Sequence[Edit], match: Matching = "tolerant", known: KnownTexts | None = None
) -> FileEdit:
    """Apply edits in order, each to the outcome of the previous one; the first failure ends the call."""
    steps: list[str] = []
    for number, edit in enumerate(edits, 1):
        call_context.check()
        try:
            via = _apply_edit(draft, edit, match, known or KnownTexts())
        except DeadlineExceededError:
            raise
        except AgentFSError as error:
            raise error if len(edits) == 1 else _of_many(error, number, len(edits)) from None
        if via not in {"exact", *steps}:
            steps.append(via)
    return draft.finish(", ".join(steps) or "exact")


def _of_many(error: AgentFSError, number: int, total: int) -> AgentFSError:
    """Return the error of one of several edits."""
    hints = [error.hint, "None of the edits was applied; correct this one and pass them all again."]
    if error.details.get("cause") == "already_applied":
        hints = ["None of the edits was applied; leave this one out and pass the others again."]
    hint = Joined(" ", *hints, "Line numbers count the edits before it as applied." if number > 1 else "")
    details = {**error.details, "edit": number, "edits": total}
    return type(error)(Advice(f"Edit {number} of {total}: ", error.message), hint=hint, details=details)


def _apply_edit(draft: Draft, edit: Edit, match: Matching, known: KnownTexts) -> str:
    """Apply one edit; return the name of the step that found its old text."""
    if draft.current.data is None and not (draft.view.source or edit.old_string):
        check_line_numbers(NEW, edit.new_string, "")
        draft.replace([Replacement(0, 0, edit.new_string)])
        return "exact"
    check_edit(edit)
    view = draft.view
    old, new = view.lf(edit.old_string), view.lf(edit.new_string)
    via, found = "", list[Replacement]()
    if edit.replace_all:
        shown = old if match == "exact" or old in view.text else shown_characters(old, view.text)
        if draft.places(shown):
            check_line_numbers(NEW, new, old)
            draft.replace_all(shown, new if shown == old else shown_characters(new, shown))
            return "exact" if shown == old else "visible_escapes"
    elif len(places := draft.places(old)) == 1:
        via, found = "exact", [Replacement(places[0], places[0] + len(old), new)]
    elif not places and match == "tolerant":
        via, found = tolerant_matches(view.text, old, new)
        found = [each for each in found if view.is_editable(each.start, each.end)]
        if len(found) > 1 or has_other_cause(view.text, old, new, known):
            found = []
    if not found:
        raise _not_once(draft, old, new, known)
    check_line_numbers(NEW, new, old, view.text.count("\n", 0, found[0].start) + 1)
    draft.replace(found)
    return via


def _not_once(draft: Draft, old: str, new: str, known: KnownTexts) -> AgentFSError:
    """Return the error for an old text that does not occur exactly once where it can be edited."""
    text, path = draft.view.text, draft.path
    shown = shown_characters(old, text)
    if shown != old and len(draft.places(shown)) != 1:
        old = shown  # explain the characters that the escapes stand for
    if places := draft.places(old):
        return explain_ambiguous(text, old, places, path)
    if found := occurrences(text, old):
        line = text.count("\n", 0, found[0]) + 1
        return NoMatchError(
            Advice(OLD, f" is in line {line} of {quote(path)}, but not in the source of one cell."),
            hint=Joined(" ", "Only the source of a cell can be edited, one cell at a time.", AS_JSON),
            details={"path": path, "cause": "absent", "lines": [line, line]},
        )
    error = explain_no_match(text, old, new, path, known)
    if draft.current.data is None:
        hint = "The file does not exist yet: the earlier edits give its text."
        return type(error)(error.message, hint=hint, details=error.details)
    if not old.isascii() and (hint := draft.encoding_hint):
        return NoMatchError(error.message, hint=Joined(" ", error.hint, hint), details=error.details)
    return error


def _ordered(view: EditView, spans: Spans, path: str) -> Iterator[Replacement]:
    """Yield spans in order; refuse those that overlap, or are outside the text."""
    size, before = len(view.text), 0
    for start, end, new in sorted(spans, key=itemgetter(0, 1)):
        if not before <= start <= end <= size:
            is_inside = 0 <= start <= end <= size
            raise (OverlapError if is_inside else InvalidArgumentError)(
                f"The span from {start} to {end} overlaps another, or is outside {quote(path)}, which has"
                f" {plural(size, 'character')} counting each line end as one.",
                details={"path": path, "span": [start, end], "size": size},
            )
        before = end
        yield Replacement(start, end, view.lf(new))
