import base64
import struct
import zlib
from io import BytesIO

import pytest
from PIL import Image as Pillow

from agentfs import Workspace
from agentfs.reading import images
from tests.reading.conftest import make_image

FORMS = [("PNG", "image/png"), ("JPEG", "image/jpeg"), ("GIF", "image/gif"), ("WEBP", "image/webp")]


@pytest.mark.parametrize(("form", "media_type"), FORMS)
@pytest.mark.parametrize("name", ["a.png", "lying.txt", "no_extension"])
def test_an_image_is_recognized_by_its_bytes_and_returned_unchanged(ws, tmp_path, form, media_type, name):
    data = make_image(form)
    (tmp_path / name).write_bytes(data)
    result = ws.read(name)
    assert (result.kind, result.content, result.total_bytes) == ("image", "", len(data))
    assert "40x30 pixels" in result.text
    (image,) = result.images
    assert image.media_type == media_type
    assert base64.b64decode(image.data) == data
    called = ws.tools().call("read", {"path": name})
    assert called.images == result.images


@pytest.mark.parametrize("options", [{}, {"lossless": True}, {"exif": b"Exif\0\0" + b"x" * 100}])
def test_the_size_of_every_form_of_webp_is_read(ws, tmp_path, options):
    (tmp_path / "a").write_bytes(make_image("WEBP", (301, 257), **options))
    assert "301x257 pixels" in ws.read("a").text


def test_the_size_of_a_jpeg_with_a_large_header_is_read(ws, tmp_path):
    (tmp_path / "a").write_bytes(
        make_image("JPEG", (301, 257), exif=b"Exif\0\0" + b"x" * 60_000, progressive=True)
    )
    assert "301x257 pixels" in ws.read("a").text


@pytest.mark.parametrize(("form", "media_type"), FORMS)
def test_a_truncated_image_is_reported_and_not_sent(ws, tmp_path, form, media_type):
    data = make_image(form)
    (tmp_path / "a.png").write_bytes(data[: len(data) * 2 // 3])
    result = ws.read("a.png")
    assert (result.kind, result.images) == ("image", ())
    assert "not shown: it ends too early" in result.text


def test_a_damaged_png_is_reported_and_not_sent(ws, tmp_path):
    data = bytearray(make_image("PNG"))
    data[60] ^= 0xFF
    (tmp_path / "a.png").write_bytes(data)
    assert "a part of it is damaged" in ws.read("a.png").text


@pytest.mark.parametrize("content", [
    b"\x89PNG\r\n\x1a\n", b"\x89PNG\r\n\x1a\n\0\0", b"\xff\xd8\xff", b"GIF89a\0", b"RIFF\0\0\0\0WEBP",
])  # fmt: skip
def test_incomplete_images_do_not_raise(ws, tmp_path, content):
    (tmp_path / "a").write_bytes(content)
    assert ws.read("a").images == ()


def test_a_text_that_begins_like_an_image_is_text(ws, tmp_path):
    (tmp_path / "a.png").write_bytes(b"GIF89a is what a GIF begins with\n")
    assert ws.read("a.png").kind == "text"


def _most(monkeypatch, side=2000, size=3_750_000):
    monkeypatch.setattr(images, "MAX_IMAGE_SIDE", side)
    monkeypatch.setattr(images, "MAX_IMAGE_BYTES", size)


@pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "WEBP"])
def test_a_large_image_is_scaled_down(tmp_path, form, monkeypatch):
    _most(monkeypatch, side=300, size=30_000)
    (tmp_path / "a").write_bytes(make_image(form, (900, 600)))
    with Workspace(tmp_path) as ws:
        result = ws.read("a")
    (image,) = result.images
    data = base64.b64decode(image.data)
    with Pillow.open(BytesIO(data)) as small:
        assert small.width <= 300
        assert abs(small.width / small.height - 1.5) < 0.02
        assert Pillow.MIME[small.format] == image.media_type
        assert f"shown scaled down to {small.width}x{small.height}" in result.text
    assert len(data) <= 30_000


def test_without_the_extra_a_large_image_is_reported_and_not_sent(tmp_path, monkeypatch):
    monkeypatch.setitem(images.importlib.sys.modules, "PIL.Image", None)
    data = make_image("PNG", (300, 200))
    (tmp_path / "a").write_bytes(data)
    _most(monkeypatch, size=1000)
    with Workspace(tmp_path) as ws:
        result = ws.read("a")
    assert result.images == ()
    assert "pip install pillow pypdf" in result.text
    _most(monkeypatch, side=100)
    with Workspace(tmp_path) as ws:
        assert base64.b64decode(ws.read("a").images[0].data) == data


def test_a_decompression_bomb_is_not_opened(tmp_path):
    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(b"\0" * 1000)), (b"IEND", b"")]
    data = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        for name, body in chunks
    )
    assert images.scale_down(data, "PNG")[0] is None
