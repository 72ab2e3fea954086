"""Each row and each case of a peer in docs/explanation/security.md names a test that exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "explanation" / "security.md").read_text(encoding="utf-8")
FIGURES = (ROOT / "docs" / "internals" / "campaigns.md").read_text(encoding="utf-8")
# Security incidents of other projects, by their identifiers.
CASES = """
CVE-2025-53110 CVE-2025-53109 CVE-2026-27735 CVE-2025-68143 CVE-2025-54794 CVE-2026-25724 CVE-2026-39861
CVE-2026-50549 CVE-2026-50548 GHSA-w5fx-fh39-j5rw CVE-2025-59532 CVE-2025-59944 CVE-2025-54130
CVE-2025-54135 CVE-2025-58372 CVE-2026-26268 CVE-2026-19592 SymJack GhostApproval PYSEC-2026-2192
GHSA-rgp8-pm28-3759 CVE-2026-34070 #544 #653 #1121 #6178 CVE-2026-108600 #420 #1201 CVE-2026-44192
CVE-2026-10692 #4191 #499 #82075 #3678 #114895 #85842 #43138 #3839 CVE-2025-4517 CVE-2025-4330
CVE-2025-4138 CVE-2024-51756 CVE-2025-23084 CVE-2019-1352 CVE-2025-22873 CVE-2026-39822 CVE-2026-27139
#28376 #31290 #60778
"""


@pytest.fixture(scope="module")
def written():
    return "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))


def table(heading: str) -> list[list[str]]:
    """Return the cells of each row of the table under a heading."""
    section = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")][1:]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def named_in(cell: str, written: str) -> set[str]:
    """Return the existing tests that a cell names."""
    return {name for name in re.findall(r"`(test_\w+)`", cell) if f"def {name}(" in written}


def test_each_test_that_the_security_page_names_exists(written):
    named = set(re.findall(r"`(test_\w+)`", PAGE + FIGURES))
    assert len(named) > 10
    assert {name for name in named if f"def {name}(" not in written} == set()
    files = set(re.findall(r"tests/[\w/]+\.py", PAGE + FIGURES))
    assert {name for name in files if not (ROOT / name).exists()} == set()


def test_each_row_of_the_hostile_table_has_a_test(written):
    shown = []
    for number, _, outcome, test in table("Hostile inputs, and the test of each"):
        first, _, last = number.partition("-")
        shown += range(int(first), int(last or first) + 1)
        assert outcome
        assert named_in(test, written), number
    # Rows 51 and 52 of the research are about Windows, where workspaces cannot be opened.
    assert shown == [number for number in range(1, 65) if number not in {51, 52}]


def test_each_case_of_others_has_a_test(written):
    rows = table("Faults of other tools")
    assert all(named_in(test, written) for _, test in rows)
    assert [
        case for case in CASES.split() if not any(re.search(rf"{case}\b", what) for what, _ in rows)
    ] == []
