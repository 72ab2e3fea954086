"""One buffer for many files: it gets the whole file even by short reads, and never more than the limit."""

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentfs.fs import ReadBuffer, syscalls
from tests.conftest import law

SIZES = st.one_of(st.integers(0, 70), st.sampled_from([2**18 - 1, 2**18, 2**18 + 1, 2**20, 3 * 2**20 + 7]))


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("file") / "file"


def filled(path, buffer):
    fd = os.open(path, os.O_RDONLY)
    try:
        return buffer.fill(fd)
    finally:
        os.close(fd)


@law(
    40,
    150,
    st.lists(SIZES, min_size=1, max_size=4),
    st.sampled_from([0, 1, 64, 2**18 - 1, 2**18, 2**20, 2**23]),
)
def test_each_file_is_read_whole_or_is_over_the_limit(scratch, sizes, limit):
    buffer = ReadBuffer(limit)
    data = buffer.data
    for number, size in enumerate(sizes):
        content = bytes([65 + number]) * size
        scratch.write_bytes(content)
        length = filled(scratch, buffer)
        if size > limit:
            assert length == -1
        else:
            assert (length, buffer.length, buffer.copy()) == (size, size, content)
    assert buffer.data is data


@settings(max_examples=60)
@given(st.binary(max_size=200), st.integers(1, 9))
def test_a_short_read_is_not_the_end_of_the_file(scratch, content, most):
    scratch.write_bytes(content)
    whole = syscalls.read_at

    def stingily(fd, views, position):
        return whole(fd, (views[0][:most],), position)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(syscalls, "read_at", stingily)
        buffer = ReadBuffer(1000)
        assert filled(scratch, buffer) == len(content)
    assert buffer.copy() == content


def test_a_huge_file_is_refused_without_being_read(tmp_path):
    giant = tmp_path / "giant"
    with giant.open("wb") as file:
        file.truncate(2**40)
    buffer = ReadBuffer(10 * 2**20)
    assert filled(giant, buffer) == -1
    assert len(buffer.data) == 2**18
