"""Recognise files that are not plain text, and show them: images, PDF, notebooks, binary files."""

import base64
import codecs
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from agentfs.base.advice import Advice, FirstOf, ParameterName, Retry, plural
from agentfs.errors import BinaryError, DeadlineExceededError, TooLargeError
from agentfs.fs import OpenFile, quote, revision_of, revision_of_stat
from agentfs.limits import Limits
from agentfs.reading import images
from agentfs.reading.images import ImageInfo, as_image, image_format, image_info
from agentfs.reading.page import FileInfo, ReadOptions, max_lines, text_page
from agentfs.reading.pdf import Pdf
from agentfs.results import Image, ReadResult
from agentfs.text.decoding import HEAD, is_binary
from agentfs.text.display import footer
from agentfs.text.lines import count_lines
from agentfs.text.notebook import Notebook, OutputImage

_BLANKS = b" \t\n\r\x0b\x0c"
_NOTEBOOK = "a notebook as text; lines of outputs begin with >"


def read_media(file: OpenFile, head: bytes, limits: Limits, options: ReadOptions) -> ReadResult | None:
    """Return the result for an image, a PDF or a binary file; None for a text.

    Raises:
        BinaryError: `binary` for a PDF that cannot be read.
    """
    if options.encoding is not None:
        return None
    if not options.raw:
        if (form := _image_of(head)) is not None:
            return _read_image(file, form, limits)
        if _is_pdf(file.path, head):
            return _read_pdf(file, limits, options)
    return binary_result(file, head, limits) if is_binary(head) else None


def check_content(path: str, before: bytes) -> None:
    """Raise an error if a file is an image or a PDF."""
    head = before[:HEAD]
    if (is_image := _image_of(head) is not None) or _is_pdf(path, head):
        raise BinaryError(
            f"{quote(path)} is {'an image' if is_image else 'a PDF'}, and only text can be edited.",
            hint=Advice("To change its bytes as if they were text, ", Retry({"raw": True}), "."),
            details={"path": path},
        )


def _image_of(head: bytes) -> str | None:
    return None if _is_text(head) else image_format(head)


def _is_pdf(path: str, head: bytes) -> bool:
    """Return True for a PDF, but not for a text that begins like one, such as a note on the format."""
    return head.startswith(b"%PDF-") and (not _is_text(head) or path.lower().endswith(".pdf"))


def binary_result(file: OpenFile, head: bytes, limits: Limits) -> ReadResult:
    """Return the result for a binary file, without its content."""
    size = plural(file.stat.st_size, "byte")
    note = f"{quote(file.path)} is a binary file of {size}; its content is not shown"
    if (codec := _utf_16_of(head)) is not None:
        note = FirstOf(Advice(note, "; if it is text, pass ", ParameterName("encoding"), f'="{codec}"'), note)
    return _described(file, limits, "binary", note)


def _utf_16_of(head: bytes) -> str | None:
    """Return the UTF-16 codec in which the first bytes of a file are text, mostly ASCII, or None."""
    even = head[: len(head) // 2 * 2]
    for codec, zeros in (("utf-16-le", even[1::2]), ("utf-16-be", even[::2])):
        if zeros.count(0) * 2 > len(zeros):
            text = codecs.getincrementaldecoder(codec)("replace").decode(even)
            if "".join(text.split()).isprintable():
                return codec
    return None


def _read_image(file: OpenFile, form: str, limits: Limits) -> ReadResult:
    size = file.stat.st_size
    data = b"" if size > limits.file_bytes else file.read(limits.file_bytes)
    info = image_info(data) or ImageInfo(form)
    note = f"{quote(file.path)}: {info.format} image{info.pixels}, {plural(size, 'byte')}"
    problem = f"over {limits.file_bytes} bytes" if size > limits.file_bytes else info.problem
    if not problem:
        shown: Image | None = as_image(data, info.media_type)
        fits = len(data) <= images.MAX_IMAGE_BYTES
        if not fits or max(info.width, info.height) > images.MAX_IMAGE_SIDE:
            smaller, outcome = images.scale_down(data, info.format)
            if smaller is not None:
                note = f"{note}; shown scaled down to {outcome}"
            shown = smaller or (shown if fits else None)
            problem = outcome
        if shown is not None:
            return _described(file, limits, "image", note, shown)
    return _described(file, limits, "image", f"{note}; not shown: {problem}")


def _read_pdf(file: OpenFile, limits: Limits, options: ReadOptions) -> ReadResult:
    size = file.stat.st_size
    if size > limits.file_bytes:
        raise TooLargeError(
            f"{quote(file.path)} is a PDF of {plural(size, 'byte')}; the limit is {limits.file_bytes}.",
            details={"path": file.path, "limit": limits.file_bytes},
        )
    data = file.read(limits.file_bytes)
    # Extracting pages takes long: stop after those that this page of lines needs.
    last = options.offset + max_lines(options.limit, limits) if options.offset > 0 else float("inf")
    text, complete = Pdf(data, file.path).text(last)
    total = count_lines(text)
    if not complete and not 0 < options.offset <= total:
        raise DeadlineExceededError(
            f"There was only time for the first {plural(total, 'line')} of {quote(file.path)}.",
            hint=Advice("Pass an ", ParameterName("offset"), f" up to {total}."),
            details={"path": file.path, "total_lines": total},
        )
    info = FileInfo(file.path, revision_of(data), len(data), total, newline="\n", exact=complete, kind="pdf")
    is_late = not complete and total < last
    page = text_page(info, text, limits, options, ["there was no time for more"] if is_late else [])
    return replace(page, truncated_by="time") if is_late and page.end_line == total else page


def read_notebook(
    info: FileInfo,
    book: Notebook,
    limits: Limits,
    options: ReadOptions,
    notes: Sequence[str],
    ids: Sequence[str] = (),
) -> ReadResult:
    """Return a page of the text of a notebook; `ids` are the ids of its lines."""
    first = options.first(info.path, info.total)
    placed: list[tuple[int, Image]] = []
    notes = [_NOTEBOOK, *notes]
    for each in book.images:
        if first <= each.line < first + max_lines(options.limit, limits):
            found = _output_image(each)
            if isinstance(found, Image):
                placed.append((each.line, found))
            else:
                notes.append(f"the image of line {each.line} is not shown: {found}")
    return text_page(info, book.text, limits, options, notes, ids, placed)


def _output_image(output: OutputImage) -> Image | str:
    """Return the image, or the reason why it is not shown."""
    try:
        data = base64.b64decode(output.encoded.encode("ascii").translate(None, _BLANKS), validate=True)
    except ValueError:
        return "it is not base64"
    info = image_info(data)
    if info is None:
        return "its format is unknown"
    if len(data) > images.MAX_IMAGE_BYTES:
        return f"it has over {plural(images.MAX_IMAGE_BYTES, 'byte')}"
    return info.problem or as_image(data, info.media_type)


def _described(
    file: OpenFile, limits: Limits, kind: Literal["image", "binary"], note: str, *shown: Image
) -> ReadResult:
    size, revision = file.stat.st_size, revision_of_stat(file.stat)
    if size <= limits.file_bytes:
        revision = revision_of(file.read(limits.file_bytes))
    info = FileInfo(file.path, revision, size, 0, exact=False, kind=kind)
    return info.result(images=shown, text=footer(note), notes=(note,))


def _is_text(head: bytes) -> bool:
    """Return True if the first bytes of a file are UTF-8. The last character may be incomplete."""
    if is_binary(head):
        return False
    try:
        head.decode()
    except UnicodeDecodeError as error:
        return error.end >= len(head) - 3 and error.start > 0
    return True
