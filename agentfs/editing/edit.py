"""`edit`, `multi_edit` and `splice`: replace texts or ranges in one file.

No earlier read is required, because the old text proves that the caller knows the content.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any, cast

from agentfs.base import call_context
from agentfs.base.advice import Advice, Joined, ParameterName, Retry, ToolName
from agentfs.editing.change_file import EditTarget, change_file
from agentfs.editing.draft import Draft, Edited, nul_error
from agentfs.editing.explain import (
    KnownTexts,
    explain_ambiguous,
    explain_earlier_edit,
    explain_no_match,
    explain_review,
    has_other_cause,
)
from agentfs.editing.match import NEW, OLD, occurrences, shown_characters, tolerant_matches
from agentfs.errors import (
    AgentFSError,
    AmbiguousError,
    DeadlineExceededError,
    InvalidArgumentError,
    NoChangeError,
    NoMatchError,
    OverlapError,
    must_be,
)
from agentfs.fs import quote
from agentfs.policy import Matching
from agentfs.reading.notebook import AS_JSON, text_as_edited
from agentfs.results import Edit, EditResult
from agentfs.text import EditView, LineNames, Replacement, first_names, footer, lf_view, plural

_REPLACES_ALL = attrgetter("replace_all")
_WITH_NEIGHBOUR = " with the text of a line beside them, in both the old and the new text."
# The most edits whose numbers an error lists.
_MOST_NUMBERS = 20
_MOST_FAILED = 20  # failed edits of one call that are explained

_Span = tuple[int, int, str]


def edit_file(target: EditTarget, edits: Sequence[Edit], expect: int | None = None) -> EditResult:
    """Replace texts in a file in order, all or none."""
    root, tracker, _, _ = target.context
    if not edits:
        raise InvalidArgumentError(
            Advice(ParameterName("edits", quoted=True), " is empty."),
            hint="Pass at least one edit.",
            details={"parameter": "edits"},
        )
    if expect is not None and expect < 1:
        raise must_be("expect", "1 or more", expect, "Leave it out for any number.")

    def compute(draft: Draft) -> Edited:
        real_path = draft.current.real_path

        def versions() -> list[str]:
            texts = [version.text or "" for version in tracker.versions_with_text(real_path)]
            return [text_as_edited(draft.path, text) for text in texts] if draft.by_cell else texts

        def other_files() -> list[tuple[str, str]]:
            read = [(path, text) for path, text in tracker.other_texts(real_path) if root.may_show(path)]
            return [(root.display_path(path), text_as_edited(path, text)) for path, text in read]

        try:
            edited = apply_edits(draft, edits, root.policy.match, KnownTexts(versions, other_files))
        except NoMatchError as error:
            reviewed = () if root.recorder is None else root.recorder.reviewed(real_path)
            raise explain_review(error, reviewed, [edit.old_string for edit in edits]) from None
        if expect not in {None, edited.replacements}:
            count = plural(edited.replacements, "time")
            raise AmbiguousError(
                Advice(OLD, f" is in {quote(draft.path)} {count}, not {expect} as expected."),
                hint=Advice(
                    "Nothing was changed. If each is meant, ", Retry({"expect": edited.replacements}), "."
                ),
                details={"path": draft.path, "count": edited.replacements, "expect": expect},
            )
        return edited

    diff_if_many = not all(map(_REPLACES_ALL, edits))
    target = target._replace(by_cell=True, creates=not edits[0].old_string)
    return change_file(target, compute, unit="replacement", diff_if_many=diff_if_many)


def insert_lines(target: EditTarget, line: int, text: str) -> EditResult:
    """Insert a text as lines of its own after a line; 0 is the beginning of the file."""

    def span(content: str) -> Sequence[_Span]:
        starts = [0, *(found.end() for found in re.finditer("\n", content))]
        total = len(starts) - (1 if content.endswith("\n") or not content else 0)
        if not 0 <= line <= total:
            why = f"It should be within the range of lines of the file: [0, {total}]"
            raise InvalidArgumentError(
                f"Invalid `insert_line` parameter: {line}. {why}",
                details={"parameter": "insert_line", "total_lines": total},
            )
        body = text.replace("\r\n", "\n").removesuffix("\n")
        if line == len(starts):  # the last line has no line end
            return [(len(content), len(content), f"\n{body}")]
        return [(starts[line], starts[line], f"{body}\n")]

    return splice_file(target._replace(by_cell=True), span)


def splice_file(
    target: EditTarget,
    spans: Sequence[_Span] | Callable[[str], Sequence[_Span] | tuple[Sequence[_Span], Sequence[str]]],
) -> EditResult:
    """Replace ranges of the LF view of a file in one write.

    Args:
        target: The file and the terms. With `by_cell`, a notebook is refused.
        spans: The ranges and their new texts, or a function of the view that returns them.
    """

    def compute(draft: Draft) -> Edited:
        if draft.by_cell:
            raise InvalidArgumentError(
                f"{quote(draft.path)} is a notebook. Line numbers do not name a place in its cells.",
                hint=Advice("To add lines, call ", ToolName("edit"), _WITH_NEIGHBOUR),
                details={"path": draft.path, "parameter": "insert_line"},
            )
        view = draft.view
        made = spans(view.text) if callable(spans) else spans
        wanted, notes = _with_notes(made)
        if not wanted:
            raise InvalidArgumentError("spans is empty.", details={"parameter": "spans"})
        draft.replace(_ordered(view, wanted, draft.path))
        return draft.finish("offset")._replace(notes=tuple(notes))

    return change_file(target, compute, unit="replacement")


def _with_notes(made: Any) -> tuple[Sequence[_Span], Sequence[str]]:
    """Split the return value of a `spans` function into ranges and notes."""
    parts: Any = made  # a type checker would not know the items after `isinstance`
    is_pair = isinstance(made, tuple) and len(parts) == 2 and not _is_span(parts[0])
    spans, notes = parts if is_pair else (parts, ())
    if not (_is_list(spans, _is_span) and _is_list(notes, lambda note: isinstance(note, str))):
        reason = "The function must return ranges (start, end, text), or a pair: ranges and a list of notes."
        raise InvalidArgumentError(reason, details={"parameter": "spans"})
    return spans, notes


def _is_list(value: Any, is_item: Callable[[Any], bool]) -> bool:
    return isinstance(value, (list, tuple)) and all(map(is_item, cast("list[Any]", value)))


def _is_span(value: Any) -> bool:
    match value:
        case [int(), int(), str()]:
            return True
        case _:
            return False


def check_edit(edit: Edit) -> None:
    """Raise an error for an edit that no file could accept."""
    if not edit.old_string:
        raise InvalidArgumentError(
            Advice(OLD, " is empty."),
            hint=Joined(
                " ",
                Advice(
                    *("To insert, pass as ", OLD, " a line next to the place, and as ", NEW),
                    " that line and the new text.",
                ),
                Advice("To create a file or replace its whole content, call ", ToolName("write"), "."),
            ),
            details={"parameter": "old_string"},
        )
    if "\x00" in edit.new_string:
        raise nul_error(NEW)
    if edit.old_string.replace("\r\n", "\n") == edit.new_string.replace("\r\n", "\n"):
        same = edit.old_string == edit.new_string
        how = " are the same." if same else " differ only in line ends, and an edit keeps those of the file."
        raise NoChangeError(
            Advice(OLD, " and ", NEW, how), hint=Advice("Set ", NEW, " to the text you want.")
        )


def apply_edits(
    draft: Draft, edits: Sequence[Edit], match: Matching = "tolerant", known: KnownTexts | None = None
) -> Edited:
    """Apply edits in order, each to the outcome of the previous one, all or none.

    After a failure, later edits are still tried, so that the error can report up to 20 failures.
    """
    steps: list[str] = []
    failed: dict[int, AgentFSError] = {}
    tried = 0
    for edit in edits:
        try:
            call_context.check()
            via = _apply_edit(draft, edit, match, known or KnownTexts())
        except DeadlineExceededError:
            if not failed:
                raise
            break
        except AgentFSError as error:
            failed[tried + 1] = error
        else:
            if via not in {"exact", *steps}:
                steps.append(via)
        tried += 1
        if len(failed) == _MOST_FAILED:
            break
    if not failed:
        return draft.finish(", ".join(steps) or "exact")
    try:
        raise _failed(failed, tried, len(edits))
    finally:
        failed.clear()  # the errors refer to this frame, and a reference cycle would keep the workspace alive


def _apply_edit(draft: Draft, edit: Edit, match: Matching, known: KnownTexts) -> str:
    """Apply one edit; return the name of the step that found its old text."""
    if draft.is_new and not (draft.text or edit.old_string):
        draft.begin(edit.new_string)
        return "exact"
    check_edit(edit)
    view = draft.view
    old, new = view.lf(edit.old_string), view.lf(edit.new_string)
    if edit.replace_all:
        exact = match == "exact" or old in view.text
        shown = old if exact else shown_characters(old, view.text)
        if count := view.text.count(shown):
            draft.replace_all(shown, new if shown == old else shown_characters(new, shown), count)
            return "exact" if shown == old else "visible_escapes"
    else:
        start = view.text.find(old)
        if start >= 0:
            if view.text.find(old, start + 1) >= 0:
                raise _explained(draft, view, old, new, known)
            draft.replace([Replacement(start, start + len(old), new)])
            return "exact"
    if match == "tolerant":
        via, found = tolerant_matches(view.text, old, new)
        if len(found) == 1 and not has_other_cause(view.text, old, new, known):
            draft.replace(found)
            return via
    raise _explained(draft, view, old, new, known)


def _explained(draft: Draft, now: EditView, old: str, new: str, known: KnownTexts) -> AgentFSError:
    """Return the error for an old text that does not occur exactly once.

    If possible, it is about the file without the earlier edits, because that is what the model can read.
    """
    view, file = now.text, draft.original.text
    starts, before = occurrences(view, old), occurrences(file, old)
    if file == view or (before and starts and len(before) > 1):
        return _not_once(draft, draft.original, old, new, known)
    if before and not starts:
        return explain_earlier_edit(view, old, draft.path, file, LineNames(draft.original.cells))
    added = {line.strip() for line in view.split("\n")}.difference(map(str.strip, file.split("\n")))
    if not starts and not any(line.strip() in added for line in old.split("\n")):
        error = _not_once(draft, draft.original, old, new, known)
        if error.details["cause"] != "absent":
            return error
    error = _not_once(draft, now, old, new, known)
    if draft.is_new:
        hint = "The file does not exist yet: the earlier edits give its text."
        return type(error)(error.message, hint=hint, details=error.details)
    hints = ["Line numbers count the earlier edits as applied."] if "lines" in error.details else []
    if len(before) == 1:
        line = LineNames(draft.original.cells).one(file.count("\n", 0, before[0]) + 1)
        hints.insert(0, f"The file has it once, in {line}; the earlier edits add more.")
        error.details["caused_by_earlier_edit"] = True
    return type(error)(error.message, hint=Joined(" ", *hints, error.hint), details=error.details)


def _not_once(draft: Draft, view: EditView, old: str, new: str, known: KnownTexts) -> AgentFSError:
    text, path, names = view.text, draft.path, LineNames(view.cells)
    starts = occurrences(text, old)
    shown = shown_characters(old, text)
    if shown != old and len(found := occurrences(text, shown)) != 1:
        old, starts = shown, found  # look for the characters that the escapes stand for
    if len(starts) > 1:
        return explain_ambiguous(text, old, starts, path, names)
    error = explain_no_match(text, old, new, path, known, names)
    if not old.isascii() and (hint := draft.encoding_hint):
        return NoMatchError(error.message, hint=Joined(" ", error.hint, hint), details=error.details)
    if not draft.by_cell or error.details["cause"] not in {"near", "absent"}:
        return error
    if old in lf_view(draft.text):
        return NoMatchError(
            Advice(OLD, f" is not in the text of a cell of {quote(path)}, but elsewhere in its JSON."),
            hint=AS_JSON,
            details={"path": path, "cause": "not_in_cells"},
        )
    if error.details["cause"] == "near":
        return error
    return NoMatchError(error.message, hint=Joined(" ", error.hint, AS_JSON), details=error.details)


def _ordered(view: EditView, spans: Sequence[_Span], path: str) -> Iterator[Replacement]:
    """Yield spans in order. Insertions at the same offset become one replacement."""
    size = len(view.text)
    by_range = itemgetter(0, 1)
    before = (0, 0)
    for (start, end), same in groupby(sorted(spans, key=by_range), key=by_range):
        if not 0 <= start <= end <= size:
            raise InvalidArgumentError(
                f"The span from {start} to {end} is outside {quote(path)}, which has "
                f"{plural(size, 'character')} counting each line end as one.",
                details={"path": path, "span": [start, end], "size": size},
            )
        texts = [view.lf(new) for _, _, new in same]
        if start < end and len(texts) > 1:
            before = (start, end)
        if start < before[1]:
            raise OverlapError(
                f"The spans {before[0]}-{before[1]} and {start}-{end} overlap.",
                hint="Join them into one; nothing was written.",
                details={"path": path, "spans": [list(before), [start, end]]},
            )
        before = (start, end)
        yield Replacement(start, end, "".join(texts))


def _edits(numbers: Sequence[int]) -> str:
    return f"edit{'s' * (len(numbers) > 1)} {first_names(list(map(str, numbers)), _MOST_NUMBERS)}"


def _failed(errors: Mapping[int, AgentFSError], tried: int, total: int) -> AgentFSError:
    """Return the error for failed edits, by their numbers. Of `total` edits, the first `tried` were tried."""
    number, first = next(iter(errors.items()))
    if total == 1:
        return first
    made = [number for number, error in errors.items() if error.details.get("cause") == "already_applied"]
    wrong = [number for number in errors if number not in made]
    none = f"None of the edits was applied; correct {_edits(wrong)} and pass them all again."
    if len(made) == total:
        none = "All edits are already applied."
    elif made:
        rest = f", correct {_edits(wrong)}, and" if wrong else " and"
        none = f"None of the edits was applied; leave out {_edits(made)}{rest} pass the others again."
    if len(errors) == 1 and tried == total:
        details = {**first.details, "edit": number, "edits": total}
        message = Advice(f"Edit {number} of {total}: ", first.message)
        return type(first)(message, hint=Joined(" ", first.hint, none), details=details)
    places: list[str] = []
    hints: set[str] = set()
    failures: list[dict[str, object]] = []
    for number, error in errors.items():
        hint = () if error.hint in hints else (error.hint,)
        hints.add(error.hint)
        places += [Advice(f"Edit {number}: ", error.message), *error.places(), *hint]
        failures.append({"edit": number, "code": error.code, "message": str(error.message), **error.details})
    if tried < total:
        reason = "too many fail" if len(errors) == _MOST_FAILED else "there was no time"
        places.append(footer(f"edits {tried + 1}-{total} were not tried: {reason}"))
    return type(first)(
        f"{len(errors)} of {plural(total, 'edit')} fail:",
        hint=none,
        details={"path": first.details.get("path"), "edits": total, "failures": failures, "places": places},
    )
