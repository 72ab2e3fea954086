"""Paths as text: parsing, limits, and how names are displayed."""

import posixpath
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

from agentfs.base.advice import plural
from agentfs.base.visible import one_line, quoted, unvisible
from agentfs.errors import AgentFSError, InvalidPathError, NameTooLongError, OutsideWorkspaceError

_E = TypeVar("_E", bound=AgentFSError)
MAX_PATH_BYTES = 4096
MAX_NAME_BYTES = 255
MAX_PARTS = 256

_TEMPORARY_NAME = re.compile(r"(?:.*/)?\.agentfs-[0-9a-f]{16}\.tmp", re.DOTALL)
_SPACES = re.compile("[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]")
_DRIVE = re.compile(r"[A-Za-z]:\\")


class ParsedPath(NamedTuple):
    """A path relative to the root: names and `..`, without empty parts and `.`."""

    parts: tuple[str, ...]
    directory: bool = False  # True if it ends in `/`, `/.` or `/..`, so that it must be a directory
    climbs: bool = False  # True if it has a `..`
    escaped: bool = False  # True if it may contain an escape such as `\xe9` or `⟦U+202E⟧`


def has_one_spelling(name: str) -> bool:
    """Return True if no other name is alike, as `is_alike` compares them."""
    return name.isascii() and " " not in name


def is_alike(name: str, other: str) -> bool:
    """Return True if two names differ at most in their Unicode form and the kind of their spaces."""
    if name.isascii() and other.isascii():
        return name == other
    one, two = (unicodedata.normalize("NFC", _SPACES.sub(" ", each)) for each in (name, other))
    return one == two


def split_path(path: str, roots: Mapping[tuple[str, ...], tuple[str, ...]]) -> ParsedPath:
    """Parse a requested path. Raise an error if it is invalid, or is absolute and outside the root."""
    if not path:
        raise _invalid(path, "The path is empty.")
    if "\0" in path:
        raise _invalid(path, f"The path {quote(path)} contains a NUL character, which is not allowed.")
    if not path.isascii():
        # Several surrogates that stand for bytes may form one UTF-8 character. Decode them, so that each
        # file has one spelling.
        try:
            path = path.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            message = f"The path {quote(path)} contains a lone surrogate, which is not allowed."
            raise _invalid(path, message) from None
    if path.startswith("\\\\") or _DRIVE.match(path):
        raise _invalid(path, f"{quote(path)} is a Windows path, but this is not Windows.")
    pieces: Sequence[str] = path.split("/")
    if path[0] == "/":
        below = parts_below(absolute_parts(path), roots)
        if below is None:
            message = f"{quote(path)} is outside the workspace."
            hint = "Give a relative path, without a leading `/`. The root is `.`."
            raise error_of(OutsideWorkspaceError, path, message, hint)
        # Keep a final `/` or `/.`, which asks for a directory.
        pieces = [*below, ""] if not below or pieces[-1] in {"", "."} else below
    parts = tuple([piece for piece in pieces if piece not in {"", "."}])
    if len(path) * 4 > MAX_NAME_BYTES:
        _check_lengths(path, parts)
    return ParsedPath(
        parts,
        directory=pieces[-1] in {"", ".", ".."},
        climbs=".." in parts,
        escaped="\\x" in path or "⟦U+" in path,
    )


def split_link(target: str, roots: Mapping[tuple[str, ...], tuple[str, ...]]) -> ParsedPath | None:
    """Parse the target of a link; return None for an absolute one outside the root."""
    parts = absolute_parts(target)
    below = parts_below(parts, roots) if target.startswith("/") else parts
    directory = target.rpartition("/")[2] in {"", ".", ".."}
    return None if below is None else ParsedPath(below, directory)


def absolute_parts(path: str) -> tuple[str, ...]:
    """Return the parts of an absolute path."""
    return tuple(piece for piece in path.split("/") if piece not in {"", "."})


def parts_below(
    parts: tuple[str, ...], roots: Mapping[tuple[str, ...], tuple[str, ...]]
) -> tuple[str, ...] | None:
    """Return the parts of the real path for an absolute path in the first root that contains it, or None."""
    return next((shown + parts[len(at) :] for at, shown in roots.items() if parts[: len(at)] == at), None)


def display_name(name: str) -> str:
    r"""Return a name or path to display, with bytes that are not UTF-8 as `\xe9`."""
    if name.isascii():
        return name
    try:
        return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:
        return name.encode("utf-8", "backslashreplace").decode()


def path_from(start: str, path: str) -> str:
    """Return a path relative to a directory."""
    if not start:
        return path
    relative = posixpath.relpath(f"/{path}", f"/{start}")
    return "" if relative == "." else relative


def is_in(path: str, directory: str) -> bool:
    """Return True if a real path is a directory, or lies below it; "" is the root."""
    return not directory or path == directory or path.startswith(f"{directory}/")


def is_temporary_name(path: str) -> bool:
    """Return True for the path of a temporary."""
    return _TEMPORARY_NAME.fullmatch(path) is not None


def parse_display_name(name: str) -> str:
    r"""Return the name for its displayed form: `\xe9` is a byte and `⟦U+202E⟧` a character."""
    escaped = re.sub(r"\\x([89a-f][0-9a-f])", lambda found: chr(0xDC00 + int(found[1], 16)), unvisible(name))
    return escaped if name in {display_name(escaped), one_line(display_name(escaped))} else name


def quote(path: str) -> str:
    """Return a path for a message: in quotes, on one line, and cut if it is very long."""
    displayed = display_name(path)
    if len(displayed) > 240:
        displayed = f"{displayed[:120]}…{displayed[-60:]}"
    return f'"{quoted(displayed)}"'


def error_of(kind: type[_E], path: str, message: str, hint: str = "", /, **details: object) -> _E:
    """Return an error about a path."""
    return kind(message, hint=hint, details={"path": display_name(path), **details})


def _invalid(path: str, message: str) -> InvalidPathError:
    return error_of(InvalidPathError, path, message, "Give a relative path, with `/` between names.")


def _check_lengths(path: str, parts: Sequence[str]) -> None:
    longest = max(parts, key=_bytes_in, default="")
    for what, named, count, noun, limit in (
        ("path", path, _bytes_in(path), "byte", MAX_PATH_BYTES),
        ("name", longest, _bytes_in(longest), "byte", MAX_NAME_BYTES),
        ("path", path, len(parts), "part", MAX_PARTS),
    ):
        if count > limit:
            message = f"The {what} {quote(named)} has {plural(count, noun)}; the limit is {limit}."
            raise error_of(NameTooLongError, path[:255], message, "Give a shorter path.")


def _bytes_in(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
