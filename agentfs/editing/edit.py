"""`edit` and `multi_edit`: the old text is the proof, so no read is asked for."""

from collections.abc import Sequence
from typing import get_args

from agentfs.editing.apply_edit import EditOptions, change_text
from agentfs.editing.diagnostics import Known
from agentfs.editing.document import Document
from agentfs.editing.engine import Applied, MatchOptions, apply_edits, check_edits
from agentfs.errors import InvalidArgumentError
from agentfs.fs import Current, Root
from agentfs.limits import Limits
from agentfs.messages import Message, ParameterName
from agentfs.policy import Matching
from agentfs.read_tracker import ReadTracker
from agentfs.results import Edit, EditResult


def edit_file(
    root: Root,
    shown: ReadTracker,
    limits: Limits,
    path: str,
    edits: Sequence[Edit],
    *,
    terms: EditOptions | None = None,
    match: Matching | None = None,
) -> EditResult:
    """Replace texts in a file, in order, all or nothing, in one write.

    Args:
        root: The confined root.
        shown: What this workspace has shown; an edit keeps "seen" as it was.
        limits: For the size of the file.
        path: The file.
        edits: What to replace.
        terms: On what terms the file is changed.
        match: How old texts are found; None for as the policy has it.

    Returns:
        What was replaced, with the diff.

    Raises:
        NotFoundError: `not_found`: there is no such file.
        NoMatchError: `no_match`: an old text is not there.
        AmbiguousError: `ambiguous`: it is there more than once.
        NoChangeError: `no_change`: nothing would change.
        StaleError: `stale`: it is not the version that was expected.
        InvalidArgumentError: `invalid_argument`: no edits, an empty old text, a NUL in a new one.
        BinaryError: `binary`: the file is no text.
        EncodingError: `encoding`: the encoding is unknown, or cannot hold a new text.
        TooLargeError: `too_large`: the file is, or would be, larger than `Limits.file_bytes`.
    """
    check_edits(edits)
    matching = root.policy.match if match is None else match
    if matching not in get_args(Matching):
        raise InvalidArgumentError(
            Message(
                ParameterName("match"),
                f" must be one of {', '.join(map(repr, get_args(Matching)))}, not {matching!r}.",
            ),
            details={"parameter": "match"},
        )

    def others(real_path: str) -> list[tuple[str, str]]:
        found = shown.other_texts(real_path)
        return [(root.display_path(path), text) for path, text in found if root.may_show(path)]

    def apply(before: Document, current: Current) -> Applied:
        versions = [
            version.text
            for version in shown.versions_with_text(current.real_path)
            if version.text is not None
        ]
        known = Known(versions, lambda: others(current.real_path))
        matcher = MatchOptions(matching, known)
        return apply_edits(before, edits, path=current.path, max_bytes=limits.file_bytes, matcher=matcher)

    return change_text(root, shown, limits, path, apply, terms or EditOptions(), unit="replacement")
