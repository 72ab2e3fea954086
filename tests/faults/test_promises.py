"""Each test exists that the pages about security name, or the list of published faults of other tools."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "explanation" / "security.md").read_text(encoding="utf-8")
FIGURES = (ROOT / "docs" / "internals" / "campaigns.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def written():
    return "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))


def test_each_test_that_the_security_page_names_exists(written):
    named = set(re.findall(r"`(test_\w+)`", PAGE + FIGURES))
    assert len(named) > 10
    assert {name for name in named if f"def {name}(" not in written} == set()
    files = set(re.findall(r"tests/[\w/]+\.py", PAGE + FIGURES))
    assert {name for name in files if not (ROOT / name).exists()} == set()


def test_each_published_fault_of_others_has_a_test(written):
    lines = (Path(__file__).parent / "others.md").read_text(encoding="utf-8").splitlines()
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines if line.startswith("|")][2:]
    assert len(rows) > 20
    for fault, tests in rows:
        named = re.findall(r"`(test_\w+)`", tests)
        assert named, fault
        assert {name for name in named if f"def {name}(" not in written} == set(), fault
