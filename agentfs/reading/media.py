"""Files that are no plain text: images, PDFs, notebooks, and other bytes."""

from typing import Any, Literal

from agentfs.advice import Advice, Joined, NextCall, Retry
from agentfs.errors import BinaryError, InvalidContentError, TooLargeError
from agentfs.fs import OpenFile, quote, revision_of, revision_of_stat
from agentfs.limits import Limits
from agentfs.reading.images import ImageInfo, as_image, image_info, image_problem, scale_down
from agentfs.reading.notebook import NotANotebookError, read_cell, read_cells
from agentfs.reading.page import ReadRequest
from agentfs.reading.pdf import Pdf
from agentfs.reading.sections import Section, SectionedFile, read_document
from agentfs.results import Image, ReadResult
from agentfs.text import HEAD, Shrink, continuation, fitted, footer, is_binary, notes_of

_HEX_ROWS = 32  # when no limit is given: a hex view is for a look at a header
_PDF = b"%PDF-"
# Position, bytes at that position, and the type of file that they mean.
_MAGIC = (
    (0, b"\x7fELF", "ELF program"),
    (0, b"MZ", "Windows program"),
    (0, b"\xcf\xfa\xed\xfe", "Mach-O program"),
    (0, b"\xca\xfe\xba\xbe", "Java class or Mach-O program"),
    (0, b"\x00asm", "WebAssembly module"),
    (0, b"!<arch>\n", "static library"),
    (0, b"PK\x03\x04", "ZIP archive"),
    (0, b"PK\x05\x06", "ZIP archive"),
    (0, b"\x1f\x8b", "gzip archive"),
    (0, b"BZh", "bzip2 archive"),
    (0, b"\xfd7zXZ\x00", "xz archive"),
    (0, b"\x28\xb5\x2f\xfd", "zstd archive"),
    (0, b"7z\xbc\xaf\x27\x1c", "7-Zip archive"),
    (0, b"Rar!\x1a\x07", "RAR archive"),
    (257, b"ustar", "tar archive"),
    (0, b"SQLite format 3\x00", "SQLite database"),
    (0, b"PAR1", "Parquet table"),
    (0, b"\x89HDF\r\n\x1a\n", "HDF5 file"),
    (0, b"\x93NUMPY", "NumPy array"),
    (0, b"BM", "BMP image"),
    (0, b"II*\x00", "TIFF image"),
    (0, b"MM\x00*", "TIFF image"),
    (0, b"\x00\x00\x01\x00", "icon"),
    (4, b"ftypavif", "AVIF image"),
    (4, b"ftypheic", "HEIC image"),
    (4, b"ftyp", "MP4 video"),
    (0, b"\x1aE\xdf\xa3", "Matroska video"),
    (8, b"AVI ", "AVI video"),
    (8, b"WAVE", "WAV sound"),
    (0, b"OggS", "Ogg sound"),
    (0, b"fLaC", "FLAC sound"),
    (0, b"ID3", "MP3 sound"),
    (0, b"wOFF", "WOFF font"),
    (0, b"wOF2", "WOFF2 font"),
    (0, b"\x00\x01\x00\x00\x00", "TrueType font"),
    (0, b"OTTO", "OpenType font"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "old Office document"),
)


def read_media(
    file: OpenFile, head: bytes, limits: Limits, request: ReadRequest
) -> tuple[ReadResult | None, str]:
    """Return the result for a file that is no plain text, or None and a note for the page of its text.

    BinaryError (binary) is raised for a PDF that can neither be read nor be a text.
    """
    if request.encoding is not None:
        return None, ""
    binary = is_binary(head)
    if request.raw:
        return (_read_hex(file, limits, request) if binary or head.startswith(_PDF) else None), ""
    if (image := _image_of(head)) is not None:
        return _read_image(file, image, limits), ""
    if head.startswith(_PDF):
        try:
            return _read_pdf(file, limits, request), ""
        except BinaryError as error:
            # A text that begins like a PDF: a note on the format, a fixture of a test.
            if _is_surely_pdf(file.path, head):
                raise
            return None, f"shown as text; {error.message}"
    if binary:
        return binary_result(file, head, limits), ""
    if _is_named_notebook(file.path) and file.stat.st_size <= limits.file_bytes:
        return _read_notebook(file, limits, request)
    return None, ""


def check_text(path: str, data: bytes, limits: Limits) -> None:
    """Refuse to edit what a read shows as an image or a PDF; one that is broken already is a text."""
    head = data[:HEAD]
    if (image := _image_of(head)) is not None and not image_problem(data, image):
        kind = "an image"
    elif head.startswith(_PDF) and _is_pdf(path, data, limits):
        kind = "a PDF"
    else:
        return
    raise BinaryError(
        f"{quote(path)} is {kind}, and only text can be edited.",
        hint=Advice("To change its bytes as if they were text, ", Retry({"raw": True}), "."),
        details={"path": path},
    )


def check_notebook(path: str, before: bytes, after: bytes) -> None:
    """Refuse a change that would break a notebook, unless it is broken already."""
    if not _is_named_notebook(path) or _notebook_problem(before):
        return
    if not (problem := _notebook_problem(after)):
        return
    raise InvalidContentError(
        f"The change would break the notebook {quote(path)}: {problem}.",
        hint=Joined(
            " ",
            r"It is stored as JSON: in a text, write \" for a quote, \n for a line end, \\ for a backslash.",
            Advice("To change it all the same, ", Retry({"raw": True}), "."),
        ),
        details={"path": path},
    )


def _image_of(head: bytes) -> ImageInfo | None:
    """Return the image that a head is of; None for a text that only begins like one."""
    return image_info(head) if b"\x00" in head or not _is_utf8(head) else None


def _is_surely_pdf(path: str, head: bytes) -> bool:
    """Return False for a text that may only begin like a PDF: a note on the format, a fixture of a test."""
    return is_binary(head) or not _is_utf8(head) or path.lower().endswith(".pdf")


def _is_pdf(path: str, data: bytes, limits: Limits) -> bool:
    try:
        Pdf(data, path, limits.read_bytes)
    except BinaryError as error:  # it cannot be read here, or it is broken
        unknown = {"extra", "encrypted"} & error.details.keys()
        return bool(unknown) and _is_surely_pdf(path, data[:HEAD])
    return True


def _is_named_notebook(path: str) -> bool:
    return path.lower().endswith(".ipynb")


def _notebook_problem(data: bytes) -> str:
    """Return why the content of a file is not a notebook, or ""."""
    try:
        _cells_of(data)
    except NotANotebookError as error:
        return str(error)
    return ""


def _cells_of(data: bytes) -> list[dict[str, Any]]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise NotANotebookError("it is not UTF-8") from None
    return read_cells(text)


def binary_result(file: OpenFile, head: bytes, limits: Limits) -> ReadResult:
    """Return the result for a binary file, which says what it is and shows none of it."""
    kind = next((kind for position, magic, kind in _MAGIC if head.startswith(magic, position)), "")
    what = f"a binary file ({kind})" if kind else "a binary file"
    note = f"{quote(file.path)} is {what} of {file.stat.st_size} bytes; its content is not shown"
    return _described(file, limits, "binary", note)


def _read_hex(file: OpenFile, limits: Limits, request: ReadRequest) -> ReadResult:
    """Show bytes in hexadecimal; offset and limit count rows of sixteen."""
    size = file.stat.st_size
    total = -(-size // 16)
    first = request.first(file.path, total, "row")
    revision = _revision(file, limits)
    count = min(request.limit or _HEX_ROWS, total - first + 1, max(limits.read_bytes // 80, 1))
    start = (first - 1) * 16
    data = file.read_at(start, count * 16)
    rows = [_hex_row(data[at : at + 16], start + at) for at in range(0, len(data), 16)]

    def result(most: int) -> ReadResult:
        last = first + most - 1
        following: NextCall | None = None
        if last < total:
            following = request.next_call(file.path, last + 1, shown=most)
        notes = notes_of(f"rows {first}-{last} of {total}, 16 bytes each", continuation(following))
        return ReadResult(
            path=file.path,
            kind="binary",
            content="".join(f"{row}\n" for row in rows[:most]),
            start_line=first,
            end_line=last,
            total_lines=total,
            total_bytes=size,
            revision=revision,
            text=Joined("\n", "\n".join(rows[:most]), footer(*notes)),
            notes=notes,
            next=following,
        )

    return fitted(limits, Shrink(max(len(rows), 1), result))


def _hex_row(row: bytes, position: int) -> str:
    """Return sixteen bytes as `hexdump -C` shows them."""
    left, right = row[:8].hex(" "), row[8:].hex(" ")
    plain = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
    return f"{position:08x}  {left:<23}  {right:<23}  |{plain}|"


def _read_image(file: OpenFile, info: ImageInfo, limits: Limits) -> ReadResult:
    size = file.stat.st_size
    data = b"" if size > limits.file_bytes else file.read(limits.file_bytes)
    info = image_info(data) or info  # some have their size behind the head
    pixels = f", {info.width}x{info.height} pixels" if info.width and info.height else ""
    note = f"{quote(file.path)}: {info.format} image{pixels}, {size} bytes"
    fits = len(data) <= limits.image_bytes
    if size > limits.file_bytes:
        problem = f"over {limits.file_bytes} bytes"
    elif problem := image_problem(data, info):
        pass
    elif fits and max(info.width, info.height) <= limits.image_side:
        return _described(file, limits, "image", note, as_image(data, info.media_type))
    else:
        smaller, outcome = scale_down(
            data, info.format, max_bytes=limits.image_bytes, max_side=limits.image_side
        )
        if smaller is not None:
            return _described(file, limits, "image", f"{note}; shown scaled down to {outcome}", smaller)
        if fits:
            return _described(file, limits, "image", note, as_image(data, info.media_type))
        problem = outcome
    return _described(file, limits, "image", f"{note}; not shown: {problem}")


def _read_pdf(file: OpenFile, limits: Limits, request: ReadRequest) -> ReadResult:
    if file.stat.st_size > limits.file_bytes:
        raise TooLargeError(
            f"{quote(file.path)} is a PDF of {file.stat.st_size} bytes; the limit is {limits.file_bytes}.",
            details={"path": file.path, "limit": limits.file_bytes},
        )
    data = file.read(limits.file_bytes)
    pdf = Pdf(data, file.path, limits.read_bytes)
    document = SectionedFile("pdf", file.path, len(data), revision_of(data), "page", pdf.total, pdf.section)
    return read_document(document, limits, request)


def _read_notebook(file: OpenFile, limits: Limits, request: ReadRequest) -> tuple[ReadResult | None, str]:
    data = file.read(limits.file_bytes)
    try:
        cells = _cells_of(data)
    except NotANotebookError as error:
        return None, f"shown as text, for it is no notebook: {error}"

    def section(number: int) -> Section:
        return read_cell(cells[number - 1], number, limits)

    revision = revision_of(data)
    document = SectionedFile("notebook", file.path, len(data), revision, "cell", len(cells), section)
    return read_document(document, limits, request), ""


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


def _is_utf8(head: bytes) -> bool:
    try:
        head.decode()
    except UnicodeDecodeError as error:
        return error.end >= len(head) - 3 and error.start > 0
    return True


def _revision(file: OpenFile, limits: Limits) -> str:
    if file.stat.st_size > limits.file_bytes:
        return revision_of_stat(file.stat)
    return revision_of(file.read(limits.file_bytes))
