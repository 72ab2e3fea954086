from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import strategies as st
from PIL import Image

from agentfs.fs import Root, revision_of
from agentfs.limits import Limits
from agentfs.policy import Policy
from agentfs.reading.page import ReadOptions
from agentfs.reading.read import read_file
from agentfs.shown.outputs import OutputStore
from agentfs.shown.read_tracker import ReadTracker
from agentfs.shown.workspace_context import Context
from tests.kit import error_of, put

LOADED = Limits()
STREAMED = Limits(file_bytes=1)
both = pytest.mark.parametrize("limits", [LOADED, STREAMED], ids=["loaded", "streamed"])
pieces = st.sampled_from(["a", "\n", "\n", "\r\n", "\r", "é", "漢", "😀", "\x0c", "\u2028", "\x1b", "x" * 30])
texts = st.lists(pieces, max_size=40).map("".join)
encodings = st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32"])
codecs = ["utf-16", "utf-8", "cp1252", "shift_jis", "gb18030", "iso2022_jp", "utf-7"]
named = st.none() | st.sampled_from(codecs)


class Reader:
    """Reads files of a test's directory, with its own read tracker."""

    def __init__(self, directory):
        self.directory = Path(directory)
        self.root = Root(directory, Policy())
        self.tracker = ReadTracker()

    def write(self, content, name="f"):
        put(self.directory, {name: content})

    def read(self, offset=1, limit=None, *, path="f", limits=None, **more):
        request = ReadOptions(path, offset, limit, **more)
        return read_file(Context(self.root, self.tracker, limits or Limits(), OutputStore()), path, request)

    def error(self, offset=1, limit=None, **more):
        return error_of(self.read, offset, limit, **more)

    def fully_read(self, path="f"):
        return self.tracker.fully_read(path, revision_of((self.directory / path).read_bytes()))

    def pages(self, limit, limits):
        """Return the content of all pages, following `.next`."""
        result = self.read(1, limit, limits=limits)
        content = [result.content]
        while result.next:
            assert result.next["name"] == "read"
            result = self.read(**result.next["arguments"], limits=limits)
            content.append(result.content)
        return "".join(content)


@pytest.fixture
def reader(tmp_path):
    made = Reader(tmp_path)
    yield made
    made.root.close()


def make_image(form, size=(40, 30), **options):
    """Return the bytes of an image of noise."""
    out = BytesIO()
    Image.effect_noise(size, 50).convert("RGB").save(out, form, **options)
    return out.getvalue()
