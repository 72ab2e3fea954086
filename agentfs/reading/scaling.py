"""Images made smaller, where the `media` extra is installed."""

import importlib
import warnings
from collections.abc import Iterator
from io import BytesIO
from typing import Any, NamedTuple

from agentfs import call_context
from agentfs.errors import DeadlineExceededError
from agentfs.reading.images import is_sequential
from agentfs.reading.pdf import EXTRA

# Decoding and scaling down take no more memory than this: a small file can be drawn larger than memory holds.
_MOST_MEMORY = 230 * 1024 * 1024
# The bytes that a pixel takes meanwhile, measured; all modes but these are converted.
_MODES = {"RGB": 6, "L": 2, "RGBA": 10, "LA": 10}
_CONVERTED = 12
_WEBP = {"RGB": 17, "RGBA": 20}
_PROGRESSIVE = 7  # of a JPEG that is kept as a whole, and that no smaller form of it spares
_QUALITIES = (85, 70, 50)


class Scaled(NamedTuple):
    """An image that was made smaller: its bytes, their type and its size in pixels."""

    data: bytes
    media_type: str
    width: int
    height: int


def scaled(data: bytes, name: str, *, most_bytes: int, longest: int) -> Scaled | str:
    """Make an image small enough.

    Args:
        data: The image.
        name: Its format, as `Picture.name`.
        most_bytes: The bytes that it may have.
        longest: The pixels that its longer side may have.

    Returns:
        The image, or why there is none.

    Raises:
        DeadlineExceededError: `timeout`: the call has no more time.
    """
    try:
        pillow = importlib.import_module("PIL.Image")
    except ImportError:
        return f"it is too large, and the extra that scales images down is missing ({EXTRA})"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _scaled(pillow, data, name, most_bytes, longest)
    except DeadlineExceededError:
        raise
    except Exception as error:  # noqa: BLE001 - a decoder fails on hostile bytes in more ways than it documents
        return f"it is too large, and could not be scaled down ({type(error).__name__})"


def _scaled(pillow: Any, data: bytes, name: str, most_bytes: int, longest: int) -> Scaled | str:
    with pillow.open(BytesIO(data), formats=[name.upper()]) as opened:
        memory = (
            opened.width * opened.height * _PROGRESSIVE if name == "JPEG" and not is_sequential(data) else 0
        )
        # A JPEG is decoded no larger than it is needed.
        opened.draft(None, (longest, longest))
        modes = _WEBP if name == "WebP" else _MODES
        memory += opened.width * opened.height * modes.get(opened.mode, _CONVERTED)
        if memory > _MOST_MEMORY:
            return "it has too many pixels to be scaled down"
        call_context.check()
        opened.load()
        image = opened
        if opened.mode not in _MODES:
            image = opened.convert("RGBA" if opened.mode in {"P", "PA"} else "RGB")
        image.thumbnail((longest, longest))
        if image.mode != "RGB":
            image = image.convert("RGBA" if image.mode in {"RGBA", "LA"} else "RGB")
    side = longest
    while side >= 64:
        image.thumbnail((side, side))
        for encoded, media_type in _encodings(pillow, image):
            call_context.check()
            if len(encoded) <= most_bytes:
                return Scaled(encoded, media_type, image.width, image.height)
        side = max(image.width, image.height) * 3 // 4
    return "it is too large at any size"


def _encodings(pillow: Any, image: Any) -> Iterator[tuple[bytes, str]]:
    yield _saved(image, "PNG"), "image/png"
    # JPEG has no transparency: what shows through is white.
    plain = image
    if image.mode == "RGBA":
        plain = pillow.new("RGB", image.size, "white")
        plain.paste(image, mask=image.getchannel("A"))
    for quality in _QUALITIES:
        yield _saved(plain, "JPEG", quality=quality), "image/jpeg"


def _saved(image: Any, form: str, **options: int) -> bytes:
    out = BytesIO()
    image.save(out, form, **options)
    return out.getvalue()
