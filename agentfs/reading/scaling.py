"""Images made smaller, where the `media` extra is installed."""

import importlib
import warnings
from collections.abc import Iterator
from io import BytesIO
from typing import Any

_MOST_PIXELS = 100_000_000  # a small file can claim to be drawn far larger than memory holds
_QUALITIES = (85, 70, 50)


def scaled(data: bytes, name: str, *, most_bytes: int, longest: int) -> tuple[bytes, str, int, int] | None:
    """Make an image small enough.

    Args:
        data: The image.
        name: Its format, as `Picture.name`.
        most_bytes: The bytes that it may have.
        longest: The pixels that its longer side may have.

    Returns:
        The image with its media type, width and height; None where Pillow is missing or cannot do it.
    """
    try:
        pillow = importlib.import_module("PIL.Image")
    except ImportError:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _scaled(pillow, data, name, most_bytes, longest)
    except Exception:  # noqa: BLE001 - a decoder fails on hostile bytes in more ways than it documents
        return None


def _scaled(
    pillow: Any, data: bytes, name: str, most_bytes: int, longest: int
) -> tuple[bytes, str, int, int] | None:
    with pillow.open(BytesIO(data), formats=[name.upper()]) as opened:
        if opened.width * opened.height > _MOST_PIXELS:
            return None
        # A JPEG is decoded no larger than it is needed.
        opened.draft(None, (longest, longest))
        image = opened.convert("RGBA" if opened.mode in {"RGBA", "LA", "P", "PA"} else "RGB")
    side = longest
    while side >= 64:
        image.thumbnail((side, side))
        for encoded, media_type in _encodings(pillow, image):
            if len(encoded) <= most_bytes:
                return encoded, media_type, image.width, image.height
        side = max(image.width, image.height) * 3 // 4
    return None


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
