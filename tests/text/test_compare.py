"""The comparison of texts by lines, judged by `git diff`."""

import random
import re
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentfs.text import compare
from agentfs.text.compare import changed_lines
from tests.conftest import needs

texts = st.lists(st.sampled_from("abcde"), max_size=20)


def git_changes(directory, pairs):
    """The changed ranges of each pair as the hunks of one `git diff` name them."""
    for name, texts in zip(("old", "new"), zip(*pairs, strict=True), strict=True):
        (directory / name).mkdir()
        for number, lines in enumerate(texts):
            (directory / name / f"{number}").write_text("".join(f"{line}\n" for line in lines))
    command = ["git", "diff", "--no-index", "-U0", "--no-indent-heuristic", "old", "new"]
    shown = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False).stdout
    diffs = re.split(r"^diff --git a/old/(\d+) .*\n", shown, flags=re.MULTILINE)[1:]
    by_number = dict(zip(map(int, diffs[::2]), diffs[1::2], strict=True))
    return [hunks(by_number.get(number, "")) for number in range(len(pairs))]


def hunks(shown):
    found = []
    for match in re.finditer(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", shown, re.MULTILINE):
        old_start, old_count, new_start, new_count = (
            1 if part is None else int(part) for part in match.groups()
        )
        # The range without lines has the number of the line before it.
        old_start, new_start = old_start - (old_count > 0), new_start - (new_count > 0)
        found.append((old_start, old_start + old_count, new_start, new_start + new_count))
    return found


def random_pair(seed):
    draw = random.Random(seed)
    words = draw.choice([2, 3, 5, 10, 1000])
    old = [str(draw.randrange(words)) for _ in range(draw.randrange(draw.choice([8, 40, 400])))]
    new = list(old)
    for _ in range(draw.choice([1, 2, 5, 12, 40])):
        at = draw.randrange(len(new) + 1)
        match draw.randrange(4):
            case 0:
                new[at:at] = [str(draw.randrange(words)) for _ in range(draw.randrange(1, 4))]
            case 1:
                del new[at : at + draw.randrange(1, 10)]
            case 2:
                new[at : at + 1] = [f"new {draw.randrange(99)}"]
            case 3:
                new[at:at] = new[at // 2 : at // 2 + draw.randrange(20)]
    return old, new


@needs("git")
@pytest.mark.parametrize("count", [200, pytest.param(20_000, marks=pytest.mark.long)])
def test_lines_are_paired_as_git_does(tmp_path, count):
    """Git does not compare a line with many copies between lines without any, even if it could be kept."""
    pairs = [random_pair(seed) for seed in range(count)]
    judged = zip(pairs, git_changes(tmp_path, pairs), strict=True)
    different = [(pair, judgment) for pair, judgment in judged if changed_lines(*pair) != judgment]
    assert len(different) <= count // 1000
    for (old, new), judgment in different:
        kept = [
            len(old) - sum(end - start for start, end, _, _ in changes)
            for changes in (changed_lines(old, new), judgment)
        ]
        assert kept[0] >= kept[1], "git finds more equal lines"


@given(texts, texts, st.sampled_from([0, 1, 10, 100, 10_000]), st.sampled_from([1, 3, 256]))
def test_the_changes_make_the_new_text_with_any_bound(old, new, steps, edits):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(compare, "_MAX_STEPS", steps)
        patched.setattr(compare, "_MAX_EDITS", edits)
        changes = changed_lines(old, new)
    made, position = [], 0
    for old_start, old_end, new_start, new_end in changes:
        assert position <= old_start
        assert (old_start, new_start) != (old_end, new_end)
        made += old[position:old_start]
        assert len(made) == new_start
        made += new[new_start:new_end]
        position = old_end
    assert made + old[position:] == new
