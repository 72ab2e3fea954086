"""What a path may be: rules on its text alone, and how names are displayed."""

import posixpath
import re
from collections.abc import Sequence
from typing import NamedTuple

from agentfs.errors import InvalidPathError, NameTooLongError, OutsideWorkspaceError
from agentfs.visible import one_line, quoted, unvisible

MAX_PATH_BYTES = 4096
MAX_NAME_BYTES = 255
MAX_PARTS = 256

_DRIVE = re.compile(r"[A-Za-z]:\\")


class ParsedPath(NamedTuple):
    """A path from the root on in its names and `..`, without empty parts and `.`."""

    parts: tuple[str, ...]
    directory: bool = False  # whether it ends as only a directory may, in `/`, `/.` or `/..`
    climbs: bool = False  # whether it has a `..`
    escaped: bool = (
        False  # whether it has what may be a byte displayed as `\xe9`, or a character as `⟦U+202E⟧`
    )


def is_plain(text: str) -> bool:
    """Return whether no file system takes a name for another one, except for its case, dots and spaces."""
    return text.isascii() and "~" not in text


def split_path(path: str, roots: Sequence[tuple[str, ...]]) -> ParsedPath:
    """Parse a requested path, and refuse what its text alone decides."""
    if not path:
        raise _invalid(path, "The path is empty.")
    if "\0" in path:
        raise _invalid(path, f"The path {quote(path)} holds a NUL character, which no file name has.")
    if not path.isascii():
        # Surrogates that represent bytes are joined again: several may be one character of UTF-8, and one
        # file would otherwise have two spellings.
        try:
            path = path.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            message = f"The path {quote(path)} holds a lone surrogate, which no file name has."
            raise _invalid(path, message) from None
    if path.startswith("\\\\") or _DRIVE.match(path):
        raise _invalid(path, f"{quote(path)} is a Windows path, and this is not Windows.")
    pieces: Sequence[str] = path.split("/")
    if path[0] == "/":
        below = parts_below(absolute_parts(path), roots)
        if below is None:
            raise OutsideWorkspaceError(
                f"{quote(path)} is outside the workspace.",
                hint="Give a relative path, without a leading `/`.",
                details={"path": display_name(path)},
            )
        # The end of the text still decides whether a directory is meant.
        pieces = [*below, ""] if not below or pieces[-1] in {"", "."} else below
    parts = tuple([piece for piece in pieces if piece not in {"", "."}])
    _check_lengths(path, parts)
    return ParsedPath(
        parts,
        directory=pieces[-1] in {"", ".", ".."},
        climbs=".." in parts,
        escaped="\\x" in path or "⟦U+" in path,
    )


def split_link(target: str, roots: Sequence[tuple[str, ...]]) -> ParsedPath | None:
    """Parse the target of a link; an absolute one from the root on, or None when it is not under the root."""
    pieces = target.split("/")
    parts = absolute_parts(target)
    if target.startswith("/"):
        below = parts_below(parts, roots)
        if below is None:
            return None
        parts = below
    return ParsedPath(parts, directory=pieces[-1] in {"", ".", ".."}, climbs=".." in parts)


def absolute_parts(path: str) -> tuple[str, ...]:
    """Return the parts of an absolute path."""
    return tuple(piece for piece in path.split("/") if piece not in {"", "."})


def parts_below(parts: tuple[str, ...], roots: Sequence[tuple[str, ...]]) -> tuple[str, ...] | None:
    """Return what of an absolute path lies below a root, or None; `..` within the root's name is outside."""
    return next((parts[len(root) :] for root in roots if parts[: len(root)] == root), None)


def display_name(name: str) -> str:
    r"""Return a name or path as it is displayed: bytes that are not UTF-8 as `\xe9`."""
    if name.isascii():
        return name
    try:
        name.encode()
    except UnicodeEncodeError:
        try:
            return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        except UnicodeEncodeError:
            return name.encode("utf-8", "backslashreplace").decode()
    return name


def path_from(start: str, path: str) -> str:
    """Return a path as it is written from a directory."""
    if not start:
        return path
    relative = posixpath.relpath(f"/{path}", f"/{start}")
    return "" if relative == "." else relative


def parse_display_name(name: str) -> str:
    r"""Return the name that is displayed so: `\xe9` is the byte, `⟦U+202E⟧` the character; else the same."""
    escaped = re.sub(r"\\x([89a-f][0-9a-f])", lambda found: chr(0xDC00 + int(found[1], 16)), unvisible(name))
    return escaped if name in {display_name(escaped), one_line(display_name(escaped))} else name


def quote(path: str) -> str:
    """Return a path for a message: in quotes, on one line, cut when it is very long."""
    displayed = display_name(path)
    if len(displayed) > 240:
        displayed = f"{displayed[:120]}…{displayed[-60:]}"
    return f'"{quoted(displayed)}"'


def _invalid(path: str, message: str) -> InvalidPathError:
    hint = "Give a relative path, with `/` between names."
    return InvalidPathError(message, hint=hint, details={"path": display_name(path)})


def _check_lengths(path: str, parts: Sequence[str]) -> None:
    if len(path) * 4 <= MAX_NAME_BYTES:
        return
    size = _bytes_in(path)
    longest = max(parts, key=_bytes_in, default="")
    what = ""
    if size > MAX_PATH_BYTES:
        what = f"The path {quote(path)} has {size} bytes; a path may have {MAX_PATH_BYTES}."
    elif _bytes_in(longest) > MAX_NAME_BYTES:
        what = f"The name {quote(longest)} has {_bytes_in(longest)} bytes; a name may have {MAX_NAME_BYTES}."
    elif len(parts) > MAX_PARTS:
        what = f"The path {quote(path)} has {len(parts)} parts; a path may have {MAX_PARTS}."
    if what:
        raise NameTooLongError(what, hint="Give a shorter path.", details={"path": display_name(path)[:255]})


def _bytes_in(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
