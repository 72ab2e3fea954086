"""Short ids of lines, made from their content: unique in a file, and kept by a line that stays.

An id is the start of a hash of a line and of how many equal lines are above it. When the file changes, a line
that is still there keeps its id, and a new one gets an id that no line had, so that none changes its meaning.
"""

from collections.abc import Iterable, Sequence
from hashlib import blake2b

from agentfs.text.diff import changed_lines

MIN_DIGITS = 6


def new_line_ids(lines: Iterable[str], taken: set[str], salt: str = "") -> list[str]:
    """Return an id of six or more hex digits for each line, none of those taken; they are added to these."""
    ids: list[str] = []
    above: dict[str, int] = {}
    for line in lines:
        number = above.get(line, 0)
        size, line_id = MIN_DIGITS, ""
        while not line_id or line_id in taken:
            content = f"{salt}:{number}:{line}".encode("utf-8", "surrogatepass")
            line_id = blake2b(content, digest_size=16).hexdigest()[:size]
            number += 1
            # An equal line may have had that id; but where most are taken, only a longer one is free.
            size = min(size + (number % 4 == 0), 32)
        above[line] = number
        taken.add(line_id)
        ids.append(line_id)
    return ids


def carry_line_ids(
    old: Sequence[str], ids: Sequence[str], new: Sequence[str], taken: set[str], salt: str = ""
) -> list[str]:
    """Return the ids of the lines of a changed file: the old one if a line is still there."""
    carried: list[str | None] = [None] * len(new)
    old_at = new_at = 0
    for old_start, old_end, new_start, new_end in changed_lines(old, new):
        carried[new_at:new_start] = ids[old_at:old_start]
        old_at, new_at = old_end, new_end
    carried[new_at:] = ids[old_at:]
    missing = [line for line, line_id in zip(new, carried, strict=True) if line_id is None]
    made = iter(new_line_ids(missing, taken, salt))
    return [next(made) if line_id is None else line_id for line_id in carried]
