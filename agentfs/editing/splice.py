"""`splice`: characters of the LF view replaced, for callers that know offsets."""

from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter

from agentfs.editing.apply_edit import EditOptions, change_text
from agentfs.editing.document import Document
from agentfs.editing.engine import Applied, apply_places
from agentfs.editing.exact_match import Place, to_lf
from agentfs.editing.splicing import View
from agentfs.errors import InvalidArgumentError, OverlapError
from agentfs.fs import Current, Root, quote
from agentfs.limits import Limits
from agentfs.read_tracker import ReadTracker
from agentfs.results import EditResult

Span = tuple[int, int, str]


def splice_file(
    root: Root,
    shown: ReadTracker,
    limits: Limits,
    path: str,
    spans: Sequence[Span] | Callable[[str], Sequence[Span]],
    *,
    terms: EditOptions,
) -> EditResult:
    r"""Replace character ranges of a file, in one write.

    Args:
        root: The confined root.
        shown: What this workspace has shown; a splice keeps "seen" as it was.
        limits: For the size of the file.
        path: The file.
        spans: Start, end and new text of each, as offsets in the text with every line end as `\n`; in any
            order. What is inserted at one offset stays in the order given. Or what makes them of that text;
            it raises to leave the file as it is.
        terms: On what terms the file is changed.

    Returns:
        What was replaced, with the diff.

    Raises:
        InvalidArgumentError: `invalid_argument`: no spans, or one that does not lie in the text.
        OverlapError: `overlap`: two share a character.
        AgentFSError: As `edit_file`.
    """

    def apply(before: Document, current: Current) -> Applied:
        view = View(before.decoded.text)
        wanted = spans(view.text) if callable(spans) else spans
        if not wanted:
            raise InvalidArgumentError("spans is empty.", details={"parameter": "spans"})
        places = _places(view, wanted, current.path)
        return apply_places(
            before, view, places, len(wanted), via="offset", path=current.path, max_bytes=limits.file_bytes
        )

    return change_text(root, shown, limits, path, apply, terms, unit="replacement")


def _places(view: View, spans: Sequence[Span], path: str) -> Iterator[Place]:
    """Yield the places of spans in order; what is inserted at one offset is one place."""
    size = len(view.text)
    last: Place | None = None
    for start, end, new in sorted(spans, key=itemgetter(0, 1)):
        if not 0 <= start <= end <= size:
            raise InvalidArgumentError(
                f"The span from {start} to {end} does not lie in {quote(path)}, which has {size} characters "
                "with every line end as one.",
                details={"path": path, "span": [start, end], "size": size},
            )
        if last is not None and start < last.end:
            raise OverlapError(
                f"The spans {last.start}-{last.end} and {start}-{end} overlap.",
                hint="Join them into one; nothing was written.",
                details={"path": path, "spans": [[last.start, last.end], [start, end]]},
            )
        text = to_lf(new, lone=view.lone)
        if last is not None and start == end == last.start == last.end:
            last = Place(start, end, last.new + text)
            continue
        if last is not None:
            yield last
        last = Place(start, end, text)
    if last is not None:
        yield last
