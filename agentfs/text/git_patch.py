"""Patches for `git apply`, also of binary files, modes and moves."""

import zlib
from typing import NamedTuple

from agentfs.base.lazy import base64, hashlib
from agentfs.text.diff import file_names, git_header, hunks

_BASE85_LINE = 52


class Blob(NamedTuple):
    """The mode and content of a file or link as git stores them. The mode "" means that none exists."""

    mode: str
    content: bytes

    @property
    def name(self) -> str:
        """The hash by which git names the content."""
        digest = hashlib.sha1(
            b"blob %d\0" % len(self.content) + self.content, usedforsecurity=False
        ).hexdigest()
        return digest if self.mode else "0" * 40

    @property
    def is_binary(self) -> bool:
        """True if git treats the content as binary."""
        return b"\0" in self.content

    @property
    def text(self) -> str:
        """The content with one character for each byte, which keeps any encoding."""
        return self.content.decode("latin-1")


def git_patch(path: str, before: Blob, after: Blob, moved_from: str = "") -> bytes:
    """Return the patch of one file or link for `git apply`; `moved_from` is the old path of a move."""
    if before.mode and after.mode and before.mode[:3] != after.mode[:3]:
        # Git describes a link that replaces a file as a deletion and a creation.
        nothing = Blob("", b"")
        return git_patch(moved_from or path, before, nothing) + git_patch(path, nothing, after)
    if before == after and not moved_from:
        return b""
    head = git_header(path, before.mode, after.mode, moved_from)
    if before.content == after.content:
        return head.encode()
    if before.is_binary or after.is_binary:
        # Git applies a binary patch only if it names the hashes of both contents.
        head += f"index {before.name}..{after.name}\nGIT binary patch\n"
        return head.encode() + _literal(after.content) + _literal(before.content)
    head += file_names(path, created=not before.mode, deleted=not after.mode, old_path=moved_from)
    return head.encode() + "".join(hunks(before.text, after.text)).encode("latin-1")


def _literal(data: bytes) -> bytes:
    packed = zlib.compress(data)
    lines = [b"literal %d" % len(data)]
    for start in range(0, len(packed), _BASE85_LINE):
        line = packed[start : start + _BASE85_LINE]
        length = len(line) + (ord("A") - 1 if len(line) <= 26 else ord("a") - 27)
        lines.append(bytes([length]) + base64.b85encode(line, pad=True))
    return b"\n".join(lines) + b"\n\n"
