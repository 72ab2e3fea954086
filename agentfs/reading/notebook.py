"""Cells of Jupyter notebooks with source and outputs, from the JSON in which they are stored."""

import base64
import json
import re
from typing import Any, TypeGuard

from agentfs import call_context
from agentfs.limits import Limits
from agentfs.reading.images import as_image, image_info, image_problem
from agentfs.reading.sections import Section, mark_lines
from agentfs.results import Image

_MAX_PARTS = 1_500_000
_MAX_OUTPUT_LINES = 100
_BLANKS = b" \t\n\r\x0b\x0c"
_COLORS = re.compile(r"\x1b\[[0-9;]*m")
_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")


class NotANotebookError(ValueError):
    """A file is no notebook; the message says why."""


def read_cells(text: str) -> list[dict[str, Any]]:
    """Return the cells of a notebook, unless its JSON has so many parts that they would fill the memory."""
    if sum(map(text.count, "{[,")) > _MAX_PARTS:
        raise NotANotebookError(f"its JSON has more than {_MAX_PARTS} parts")
    try:
        notebook = json.loads(text)
    except RecursionError:
        raise NotANotebookError("its JSON is nested too deeply") from None
    except ValueError as error:
        raise NotANotebookError(f"its JSON is broken: {error}") from None
    found: Any = None
    if _is_dict(notebook):
        found = notebook.get("cells")
        sheets = notebook.get("worksheets")  # where notebooks of version 3 have their cells
        if found is None and _is_list(sheets) and sheets and _is_dict(sheets[0]):
            found = sheets[0].get("cells")
    if not _is_list(found) or not all(_is_dict(cell) for cell in found):
        raise NotANotebookError("it has no list of cells")
    return found


def read_cell(cell: dict[str, Any], number: int, limits: Limits) -> Section:
    """Return a cell, from 1: its source after `|`, its outputs after `>`."""
    kind = str(cell.get("cell_type", "cell"))
    run = cell.get("execution_count", cell.get("prompt_number"))
    title = f"cell {number}, {kind if kind.isidentifier() else 'cell'}"
    if type(run) is int:
        title += f", run {run}"
    source = _joined(cell.get("source", cell.get("input", "")))
    lines, more = mark_lines(source, "|", limits.read_bytes)
    images: list[Image] = []
    outputs = cell.get("outputs")
    for output in outputs if _is_list(outputs) else []:
        call_context.check()
        if not _is_dict(output):
            continue
        shown, found = _read_output(output, limits.image_bytes)
        images += found
        if len(lines) <= limits.read_bytes:
            lines += shown
        else:
            more += len(shown)
    return Section(title, lines, images, more)


def _read_output(output: dict[str, Any], image_bytes: int) -> tuple[list[str], list[Image]]:
    """Return the lines of an output and its images."""
    bundle = output.get("data")
    data: dict[str, Any] = bundle if _is_dict(bundle) else {}
    encoded = [_joined(data.get(each, output.get(each.removeprefix("image/"), ""))) for each in _IMAGES]
    decoded = [_read_image(each, image_bytes) for each in encoded if each]
    if output.get("output_type") in {"error", "pyerr"}:
        trace = output.get("traceback")
        text = "\n".join(map(str, trace)) if _is_list(trace) else ""
        text = text or f"{output.get('ename', 'Error')}: {output.get('evalue', '')}"
    elif "text" in output:
        text = _joined(output["text"])
    elif any(media_type in data for media_type in _IMAGES):
        text = ""  # what else there is only describes the image
    elif "text/plain" in data:
        text = _joined(data["text/plain"])
    else:
        text = "".join(f"[{media_type}, not shown]\n" for media_type in data)
    lines, more = mark_lines(_COLORS.sub("", text), ">", _MAX_OUTPUT_LINES)
    rest = [f"> ⟦+{more} lines of output⟧"] if more else []
    images = [image for _, image in decoded if image is not None]
    return [*(f"> [{note}]" for note, _ in decoded), *lines, *rest], images


def _read_image(encoded: str, image_bytes: int) -> tuple[str, Image | None]:
    """Return a description of an image, and the image if it can be shown."""
    try:
        data = base64.b64decode(encoded.encode("ascii").translate(None, _BLANKS), validate=True)
    except ValueError:
        return "an image that is not base64", None
    info = image_info(data)
    if info is None:
        return "an image of no known format", None
    note = f"{info.format} image, {info.width}x{info.height}, {len(data)} bytes"
    problem = image_problem(data, info) or (f"over {image_bytes} bytes" if len(data) > image_bytes else "")
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
