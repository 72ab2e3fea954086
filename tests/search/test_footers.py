"""Footers of searches: totals, and names that were left out."""

import pytest

from agentfs import Limits, Workspace
from tests import kit

FOOTER = "left out: 2 hidden, 1 ignored by .gitignore:1 *.log"


@pytest.fixture
def ws(tmp_path):
    for name in (".gitignore", ".hidden", "a.py", "b.py", "x.log", ".git/config", "src/c.py", "src/.d"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("value\n")
    (tmp_path / ".gitignore").write_text("*.log\n")
    (tmp_path / "bin.dat").write_bytes(b"\0")
    with Workspace(tmp_path) as workspace:
        yield workspace


def test_regression_every_answer_says_what_makes_it_incomplete(ws, tmp_path):
    (tmp_path / ".env").write_text("value\n")
    (tmp_path / "key.pem").write_text("value\n")
    (tmp_path / "large.py").write_bytes(b"value\n" + (b"x" * 99 + b"\n") * 110_000)
    (tmp_path / "wide.py").write_bytes("value\n".encode("utf-16") + b"\x00")
    (tmp_path / "link.py").symlink_to("a.py")
    incomplete = "left out: 1 protected by the policy, 1 too large, 1 undecodable, 1 link"
    advice = " (pass include_ignored=true), "
    for _ in range(2):  # each answer says it
        found = kit.grep(ws, "value", max_filesize="10M")
        assert f"{FOOTER.replace('2 hidden', '4 hidden')}{advice}{incomplete[10:]}" in found.text
    incomplete = incomplete.replace("1 too large, ", "")
    for toolset in (ws.tools(), ws.tools(["grep"]), ws.tools()):
        content = toolset.call("grep", {"pattern": "value"}).content
        assert content.endswith(f"{incomplete[10:]}]")
        assert "4 hidden" in content


def test_a_search_that_only_has_room_for_its_totals_still_says_what_it_left_out(tmp_path):
    (tmp_path / "a.py").write_text("value " * 1000)
    (tmp_path / "key.pem").write_text("value\n")
    with Workspace(tmp_path, limits=Limits(output_tokens=30, grep_line_chars=10_000)) as ws:
        result = ws.grep("value")
        assert result.text == "1000 matches on 1 line in 1 file.\n[left out: 1 protected by the policy]"


@pytest.mark.parametrize("repeats", range(2))
def test_every_answer_without_matches_reports_all_that_was_left_out(ws, repeats):
    for _ in range(1 + repeats):
        text = ws.grep("no such text").text
        assert (
            "left out: 3 hidden, 1 ignored by .gitignore:1 *.log, "  # a short search looked there too
            "1 version control directory, 1 binary" in text
        )
        assert "1 version control directory" in ws.glob("*.rs").text


def test_binary_and_git_are_not_reported_if_something_is_found(ws):
    found = ws.grep("value")
    assert (found.skipped.vcs, found.skipped.binary) == (1, 1)
    assert "version control" not in found.text
    assert "binary" not in found.text


def test_few_matches_that_are_all_shown_are_not_counted(ws):
    assert ws.grep("value", "a.py").text == "a.py\n1|value"
    assert "[2 matches on 1 line in 1 file]" in ws.grep("[ae]", "a.py").text
    assert "[3 matching lines in 3 files; shown: 1-1; more: " in ws.grep("value", limit=1).text
