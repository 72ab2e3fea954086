"""Each dialect has a table of its contract with a test of each statement; its page has the differences."""

import re
from pathlib import Path

import pytest

from agentfs.dialects import BUILT_IN

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "reference" / "dialects"
CONTRACTS = Path(__file__).parent / "contracts"


def rows_of(text: str) -> list[list[str]]:
    cells = [re.split(r"(?<!\\)\|", line)[1:-1] for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in cells[2:]]


def rows(name: str) -> list[list[str]]:
    return rows_of((CONTRACTS / f"{name}.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", BUILT_IN)
def test_each_page_has_the_differences_and_the_number_of_statements(name):
    contract = (PAGES / f"{name}.md").read_text(encoding="utf-8").partition("\n## Contract\n")[2]
    differences = [row[:3] for row in rows(name) if row[1] != "kept"]
    assert rows_of(contract) == differences
    kept = len(rows(name)) - len(differences)
    assert f"Of the document's {len(rows(name))} statements, {kept} are kept as they stand" in contract


def test_each_dialect_of_the_package_has_a_page_that_the_index_names():
    index = (PAGES / "index.md").read_text(encoding="utf-8")
    for name in BUILT_IN:
        assert rows(name), name
        assert f"]({name}.md)" in index


@pytest.mark.parametrize("name", BUILT_IN)
def test_each_page_states_the_limit_of_10_mib(name):
    verdict = "kept" if name == "dominds" else "not kept"  # it only searches, and that has no limit
    stated = [row[3] for row in rows(name) if "10 MiB" in row[2] and row[1] == verdict]
    assert "`test_files_over_10_mib`" in stated


@pytest.mark.parametrize("name", BUILT_IN)
def test_each_page_links_to_the_paragraph_on_protected_files(name):
    assert "\n## Protected files\n" in (PAGES / "index.md").read_text(encoding="utf-8")
    assert "(index.md#protected-files)" in (PAGES / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", BUILT_IN)
def test_each_row_says_whether_it_is_kept_and_has_a_test(name):
    texts = [
        (Path(__file__).parent / f"test_{each}.py").read_text(encoding="utf-8")
        for each in (name.replace("-", "_"), "every_dialect")
    ]
    there = set(re.findall(r"^(?:async )?def (test_\w+)", "\n".join(texts), re.MULTILINE))
    wrong = []
    for row in rows(name):
        if len(row) != 4:
            wrong.append(f"{row} has not four cells")
            continue
        statement, verdict, why, test = row
        if verdict not in {"kept", "improved", "not kept"}:
            wrong.append(f"{statement}: {verdict!r} is no verdict")
        if verdict != "kept" and not why:
            wrong.append(f"{statement}: why?")
        named = re.fullmatch(r"`(\w+)`(?:, `(\w+)`)*", test) and re.findall(r"`(\w+)`", test)
        if not named or not there.issuperset(named):
            wrong.append(f"{statement}: there is no {test}")
    assert wrong == []
