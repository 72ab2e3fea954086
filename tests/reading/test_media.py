import base64
import json
import os
import struct
import zlib
from io import BytesIO

import pytest
from PIL import Image as Pillow
from pypdf import PdfReader, PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

from agentfs import AgentFSError, Limits, Workspace
from agentfs.reading import images


@pytest.fixture
def ws(tmp_path):
    with Workspace(tmp_path) as made:
        yield made


def drawn(form, size=(40, 30), **options):
    out = BytesIO()
    Pillow.effect_noise(size, 50).convert("RGB").save(out, form, **options)
    return out.getvalue()


FORMS = [("PNG", "image/png"), ("JPEG", "image/jpeg"), ("GIF", "image/gif"), ("WEBP", "image/webp")]


@pytest.mark.parametrize(("form", "media_type"), FORMS)
@pytest.mark.parametrize("name", ["a.png", "lying.txt", "no_extension"])
def test_an_image_is_told_by_its_bytes_and_given_whole(ws, tmp_path, form, media_type, name):
    data = drawn(form)
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
def test_every_form_of_webp_tells_its_size(ws, tmp_path, options):
    (tmp_path / "a").write_bytes(drawn("WEBP", (301, 257), **options))
    assert "301x257 pixels" in ws.read("a").text


def test_a_jpeg_with_a_large_header_tells_its_size(ws, tmp_path):
    (tmp_path / "a").write_bytes(
        drawn("JPEG", (301, 257), exif=b"Exif\0\0" + b"x" * 60_000, progressive=True)
    )
    assert "301x257 pixels" in ws.read("a").text


@pytest.mark.parametrize(("form", "media_type"), FORMS)
def test_a_truncated_image_is_told_and_not_sent(ws, tmp_path, form, media_type):
    data = drawn(form)
    (tmp_path / "a.png").write_bytes(data[: len(data) * 2 // 3])
    result = ws.read("a.png")
    assert (result.kind, result.images) == ("image", ())
    assert "not shown: it ends too early" in result.text


def test_a_damaged_png_is_told_and_not_sent(ws, tmp_path):
    data = bytearray(drawn("PNG"))
    data[60] ^= 0xFF
    (tmp_path / "a.png").write_bytes(data)
    assert "a part of it is damaged" in ws.read("a.png").text


@pytest.mark.parametrize(
    "content",
    [b"\x89PNG\r\n\x1a\n", b"\x89PNG\r\n\x1a\n\0\0", b"\xff\xd8\xff", b"GIF89a\0", b"RIFF\0\0\0\0WEBP"],
)
def test_a_bare_beginning_of_an_image_is_no_traceback(ws, tmp_path, content):
    (tmp_path / "a").write_bytes(content)
    assert ws.read("a").images == ()


def test_an_image_that_is_text_is_text(ws, tmp_path):
    (tmp_path / "a.png").write_bytes(b"GIF89a is what a GIF begins with\n")
    assert ws.read("a.png").kind == "text"


@pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "WEBP"])
def test_a_large_image_is_scaled_down(tmp_path, form):
    (tmp_path / "a").write_bytes(drawn(form, (900, 600)))
    with Workspace(tmp_path, limits=Limits(image_side=300, image_bytes=30_000)) as ws:
        result = ws.read("a")
    (image,) = result.images
    data = base64.b64decode(image.data)
    with Pillow.open(BytesIO(data)) as small:
        assert small.width <= 300
        assert abs(small.width / small.height - 1.5) < 0.02
        assert Pillow.MIME[small.format] == image.media_type
        assert f"shown scaled down to {small.width}x{small.height}" in result.text
    assert len(data) <= 30_000


def test_without_the_extra_a_large_image_is_told_and_not_sent(tmp_path, monkeypatch):
    monkeypatch.setitem(images.importlib.sys.modules, "PIL.Image", None)
    data = drawn("PNG", (300, 200))
    (tmp_path / "a").write_bytes(data)
    with Workspace(tmp_path, limits=Limits(image_bytes=1000)) as ws:
        result = ws.read("a")
    assert result.images == ()
    assert "agentfs-workspace[media]" in result.text
    with Workspace(tmp_path, limits=Limits(image_side=100)) as ws:
        assert base64.b64decode(ws.read("a").images[0].data) == data


def test_a_bomb_of_an_image_is_not_opened(tmp_path):
    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(b"\0" * 1000)), (b"IEND", b"")]
    data = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        for name, body in chunks
    )
    assert isinstance(images.scale_down(data, "PNG", max_bytes=10**6, max_side=1000), str)


def pdf(pages, password=None):
    writer = PdfWriter()
    for text in pages:
        page = writer.add_blank_page(300, 300)
        stream = DecodedStreamObject()
        stream.set_data(f"BT /F1 12 Tf 20 200 Td ({text}) Tj ET".encode())
        page[NameObject("/Contents")] = writer._add_object(stream)
        font = {"/Type": "/Font", "/Subtype": "/Type1", "/BaseFont": "/Helvetica"}
        names = DictionaryObject({NameObject(key): NameObject(value) for key, value in font.items()})
        fonts = DictionaryObject({NameObject("/F1"): names})
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
    if password:
        writer.encrypt(password, algorithm="RC4-128")
    out = BytesIO()
    writer.write(out)
    return out.getvalue()


def test_a_pdf_is_read_by_pages(ws, tmp_path):
    (tmp_path / "a.pdf").write_bytes(pdf(["one", "two", "three"]))
    assert [page.extract_text().strip() for page in PdfReader(tmp_path / "a.pdf").pages] == [
        "one",
        "two",
        "three",
    ]
    whole = ws.read("a.pdf")
    assert (whole.kind, whole.total_lines, whole.next) == ("pdf", 3, None)
    assert whole.text == "page 1\n|one\npage 2\n|two\npage 3\n|three"
    part = ws.read("a.pdf", offset=2, limit=1)
    assert part.text.startswith("page 2\n|two\n[page 2 of 3; more: read(")
    assert part.next == {"name": "read", "arguments": {"path": "a.pdf", "offset": 3, "limit": 1}}
    assert ws.read("a.pdf", offset=-1).content == "|three\n"
    with pytest.raises(AgentFSError) as caught:
        ws.read("a.pdf", offset=4)
    assert (caught.value.code, caught.value.details["total_pages"]) == ("past_end", 3)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (pdf(["x"], "secret"), "encrypted with a password"),
        (pdf(["x"])[:200], "cannot be read"),
        (b"%PDF-1.7\n", "cannot be read"),
        (b"%PDF-1.7\n" + b"\xff\0" * 5000, "cannot be read"),
    ],
)
def test_a_pdf_that_cannot_be_read_is_a_clear_error(ws, tmp_path, content, said):
    (tmp_path / "a.pdf").write_bytes(content)
    result = ws.tools().call("read", {"path": "a.pdf"})
    assert (result.success, result.error["code"]) == (False, "binary")
    assert said in result.content


@pytest.mark.parametrize("content", [b"%PDF-", b"%PDF-1.7\n", b"%PDF- is how a PDF begins\n"])
def test_a_text_that_begins_like_a_pdf_is_shown_as_text(ws, tmp_path, content):
    (tmp_path / "a.txt").write_bytes(content)
    result = ws.read("a.txt")
    assert (result.kind, result.content.encode()) == ("text", content)
    assert "cannot be read" in result.text
    (tmp_path / "b.txt").write_bytes(content + b"\0\xff")
    with pytest.raises(AgentFSError, match="cannot be read"):
        ws.read("b.txt")


def test_without_the_extra_a_pdf_is_an_error_that_names_it(ws, tmp_path, monkeypatch):
    monkeypatch.setitem(images.importlib.sys.modules, "pypdf", None)
    (tmp_path / "a.pdf").write_bytes(pdf(["x"]))
    with pytest.raises(AgentFSError) as caught:
        ws.read("a.pdf")
    assert (caught.value.code, caught.value.details["extra"]) == ("binary", "media")
    assert "agentfs-workspace[media]" in caught.value.hint


def notebook():
    png = base64.b64encode(drawn("PNG")).decode()
    return {
        "nbformat": 4,
        "cells": [
            {"cell_type": "markdown", "source": ["# Title\n", "text"]},
            {
                "cell_type": "code",
                "execution_count": 7,
                "source": "print(1)\nx\n",
                "outputs": [
                    {"output_type": "stream", "name": "stdout", "text": ["1\n"]},
                    {"output_type": "display_data", "data": {"image/png": png, "text/plain": "<Figure>"}},
                    {"output_type": "execute_result", "data": {"text/html": "<b>x</b>"}},
                    {
                        "output_type": "error",
                        "ename": "E",
                        "evalue": "v",
                        "traceback": ["\x1b[31mE\x1b[0m: v"],
                    },
                ],
            },
            {"cell_type": "code", "execution_count": None, "source": "", "outputs": []},
        ],
    }


def test_a_notebook_is_shown_by_cells_with_their_outputs(ws, tmp_path):
    (tmp_path / "a.ipynb").write_text(json.dumps(notebook()))
    result = ws.read("a.ipynb")
    lines = result.text.split("\n")
    assert lines[:6] == ["cell 1, markdown", "|# Title", "|text", "cell 2, code, run 7", "|print(1)", "|x"]
    assert lines[6] == ">1"
    assert lines[7].startswith("> [PNG image, 40x30, ")
    assert lines[8:] == [">[text/html, not shown]", ">E: v", "cell 3, code", lines[-1]]
    assert lines[-1].startswith("[cells of a notebook; ")
    assert (result.kind, result.total_lines, len(result.images)) == ("notebook", 3, 1)
    assert ws.read("a.ipynb", offset=2, limit=1).next["arguments"]["offset"] == 3


def test_the_json_of_a_notebook_is_read_raw_and_edited(ws, tmp_path):
    text = json.dumps(notebook(), indent=1)
    (tmp_path / "a.ipynb").write_text(text)
    assert ws.read("a.ipynb", raw=True).content == text
    ws.edit("a.ipynb", '"print(1)\\nx\\n"', '"print(2)\\n"')
    assert "|print(2)" in ws.read("a.ipynb").text


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        "{}",
        '{"cells": 3}',
        '{"cells": [1]}',
        "[" * 100_000,
        "",
        "\ufeff{",
        b"\xff{}",
        '{"cells": null}',
    ],
)
def test_an_invalid_notebook_is_shown_as_text_and_says_so(ws, tmp_path, content):
    (tmp_path / "a.ipynb").write_bytes(content if isinstance(content, bytes) else content.encode())
    result = ws.read("a.ipynb")
    assert result.kind == "text"
    assert "no notebook: " in result.text or not content


@pytest.mark.parametrize(
    "cell",
    [
        {},
        {"source": 3, "outputs": 4},
        {"source": [1, None], "outputs": [5, {}, {"data": 1}, {"data": {"image/png": "?"}}]},
        {"outputs": [{"output_type": "error", "traceback": 3}, {"data": {"image/png": "AAAA"}}]},
        {"cell_type": "x]\nforged", "source": "\u202ea\rb\x1b"},
    ],
)
def test_odd_cells_are_no_tracebacks_and_forge_nothing(ws, tmp_path, cell):
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": [cell]}))
    result = ws.read("a.ipynb")
    assert result.kind == "notebook"
    assert all(line.startswith(("cell 1, ", "|", ">", "[cells of")) for line in result.text.split("\n"))
    assert "\u202e" not in result.text


def test_a_notebook_larger_than_a_page_goes_on_at_the_next_cell(tmp_path):
    cells = [{"cell_type": "code", "source": f"cell = {number}\n" * 20} for number in range(50)]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells}))
    with Workspace(tmp_path, limits=Limits(output_tokens=500)) as ws:
        result, numbers = ws.read("a.ipynb"), []
        while True:
            numbers += range(result.start_line, result.end_line + 1)
            if result.next is None:
                break
            result = ws.read(**result.next["arguments"])
    assert numbers == [*range(1, 51)]


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"\x7fELF\2\1\1\0", "ELF program"),
        (b"PK\3\4\0\0", "ZIP archive"),
        (b"SQLite format 3\0", "SQLite database"),
    ],
)
def test_other_binaries_are_told_by_their_bytes(ws, tmp_path, head, kind):
    (tmp_path / "a.txt").write_bytes(head + b"\0" * 100)
    result = ws.read("a.txt")
    assert (result.kind, result.content) == ("binary", "")
    assert f"is a binary file ({kind}) of {len(head) + 100} bytes" in result.text


def test_a_binary_is_shown_in_hexadecimal_on_request(ws, tmp_path):
    data = bytes(range(256)) * 10
    (tmp_path / "a").write_bytes(data)
    result = ws.read("a", raw=True)
    assert result.text.startswith(
        "00000000  00 01 02 03 04 05 06 07  08 09 0a 0b 0c 0d 0e 0f  |................|\n"
    )
    shown, rows = b"", 0
    while True:
        for row in result.content.splitlines():
            shown += bytes.fromhex(row[10:58].replace("  ", " "))
            rows += 1
        if result.next is None:
            break
        result = ws.read(**result.next["arguments"])
    assert (shown, rows) == (data, 160)
    assert ws.read("a", offset=-1, raw=True).start_line == 160


def test_a_directory_is_listed(ws, tmp_path):
    (tmp_path / "sub").mkdir()
    for name in "abc":
        (tmp_path / "sub" / name).write_text("x")
    result = ws.read("sub")
    assert (result.kind, result.total_lines) == ("directory", 3)
    assert result.text == ws.ls("sub").text
    assert "sub/b" in ws.read("sub", offset=2, limit=1).text


def test_a_missing_file_names_where_else_its_name_is(ws, tmp_path):
    for name in ("lib/deep/thing.py", "other/Thing.py", ".hidden/thing.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    with pytest.raises(AgentFSError) as caught:
        ws.read("src/thing.py")
    assert (caught.value.code, caught.value.details["elsewhere"]) == (
        "not_found",
        ["lib/deep/thing.py", "other/Thing.py"],
    )
    assert '"lib/deep/thing.py"' in str(caught.value)


def test_a_fifo_is_refused_at_once(ws, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert ws.tools().call("read", {"path": "pipe"}).error["code"] == "not_regular"


def test_an_image_that_was_shown_counts_as_seen(ws, tmp_path):
    """A model was sent round in a circle: `write` asked for a read, and no read was enough."""
    file, data = tmp_path / "a", drawn("PNG")
    file.write_bytes(data)
    with pytest.raises(AgentFSError) as caught:
        ws.write("a", "text\n")
    assert caught.value.code == "unread"
    ws.read("a")
    assert "the file was binary and is text now" in ws.write("a", "text\n").notes
    ws.undo()
    assert file.read_bytes() == data


def test_a_binary_is_seen_once_all_of_it_was_shown_in_hexadecimal(ws, tmp_path):
    file, data = tmp_path / "a", bytes(range(256)) * 4
    file.write_bytes(data)
    for rows in (None, 10):
        if rows:
            ws.read("a", 1, rows, raw=True)
        ws.read("a")
        with pytest.raises(AgentFSError) as caught:
            ws.write("a", "text\n")
        assert caught.value.code == "unread"
    ws.read("a", 11, 100, raw=True)
    ws.write("a", "text\n")
    assert file.read_bytes() == b"text\n"


def test_the_error_for_an_unshown_binary_names_a_way_that_leads_on(ws, tmp_path):
    (tmp_path / "a").write_bytes(b"\x00\x01\x02")
    with pytest.raises(AgentFSError) as caught:
        ws.write("a", "text\n")
    assert "delete it first" in caught.value.hint
    ws.delete("a")
    ws.write("a", "text\n")
    ws.undo(2)
    assert (tmp_path / "a").read_bytes() == b"\x00\x01\x02"


def test_a_notebook_counts_as_seen_once_all_its_cells_were_shown(ws, tmp_path):
    cells = [{"cell_type": "markdown", "metadata": {}, "source": f"cell {n}"} for n in range(3)]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4}))
    ws.read("a.ipynb", 1, 2)
    with pytest.raises(AgentFSError) as caught:
        ws.write("a.ipynb", "{}\n")
    assert (caught.value.code, caught.value.details["unread_lines"]) == ("unread", [[3, 3]])
    ws.read("a.ipynb", 3)
    assert ws.write("a.ipynb", "{}\n").bytes_written == 3
