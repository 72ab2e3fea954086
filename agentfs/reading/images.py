"""Recognise images, find damaged ones, and scale large ones down with Pillow."""

import base64
import importlib
import warnings
import zlib
from collections.abc import Iterator
from io import BytesIO
from typing import Any, NamedTuple

from agentfs import call_context
from agentfs.errors import DeadlineExceededError
from agentfs.results import Image

MEDIA_EXTRA = "pip install pillow pypdf"
# Decoding an image with more pixels takes a GiB of memory in any program.
MAX_PIXELS = 40_000_000

_PNG = b"\x89PNG\r\n\x1a\n"
# JPEG markers without a segment, and markers of frames, which contain the size.
_BARE_MARKERS = {0x01, *range(0xD0, 0xD9)}
_FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}

# A small file can expand to a huge image. Images that need more memory than this are not decoded.
_MAX_MEMORY = 230 * 1024 * 1024
# Measured bytes of memory for each pixel while an image is scaled down. Other modes are converted first.
_MODES = {"RGB": 6, "L": 2, "RGBA": 10, "LA": 10}
_CONVERTED = 12
_WEBP = {"RGB": 17, "RGBA": 20}
_JPEG = 7  # bytes for each pixel of the file, even if a JPEG is decoded at a smaller size
_QUALITIES = (85, 70, 50)


class ImageInfo(NamedTuple):
    """The format of an image and its size in pixels; 0 if the size is unknown."""

    format: str
    media_type: str
    width: int
    height: int


def image_info(data: bytes) -> ImageInfo | None:
    """Return the format and size of an image from its first bytes; None for other data."""
    if data.startswith(_PNG):
        return ImageInfo("PNG", "image/png", _big(data, 16, 4), _big(data, 20, 4))
    if data.startswith(b"\xff\xd8\xff"):
        return ImageInfo("JPEG", "image/jpeg", *_jpeg_size(data))
    if data.startswith((b"GIF87a", b"GIF89a")):
        return ImageInfo("GIF", "image/gif", _little(data, 6, 2), _little(data, 8, 2))
    if data.startswith(b"RIFF") and data.startswith(b"WEBP", 8):
        return ImageInfo("WebP", "image/webp", *_webp_size(data))
    return None


def image_problem(data: bytes, info: ImageInfo) -> str:
    """Return what is wrong with an image, or "". A provider refuses a request with one broken image."""
    if not (info.width and info.height):
        return "it has no size"
    if info.width * info.height > MAX_PIXELS:
        return "it has too many pixels"
    if info.format == "PNG":
        return _png_problem(data)
    if info.format == "WebP":
        return "" if len(data) >= _little(data, 4, 4) + 8 else "it ends too early"
    if info.format == "GIF":
        return _gif_problem(data)
    # Cameras and editors may append data after the end of the image.
    return "" if b"\xff\xd9" in data[-max(len(data) // 2, 64) :] else "it ends too early"


def _png_problem(data: bytes) -> str:
    position = len(_PNG)
    while position + 12 <= len(data):
        length = _big(data, position, 4)
        end = position + 8 + length
        if end + 4 > len(data):
            break
        if zlib.crc32(data[position + 4 : end]) != _big(data, end, 4):
            return "a part of it is damaged"
        if data[position + 4 : position + 8] == b"IEND":
            return ""
        position = end + 4
    return "it ends too early"


def _gif_problem(data: bytes) -> str:
    position = 13 + _color_table_size(data, 10)
    while position < len(data):
        mark = data[position]
        if mark == 0x3B:
            return ""
        # An image has a descriptor, perhaps colors, and a byte before its blocks; an extension has a label.
        position += 2 if mark == 0x21 else 11 + _color_table_size(data, position + 9)
        while position < len(data) and data[position]:
            position += 1 + data[position]
        position += 1
    return "it ends too early"


def _color_table_size(data: bytes, position: int) -> int:
    """Return the size of a GIF's color table, given the position of the flags."""
    flags = _little(data, position, 1)
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


def _jpeg_size(data: bytes) -> tuple[int, int]:
    position = 2
    while position + 9 <= len(data) and data[position] == 0xFF:
        marker = data[position + 1]
        if marker in _FRAMES:
            return _big(data, position + 7, 2), _big(data, position + 5, 2)
        if marker == 0xFF:
            position += 1
        elif marker in _BARE_MARKERS:
            position += 2
        else:
            position += 2 + max(_big(data, position + 2, 2), 2)
    return 0, 0


def _webp_size(data: bytes) -> tuple[int, int]:
    chunk = data[12:16]
    if chunk == b"VP8X":
        return _little(data, 24, 3) + 1, _little(data, 27, 3) + 1
    if chunk == b"VP8L" and len(data) >= 25:
        bits = _little(data, 21, 4)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if chunk == b"VP8 ":
        return _little(data, 26, 2) & 0x3FFF, _little(data, 28, 2) & 0x3FFF
    return 0, 0


def _big(data: bytes, position: int, size: int) -> int:
    return int.from_bytes(data[position : position + size], "big")


def _little(data: bytes, position: int, size: int) -> int:
    return int.from_bytes(data[position : position + size], "little")


def as_image(data: bytes, media_type: str) -> Image:
    """Return an image for the model."""
    return Image(base64.b64encode(data).decode(), media_type)


def scale_down(data: bytes, form: str, *, max_bytes: int, max_side: int) -> tuple[Image | None, str]:
    """Return a smaller image and its size as text, or None and the reason."""
    try:
        pillow = importlib.import_module("PIL.Image")
    except ImportError:
        return None, f"it is too large, and the extra that scales images down is missing ({MEDIA_EXTRA})"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _scale_down(pillow, data, form, max_bytes, max_side)
    except DeadlineExceededError:
        raise
    except Exception as error:  # noqa: BLE001 - hostile bytes make decoders raise anything
        return None, f"it is too large, and could not be scaled down ({type(error).__name__})"


def _scale_down(
    pillow: Any, data: bytes, form: str, max_bytes: int, max_side: int
) -> tuple[Image | None, str]:
    with pillow.open(BytesIO(data), formats=[form.upper()]) as opened:
        memory = opened.width * opened.height * _JPEG if form == "JPEG" else 0
        # A JPEG can be decoded at a smaller size.
        opened.draft(None, (max_side, max_side))
        modes = _WEBP if form == "WebP" else _MODES
        memory += opened.width * opened.height * modes.get(opened.mode, _CONVERTED)
        if memory > _MAX_MEMORY:
            return None, "it has too many pixels to be scaled down"
        call_context.check()
        opened.load()
        image = opened
        if opened.mode not in _MODES:
            image = opened.convert("RGBA" if opened.mode in {"P", "PA"} else "RGB")
        image.thumbnail((max_side, max_side))
        if image.mode != "RGB":
            image = image.convert("RGBA" if image.mode in {"RGBA", "LA"} else "RGB")
    side = max_side
    while side >= 64:
        image.thumbnail((side, side))
        for encoded, media_type in _encodings(pillow, image):
            call_context.check()
            if len(encoded) <= max_bytes:
                return as_image(encoded, media_type), f"{image.width}x{image.height}"
        side = max(image.width, image.height) * 3 // 4
    return None, "it is too large even if scaled down"


def _encodings(pillow: Any, image: Any) -> Iterator[tuple[bytes, str]]:
    yield _saved(image, "PNG"), "image/png"
    # JPEG has no transparency: use a white background.
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
