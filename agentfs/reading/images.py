"""Recognise images, find damaged ones, and scale large ones down with Pillow."""

import base64
import importlib
import warnings
from io import BytesIO
from typing import Any, NamedTuple

from agentfs.base import call_context
from agentfs.errors import DeadlineExceededError
from agentfs.results import Image

MEDIA_EXTRA = "pip install pillow pypdf"
# Decoding an image with more pixels takes a GiB of memory in any program.
MAX_PIXELS = 40_000_000
MAX_IMAGE_BYTES = 3_750_000  # of an image that a read shows
MAX_IMAGE_SIDE = 2000  # pixels of its longer side; larger images are scaled down

# A small file can expand to a huge image. Images that need more memory than this are not decoded.
_MAX_MEMORY = 230 * 1024 * 1024
# Measured bytes of memory for each pixel while an image is scaled down.
_BYTES_PER_PIXEL = {"JPEG": 7, "WebP": 20}  # a JPEG is decoded at a smaller size
_OTHER_BYTES = 12

# The first bytes of each format, and bytes that its second half must contain.
_FORMATS = {
    "PNG": ((b"\x89PNG\r\n\x1a\n",), b"IEND"),
    "JPEG": ((b"\xff\xd8\xff",), b"\xff\xd9"),
    "GIF": ((b"GIF87a", b"GIF89a"), b"\0;"),
    "WebP": ((b"RIFF",), b""),
}


class ImageInfo(NamedTuple):
    """The format of an image and its size in pixels; 0 if the size is unknown."""

    format: str
    width: int = 0
    height: int = 0
    problem: str = ""

    @property
    def media_type(self) -> str:
        """The media type of the format."""
        return f"image/{self.format.lower()}"

    @property
    def pixels(self) -> str:
        """The size as text, or ""."""
        return f", {self.width}x{self.height} pixels" if self.width and self.height else ""


def image_format(head: bytes) -> str | None:
    """Return the format of an image from its first bytes; None for other data."""
    found = next((form for form, (starts, _) in _FORMATS.items() if head.startswith(starts)), None)
    return None if found == "WebP" and not head.startswith(b"WEBP", 8) else found


def image_info(data: bytes) -> ImageInfo | None:
    """Return the format and size of an image, and what is wrong with it; None for other data.

    A provider refuses a request with one broken image. Without Pillow, only the ends of the data are checked.
    """
    form = image_format(data)
    if form is None:
        return None
    # Cameras and editors may append data after the end of the image.
    complete = _FORMATS[form][1] in data[-max(len(data) // 2, 64) :]
    if form == "WebP":
        complete = len(data) >= int.from_bytes(data[4:8], "little") + 8
    info = ImageInfo(form, problem="" if complete else "it ends too early")
    try:
        pillow = importlib.import_module("PIL.Image")
    except ImportError:
        return info
    try:
        with (
            warnings.catch_warnings(action="ignore"),
            pillow.open(BytesIO(data), formats=[form.upper()]) as opened,
        ):
            info = info._replace(width=opened.width, height=opened.height)
            if info.width * info.height > MAX_PIXELS:
                return info._replace(problem="it has too many pixels")
            if complete:
                opened.verify()
    except pillow.DecompressionBombError:
        return info._replace(problem="it has too many pixels")
    except DeadlineExceededError:
        raise
    except Exception:  # noqa: BLE001 - hostile bytes make decoders raise anything
        return info._replace(problem=info.problem or "a part of it is damaged")
    return info


def as_image(data: bytes, media_type: str) -> Image:
    """Return an image for the model."""
    return Image(base64.b64encode(data).decode(), media_type)


def scale_down(data: bytes, form: str) -> tuple[Image | None, str]:
    """Return a smaller image and its size as text, or None and the reason."""
    try:
        pillow = importlib.import_module("PIL.Image")
    except ImportError:
        return None, f"it is too large, and the extra that scales images down is missing ({MEDIA_EXTRA})"
    try:
        with warnings.catch_warnings(action="ignore"):
            return _scale_down(pillow, data, form)
    except DeadlineExceededError:
        raise
    except Exception as error:  # noqa: BLE001 - hostile bytes make decoders raise anything
        return None, f"it is too large, and could not be scaled down ({type(error).__name__})"


def _scale_down(pillow: Any, data: bytes, form: str) -> tuple[Image | None, str]:
    with pillow.open(BytesIO(data), formats=[form.upper()]) as opened:
        if opened.width * opened.height * _BYTES_PER_PIXEL.get(form, _OTHER_BYTES) > _MAX_MEMORY:
            return None, "it has too many pixels to be scaled down"
        opened.draft(None, (MAX_IMAGE_SIDE, MAX_IMAGE_SIDE))  # a JPEG can be decoded at a smaller size
        call_context.check()
        image = opened
        if opened.mode not in {"RGB", "RGBA", "L", "LA"}:
            image = opened.convert("RGBA" if opened.mode in {"P", "PA"} else "RGB")
        for side in (MAX_IMAGE_SIDE, MAX_IMAGE_SIDE // 2, MAX_IMAGE_SIDE // 4):
            image.thumbnail((side, side))
            for kind in ("png",) if "A" in image.mode else ("png", "jpeg"):  # JPEG has no transparency
                call_context.check()
                out = BytesIO()
                image.save(out, kind)
                if out.tell() <= MAX_IMAGE_BYTES:
                    return as_image(out.getvalue(), f"image/{kind}"), f"{image.width}x{image.height}"
    return None, "it is too large even if scaled down"
