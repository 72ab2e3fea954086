"""Each error that is an OSError has the attributes of Python's own."""

import copy
import errno
import os
import pickle

import pytest

from agentfs import AgentFSError, Workspace, errors
from agentfs.base.advice import METHODS, calls_in
from agentfs.remote import wire
from tests.kit import error_of, put

LEAVES = [
    each
    for each in vars(errors).values()
    if isinstance(each, type) and issubclass(each, AgentFSError) and vars(each).get("code")
]
SYSTEM_LEAVES = [each for each in LEAVES if issubclass(each, OSError)]


def facts(error):
    return type(error), error.errno, error.strerror, error.filename, str(error)


@pytest.mark.parametrize("leaf", SYSTEM_LEAVES, ids=lambda leaf: leaf.code)
def test_an_error_of_the_system_has_its_number_text_and_path(leaf):
    error = leaf("message", hint="hint", details={"path": "sub/a.txt"})
    assert (error.filename, str(error)) == ("sub/a.txt", "message\nhint")
    assert error.strerror == os.strerror(error.errno)
    assert isinstance(error, type(OSError(error.errno, error.strerror)))
    decoded = wire.from_text(wire.to_text(error))
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error), decoded):
        assert facts(other) == facts(error)
    assert facts(error.in_names(METHODS)) == facts(error)
    assert leaf("message").filename is None


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EIO, errno.EROFS])
def test_a_denied_access_is_a_permission_error_everywhere(number):
    error = errors.FileIOError("message", details={"path": "a", "errno": number})
    decoded = wire.from_text(wire.to_text(error))
    for other in (error, pickle.loads(pickle.dumps(error)), decoded, error.in_names(METHODS)):
        denied = type(OSError(number, "")) is PermissionError
        assert (other.code, other.errno, isinstance(other, PermissionError)) == ("io", number, denied)


@pytest.mark.parametrize(
    "leaf", [each for each in LEAVES if each not in SYSTEM_LEAVES], ids=lambda leaf: leaf.code
)
def test_another_error_has_no_number(leaf):
    assert not hasattr(leaf("message", details={"path": "a", "errno": 1}), "errno")


@pytest.mark.parametrize(("details", "number"), [
    ({"errno": errno.ENOSPC}, errno.ENOSPC),
    ({}, errno.EIO),
    *(({"errno": n}, errno.EIO) for n in (-1, 2**40, "1")),
])  # fmt: skip
def test_an_io_error_has_the_number_in_its_details(details, number):
    error = errors.FileIOError("message", details=details)
    assert (error.errno, error.strerror) == (number, os.strerror(number))


def test_an_error_of_a_workspace_equals_that_of_open(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to("loop")
    with Workspace(tmp_path) as ws:
        for path in ("missing", "file/below", "x" * 300, "loop", "."):
            with pytest.raises(OSError) as ours:
                ws.edit(path, "a", "b")
            with pytest.raises(OSError) as theirs:
                (tmp_path / path).open("r+")
            assert ours.value.errno == theirs.value.errno
            assert ours.value.strerror == theirs.value.strerror


def test_a_new_hint_replaces_the_suggested_calls(tmp_path):
    put(tmp_path, ["src/a.txt"])
    with Workspace(tmp_path) as ws:
        error = error_of(ws.read, "src/b/a.txt")
    assert error.details.get("suggested_calls", []) == calls_in(error.hint)
    error.hint = "Give up."
    assert "suggested_calls" not in error.details
