"""Regression tests of wrong answers of searches."""

import shutil
from pathlib import Path
from typing import Literal

import pytest

from agentfs import Workspace
from agentfs.errors import InvalidPatternError
from agentfs.search import files
from tests import kit


@pytest.fixture
def ws(tmp_path: Path):
    for name, text in {"src/a.py": "test\nTest\n", "src/b/c.py": "est\nEst\n", "d.txt": "foo\n"}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    with Workspace(tmp_path) as opened:
        yield opened


def test_regression_grep_matches_the_first_line_that_read_shows_of_a_mark_without_utf_8(
    ws: Workspace,
) -> None:
    (Path(ws.root) / "e.txt").write_bytes(b"\xef\xbb\xbffoo \xe9\nfoo\n")
    assert ws.read("e.txt").content.startswith("ï»¿foo é\n")
    found = ws.grep("foo", "e.txt").matches
    assert [(match.line, match.text, match.spans) for match in found] == [
        (1, "ï»¿foo é", ((3, 6),)),
        (2, "foo", ((0, 3),)),
    ]
    assert [match.line for match in ws.grep("^foo", "e.txt").matches] == [2]
    assert [match.line for match in ws.grep("^ï»¿foo", "e.txt").matches] == [1]
    (Path(ws.root) / "e.txt").write_bytes(b"\xef\xbb\xbffoo \xc3\xa9\nfoo\n")
    assert [match.line for match in ws.grep("^foo", "e.txt").matches] == [1, 2]


@pytest.mark.parametrize(("pattern", "ignores_case"), [
    ("(?P<Name>est)", True),
    (r"\pLest", True),
    (r"\p{Lu}?est", True),
    (r"[[:alpha:]]?\best", True),
    (r"[\pL]est", True),
    (r"\Aest", True),
    (r"\x65st", True),
    ("(?#A)est", True),
    ("[t]?est", True),
    (r"\x45st", False),
    ("Est", False),
    ("[A-Z]?est", False),
    (r"[\x45e]st", False),
])  # fmt: skip
def test_regression_smart_case_counts_only_capitals_that_a_pattern_matches(
    ws: Workspace, pattern: str, ignores_case: bool
) -> None:
    lines = {match.text for match in kit.grep(ws, pattern, "src/b/c.py", smart_case=True, context=0).matches}
    plain = {match.text for match in ws.grep(pattern, "src/b/c.py", context=0).matches}
    folded = {match.text for match in ws.grep(pattern, "src/b/c.py", ignore_case=True, context=0).matches}
    assert lines == (folded if ignores_case else plain)
    for name in ("TEST", "EST", "test"):
        (Path(ws.root) / name).touch()
    names, same = (
        kit.find(ws, pattern=pattern, case=case).files for case in ("smart", case_meant(ignores_case))
    )
    assert [entry.name for entry in names] == [entry.name for entry in same]


def case_meant(ignores_case: bool) -> Literal["sensitive", "insensitive"]:
    return "insensitive" if ignores_case else "sensitive"


def test_smart_case_of_plain_text_sees_the_letters_behind_a_backslash(ws: Workspace) -> None:
    (Path(ws.root) / "f.txt").write_text("\\Pre\n\\pre\n")
    found = kit.grep(ws, r"\Pre", "f.txt", fixed_strings=True, smart_case=True).matches
    assert [match.text for match in found] == ["\\Pre"]


@pytest.mark.parametrize("glob", ["*.{py}", "{a,}.py", "{a}.py", "src/{**}/*.py"])
def test_regression_braces_with_one_alternative_match_it(ws: Workspace, glob: str) -> None:
    assert "src/a.py" in ws.grep("Test", glob=glob).counts
    assert "src/a.py" in [entry.path for entry in ws.glob(glob).files]


def test_regression_an_empty_pattern_or_glob_means_none(ws: Workspace) -> None:
    everything = [entry.path for entry in kit.find(ws).files]
    assert [entry.path for entry in kit.find(ws, pattern="").files] == everything
    assert [entry.path for entry in kit.find(ws, glob="", exclude="").files] == everything
    assert ws.grep("e", glob="", type="", exclude="").total_lines == ws.grep("e").total_lines
    assert ws.ls(ignore="").total == ws.ls().total
    for search in (ws.glob, ws.grep):
        with pytest.raises(InvalidPatternError):
            search("")


def test_regression_directories_that_became_files_do_not_raise_index_error(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    (Path(ws.root) / ".hidden").write_text("needle\n")
    batches = files.ExcludedNames.batches

    def replaced(self: files.ExcludedNames):
        shutil.rmtree(ws.root + "/src")
        Path(ws.root, "src").write_text("x")
        return batches(self)

    (Path(ws.root) / "src/.hidden").write_text("needle\n")
    monkeypatch.setattr(files.ExcludedNames, "batches", replaced)
    assert ws.grep("needle", "src", glob="*.txt").total_lines == 0
