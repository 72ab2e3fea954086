"""The HTML that a notebook displays: no text of the tree is markup."""

import struct
import zlib
from html.parser import HTMLParser

import pytest

from agentfs import Toolset, Workspace, connect
from tests.remote.over_pipe import open_pipe

ATTACK = "<script>alert(1)</script><img src=x onerror='alert(2)'>\"'&amp;</pre></td>"
ALLOWED = {"div", "strong", "pre", "table", "tr", "th", "td", "img"}


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


PNG = b"".join(
    (
        b"\x89PNG\r\n\x1a\n",
        chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)),
        chunk(b"IDAT", zlib.compress(b"\0\0")),
        chunk(b"IEND", b""),
    )
)


class Markup(HTMLParser):
    """Collects the tags and the text of a document."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.said = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag != "img":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.said += data


def harmless(shown: object) -> Markup:
    """Return the parsed HTML of an object after a check of its tags and attributes."""
    markup = Markup(shown._repr_html_())
    assert not markup.open
    for tag, attributes in markup.tags:
        assert tag in ALLOWED
        assert attributes.keys() <= {"style", "src"}
        assert attributes.get("src", "data:image/").startswith("data:image/")
    return markup


NAME = ATTACK.replace("/", "|")


@pytest.fixture
def top(tmp_path):
    top = tmp_path / f"root {NAME}"
    top.mkdir()
    (top / NAME).write_text(f"{ATTACK}\n")
    for name in ("image.png", "other.png"):
        (top / name).write_bytes(PNG)
    return top


def attacked(text: str) -> str:
    """Look at (file)."""
    return text


@pytest.mark.parametrize("remote", [False, True], ids=["local", "remote"])
def test_script_in_names_and_contents_is_text(top, remote):
    with connect(open_pipe(), top) if remote else Workspace(top) as ws:
        results = [
            ws.read(NAME),
            ws.ls(),
            ws.glob("*"),
            ws.grep("script"),
            ws.edit(NAME, "alert(1)", "alert(3)"),
            ws.write(f"new {NAME}", ATTACK),
            ws.replace("alert(3)", "alert(4)"),
            ws.changes(),
            ws.undo(),
        ]
        for result in results:
            shown = harmless(result)
            assert type(result).__name__ in shown.said
            assert "script>" in shown.said
        refused = ws.tools().call("read", {"path": "<script>"})
        assert "ToolResult: failed" in harmless(refused).said
        assert "<script>" in harmless(refused).said
        assert "root <script>" in harmless(ws).said


def test_a_toolset_shows_its_tools(top):
    attacked.__doc__ = f"{ATTACK}\n\nArgs:\n    text: {ATTACK}\n"
    with Workspace(top) as ws:
        tools = Toolset([*ws.tools(), attacked])
        said = harmless(tools).said
    assert "Toolset: 8 tools" in said
    assert "grep" in said
    assert ATTACK in said


def test_images_are_shown_and_a_closed_workspace_has_html(top):
    with Workspace(top) as ws:
        for result in (ws.read("image.png"), ws.tools().call("read", {"path": "other.png"})):
            sources = [attributes["src"] for tag, attributes in harmless(result).tags if tag == "img"]
            assert len(sources) == 1
            assert sources[0].startswith("data:image/png;base64,iVBOR")
    assert "root" in harmless(ws).said
