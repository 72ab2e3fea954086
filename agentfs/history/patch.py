"""Changes as a patch in git's format, which `git apply` takes. Pure, and in bytes as files are."""

import base64
import os
import zlib
from collections.abc import Iterable, Iterator
from hashlib import sha1

from agentfs.fs import Change, FileNode, LinkNode, Node
from agentfs.text import hunks

_NO_BLOB = "0" * 40
_BASE85_LINE = 52
_UNQUOTED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-+/@=,~#%()[]{}")


def git_patch(changes: Iterable[Change]) -> Iterator[bytes]:
    """Yield the patch of each change, at most one for each path, in order of path.

    Directories are left out, as git has none; of a mode only whether the file is executable is written.
    """
    for change in sorted(changes, key=lambda change: os.fsencode(change.path)):
        before, after = _entry(change.before), _entry(change.after)
        if before is not None and after is not None and before[0][:3] != after[0][:3]:
            # A link in place of a file, or the other way round: to git a deletion and a creation.
            yield _part(change.path, before, None)
            yield _part(change.path, None, after)
        elif before != after:
            yield _part(change.path, before, after)


def line_counts(change: Change) -> tuple[int, int] | None:
    """Return how many lines a change adds and removes; None where either content is binary."""
    before, after = _entry(change.before), _entry(change.after)
    old, new = before[1] if before else b"", after[1] if after else b""
    if _is_binary(old) or _is_binary(new):
        return None
    counts = {"+": 0, "-": 0}
    for part in _hunks(old, new):
        if part[:1] in counts:
            # A line that says of the last one that nothing ends it is none of either text.
            counts[part[0]] += part.count("\n") - part.count("\n\\ ")
    return counts["+"], counts["-"]


def _entry(state: Node | None) -> tuple[str, bytes] | None:
    if isinstance(state, FileNode):
        return ("100755" if state.mode & 0o100 else "100644"), state.load()
    if isinstance(state, LinkNode):
        return "120000", os.fsencode(state.target)
    return None


def _part(path: str, before: tuple[str, bytes] | None, after: tuple[str, bytes] | None) -> bytes:
    old_name, new_name = _name("a/", path), _name("b/", path)
    lines = [b"diff --git %s %s" % (old_name, new_name)]
    if before is None and after is not None:
        lines.append(b"new file mode %s" % after[0].encode())
    elif before is not None and after is None:
        lines.append(b"deleted file mode %s" % before[0].encode())
    elif before is not None and after is not None and before[0] != after[0]:
        lines += [b"old mode %s" % before[0].encode(), b"new mode %s" % after[0].encode()]
    old, new = before[1] if before else b"", after[1] if after else b""
    if old != new or before is None or after is None:
        names = [_blob(old) if before else _NO_BLOB, _blob(new) if after else _NO_BLOB]
        mode = f" {after[0]}" if before and after and before[0] == after[0] else ""
        lines.append(f"index {names[0]}..{names[1]}{mode}".encode())
    head = b"\n".join(lines) + b"\n"
    if old == new:
        return head
    if _is_binary(old) or _is_binary(new):
        return head + b"GIT binary patch\n" + _literal(new) + _literal(old)
    from_to = b"--- %s\n+++ %s\n" % (
        old_name if before else b"/dev/null",
        new_name if after else b"/dev/null",
    )
    return head + from_to + "".join(_hunks(old, new)).encode("latin-1")


def _hunks(old: bytes, new: bytes) -> Iterator[str]:
    # Latin-1 gives each byte a character and back, so that any encoding comes through.
    return hunks(old.decode("latin-1"), new.decode("latin-1"))


def _is_binary(data: bytes) -> bool:
    return b"\0" in data


def _blob(data: bytes) -> str:
    return sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _literal(data: bytes) -> bytes:
    packed = zlib.compress(data)
    lines = [b"literal %d" % len(data)]
    for start in range(0, len(packed), _BASE85_LINE):
        line = packed[start : start + _BASE85_LINE]
        length = len(line) + (ord("A") - 1 if len(line) <= 26 else ord("a") - 27)
        lines.append(bytes([length]) + base64.b85encode(line, pad=True))
    return b"\n".join(lines) + b"\n\n"


def _name(side: str, path: str) -> bytes:
    name = os.fsencode(side + path)
    if _UNQUOTED.issuperset(name):
        return name
    quoted = b"".join(
        b"\\" + bytes([byte])
        if byte in b'"\\'
        else b"\\%03o" % byte
        if not 32 <= byte < 127
        else bytes([byte])
        for byte in name
    )
    return b'"' + quoted + b'"'
