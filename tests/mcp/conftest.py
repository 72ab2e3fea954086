"""A small tree for the tests of MCP."""

import pytest

from tests.kit import put


@pytest.fixture
def tree(tmp_path):
    return put(tmp_path, {"a.txt": "one\ntwo\nthree\n", "sub/c.txt": "three\n", "other/d.txt": "three\n"})
