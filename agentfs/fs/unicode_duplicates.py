"""Names that look the same and are not: one letter in two Unicode forms, composed and decomposed."""

import unicodedata
from collections.abc import Iterable

from agentfs.fs.names import first_names


def same_letters(one: str, other: str) -> bool:
    """Tell whether two different names or paths look the same."""
    return one != other and unicodedata.normalize("NFC", one) == unicodedata.normalize("NFC", other)


def unicode_duplicates_among(names: Iterable[str]) -> list[str]:
    """Return those of some names or paths that look like another one of them, each once.

    Args:
        names: Names or paths.
    """
    seen: dict[str, str] = {}
    found: dict[str, None] = {}
    for name in names:
        if not name.isascii():
            first = seen.setdefault(unicodedata.normalize("NFC", name), name)
            if first != name:
                found[first] = None
    return list(found)


def unicode_duplicate_notes(handle: int, name: str) -> list[str]:
    """Return what to say of a new name that looks like one which is there.

    Args:
        handle: The directory.
        name: The name in it.
    """
    if name.isascii():
        return []
    try:
        alike = any(same_letters(other, name) for other in first_names(handle))
    except OSError:
        return []
    return ["another name in its directory looks the same: it has another Unicode form"] if alike else []
