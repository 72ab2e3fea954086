"""What is no plain text: images, PDFs, notebooks, and other bytes."""

import base64

from agentfs.errors import BinaryError, TooLargeError
from agentfs.fs import OpenFile, quote, revision_of, revision_of_stat
from agentfs.limits import Limits
from agentfs.messages import Joined, NextCall
from agentfs.reading.filetypes import hex_rows, kind_of
from agentfs.reading.images import MOST_PIXELS, ImageInfo, picture_of, validate_image
from agentfs.reading.request import ReadRequest
from agentfs.reading.sections import Document, Section, document_answer
from agentfs.results import Image, ReadResult
from agentfs.text import Step, continuation, fitted, footer, is_binary

_ROWS = 32  # of a hex view when no limit is given: it is for a look at a header
_PDF = b"%PDF-"


def media_of(
    file: OpenFile, head: bytes, limits: Limits, asked: ReadRequest
) -> tuple[ReadResult | None, str]:
    """Answer for a file that is no plain text.

    Args:
        file: The file.
        head: Its first 8 KiB.
        limits: The budgets.
        asked: What was asked for.

    Returns:
        The answer, or None for text; and what is to be said of it besides.

    Raises:
        AgentFSError: `binary` for a PDF that can neither be read nor be a text, `too_large`, `past_end`.
    """
    if asked.encoding is not None:
        return None, ""
    binary = is_binary(head)
    if asked.raw:
        return (hex_answer(file, limits, asked) if binary or head.startswith(_PDF) else None), ""
    picture = picture_of(head)
    if picture is not None and (binary or not _is_text(head)):
        return _image_answer(file, limits, picture), ""
    if head.startswith(_PDF):
        try:
            return _pdf_answer(file, limits, asked), ""
        except BinaryError as error:
            # A text that begins like a PDF: a note on the format, a fixture of a test.
            if binary or not _is_text(head) or file.path.lower().endswith(".pdf"):
                raise
            return None, f"shown as text; {error.message}"
    if binary:
        return binary_answer(file, head, limits), ""
    if file.path.lower().endswith(".ipynb") and file.stat.st_size <= limits.file_bytes:
        return _notebook_answer(file, limits, asked)
    return None, ""


def binary_answer(file: OpenFile, head: bytes, limits: Limits) -> ReadResult:
    """Say what a binary file is, and show none of it."""
    kind = kind_of(head)
    what = f"a binary file ({kind})" if kind else "a binary file"
    said = f"{quote(file.path)} is {what} of {file.stat.st_size} bytes; its content is not shown"
    return _described(file, limits, "binary", said)


def hex_answer(file: OpenFile, limits: Limits, asked: ReadRequest) -> ReadResult:
    """Show bytes in hexadecimal; offset and limit count rows of sixteen."""
    size = file.stat.st_size
    total = -(-size // 16)
    first = asked.first(file.path, total, "row")
    revision = _revision(file, limits)
    count = min(asked.limit or _ROWS, total - first + 1, max(limits.read_bytes // 80, 1))
    rows = hex_rows(file.read_at((first - 1) * 16, count * 16), (first - 1) * 16)

    def answer(most: int) -> ReadResult:
        last = first + most - 1
        following: NextCall | None = asked.going_on(file.path, last + 1) if last < total else None
        below = footer(f"rows {first}-{last} of {total}, 16 bytes each", continuation(following))
        return ReadResult(
            path=file.path,
            kind="binary",
            content="".join(f"{row}\n" for row in rows[:most]),
            start_line=first,
            end_line=last,
            total_lines=total,
            total_bytes=size,
            revision=revision,
            text=Joined("\n", "\n".join(rows[:most]), below),
            next=following,
        )

    return fitted(limits, Step(max(len(rows), 1), answer))


def _image_answer(file: OpenFile, limits: Limits, picture: ImageInfo) -> ReadResult:
    size = file.stat.st_size
    data = b"" if size > limits.file_bytes else file.read(limits.file_bytes)
    # The size of some stands behind more than the head.
    picture = picture_of(data) or picture
    drawn = f", {picture.width}x{picture.height} pixels" if picture.width and picture.height else ""
    said = f"{quote(file.path)}: {picture.name} image{drawn}, {size} bytes"
    if size > limits.file_bytes:
        return _described(file, limits, "image", f"{said}; not shown: over {limits.file_bytes} bytes")
    if flaw := validate_image(data, picture):
        return _described(file, limits, "image", f"{said}; not shown: {flaw}")
    if len(data) <= limits.image_bytes and max(picture.width, picture.height) <= limits.image_side:
        return _described(file, limits, "image", said, _image(data, picture.media_type))
    return _smaller(file, limits, data, picture, said)


def _smaller(file: OpenFile, limits: Limits, data: bytes, picture: ImageInfo, said: str) -> ReadResult:
    from agentfs.reading.scaling import scaled  # noqa: PLC0415 - few images need it

    made = scaled(data, picture.name, most_bytes=limits.image_bytes, longest=limits.image_side)
    if not isinstance(made, str):
        note = f"shown scaled down to {made.width}x{made.height}"
        return _described(file, limits, "image", f"{said}; {note}", _image(made.data, made.media_type))
    if len(data) <= limits.image_bytes and picture.width * picture.height <= MOST_PIXELS:
        return _described(file, limits, "image", said, _image(data, picture.media_type))
    return _described(file, limits, "image", f"{said}; not shown: {made}")


def _pdf_answer(file: OpenFile, limits: Limits, asked: ReadRequest) -> ReadResult:
    from agentfs.reading.pdf import Pdf  # noqa: PLC0415 - few calls need it

    if file.stat.st_size > limits.file_bytes:
        raise TooLargeError(
            f"{quote(file.path)} is a PDF of {file.stat.st_size} bytes; the limit is {limits.file_bytes}.",
            details={"path": file.path, "limit": limits.file_bytes},
        )
    data = file.read(limits.file_bytes)
    pdf = Pdf(data, file.path, limits.read_bytes)
    document = Document("pdf", file.path, len(data), revision_of(data), "page", pdf.total, pdf.section)
    return document_answer(document, limits, asked)


def _notebook_answer(file: OpenFile, limits: Limits, asked: ReadRequest) -> tuple[ReadResult | None, str]:
    from agentfs.reading.notebook import NotANotebookError, cells_of, section_of  # noqa: PLC0415 - as above

    data = file.read(limits.file_bytes)
    try:
        cells = cells_of(data.decode("utf-8-sig"))
    except NotANotebookError as error:
        return None, f"shown as text, for it is no notebook: {error}"
    except UnicodeDecodeError:
        return None, "shown as text, for it is no notebook: it is not UTF-8"

    def section(number: int) -> Section:
        return section_of(cells[number - 1], number, limits)

    revision = revision_of(data)
    document = Document("notebook", file.path, len(data), revision, "cell", len(cells), section)
    return document_answer(document, limits, asked), ""


def _described(file: OpenFile, limits: Limits, kind: str, said: str, *images: Image) -> ReadResult:
    return ReadResult(
        path=file.path,
        kind="image" if kind == "image" else "binary",
        content="",
        start_line=0,
        end_line=0,
        total_lines=0,
        total_exact=False,
        total_bytes=file.stat.st_size,
        revision=_revision(file, limits),
        images=images,
        text=footer(said),
    )


def _image(data: bytes, media_type: str) -> Image:
    return Image(base64.b64encode(data).decode(), media_type)


def _is_text(head: bytes) -> bool:
    try:
        head.decode()
    except UnicodeDecodeError as error:
        return error.end >= len(head) - 3 and error.start > 0
    return True


def _revision(file: OpenFile, limits: Limits) -> str:
    if file.stat.st_size > limits.file_bytes:
        return revision_of_stat(file.stat)
    return revision_of(file.read(limits.file_bytes))
