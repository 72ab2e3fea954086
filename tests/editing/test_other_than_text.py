"""Edits of files that `read` does not show as text: PDFs, images and other binaries."""

import pytest

from tests.kit import refused
from tests.reading.conftest import make_image
from tests.reading.test_pdf import pdf


@pytest.mark.parametrize(("name", "content", "text", "options"), [
    ("a.pdf", pdf(["one", "two"]), "(one)", {}),
    ("a.gif", make_image("GIF"), "GIF87a", {"encoding": "latin-1"}),
    ("a.png", make_image("PNG"), "IHDR", {"encoding": "latin-1"}),
])  # fmt: skip
def test_an_edit_of_a_pdf_or_an_image_is_refused_unless_raw_insists(
    ws, tmp_path, name, content, text, options
):
    (tmp_path / name).write_bytes(content)
    error = refused(lambda: ws.edit(name, text, "x", replace_all=True, **options), "binary")
    assert "raw=true" in str(error)
    assert (tmp_path / name).read_bytes() == content
    if name == "a.png":
        refused(lambda: ws.edit(name, "I", "x", raw=True), "binary")
    ws.edit(name, text, "x", replace_all=True, raw=True, **options)
    assert (tmp_path / name).read_bytes() == content.replace(text.encode(), b"x")


def test_a_text_that_begins_like_a_pdf_or_an_image_may_be_edited(ws, tmp_path):
    for name, content in {"note.md": "%PDF-1.7 is a start\n", "gif.txt": "GIF89a is a format\n"}.items():
        (tmp_path / name).write_text(content)
        ws.edit(name, "is", "was")
        assert "was" in (tmp_path / name).read_text()
