"""The scripted transcripts of `benchmarks/transcripts.py`, on the tree that they build."""

import importlib
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture(scope="module")
def mistakes(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        transcripts = importlib.import_module("transcripts")
        patch.setattr(transcripts, "DAMAGED_BLOCKS", 8)
        root = tmp_path_factory.mktemp("transcripts")
        transcripts.build(root)
        return transcripts.run(root)["mistakes"]


@pytest.mark.full
@pytest.mark.parametrize("kind", ["damaged edit", "path", "name", "parameter", "pattern"])
def test_each_complete_suggestion_works_when_it_is_followed(mistakes, kind):
    assert mistakes[kind]["made"] >= 8
    assert mistakes[kind]["works"] == mistakes[kind]["suggested"]


MISSED = {
    "path": 1,
    "pattern": 1,
}  # an offset past the end and an unclosed brace are explained, without a call


@pytest.mark.parametrize("kind", ["damaged edit", "path", "name", "parameter", "pattern"])
def test_each_mistake_reaches_its_goal(mistakes, kind):
    assert mistakes[kind]["reached"] >= mistakes[kind]["made"] - MISSED.get(kind, 0)
