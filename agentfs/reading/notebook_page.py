"""Show a notebook: its text, and the images of the outputs among the lines shown."""

import base64
from collections.abc import Sequence

from agentfs.limits import Limits
from agentfs.reading.images import MAX_IMAGE_BYTES, as_image, image_info
from agentfs.reading.page import FileInfo, ReadOptions, max_lines, text_page
from agentfs.results import Image, ReadResult
from agentfs.text import plural
from agentfs.text.notebook import Notebook, OutputImage

_BLANKS = b" \t\n\r\x0b\x0c"
_KIND = "a notebook as text; lines of outputs begin with >"


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
    images: list[tuple[int, Image]] = []
    notes = [_KIND, *notes]
    for each in book.images:
        if first <= each.line < first + max_lines(options.limit, limits):
            found = _image(each)
            if isinstance(found, Image):
                images.append((each.line, found))
            else:
                notes.append(f"the image of line {each.line} is not shown: {found}")
    return text_page(info, book.text, limits, options, notes, ids, images)


def _image(output: OutputImage) -> Image | str:
    """Return the image, or the reason why it is not shown."""
    try:
        data = base64.b64decode(output.encoded.encode("ascii").translate(None, _BLANKS), validate=True)
    except ValueError:
        return "it is not base64"
    info = image_info(data)
    if info is None:
        return "its format is unknown"
    if len(data) > MAX_IMAGE_BYTES:
        return f"it has over {plural(MAX_IMAGE_BYTES, 'byte')}"
    return info.problem or as_image(data, info.media_type)
