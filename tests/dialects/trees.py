"""The trees that the contracts' examples are about, laid out on disk."""

from collections.abc import Mapping
from pathlib import Path


def lay_out(top: Path, tree: Mapping[str, str]) -> None:
    """Write files, with the directories on the way to them.

    Args:
        top: Where.
        tree: The text of each file, by its path.
    """
    for path, content in tree.items():
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_text(content)


def lay_out_large(top: Path) -> None:
    """Write `large.txt`, which is over the 10 MiB that are edited, and `small.txt`.

    Args:
        top: Where.
    """
    (top / "small.txt").write_text("a needle\n")
    (top / "large.txt").write_text("a needle\n" + "hay\n" * (10 * 2**20 // 4))
