"""Files that come in cells or pages instead of lines: so many of them as a page of an answer holds."""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from agentfs import call_context
from agentfs.errors import DeadlineExceededError
from agentfs.limits import Limits
from agentfs.messages import FirstOf, Joined, Message, NextCall, ToolName
from agentfs.reading.request import ReadRequest
from agentfs.results import Image, ReadResult
from agentfs.text import Step, continuation, cut_line, fitted, footer, lf_view, visible_bodies

_MOST_IMAGES = 10


class Section(NamedTuple):
    """One cell or page.

    Attributes:
        title: The line above it.
        lines: What is in it, each line with its mark, as it is.
        images: The images in it.
        more: How many lines follow that no page could hold.
    """

    title: str
    lines: Sequence[str]
    images: Sequence[Image] = ()
    more: int = 0


class Document(NamedTuple):
    """A file of cells or pages.

    Attributes:
        kind: What the file is.
        path: The path as shown.
        size: Bytes in the file.
        revision: Its version.
        noun: What it is made of.
        total: How many of these it has.
        section: Returns one of them, from 1.
    """

    kind: Literal["notebook", "pdf"]
    path: str
    size: int
    revision: str
    noun: str
    total: int
    section: Callable[[int], Section]


def document_answer(document: Document, limits: Limits, asked: ReadRequest) -> ReadResult:
    """Show as many cells or pages as the budgets hold, and at least a part of one.

    Args:
        document: The file.
        limits: `read_bytes` and `output_tokens` for the whole, `line_chars` for each line.
        asked: `offset` and `limit` count cells or pages.

    Returns:
        The answer.
    """
    first = asked.first(document.path, document.total, document.noun)
    if not first:
        return _answer(document, [], 0, asked)
    sections: list[Section] = []
    used = 0
    most = min(asked.limit or document.total, document.total - first + 1)
    late = False
    while len(sections) < most:
        try:
            call_context.check()
            section = _cut(document.section(first + len(sections)), limits)
        except DeadlineExceededError:
            if not sections:
                raise
            late = True
            break
        used += sum(
            len(line.encode("utf-8", "surrogatepass")) + 1 for line in (section.title, *section.lines)
        )
        if sections and used > limits.read_bytes:
            break
        sections.append(section)

    def fewer(count: int) -> ReadResult:
        return _answer(document, sections[:count], first, asked, late=late and count == len(sections))

    def part(count: int) -> ReadResult:
        only = sections[0]
        return _answer(document, [only._replace(lines=_head(only.lines, count))], first, asked)

    return fitted(limits, Step(len(sections), fewer), Step(max(len(sections[0].lines), 1), part))


def marked_lines(text: str, mark: str, most: int) -> tuple[list[str], int]:
    """Split a text into lines with a mark before each.

    Args:
        text: The text.
        mark: What stands before each line.
        most: How many lines.

    Returns:
        The lines, and how many more there are.
    """
    if not text:
        return [], 0
    body = lf_view(text).removesuffix("\n")
    lines = body.split("\n", most)[:most]
    return [mark + line for line in lines], body.count("\n") + 1 - len(lines)


def _head(lines: Sequence[str], count: int, more: int = 0) -> Sequence[str]:
    left = len(lines) - min(count, len(lines)) + more
    return [*lines[:count], f"⟦+{left} lines⟧"] if left else lines


def _cut(section: Section, limits: Limits) -> Section:
    """Cut long lines, and a section that no page could hold."""
    lines = [cut_line(line, limits.line_chars) for line in visible_bodies(section.lines)]
    left = limits.read_bytes
    for number, line in enumerate(lines):
        left -= len(line.encode("utf-8", "surrogatepass")) + 1
        if left < 0 and number:
            break
    else:
        number = len(lines)
    return section._replace(lines=_head(lines, number, section.more))


_AS_JSON = Message(ToolName("edit"), " works on its JSON")
_EDITED_AS_JSON = FirstOf(Message(_AS_JSON, ", as ", ToolName("grep"), " shows it"), _AS_JSON)


def _answer(
    document: Document, sections: Sequence[Section], first: int, asked: ReadRequest, *, late: bool = False
) -> ReadResult:
    last = first + len(sections) - 1 if sections else 0
    following: NextCall | None = None
    if last < document.total:
        following = asked.going_on(document.path, last + 1)
    images = [image for section in sections for image in section.images]
    body = [line for section in sections for line in (section.title, *section.lines)]
    noun = document.noun
    shown = f"{noun} {first}" if first == last else f"{noun}s {first}-{last}"
    below = footer(
        f"{shown} of {document.total}" if sections and (first > 1 or following) else "",
        *((f"{noun}s of a {document.kind}", _EDITED_AS_JSON) if document.kind == "notebook" else ()),
        f"{len(images) - _MOST_IMAGES} more images are not shown" if len(images) > _MOST_IMAGES else "",
        "" if sections else f"no {noun}s",
        "there was no time for more" if late else "",
        continuation(following),
    )
    return ReadResult(
        path=document.path,
        kind=document.kind,
        content="".join(f"{line}\n" for section in sections for line in section.lines),
        start_line=first,
        end_line=last,
        total_lines=document.total,
        total_bytes=document.size,
        revision=document.revision,
        truncated_by="time" if late else "bytes" if following is not None and asked.limit is None else None,
        images=tuple(images[:_MOST_IMAGES]),
        text=Joined("\n", "\n".join(body), below),
        next=following,
    )
