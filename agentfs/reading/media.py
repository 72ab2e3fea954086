"""Recognise files that are not plain text, and show them: images, hex views and binary files."""

from typing import Literal, NamedTuple

from agentfs.base.advice import Advice, Joined, Retry, ToolName
from agentfs.errors import BinaryError, InvalidContentError, TooLargeError
from agentfs.fs import OpenFile, quote, revision_of, revision_of_stat
from agentfs.limits import Limits
from agentfs.reading.images import (
    MAX_IMAGE_BYTES,
    MAX_IMAGE_SIDE,
    ImageInfo,
    as_image,
    image_format,
    image_info,
    scale_down,
)
from agentfs.reading.notebook import NotANotebookError, is_named_notebook, notebook_problem, read_notebook
from agentfs.reading.page import FileInfo, ReadOptions
from agentfs.reading.sections import Pdf, read_sections
from agentfs.reading.slices import Section
from agentfs.results import Image, ReadResult
from agentfs.text import HEAD, decode, footer, is_binary, plural

_HEX_ROWS = 32  # rows of a read without a limit: enough for a header
_ROW = 16  # bytes
_PDF = b"%PDF-"
# A position, the bytes at it, and the file type that they identify.
_MAGIC = (
    (0, b"\x7fELF", "ELF program"),
    (0, b"MZ", "Windows program"),
    (0, b"\xcf\xfa\xed\xfe", "Mach-O program"),
    (0, b"\xca\xfe\xba\xbe", "Java class or Mach-O program"),
    (0, b"\x00asm", "WebAssembly module"),
    (0, b"PK\x03\x04", "ZIP archive"),
    (0, b"\x1f\x8b", "gzip archive"),
    (257, b"ustar", "tar archive"),
    (0, b"SQLite format 3\x00", "SQLite database"),
)


class Media(NamedTuple):
    """The result for a file that is not plain text, and the text of a notebook; else a note for the page."""

    result: ReadResult | None = None
    text: str | None = None
    note: str = ""


def read_media(file: OpenFile, head: bytes, limits: Limits, request: ReadOptions) -> Media:
    """Return the result for a file that is not plain text; otherwise None and a note for the text page.

    Raises:
        BinaryError: `binary` for a PDF that cannot be read, and is not a text that begins like a PDF.
    """
    if request.encoding is not None:
        return Media()
    binary, is_pdf = is_binary(head), head.startswith(_PDF)
    if request.raw:
        return Media(_read_hex(file, limits, request) if binary or is_pdf else None)
    if (form := _image_of(head)) is not None:
        return Media(_read_image(file, form, limits))
    if is_pdf:
        try:
            return Media(_read_pdf(file, limits, request))
        except BinaryError as error:
            if _is_surely_pdf(file.path, head):
                raise
            return Media(note=f"shown as text; {error.message}")
    if binary:
        return Media(binary_result(file, head, limits))
    if is_named_notebook(file.path) and file.stat.st_size <= limits.file_bytes:
        data = file.read(limits.file_bytes)
        try:
            return Media(read_notebook(file.path, data, limits, request), decode(data).text)
        except NotANotebookError as error:
            return Media(note=f"shown as text; not a notebook: {error}")
    return Media()


def check_content(path: str, before: bytes, after: bytes, limits: Limits) -> None:
    """Raise an error if a file is an image or a PDF, or if a change would break a notebook.

    A file that is already broken may be edited as text.
    """
    head = before[:HEAD]
    if _image_of(head) and (image := image_info(before)) is not None and not image.problem:
        kind = "an image"
    elif head.startswith(_PDF) and _is_pdf(path, before, limits):
        kind = "a PDF"
    else:
        return check_notebook(path, before, after)
    raise BinaryError(
        f"{quote(path)} is {kind}, and only text can be edited.",
        hint=Advice("To change its bytes as if they were text, ", Retry({"raw": True}), "."),
        details={"path": path},
    )


def check_notebook(path: str, before: bytes, after: bytes) -> None:
    """Raise an error if a change would break a notebook. A notebook that is already broken may be changed."""
    if not is_named_notebook(path) or notebook_problem(before):
        return
    if not (problem := notebook_problem(after)):
        return
    raise InvalidContentError(
        f"The change would break the notebook {quote(path)}: {problem}.",
        hint=Joined(
            " ",
            Advice("To change the text of a cell, call ", ToolName("edit"), "."),
            r"It is stored as JSON: in a text, write \" for a quote, \n for a line end, \\ for a backslash.",
        ),
        details={"path": path},
    )


def _image_of(head: bytes) -> str | None:
    return None if _is_text(head) else image_format(head)


def _is_surely_pdf(path: str, head: bytes) -> bool:
    """Return True unless the file may be a text that begins like a PDF, such as a note on the format."""
    return not _is_text(head) or path.lower().endswith(".pdf")


def _is_pdf(path: str, data: bytes, limits: Limits) -> bool:
    try:
        Pdf(data, path, limits.read_bytes)
    except BinaryError as error:
        if not {"extra", "encrypted"} & error.details.keys():  # it is broken
            return False
        return _is_surely_pdf(path, data[:HEAD])
    return True


def binary_result(file: OpenFile, head: bytes, limits: Limits) -> ReadResult:
    """Return the result for a binary file, with its type and without its content."""
    kind = next((kind for position, magic, kind in _MAGIC if head.startswith(magic, position)), "")
    what = f"a binary file ({kind})" if kind else "a binary file"
    note = f"{quote(file.path)} is {what} of {plural(file.stat.st_size, 'byte')}; its content is not shown"
    return _described(file, limits, "binary", note)


def _read_hex(file: OpenFile, limits: Limits, request: ReadOptions) -> ReadResult:
    size = file.stat.st_size

    def row_at(number: int, skipped: int) -> Section:
        start = (number - 1) * _ROW
        row = [_hex_row(file.read_at(start, _ROW), start)]
        return Section("", row[skipped:], skipped=min(skipped, 1))

    rows = -(-size // _ROW)
    info = FileInfo(
        file.path, _revision(file, limits), size, rows, kind="binary", noun="row", usual=_HEX_ROWS
    )
    return read_sections(info, row_at, limits, request)


def _hex_row(row: bytes, position: int) -> str:
    """Format bytes as `hexdump -C` does."""
    left, right = row[:8].hex(" "), row[8:].hex(" ")
    plain = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
    return f"{position:08x}  {left:<23}  {right:<23}  |{plain}|"


def _read_image(file: OpenFile, form: str, limits: Limits) -> ReadResult:
    size = file.stat.st_size
    data = b"" if size > limits.file_bytes else file.read(limits.file_bytes)
    info = image_info(data) or ImageInfo(form)
    note = f"{quote(file.path)}: {info.format} image{info.pixels}, {plural(size, 'byte')}"
    problem = f"over {limits.file_bytes} bytes" if size > limits.file_bytes else info.problem
    if not problem:
        shown: Image | None = as_image(data, info.media_type)
        fits = len(data) <= MAX_IMAGE_BYTES
        if not fits or max(info.width, info.height) > MAX_IMAGE_SIDE:
            smaller, outcome = scale_down(
                data, info.format, max_bytes=MAX_IMAGE_BYTES, max_side=MAX_IMAGE_SIDE
            )
            if smaller is not None:
                note = f"{note}; shown scaled down to {outcome}"
            shown = smaller or (shown if fits else None)
            problem = outcome
        if shown is not None:
            return _described(file, limits, "image", note, shown)
    return _described(file, limits, "image", f"{note}; not shown: {problem}")


def _read_pdf(file: OpenFile, limits: Limits, request: ReadOptions) -> ReadResult:
    size = file.stat.st_size
    if size > limits.file_bytes:
        raise TooLargeError(
            f"{quote(file.path)} is a PDF of {plural(size, 'byte')}; the limit is {limits.file_bytes}.",
            details={"path": file.path, "limit": limits.file_bytes},
        )
    data = file.read(limits.file_bytes)
    pdf = Pdf(data, file.path, limits.read_bytes)
    info = FileInfo(file.path, revision_of(data), len(data), pdf.total, kind="pdf", noun="page")
    return read_sections(info, pdf.section, limits, request)


def _described(
    file: OpenFile, limits: Limits, kind: Literal["image", "binary"], note: str, *images: Image
) -> ReadResult:
    return ReadResult(
        path=file.path,
        kind=kind,
        total_exact=False,
        total_bytes=file.stat.st_size,
        revision=_revision(file, limits),
        images=images,
        text=footer(note),
        notes=(note,),
    )


def _is_text(head: bytes) -> bool:
    """Return True if the first bytes of a file are UTF-8. The last character may be incomplete."""
    if is_binary(head):
        return False
    try:
        head.decode()
    except UnicodeDecodeError as error:
        return error.end >= len(head) - 3 and error.start > 0
    return True


def _revision(file: OpenFile, limits: Limits) -> str:
    if file.stat.st_size > limits.file_bytes:
        return revision_of_stat(file.stat)
    return revision_of(file.read(limits.file_bytes))
