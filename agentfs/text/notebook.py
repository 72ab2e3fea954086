"""A notebook as one text: each cell under a header line, its outputs after its source.

Lines of an output begin with `> `. Only the sources of cells can be changed: the JSON is parsed, the cell is
changed, and the JSON is written again in the style of the file.
"""

import json
import re
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any, NamedTuple, TypeGuard

from agentfs.base import call_context
from agentfs.base.advice import plural
from agentfs.text.lines import EditView, Replacement, spliced

# The JSON of a notebook with more parts than this would take too much memory.
_MAX_PARTS = 1_500_000
_MAX_OUTPUT_LINES = 100
_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_COLORS = re.compile(r"\x1b\[[0-9;]*m")
_INDENT = re.compile(r"\{\n([ \t]*)")


class NotANotebookError(ValueError):
    """Raised for a text that is not a notebook; the message says why."""


class NotEditableError(ValueError):
    """Raised if a change is not in the source of one cell, or the JSON cannot be written back as it was."""


class OutputImage(NamedTuple):
    """An image among the outputs: the line of the text that stands for it, its media type and its base64."""

    line: int
    media_type: str
    encoded: str


class Notebook(EditView):
    """A notebook and its text.

    Attributes:
        source: The JSON.
        text: The text, whose lines end with LF.
        cells: The start and end of each cell's source in the text, without the line end after it.
        images: The images of the outputs, by line.
    """

    def __init__(self, source: str) -> None:
        """Parse the JSON; raise `NotANotebookError` for any other text."""
        super().__init__(source)
        self._parsed = _parse(source)
        self.cells: list[tuple[int, int]] = []
        self.images: list[OutputImage] = []
        parts: list[str] = []
        size = lines = 0  # of the parts
        for number, cell in enumerate(self._parsed["cells"], 1):
            call_context.check()
            header, outputs = _header(number, cell), [*_output_lines(cell)]
            text = _joined(cell.get("source", "")).replace("\r\n", "\n")
            start = size + len(header)
            self.cells.append((start, start + len(text)))
            part = header + text + ("\n" if text and not text.endswith("\n") else "")
            lines += part.count("\n")
            self.images += [OutputImage(lines + at, *each) for at, (_, each) in enumerate(outputs, 1) if each]
            lines += len(outputs)
            parts.append(part + "".join(f"> {line}\n" for line, _ in outputs))
            size += len(parts[-1])
        self.text = "".join(parts)

    def is_editable(self, start: int, end: int) -> bool:
        """Return True if a range of the text lies in the source of one cell."""
        return self._cell_of(start, end) is not None

    def replaced(self, replacements: Iterable[Replacement]) -> str:
        """Return the JSON after replacements in the text.

        Raises:
            NotEditableError: A range is not in the source of one cell, or JSON written in the style of the
                file would change other bytes of it.
        """
        write = self._writer()
        by_cell: dict[int, list[Replacement]] = {}
        for each in replacements:
            number = self._cell_of(each.start, each.end)
            if number is None:
                raise NotEditableError("only the source of one cell can be changed at once")
            by_cell.setdefault(number, []).append(each)
        changed = json.loads(self.source)
        for number, changes in by_cell.items():
            _change(changed["cells"][number], self.cells[number], changes)
        return write(changed) + self._end

    def _cell_of(self, start: int, end: int) -> int | None:
        """Return the index of the cell whose source has a range; it has the line end after it too."""
        number = bisect_right(self.cells, (start, sys.maxsize)) - 1
        if number < 0:
            return None
        first, last = self.cells[number]
        inside = end <= last or (start < last and end == last + 1 and self.text[last] == "\n")
        return number if first <= start <= last and inside else None

    @property
    def _end(self) -> str:
        """The blanks after the JSON."""
        return self.source[len(self.source.rstrip()) :]

    def _writer(self) -> Callable[[Any], str]:
        """Return the function that writes JSON as it is in the source; raise `NotEditableError` for none."""
        found = _INDENT.match(self.source)
        indent = found[1] if found else None
        for ascii_only, comma, colon in product((False, True), (", ", ","), (": ", ":")):
            separators = (comma.strip() if found else comma, colon)
            write = partial(json.dumps, indent=indent, separators=separators, ensure_ascii=ascii_only)
            if write(self._parsed) + self._end == self.source:
                return write
        raise NotEditableError("its JSON is not written as a program for notebooks writes it")


def _change(cell: dict[str, Any], place: tuple[int, int], changes: Sequence[Replacement]) -> None:
    """Replace parts of the source of a cell, and keep its form and its line ends."""
    source = cell.get("source", "")
    joined = _joined(source)
    pairs = joined.count("\r\n")
    if _split(joined, source) != source or pairs not in (0, joined.count("\n")):
        raise NotEditableError("the lines of the cell are stored in an unusual way")
    first, last = place
    pieces = [  # without the line end that is not in the JSON
        Replacement(start - first, min(end, last) - first, new.removesuffix("\n") if end > last else new)
        for start, end, new in changes
    ]
    changed = spliced(joined.replace("\r\n", "\n"), pieces)
    cell["source"] = _split(changed.replace("\n", "\r\n") if pairs else changed, source)


def notebook_problem(source: str) -> str:
    """Return why a text is not a notebook, or ""."""
    try:
        _parse(source)
    except NotANotebookError as error:
        return str(error)
    return ""


def shown_text(path: str, text: str) -> str:
    """Return the text of a file as `read` shows it: that of a notebook, or the text itself."""
    return Notebook(text).text if is_named_notebook(path) and not notebook_problem(text) else text


def is_named_notebook(path: str) -> bool:
    """Return True if the name of a file is that of a notebook."""
    return path.lower().endswith(".ipynb")


def _parse(source: str) -> dict[str, Any]:
    if sum(map(source.count, "{[,")) > _MAX_PARTS:
        raise NotANotebookError(f"its JSON has more than {_MAX_PARTS} parts")
    try:
        notebook = json.loads(source)
    except RecursionError:
        raise NotANotebookError("its JSON is nested too deeply") from None
    except ValueError as error:
        raise NotANotebookError(f"its JSON is broken: {error}") from None
    found: Any = notebook.get("cells") if _is_dict(notebook) else None
    if not _is_list(found) or not all(_is_dict(cell) for cell in found):
        raise NotANotebookError("it has no list of cells")
    checked: dict[str, Any] = notebook
    return checked


def _header(number: int, cell: dict[str, Any]) -> str:
    kind = str(cell.get("cell_type", "cell"))
    run = cell.get("execution_count")
    ran = f", run {run}" if type(run) is int else ""
    return f"=== cell {number}, {kind if kind.isidentifier() else 'cell'}{ran}\n"


def _output_lines(cell: dict[str, Any]) -> Iterator[tuple[str, tuple[str, str] | None]]:
    """Yield the lines of the outputs of a cell; a line that stands for an image comes with it."""
    outputs = cell.get("outputs")
    for output in filter(_is_dict, outputs if _is_list(outputs) else []):
        bundle = output.get("data")
        data: dict[str, Any] = bundle if _is_dict(bundle) else {}
        images = [(kind, _joined(data[kind])) for kind in _IMAGES if data.get(kind)]
        yield from ((f"[{kind}]", (kind, encoded)) for kind, encoded in images)
        text = _COLORS.sub("", "" if images else _output_text(output, data)).replace("\r\n", "\n")
        lines = text.removesuffix("\n").split("\n", _MAX_OUTPUT_LINES) if text else []
        more = lines.pop().count("\n") + 1 if len(lines) > _MAX_OUTPUT_LINES else 0
        yield from ((line, None) for line in lines)
        if more:
            yield f"⟦+{plural(more, 'line')} of output⟧", None


def _output_text(output: dict[str, Any], data: dict[str, Any]) -> str:
    if output.get("output_type") == "error":
        trace = output.get("traceback")
        text = "\n".join(map(str, trace)) if _is_list(trace) else ""
        return text or f"{output.get('ename', 'Error')}: {output.get('evalue', '')}"
    if "text" in output:
        return _joined(output["text"])
    if "text/plain" in data:
        return _joined(data["text/plain"])
    return "".join(f"[{media_type}, not shown]\n" for media_type in data)


def _split(text: str, form: Any) -> Any:
    """Return a source in a form: one string, or a list of lines with their ends."""
    return re.findall(r"[^\n]*\n|[^\n]+", text) if _is_list(form) else text


def _joined(value: Any) -> str:
    if _is_list(value):
        return "".join(map(str, value))
    return value if isinstance(value, str) else ""


def _is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _is_dict(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)
