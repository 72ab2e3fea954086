"""Count the words of README and docs.

    python scripts/words.py

prints for README and each part of docs how many words a reader meets: those of the prose, and those of the
tables besides. Code blocks and their outputs are not counted, nor what the site adds from docstrings.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
CODE = re.compile(r"^( *)(`{3,}).*?^\1\2$", re.MULTILINE | re.DOTALL)


class Words(NamedTuple):
    """The words of a page or of several."""

    prose: int
    tables: int

    @property
    def total(self) -> int:
        """Return all words."""
        return self.prose + self.tables


def words_of(page: Path) -> Words:
    """Return the words of a page outside its code blocks."""
    lines = CODE.sub("", page.read_text(encoding="utf-8")).splitlines()
    counts = {True: 0, False: 0}
    for line in lines:
        counts[line.lstrip().startswith("|")] += sum(
            any(map(str.isalnum, word)) for word in line.split() if not line.startswith(":::")
        )
    return Words(prose=counts[False], tables=counts[True])


def parts() -> Iterator[tuple[str, Words]]:
    """Yield README, each part of docs, and all words."""
    docs = ROOT / "docs"
    pages = sorted(docs.rglob("*.md"))
    names = {page: page.relative_to(docs).parts[0].removesuffix(".md") for page in pages}
    yield "README", words_of(ROOT / "README.md")
    for name in dict.fromkeys(names.values()):
        yield name, added(page for page in pages if names[page] == name)
    yield "all", added([ROOT / "README.md", *pages])


def added(pages: Iterator[Path] | list[Path]) -> Words:
    """Return the words of several pages."""
    counted = [words_of(page) for page in pages]
    return Words(sum(each.prose for each in counted), sum(each.tables for each in counted))


def main() -> None:
    """Print a table."""
    print(f"{'':12}{'prose':>8}{'tables':>8}{'total':>8}")
    for name, words in parts():
        print(f"{name:12}{words.prose:8,}{words.tables:8,}{words.total:8,}")


if __name__ == "__main__":
    main()
