from io import BytesIO

import pytest
from pypdf import PdfReader, PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

from agentfs import AgentFSError
from agentfs.reading import images
from tests.kit import refused


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


def test_a_pdf_is_one_text_with_a_header_for_each_page(ws, tmp_path):
    (tmp_path / "a.pdf").write_bytes(pdf(["one", "two", "three"]))
    assert [page.extract_text().strip() for page in PdfReader(tmp_path / "a.pdf").pages] == [
        "one",
        "two",
        "three",
    ]
    whole = ws.read("a.pdf")
    assert (whole.kind, whole.total_lines, whole.next) == ("pdf", 6, None)
    assert whole.content == "=== page 1\none\n=== page 2\ntwo\n=== page 3\nthree\n"
    part = ws.read("a.pdf", offset=3, limit=2)
    assert part.content == "=== page 2\ntwo\n"
    assert part.next == {"name": "read", "arguments": {"path": "a.pdf", "offset": 5, "limit": 2}}
    assert ws.read("a.pdf", offset=-1).content == "three\n"
    caught = refused(lambda: ws.read("a.pdf", offset=7))
    assert (caught.code, caught.details["total_lines"]) == ("past_end", 6)


@pytest.mark.parametrize(("content", "said"), [
    (pdf(["x"], "secret"), "encrypted with a password"),
    (pdf(["x"])[:200], "cannot be read"),
    (b"%PDF-1.7\n", "cannot be read"),
    (b"%PDF-1.7\n" + b"\xff\0" * 5000, "cannot be read"),
])  # fmt: skip
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
    (tmp_path / "b.txt").write_bytes(content + b"\0\xff")
    with pytest.raises(AgentFSError, match="cannot be read"):
        ws.read("b.txt")


def test_without_the_extra_a_pdf_is_an_error_that_names_it(ws, tmp_path, monkeypatch):
    monkeypatch.setitem(images.importlib.sys.modules, "pypdf", None)
    (tmp_path / "a.pdf").write_bytes(pdf(["x"]))
    caught = refused(lambda: ws.read("a.pdf"))
    assert (caught.code, caught.details["extra"]) == ("binary", "media")
    assert "pip install pillow pypdf" in caught.hint
