"""Images by their bytes: which they are, how large they are drawn, and whether they are whole."""

import zlib
from collections.abc import Iterator
from typing import NamedTuple

_PNG = b"\x89PNG\r\n\x1a\n"
# JPEG markers that stand alone, and those that begin a frame and tell its size.
_ALONE = {0x01, *range(0xD0, 0xD9)}
_FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}
# More are decoded nowhere without a GiB of memory; a JPEG that is stored row by row is decoded smaller.
MOST_PIXELS = 40_000_000
_MOST_SEQUENTIAL = 150_000_000


class ImageInfo(NamedTuple):
    """What the bytes of an image tell.

    Attributes:
        name: Its format: "PNG", "JPEG", "GIF" or "WebP".
        media_type: For example "image/png".
        width: Pixels in a row, 0 where the bytes do not tell.
        height: Rows of pixels, 0 where the bytes do not tell.
    """

    name: str
    media_type: str
    width: int
    height: int


def picture_of(data: bytes) -> ImageInfo | None:
    """Tell which image some bytes are.

    Args:
        data: An image, or its beginning.

    Returns:
        The image, or None for anything else.
    """
    if data.startswith(_PNG):
        return ImageInfo("PNG", "image/png", _big(data, 16, 4), _big(data, 20, 4))
    if data.startswith(b"\xff\xd8\xff"):
        return ImageInfo("JPEG", "image/jpeg", *_jpeg_size(data))
    if data.startswith((b"GIF87a", b"GIF89a")):
        return ImageInfo("GIF", "image/gif", _little(data, 6, 2), _little(data, 8, 2))
    if data.startswith(b"RIFF") and data.startswith(b"WEBP", 8):
        return ImageInfo("WebP", "image/webp", *_webp_size(data))
    return None


def validate_image(data: bytes, picture: ImageInfo) -> str:
    """Tell what is wrong with an image, as far as its structure shows.

    Args:
        data: The whole image.
        picture: What its beginning told.

    Returns:
        The flaw, or "" for none: a provider refuses a whole request for one broken image.
    """
    if not (picture.width and picture.height):
        return "it has no size"
    if picture.width * picture.height > (_MOST_SEQUENTIAL if is_sequential(data) else MOST_PIXELS):
        return "it has too many pixels"
    if picture.name == "PNG":
        return _png_flaw(data)
    if picture.name == "WebP":
        return "" if len(data) >= _little(data, 4, 4) + 8 else "it ends too early"
    if picture.name == "GIF":
        return _gif_flaw(data)
    # Cameras and editors append to images: the end need not be the last.
    return "" if b"\xff\xd9" in data[-max(len(data) // 2, 64) :] else "it ends too early"


def _png_flaw(data: bytes) -> str:
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


def _gif_flaw(data: bytes) -> str:
    position = 13 + _table(data, 10)
    while position < len(data):
        mark = data[position]
        if mark == 0x3B:
            return ""
        # Before its blocks an image has a descriptor, perhaps colours, and a byte; all else has a label.
        position += 2 if mark == 0x21 else 11 + _table(data, position + 9)
        while position < len(data) and data[position]:
            position += 1 + data[position]
        position += 1
    return "it ends too early"


def _table(data: bytes, position: int) -> int:
    """Return the bytes of a GIF's table of colours, told by the flags at a position."""
    flags = _little(data, position, 1)
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


def is_sequential(data: bytes) -> bool:
    """Tell whether an image is a JPEG with one scan of all its colours, which is decoded row by row."""
    frame = b""
    for marker, start, end in _jpeg_segments(data):
        if marker in _FRAMES:
            frame = data[start:end] if marker in {0xC0, 0xC1} else b""
        elif marker == 0xDA:
            return len(frame) > 7 and start + 2 < len(data) and data[start + 2] == frame[7]
    return False


def _jpeg_size(data: bytes) -> tuple[int, int]:
    for marker, start, _ in _jpeg_segments(data):
        if marker in _FRAMES:
            return _big(data, start + 5, 2), _big(data, start + 3, 2)
    return 0, 0


def _jpeg_segments(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield the marker, the beginning and the end of each segment of a JPEG up to its first scan."""
    position = 2 if data.startswith(b"\xff\xd8") else len(data)
    while position + 9 <= len(data) and data[position] == 0xFF:
        marker = data[position + 1]
        if marker == 0xFF:
            position += 1
        elif marker in _ALONE:
            position += 2
        else:
            end = position + 2 + max(_big(data, position + 2, 2), 2)
            yield marker, position + 2, end
            if marker == 0xDA:
                return
            position = end


def _webp_size(data: bytes) -> tuple[int, int]:
    form = data[12:16]
    if form == b"VP8X":
        return _little(data, 24, 3) + 1, _little(data, 27, 3) + 1
    if form == b"VP8L" and len(data) >= 25:
        bits = _little(data, 21, 4)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if form == b"VP8 ":
        return _little(data, 26, 2) & 0x3FFF, _little(data, 28, 2) & 0x3FFF
    return 0, 0


def _big(data: bytes, position: int, size: int) -> int:
    return int.from_bytes(data[position : position + size], "big")


def _little(data: bytes, position: int, size: int) -> int:
    return int.from_bytes(data[position : position + size], "little")
