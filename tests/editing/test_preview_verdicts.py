"""Every changing method and every reason to refuse; a preview and the change agree."""
# ruff: noqa: E501 - a row of a table is one line

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from agentfs import AgentFSError, Limits, LineChange, Policy, Workspace
from agentfs import Edit as Replacement
from tests.conftest import public_directory
from tests.history.judges import snapshot
from tests.kit import put, refused

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
    "append": lambda ws, path: ws.append(path, "more\n"),
    "write_bytes": lambda ws, path: ws.write_bytes(path, b"\0new"),
    "delete": lambda ws, path: ws.delete(path),
}
WITH_PREVIEW = [*METHODS][:5]
NEW_FILE = dict.fromkeys(("write", "append", "write_bytes"), "ok")
LINK_ITSELF = {"delete": "ok"}  # or what the directory of the file allows


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
    "a new file": Case("not_found", path="d/none", others=NEW_FILE),
    "a new file in a new directory": Case("not_found", path="d/new/none", others=NEW_FILE),
    "a workspace that may only be read": Case("read_only", policy=Policy(read_only=True, overwrite="always")),
    "hard links broken": Case("ok", on_file(links=2)),
    "a read-only file": Case("refused", on_file(0o444)),
    "a read-only file with hard links": Case("refused", on_file(0o444, 2)),
    "a file that only its group may write": Case("refused", on_file(0o464), others=LINK_ITSELF),
    "another's file that may not be written": Case("refused", lambda top: os.chown(top / "d/f", SOMEBODY_ELSE, -1), others=LINK_ITSELF, root_only=True),
    "never shown": Case("protected", made(".env"), ".env"),
    "never changed": Case("protected", made(".mcp.json"), ".mcp.json"),
    "a link to what is never changed": Case("protected", lambda top: (made(".mcp.json")(top), linked(".mcp.json")(top)), "link", others=LINK_ITSELF),
    "a FIFO": Case("not_regular", lambda top: os.mkfifo(top / "pipe"), "pipe"),
    "a directory": Case("not_a_file", path="d", others={"replace": "ok"}),
    "below a file": Case("not_a_directory", path="d/f/below"),
    "a link outside": Case("outside_workspace", linked("/etc"), "link/new"),
    "a link loop": Case("link_loop", linked("link"), "link", others=LINK_ITSELF),
    "a link": Case("ok", linked("d/f"), "link"),
    "a link where none is followed": Case("refused", linked("d/f"), "link", Policy(symlinks="never", overwrite="always"), others=LINK_ITSELF),
    "too large": Case("too_large", made("d/f", b"old\n" * 100), limits=Limits(file_bytes=100)),
    "binary": Case("binary", made("d/f", b"old\0"), others={"write": "ok", "replace": "no_match", "write_bytes": "ok", "delete": "ok"}),
    "not read": Case("ok", policy=Policy(), others={"write": "unread"}),
    "read": Case("ok", policy=Policy(), before=lambda ws: ws.read("d/f")),
    "nothing is replaced": Case(
        "ok",
        policy=Policy(overwrite="never"),
        others={"write": "already_exists", "write_bytes": "already_exists", "delete": "refused"},
    ),
    "a rule that denies": Case("refused", policy=Policy(overwrite="always", deny=["change(d/**)"])),
}  # fmt: skip


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
            refused(lambda: ws.read(path))  # noqa: B023 - called at once


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
            options = {"preview": True} if preview else {}
            try:
                with ws.transaction() if staged else nullcontext(ws) as used:
                    METHODS[method](used, case.path, **options)
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
    done = verdict(case, method, preview=False, staged=staged)
    if method in WITH_PREVIEW:
        assert verdict(case, method, preview=True, staged=staged) == done
    assert done[0] == case.others.get(method, case.code)
