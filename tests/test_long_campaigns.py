"""The script that runs the long campaigns keeps a page of their last results."""

from xml.etree import ElementTree as ET

import pytest

from scripts import long_campaigns
from scripts.long_campaigns import Row, read, result_of, write


def test_rows_are_read_back_and_others_stay(tmp_path, monkeypatch):
    monkeypatch.setattr(long_campaigns, "PAGE", tmp_path / "page.md")
    assert read() == {}
    rows = [
        Row("tests/a.py::test_b[x\\|y]", "passed; kills 1,090", 12.0, "2026-11-28", "2577aaf1"),
        Row("tests/a.py::test_c", "failed: assert 1 == 2", 7_000.0, "2026-11-29", "2577aaf1+"),
    ]
    write({row.test: row for row in rows})
    assert list(read().values()) == rows
    write(read() | {rows[0].test: rows[1]})
    assert long_campaigns.PAGE.read_text().startswith("# Long runs\n")


@pytest.mark.parametrize(
    ("case", "result"),
    [
        ("<testcase/>", "passed"),
        (
            "<testcase><properties><property name='kills' value='3'/></properties></testcase>",
            "passed; kills 3",
        ),
        ("<testcase><failure message='assert 1&#10;where'/></testcase>", "failed: assert 1"),
        ("<testcase><error message='a | b'/></testcase>", "failed: a \\| b"),
        ("<testcase><skipped message='no disk'/></testcase>", "skipped: no disk"),
    ],
)
def test_the_result_is_that_of_the_report(case, result):
    assert result_of(ET.fromstring(case)) == result
