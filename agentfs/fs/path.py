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

_PLAIN = re.compile(r"(?![./])[ !#-9;=@-\[\]-{}~]{1,255}(?<!/)\Z").match

_RELATIVE_HINT = "Give a relative path, with `/` between names."


class ParsedPath(NamedTuple):
    r"""A path taken apart.

    Attributes:
        parts: Its names and `..`, without empty parts and `.`; from the root on.
        directory: Whether it ends as only a directory may, in `/`, `/.` or `/..`.
        climbs: Whether it has a `..`.
        escaped: Whether it has what may be a byte displayed as `\xe9`, or a character as `⟦U+202E⟧`.
    """

    parts: tuple[str, ...]
    directory: bool = False
    climbs: bool = False
    escaped: bool = False

    @property
    def direct(self) -> str:
        """The path for the system, where it may be walked by no more than its names; else ""."""
        return "" if self.climbs or self.escaped or self.directory else "/".join(self.parts)


def is_simple(path: str) -> bool:
    """Tell whether a path needs no rule applied: short, relative, ASCII, and none of its names special."""
    return "//" not in path and "/." not in path and _PLAIN(path) is not None


def split_path(path: str, roots: Sequence[tuple[str, ...]]) -> ParsedPath:
    """Parse a requested path, and refuse what its text alone decides."""
    if not path:
        raise InvalidPathError(
            "The path is empty.", hint=_RELATIVE_HINT, details={"path": display_name(path)}
        )
    if "\0" in path:
        raise InvalidPathError(
            f"The path {quote(path)} holds a NUL character, which no file name has.",
            hint=_RELATIVE_HINT,
            details={"path": display_name(path)},
        )
    if not path.isascii():
        path = _system_text(path)
    if path.startswith("\\\\") or (_has_drive(path) and path[2:3] == "\\"):
        raise InvalidPathError(
            f"{quote(path)} is a Windows path, and this is not Windows.",
            hint=_RELATIVE_HINT,
            details={"path": display_name(path)},
        )
    pieces: Sequence[str] = path.split("/")
    if path[0] == "/":
        pieces = _below_root(path, pieces, roots)
    parts = tuple(piece for piece in pieces if piece not in {"", "."})
    _check_lengths(path, parts)
    return ParsedPath(
        parts,
        directory=pieces[-1] in {"", ".", ".."} if pieces else True,
        climbs=".." in parts,
        escaped="\\x" in path or "⟦U+" in path,
    )


def split_link(target: str, roots: Sequence[tuple[str, ...]]) -> ParsedPath | None:
    """Take apart the target of a symbolic link.

    Args:
        target: As it is written in the link.
        roots: The absolute spellings of the root.

    Returns:
        Its parts, from the root on if `is_absolute(target)`, else from the directory of the link; None if it
        is absolute and not under the root.
    """
    pieces: Sequence[str] = target.split("/")
    if is_absolute(target):
        below = parts_below(absolute_parts(target), roots)
        if below is None:
            return None
        parts: Sequence[str] = below
    else:
        parts = [piece for piece in pieces if piece not in {"", "."}]
    return ParsedPath(tuple(parts), directory=pieces[-1] in {"", ".", ".."}, climbs=".." in parts)


def is_absolute(path: str) -> bool:
    """Tell whether a path starts at the root of the file system."""
    return path.startswith("/")


def absolute_parts(path: str) -> tuple[str, ...]:
    """Return the parts of an absolute path."""
    return tuple(piece for piece in path.split("/") if piece not in {"", "."})


def parts_below(parts: tuple[str, ...], roots: Sequence[tuple[str, ...]]) -> tuple[str, ...] | None:
    """Return what of an absolute path lies below a root, or None; `..` within the root's name is outside."""
    for root in roots:
        if parts[: len(root)] == root:
            return parts[len(root) :]
    return None


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


def _has_drive(path: str) -> bool:
    return path[1:2] == ":" and path[0].isascii() and path[0].isalpha()


def _system_text(path: str) -> str:
    # Surrogates that represent bytes are joined again: several may be one character of UTF-8, and one
    # file would otherwise have two spellings.
    try:
        return path.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise InvalidPathError(
            f"The path {quote(path)} holds a lone surrogate, which no file name has.",
            hint=_RELATIVE_HINT,
            details={"path": display_name(path)},
        ) from None


def _below_root(path: str, pieces: Sequence[str], roots: Sequence[tuple[str, ...]]) -> list[str]:
    below = parts_below(absolute_parts(path), roots)
    if below is None:
        raise OutsideWorkspaceError(
            f"{quote(path)} is outside the workspace.",
            hint="Give a relative path, without a leading `/`.",
            details={"path": display_name(path)},
        )
    # The end of the text still decides whether a directory is meant.
    return [*below, ""] if not below or pieces[-1] in {"", "."} else list(below)


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
