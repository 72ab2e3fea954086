"""Notebooks: show the cells, and edit their text in the JSON of the file."""

import base64
import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple, TypeGuard

from agentfs.base import call_context
from agentfs.base.advice import Advice, Joined, ParameterName, Retry
from agentfs.errors import NoMatchError
from agentfs.fs import quote, revision_of
from agentfs.limits import Limits
from agentfs.reading.images import MAX_IMAGE_BYTES, as_image, image_info
from agentfs.reading.page import FileInfo, ReadOptions
from agentfs.reading.sections import MarkedLines, read_sections
from agentfs.reading.slices import Section
from agentfs.results import Image, ReadResult
from agentfs.text import EditView, Replacement, View, plural

# The JSON of a notebook with more parts than this would take too much memory.
_MAX_PARTS = 1_500_000
_MAX_OUTPUT_LINES = 100
_BLANKS = b" \t\n\r\x0b\x0c"
_COLORS = re.compile(r"\x1b\[[0-9;]*m")
_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_JSON_BLANKS = re.compile(r"[ \t\n\r]*")
_decode_at = json.JSONDecoder().raw_decode
# An escape in a JSON string. Escapes of one line end, or of one character, count as one.
_ESCAPE = re.compile(r"(?:\\r|\\u000[dD])(?:\\n|\\u000[aA])|\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u....|\\.")
_SIMPLE_ESCAPES = {r"\n": "\n", r"\"": '"', r"\\": "\\", r"\t": "\t"}
_ESCAPED_NON_ASCII = re.compile(r"(?<!\\)(?:\\\\)*\\u(?!00[0-7])[0-9a-fA-F]{4}")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_BETWEEN_STRINGS = re.compile(r'"(\s*,\s*)"')
# To change anything of a notebook except the text of its cells.
AS_JSON = Advice("To edit the JSON of the notebook instead, ", Retry({"raw": True}), ".")


class NotANotebookError(ValueError):
    """Raised for a file that is not a notebook; the message says why."""


def read_notebook(path: str, data: bytes, limits: Limits, request: ReadOptions) -> ReadResult:
    """Return cells of a notebook. Raises NotANotebookError for other content."""
    cells = _read_cells(data)

    def cell_at(number: int, skipped: int) -> Section:
        return _read_cell(cells[number - 1], number, skipped, limits)

    info = FileInfo(path, revision_of(data), len(data), len(cells), kind="notebook", noun="cell")
    return read_sections(info, cell_at, limits, request)


def notebook_problem(data: bytes) -> str:
    """Return why the content of a file is not a notebook, or ""."""
    try:
        _read_cells(data)
    except NotANotebookError as error:
        return str(error)
    return ""


def _read_cells(data: bytes) -> list[dict[str, Any]]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise NotANotebookError("it is not UTF-8") from None
    if sum(map(text.count, "{[,")) > _MAX_PARTS:
        raise NotANotebookError(f"its JSON has more than {_MAX_PARTS} parts")
    try:
        notebook = json.loads(text)
    except RecursionError:
        raise NotANotebookError("its JSON is nested too deeply") from None
    except ValueError as error:
        raise NotANotebookError(f"its JSON is broken: {error}") from None
    found: Any = notebook.get("cells") if _is_dict(notebook) else None
    if not _is_list(found) or not all(_is_dict(cell) for cell in found):
        raise NotANotebookError("it has no list of cells")
    return found


def _read_cell(cell: dict[str, Any], number: int, skipped: int, limits: Limits) -> Section:
    """Return a cell without its first lines. Its source is marked by `|`, its outputs by `>`."""
    kind = str(cell.get("cell_type", "cell"))
    run = cell.get("execution_count")
    title = f"cell {number}, {kind if kind.isidentifier() else 'cell'}"
    if type(run) is int:
        title += f", run {run}"
    lines = MarkedLines(skipped, limits.read_bytes)
    lines.add(_joined(cell.get("source", "")), "|")
    images: list[Image] = []
    outputs = cell.get("outputs")
    for output in outputs if _is_list(outputs) else []:
        call_context.check()
        if not _is_dict(output):
            continue
        images += _read_output(output, lines)
    return lines.section(title, images)


def _read_output(output: dict[str, Any], lines: MarkedLines) -> list[Image]:
    """Add the lines of an output, and return its images."""
    bundle = output.get("data")
    data: dict[str, Any] = bundle if _is_dict(bundle) else {}
    encoded = [_joined(data.get(each, "")) for each in _IMAGES]
    decoded = [_read_image(each) for each in encoded if each]
    if output.get("output_type") == "error":
        trace = output.get("traceback")
        text = "\n".join(map(str, trace)) if _is_list(trace) else ""
        text = text or f"{output.get('ename', 'Error')}: {output.get('evalue', '')}"
    elif "text" in output:
        text = _joined(output["text"])
    elif any(media_type in data for media_type in _IMAGES):
        text = ""  # its other types only describe the image
    elif "text/plain" in data:
        text = _joined(data["text/plain"])
    else:
        text = "".join(f"[{media_type}, not shown]\n" for media_type in data)
    for note, _ in decoded:
        lines.add(f"[{note}]", "> ")
    if more := lines.add(_COLORS.sub("", text), ">", _MAX_OUTPUT_LINES):
        lines.add(f"⟦+{plural(more, 'line')} of output⟧", "> ")
    return [image for _, image in decoded if image is not None]


def _read_image(encoded: str) -> tuple[str, Image | None]:
    """Return a description of an image, and the image if it can be shown."""
    try:
        data = base64.b64decode(encoded.encode("ascii").translate(None, _BLANKS), validate=True)
    except ValueError:
        return "an image that is not base64", None
    info = image_info(data)
    if info is None:
        return "an image of unknown format", None
    note = f"{info.format} image{info.pixels}, {plural(len(data), 'byte')}"
    problem = info.problem or (
        f"over {plural(MAX_IMAGE_BYTES, 'byte')}" if len(data) > MAX_IMAGE_BYTES else ""
    )
    if problem:
        return f"{note}; not shown: {problem}", None
    return note, as_image(data, info.media_type)


def _joined(value: Any) -> str:
    if _is_list(value):
        return "".join(map(str, value))
    return value if isinstance(value, str) else ""


def _is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _is_dict(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


class _Cell(NamedTuple):
    """The source of a cell in the JSON.

    Attributes:
        start: The offset of the source, or of a cell without one.
        strings: The range of each string of the source, without the quotes.
        texts: The strings.
        in_list: True if the source is a list of strings.
        has_outputs: True if the cell has outputs.
    """

    start: int
    strings: Sequence[tuple[int, int]] = ()
    texts: Sequence[str] = ()
    in_list: bool = False
    has_outputs: bool = False

    @property
    def text(self) -> str:
        """The text with LF line ends."""
        return "".join(text.replace("\r\n", "\n") for text in self.texts)

    def pieces(self, source: str) -> Iterator[Replacement]:
        """Yield what is not text up to the end of the last string."""
        position = 0
        for start, end in self.strings:
            yield Replacement(position, start, "")
            for escape in _ESCAPE.finditer(source, start, end):
                yield Replacement(*escape.span(), _unescaped(escape[0]))
            position = end


class CellView(EditView):
    """The text of all cells of a notebook; a line end that is not in the JSON follows each cell.

    A replacement changes only the source of one cell. The escapes around it, the form of the source (a list
    of lines or one string) and the rest of the file stay.
    """

    def __init__(self, notebook: str, path: str) -> None:
        """Find the cells in the JSON of a valid notebook; `path` is named in errors."""
        self.source = notebook
        self._cells = _find_cells(notebook)
        self.texts = [cell.text for cell in self._cells]
        self.text = "".join(f"{text}\n" for text in self.texts)
        self.cells = [*accumulate((text.count("\n") + 1 for text in self.texts), initial=1)][:-1]
        self._starts = [*accumulate((len(text) + 1 for text in self.texts), initial=0)]
        self._views: dict[int, View] = {}
        self._path = path
        self._ascii = notebook.isascii() and _ESCAPED_NON_ASCII.search(notebook) is not None

    def has_outputs(self, cell: int) -> bool:
        """Return True if a cell, by its index, has outputs."""
        return self._cells[cell].has_outputs

    def after(self, source: str) -> "CellView":
        """Return the view of the JSON after a replacement."""
        return CellView(source, self._path)

    def splice(self, start: int, end: int, new: str) -> Replacement:
        """Convert a replacement in the text of one cell to one in the JSON."""
        cell = bisect_right(self._starts, start) - 1
        cell_end = self._starts[cell + 1] - 1
        if start == cell_end or end > cell_end + 1:
            raise self._spans_cells(start, end)
        if end > cell_end:  # the line end that is not in the JSON
            end, new = cell_end, new.removesuffix("\n")
        first, stop, inserted = self._changed_part(start, end, new)
        low, high = self._range(cell, first, stop)
        _, strings, texts, in_list, _ = self._cells[cell]
        newline = "\r\n" if any("\r\n" in text for text in texts) else "\n"
        lines = [line.replace("\n", newline) for line in _LINE.findall(inserted)]
        written = [json.dumps(line, ensure_ascii=self._ascii)[1:-1] for line in lines]
        if not in_list:
            return Replacement(low, high, "".join(written))
        begin = strings[bisect_right(strings, (low, len(self.source))) - 1][0]
        last = bisect_left([string_end for _, string_end in strings], high)
        if not lines and low == begin and high == strings[last][1] and last + 1 < len(strings):
            return Replacement(low, strings[last + 1][0], "")  # every line from the first string to the last
        if lines and low > begin and self.text[first - 1] == "\n":
            written.insert(0, "")
        if lines and inserted.endswith("\n") and high < strings[last][1]:
            written.append("")
        return Replacement(low, high, self._between(cell).join(written))

    def _range(self, cell: int, first: int, stop: int) -> tuple[int, int]:
        """Return the range of the JSON for a range of the text of one cell."""
        if (view := self._views.get(cell)) is None:
            pieces = partial(self._cells[cell].pieces, self.source)
            view = self._views[cell] = View(self.source, pieces, self.texts[cell])
        begin = self._starts[cell]
        low = view.start(first - begin)
        return low, view.end(stop - begin) if first < stop else low

    def _between(self, cell: int) -> str:
        """Return what separates two lines in the source of a cell, or would separate them."""
        start, strings, *_ = self._cells[cell]
        if len(strings) > 1:
            return self.source[strings[0][1] : strings[1][0]]
        bracket = self.source.rindex("[", start, strings[0][0])
        indentation = self.source[bracket + 1 : strings[0][0] - 1]
        if indentation:
            return f'",{indentation}"'
        other = _BETWEEN_STRINGS.search(self.source, start)
        return other[0] if other else '", "'

    def _spans_cells(self, start: int, end: int) -> NoMatchError:
        cells = [bisect_right(self._starts, at) for at in (start, end - 1)]
        old = ParameterName("old_string")
        return NoMatchError(
            Advice(old, f" is in {quote(self._path)} only across the cells {cells[0]} and {cells[1]}."),
            hint=Joined(" ", "Edit the text of each cell by itself.", AS_JSON),
            details={"path": self._path, "cause": "spans_cells", "cells": cells},
        )


def _unescaped(escape: str) -> str:
    return _SIMPLE_ESCAPES.get(escape) or json.loads(f'"{escape}"').replace("\r\n", "\n")


class _Cursor:
    """A position in valid JSON, before a value."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._move(0)

    def _move(self, at: int) -> None:
        found = _JSON_BLANKS.match(self._text, at)
        self.at = found.end() if found else at

    def members(self) -> Iterator[str]:
        """Pass over an object or list; stop before each value and yield its name, which is "" in a list.

        A value that the caller does not pass over is skipped. Any other value has no members.
        """
        text = self._text
        if text[self.at] not in "{[":
            return
        in_object = text[self.at] == "{"
        self._move(self.at + 1)
        while text[self.at] not in "]}":
            name = ""
            if in_object:
                name, _, _ = self.value()
                self._move(self.at + 1)  # the colon
            start = self.at
            yield name
            if self.at == start:
                self.value()
            if text[self.at] == ",":
                self._move(self.at + 1)
        self._move(self.at + 1)

    def value(self) -> tuple[Any, int, int]:
        """Pass over a value; return it and its range."""
        start = self.at
        value, end = _decode_at(self._text, start)
        self._move(end)
        return value, start, end

    def cells(self) -> list[_Cell]:
        """Pass over a list of cells."""
        found: list[_Cell] = []
        for _ in self.members():
            call_context.check()
            source, outputs = _Cell(self.at), False
            for name in self.members():
                if name == "source":
                    source = self._source()
                elif name == "outputs":
                    value, *_ = self.value()
                    outputs = _is_list(value) and bool(value)
            found.append(source._replace(has_outputs=outputs))
        return found

    def _source(self) -> _Cell:
        start, in_list = self.at, self._text[self.at] == "["
        values = [self.value() for _ in self.members()] if in_list else [self.value()]
        if not all(isinstance(value, str) for value, *_ in values):
            return _Cell(start)  # `read` shows something, but it is not text
        strings = [(low + 1, high - 1) for _, low, high in values]
        return _Cell(start, strings, [value for value, *_ in values], in_list)


def _find_cells(notebook: str) -> list[_Cell]:
    # As in `json.loads`, the last of several members with the same name counts.
    cursor = _Cursor(notebook)
    cells: list[_Cell] = []
    for name in cursor.members():
        if name == "cells":
            cells = cursor.cells()
    return cells


def text_as_edited(path: str, text: str) -> str:
    """Return the text of a file as `edit` takes it: that of the cells, if the file is a notebook."""
    is_notebook = is_named_notebook(path) and not notebook_problem(text.encode("utf-8", "replace"))
    return CellView(text, path).text if is_notebook else text


def is_named_notebook(path: str) -> bool:
    """Return True if the name of a file is that of a notebook."""
    return path.lower().endswith(".ipynb")
