"""Each dialect has a table of its contract with a test of each statement; its page has the differences."""

import re
from pathlib import Path

import pytest

from agentfs.dialects import BUILT_IN

HERE = Path(__file__).parent
PAGES = HERE.parents[1] / "docs" / "reference" / "dialects"
BY_NAME = pytest.mark.parametrize("name", BUILT_IN)


def rows_of(text: str) -> list[list[str]]:
    cells = [re.split(r"(?<!\\)\|", line)[1:-1] for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in cells[2:]]


def rows(name: str) -> list[list[str]]:
    return rows_of((HERE / "contracts" / f"{name}.md").read_text(encoding="utf-8"))


@BY_NAME
def test_each_page_has_the_differences_and_the_number_of_statements(name):
    page = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    contract = page.partition("\n## Contract\n")[2]
    differences = [row[:3] for row in rows(name) if row[1] != "kept"]
    assert rows_of(contract) == differences
    kept = len(rows(name)) - len(differences)
    assert f"Of the document's {len(rows(name))} statements, {kept} are kept as they stand" in contract
    index = (PAGES / "index.md").read_text(encoding="utf-8")
    assert f"]({name}.md)" in index
    assert "\n## Protected files\n" in index
    assert "(index.md#protected-files)" in page


@BY_NAME
def test_each_page_states_the_limit_of_10_mib(name):
    verdict = "kept" if name == "dominds" else "not kept"  # it only searches, and that has no limit
    stated = [row[3] for row in rows(name) if "10 MiB" in row[2] and row[1] == verdict]
    assert "`test_files_over_10_mib`" in stated


@BY_NAME
def test_each_statement_says_whether_it_is_kept_and_names_a_test_or_a_row_of_one(name):
    files = [f"test_{each}.py" for each in (name.replace("-", "_"), "every_dialect")]
    text = "\n".join((HERE / each).read_text(encoding="utf-8") for each in files)
    there = {
        *re.findall(r"^(?:async )?def (test_\w+)", text, re.MULTILINE),
        *re.findall(r'^    "(.+)": [(\[]', text, re.MULTILINE),
    }
    assert rows(name)
    for statement, verdict, why, test in rows(name):
        assert verdict in {"kept", "improved", "not kept"}, statement
        assert verdict == "kept" or why, statement
        assert re.fullmatch(r"`[^`]+`(, `[^`]+`)*", test), statement
        assert there.issuperset(re.findall(r"`([^`]+)`", test)), (statement, test)
