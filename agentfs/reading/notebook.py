"""Jupyter notebooks: their cells with source and outputs, out of the JSON that they are stored as."""

import base64
import json
import re
from collections.abc import Iterator
from typing import Any, TypeGuard

from agentfs import call_context
from agentfs.limits import Limits
from agentfs.reading.images import picture_of, validate_image
from agentfs.reading.sections import Section, marked_lines
from agentfs.results import Image

_MOST_PARTS = 1_500_000
_OUTPUT_LINES = 100
_BLANKS = b" \t\n\r\x0b\x0c"
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")


class NotANotebookError(ValueError):
    """The JSON is none, or has no cells; the message says which."""


def cells_of(text: str) -> list[dict[str, Any]]:
    """Return the cells of a notebook.

    Args:
        text: The JSON; one of too many parts is not read, since each takes far more memory than its text.

    Raises:
        NotANotebookError: It is no notebook.
    """
    if sum(map(text.count, "{[,")) > _MOST_PARTS:
        raise NotANotebookError(f"its JSON has more than {_MOST_PARTS} parts")
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


def section_of(cell: dict[str, Any], number: int, limits: Limits) -> Section:
    """Return one cell as it is shown: its source after `|`, its outputs after `>`.

    Args:
        cell: The cell, whatever it holds.
        number: Its number, from 1.
        limits: `image_bytes`, and `read_bytes`, which hold no more lines.
    """
    kind = str(cell.get("cell_type", "cell"))
    run = cell.get("execution_count", cell.get("prompt_number"))
    title = f"cell {number}, {kind if kind.isidentifier() else 'cell'}"
    if type(run) is int:
        title += f", run {run}"
    source = _joined(cell.get("source", cell.get("input", "")))
    lines, more = marked_lines(source, "|", limits.read_bytes)
    images: list[Image] = []
    outputs = cell.get("outputs")
    for output in outputs if _is_list(outputs) else []:
        call_context.check()
        if not _is_dict(output):
            continue
        shown = list(_output(output, images, limits.image_bytes))
        more += len(shown) if len(lines) > limits.read_bytes else 0
        lines += shown if len(lines) <= limits.read_bytes else []
    return Section(title, lines, images, more)


def _output(output: dict[str, Any], images: list[Image], image_bytes: int) -> Iterator[str]:
    bundle = output.get("data")
    found = bundle if _is_dict(bundle) else {}
    for media_type in _IMAGES:
        encoded = _joined(found.get(media_type, output.get(media_type.removeprefix("image/"), "")))
        if encoded:
            yield f"> {_image(encoded, images, image_bytes)}"
    if output.get("output_type") in {"error", "pyerr"}:
        trace = output.get("traceback")
        text = "\n".join(map(str, trace)) if _is_list(trace) else ""
        text = text or f"{output.get('ename', 'Error')}: {output.get('evalue', '')}"
    elif "text" in output:
        text = _joined(output["text"])
    elif any(media_type in found for media_type in _IMAGES):
        text = ""  # what else there is stands for the image
    elif "text/plain" in found:
        text = _joined(found["text/plain"])
    else:
        text = "".join(f"[{media_type}, not shown]\n" for media_type in found)
    lines, more = marked_lines(_COLOURS.sub("", text), ">", _OUTPUT_LINES)
    yield from lines
    if more:
        yield f"> ⟦+{more} lines of output⟧"


def _image(encoded: str, images: list[Image], image_bytes: int) -> str:
    try:
        data = base64.b64decode(encoded.encode("ascii").translate(None, _BLANKS), validate=True)
    except ValueError:
        return "[an image that is not base64]"
    picture = picture_of(data)
    if picture is None:
        return "[an image of no known format]"
    what = f"{picture.name} image, {picture.width}x{picture.height}, {len(data)} bytes"
    flaw = validate_image(data, picture)
    if flaw or len(data) > image_bytes:
        return f"[{what}; not shown: {flaw or f'over {image_bytes} bytes'}]"
    images.append(Image(base64.b64encode(data).decode(), picture.media_type))
    return f"[{what}]"


def _joined(value: Any) -> str:
    if _is_list(value):
        return "".join(map(str, value))
    return value if isinstance(value, str) else ""


def _is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _is_dict(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)
