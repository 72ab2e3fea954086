"""Files of cells or pages instead of lines: as many of them as a result holds."""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from agentfs import call_context
from agentfs.advice import Advice, FirstOf, Joined, NextCall, ToolName
from agentfs.errors import DeadlineExceededError
from agentfs.limits import Limits
from agentfs.reading.page import ReadRequest
from agentfs.results import Image, ReadResult
from agentfs.text import Shrink, continuation, cut_line, fitted, footer, lf_view, notes_of, visible_lines

_MAX_IMAGES = 10
_AS_JSON = Advice(ToolName("edit"), " works on its JSON")
_EDITED_AS_JSON = FirstOf(Advice(_AS_JSON, ", as ", ToolName("grep"), " shows it"), _AS_JSON)


class Section(NamedTuple):
    """One cell or page: its title, its lines with their marks, and how many more no result could hold."""

    title: str
    lines: Sequence[str]
    images: Sequence[Image] = ()
    more: int = 0


class SectionedFile(NamedTuple):
    """A file of cells or pages: what they are called, how many there are, and a function for one, from 1."""

    kind: Literal["notebook", "pdf"]
    path: str
    size: int
    revision: str
    noun: str
    total: int
    section: Callable[[int], Section]


def read_document(file: SectionedFile, limits: Limits, request: ReadRequest) -> ReadResult:
    """Return as many sections as the budgets hold, and at least a part of one."""
    first = request.first(file.path, file.total, file.noun)
    if not first:
        return _result(file, [], 0, request)
    sections: list[Section] = []
    used = 0
    most = min(request.limit or file.total, file.total - first + 1)
    late = False
    while len(sections) < most:
        try:
            call_context.check()
            section = _cut(file.section(first + len(sections)), limits)
        except DeadlineExceededError:
            if not sections:
                raise
            late = True
            break
        used += sum(map(_size, (section.title, *section.lines)))
        if sections and used > limits.read_bytes:
            break
        sections.append(section)

    def fewer_sections(count: int) -> ReadResult:
        return _result(file, sections[:count], first, request, late=late and count == len(sections))

    def fewer_lines(count: int) -> ReadResult:
        only = sections[0]
        return _result(file, [only._replace(lines=_head(only.lines, count))], first, request)

    return fitted(
        limits, Shrink(len(sections), fewer_sections), Shrink(max(len(sections[0].lines), 1), fewer_lines)
    )


def mark_lines(text: str, mark: str, most: int) -> tuple[list[str], int]:
    """Return up to `most` lines of a text with a mark before each, and how many more there are."""
    if not text:
        return [], 0
    body = lf_view(text).removesuffix("\n")
    lines = body.split("\n", most)[:most]
    return [mark + line for line in lines], body.count("\n") + 1 - len(lines)


def _size(line: str) -> int:
    return len(line.encode("utf-8", "surrogatepass")) + 1


def _head(lines: Sequence[str], count: int, more: int = 0) -> Sequence[str]:
    left = len(lines) - min(count, len(lines)) + more
    return [*lines[:count], f"⟦+{left} lines⟧"] if left else lines


def _cut(section: Section, limits: Limits) -> Section:
    """Cut long lines, and a section that no result could hold."""
    lines = [cut_line(line, limits.line_chars) for line in visible_lines(section.lines)]
    left = limits.read_bytes
    for number, line in enumerate(lines):
        left -= _size(line)
        if left < 0 and number:
            break
    else:
        number = len(lines)
    return section._replace(lines=_head(lines, number, section.more))


def _result(
    file: SectionedFile, sections: Sequence[Section], first: int, request: ReadRequest, *, late: bool = False
) -> ReadResult:
    last = first + len(sections) - 1 if sections else 0
    following: NextCall | None = None
    if last < file.total:
        following = request.next_call(file.path, last + 1, shown=len(sections))
    images = [image for section in sections for image in section.images]
    body = [line for section in sections for line in (section.title, *section.lines)]
    noun = file.noun
    shown = f"{noun} {first}" if first == last else f"{noun}s {first}-{last}"
    notes = notes_of(
        f"{shown} of {file.total}" if sections and (first > 1 or following) else "",
        *((f"{noun}s of a {file.kind}", _EDITED_AS_JSON) if file.kind == "notebook" else ()),
        f"{len(images) - _MAX_IMAGES} more images are not shown" if len(images) > _MAX_IMAGES else "",
        "" if sections else f"no {noun}s",
        "there was no time for more" if late else "",
        continuation(following),
    )
    return ReadResult(
        path=file.path,
        kind=file.kind,
        content="".join(f"{line}\n" for section in sections for line in section.lines),
        start_line=first,
        end_line=last,
        total_lines=file.total,
        total_bytes=file.size,
        revision=file.revision,
        truncated_by="time" if late else "bytes" if following is not None and request.limit is None else None,
        images=tuple(images[:_MAX_IMAGES]),
        text=Joined("\n", "\n".join(body), footer(*notes)),
        notes=notes,
        next=following,
    )
