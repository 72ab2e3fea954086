"""A small tree for the tests of MCP."""

import pytest


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "c.txt").write_text("three\n")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "d.txt").write_text("three\n")
    return tmp_path
