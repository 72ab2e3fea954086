"""A preview and the change agree for every changing method and every reason to refuse."""

import ctypes
import os
import struct
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from agentfs import AgentFSError, Limits, LineChange, Policy, Workspace
from agentfs import Edit as Replacement
from tests.conftest import public_directory
from tests.history.judges import snapshot
from tests.kit import put

SOMEBODY, SOMEBODY_ELSE = 4242, 4343
AS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


def edit_lines(ws: Workspace, path: str, **options: Any) -> object:
    try:
        ids = ws.read(path, line_ids=True).line_ids
    except AgentFSError:
        ids = ()
    return ws.edit_lines(
        path, [LineChange(line_id=ids[0] if ids else "abcdef", new_content="new")], **options
    )


METHODS: dict[str, Callable[..., object]] = {
    "write": lambda ws, path, **options: ws.write(path, "new\n", **options),
    "edit": lambda ws, path, **options: ws.edit(path, "old", "new", **options),
    "multi_edit": lambda ws, path, **options: ws.multi_edit(path, [Replacement("old", "new")], **options),
    "edit_lines": edit_lines,
    "replace": lambda ws, path, **options: ws.replace("old", "new", path, **options),
}


class Case(NamedTuple):
    code: str  # of every method except those in `others`
    arrange: Callable[[Path], object] = lambda _: None
    path: str = "d/f"
    policy: Policy = Policy(overwrite="always")
    limits: Limits = Limits()
    others: Mapping[str, str] = MappingProxyType({})
    root_only: bool = False
    before: Callable[[Workspace], object] = lambda _: None


def on_file(mode: int = 0o644, links: int = 1) -> Callable[[Path], None]:
    def arrange(top: Path) -> None:
        (top / "d/f").chmod(mode)
        if links > 1:
            os.link(top / "d/f", top / "twin")

    return arrange


def linked(target: str) -> Callable[[Path], None]:
    return lambda top: (top / "link").symlink_to(target)


def made(name: str, content: bytes = b"old\n") -> Callable[[Path], object]:
    return lambda top: (top / name).write_bytes(content)


ALWAYS = Policy(overwrite="always")
CASES = {
    "allowed": Case("ok"),
    "a new file": Case("not_found", path="d/none", others={"write": "ok"}),
    "a new file in a new directory": Case("not_found", path="d/new/none", others={"write": "ok"}),
    "a workspace that may only be read": Case("read_only", policy=Policy(read_only=True, overwrite="always")),
    "hard links broken": Case("ok", on_file(links=2)),
    "a read-only file": Case("refused", on_file(0o444)),
    "a read-only file with hard links": Case("refused", on_file(0o444, 2)),
    "a file that only its group may write": Case("refused", on_file(0o464)),
    "another's file that may not be written": Case(
        "refused", lambda top: os.chown(top / "d/f", SOMEBODY_ELSE, -1), root_only=True
    ),
    "never shown": Case("protected", made(".env"), ".env"),
    "never changed": Case("protected", made(".mcp.json"), ".mcp.json"),
    "a link to what is never changed": Case(
        "protected", lambda top: (made(".mcp.json")(top), linked(".mcp.json")(top)), "link"
    ),
    "a FIFO": Case("not_regular", lambda top: os.mkfifo(top / "pipe"), "pipe"),
    "a directory": Case("not_a_file", path="d", others={"replace": "ok"}),
    "below a file": Case("not_a_directory", path="d/f/below"),
    "a link outside": Case("outside_workspace", linked("/etc"), "link/new"),
    "a link loop": Case("link_loop", linked("link"), "link"),
    "a link": Case("ok", linked("d/f"), "link"),
    "a link where none is followed": Case(
        "refused", linked("d/f"), "link", Policy(symlinks="never", overwrite="always")
    ),
    "too large": Case("too_large", made("d/f", b"old\n" * 100), limits=Limits(file_bytes=100)),
    "binary": Case("binary", made("d/f", b"old\0"), others={"write": "ok", "replace": "no_match"}),
    "not read": Case("ok", policy=Policy(), others={"write": "unread"}),
    "read": Case("ok", policy=Policy(), before=lambda ws: ws.read("d/f")),
    "nothing is replaced": Case("ok", policy=Policy(overwrite="never"), others={"write": "already_exists"}),
    "a rule that denies": Case("refused", policy=Policy(overwrite="always", deny=["change(d/**)"])),
}


@contextmanager
def tree() -> Iterator[Path]:
    """A tree of an unprivileged user, who also makes the calls."""
    with public_directory() as place:
        top = place / "root"
        put(top, {"d/f": "old\n"})
        try:
            yield top
        finally:
            if AS_ROOT:
                os.seteuid(0)
            for directory in (top, top / "d"):
                directory.chmod(0o755)


@pytest.fixture(scope="module", autouse=True)
def loaded() -> None:
    """Import modules early, because only root may be able to read the interpreter later."""
    for method in METHODS.values():
        with tree() as top, Workspace(top, policy=ALWAYS) as ws, ws.transaction() as tx:
            tx.write("new", "x")
            method(tx, "d/f")
    with tree() as top, Workspace(top) as ws:
        ws.write("d/new", "x")
        for path in ("none", "d/f/below"):
            with pytest.raises(AgentFSError):
                ws.read(path)


def verdict(case: Case, method: str, *, preview: bool, staged: bool) -> tuple[str, str]:
    """Make one call; return code and message, and check that a refusal or preview changes nothing."""
    with tree() as top:
        case.arrange(top)
        if AS_ROOT:
            for path in (top, *top.rglob("*")):
                if os.lstat(path).st_uid == 0:
                    os.lchown(path, SOMEBODY, SOMEBODY)
            os.seteuid(SOMEBODY)
        with Workspace(top, policy=case.policy, limits=case.limits) as ws:
            case.before(ws)
            before = snapshot(top)
            try:
                if staged:
                    with ws.transaction() as tx:
                        METHODS[method](tx, case.path, preview=preview)
                else:
                    METHODS[method](ws, case.path, preview=preview)
            except AgentFSError as error:
                assert snapshot(top) == before
                return error.code, error.message
            assert (snapshot(top) == before) is preview
            return "ok", ""


@pytest.mark.parametrize("staged", [False, True], ids=["alone", "in a transaction"])
@pytest.mark.parametrize("method", list(METHODS))
@pytest.mark.parametrize("name", list(CASES))
def test_a_preview_and_the_change_have_one_verdict(name, method, staged):
    case = CASES[name]
    if case.root_only and not AS_ROOT:
        pytest.skip("only root gives files away")
    would = verdict(case, method, preview=True, staged=staged)
    done = verdict(case, method, preview=False, staged=staged)
    assert would == done
    assert done[0] == case.others.get(method, case.code)


_IN_CLOSE_WRITE, _IN_ANY_CHANGE = 0x8, 0x2 | 0x4 | 0x8 | 0x40 | 0x80 | 0x100 | 0x200


@pytest.mark.skipif(sys.platform != "linux", reason="inotify is of Linux")
@pytest.mark.parametrize("method", METHODS)
def test_a_preview_wakes_no_watcher_and_a_change_does_not_open_the_old_file_for_writing(tmp_path, method):
    libc = ctypes.CDLL(None, use_errno=True)
    put(tmp_path, {"d/f": "old\n"})

    def events_of(mask: int, path: Path, act: Callable[[], object]) -> list[int]:
        fd = libc.inotify_init1(os.O_NONBLOCK)
        assert libc.inotify_add_watch(fd, os.fsencode(path), mask) > 0
        try:
            act()
            found, events = os.read(fd, 4096), []
        except BlockingIOError:
            return []
        finally:
            os.close(fd)
        while found:  # struct inotify_event: watch, mask, cookie, length of the name
            _, event, _, length = struct.unpack_from("iIII", found)
            found = found[16 + length :]
            events.append(event)
        return [event for event in events if event & mask]

    with Workspace(tmp_path, policy=ALWAYS) as ws:
        for path in (tmp_path / "d/f", tmp_path / "d"):
            assert not events_of(_IN_ANY_CHANGE, path, lambda: METHODS[method](ws, "d/f", preview=True))
        assert not events_of(_IN_CLOSE_WRITE, tmp_path / "d/f", lambda: METHODS[method](ws, "d/f"))
        assert not (tmp_path / "d/f").exists() or "new" in (tmp_path / "d/f").read_text()
