"""Short names for lines, made from their content: unique in the file, and kept by a line that stays.

Pure. The name of a line is the start of a hash of what it holds and of how many equal lines stand above it.
When the file changes, a line that is still there keeps its name, wherever it stands now, and a line that is
new gets one that no line had, so that a name never comes to mean another line.
"""

from collections.abc import Iterable, Sequence

from agentfs.text.diff import Change, changed_lines
from agentfs.text.lines import lf_view

SHORTEST = 6


def bodies_of(text: str) -> list[str]:
    """Split a text into its lines, without their ends.

    Args:
        text: A whole text.

    Returns:
        As many lines as `split_lines` gives.
    """
    lines = lf_view(text).split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def fresh_ids(lines: Iterable[str], taken: set[str], salt: str = "") -> list[str]:
    """Name lines that have no names.

    Args:
        lines: The lines without their ends.
        taken: Names that may not be given; those given are added.
        salt: What makes these names differ from those of equal lines elsewhere.

    Returns:
        A name for each line: at least six lowercase hex digits, more where six are taken.
    """
    from hashlib import blake2b  # noqa: PLC0415 - it loads OpenSSL, which an import of agentfs should not

    names: list[str] = []
    above: dict[str, int] = {}
    for line in lines:
        number = above.get(line, 0)
        size, name = SHORTEST, ""
        while not name or name in taken:
            content = f"{salt}:{number}:{line}".encode("utf-8", "surrogatepass")
            name = blake2b(content, digest_size=16).hexdigest()[:size]
            number += 1
            # An equal line may have had that name; but where most are taken, only a longer one is free.
            size = min(size + (number % 4 == 0), 32)
        above[line] = number
        taken.add(name)
        names.append(name)
    return names


def carried_ids(
    old: Sequence[str],
    ids: Sequence[str],
    new: Sequence[str],
    taken: set[str],
    salt: str = "",
    changes: Sequence[Change] | None = None,
) -> list[str]:
    """Name the lines of a file that has changed.

    Args:
        old: The lines before, without their ends.
        ids: Their names.
        new: The lines now.
        taken: Names that may not be given to a new line; those given are added.
        salt: As for `fresh_ids`.
        changes: Which lines were replaced, where that is known: start and end in old, start and end in new.

    Returns:
        A name for each line now: its old one where the line is still there.
    """
    if changes is None or not _fits(changes, len(old), len(new)):
        changes = [(0, len(old), 0, len(new))]
    names: list[str | None] = [None] * len(new)
    old_at = new_at = 0
    exact = _exact_changes(old, new, changes)
    for old_start, old_end, new_start, new_end in (*exact, (len(old), len(old), len(new), len(new))):
        names[new_at:new_start] = ids[old_at:old_start]
        old_at, new_at = old_end, new_end
    missing = [index for index, name in enumerate(names) if name is None]
    for index, name in zip(missing, fresh_ids([new[index] for index in missing], taken, salt), strict=True):
        names[index] = name
    return [name for name in names if name is not None]


def _fits(changes: Sequence[Change], old: int, new: int) -> bool:
    """Tell whether the stretches between changes are as long on either side."""
    old_at = new_at = 0
    for old_start, old_end, new_start, new_end in (*changes, (old, old, new, new)):
        if old_start - old_at != new_start - new_at or old_start < old_at:
            return False
        old_at, new_at = old_end, new_end
    return True


def _exact_changes(old: Sequence[str], new: Sequence[str], changes: Sequence[Change]) -> list[Change]:
    """Take out of each change what is the same on both sides."""
    return [
        (old_start + a, old_start + b, new_start + c, new_start + d)
        for old_start, old_end, new_start, new_end in changes
        for a, b, c, d in changed_lines(old[old_start:old_end], new[new_start:new_end])
    ]
