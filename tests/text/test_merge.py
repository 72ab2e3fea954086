"""The three-way merge, judged by `git merge-file`."""

import random
import subprocess
import time

import pytest

from agentfs.text.merge import merge_texts
from tests.conftest import needs


@pytest.mark.parametrize(("base", "ours", "theirs", "merged"), [
    ("a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\n", "A\nb\nC\n"),
    ("a\nb\nc\n", "b\nc\n", "a\nb\nc\nd\n", "b\nc\nd\n"),
    ("a\nb\nc\n", "a\nx\nc\n", "a\nx\nc\n", "a\nx\nc\n"),
    ("", "", "x\n", "x\n"),
    ("a\nb\nc", "a\nb\nc\n", "A\nb\nc", "A\nb\nc\n"),
    ("a\r\nb\r\nc\r\n", "A\r\nb\r\nc\r\n", "a\r\nb\r\nC\r\n", "A\r\nb\r\nC\r\n"),
    ("a\x0cb\nm\nc\n", "a\x0cb\nm\nC\n", "A\x0cb\nm\nc\n", "A\x0cb\nm\nC\n"),
])  # fmt: skip
def test_changes_of_different_lines_are_both_made(base, ours, theirs, merged):
    assert merge_texts(base, ours, theirs).text == merged
    assert merge_texts(base, theirs, ours).text == merged


@pytest.mark.parametrize(("base", "ours", "theirs", "lines"), [
    ("a\nb\nc\nd\n", "a\nX\nc\nd\n", "a\nY\nc\nd\n", ((2, 2),)),
    ("a\nb\nc\nd\n", "a\nX\nc\nd\n", "a\nb\nY\nd\n", ((2, 3),)),
    ("a\nb\nc\nd\n", "a\nX\nc\nd\n", "a\nc\nd\n", ((1, 1),)),
    ("b\nc\nd\n", "X\nc\nd\n", "c\nd\n", ((1, 1),)),
    ("a\nb\nc\nd\ne\n", "A\nb\nc\nd\nE\n", "1\nb\nc\nd\n2\n3\n", ((1, 1), (5, 6))),
])  # fmt: skip
def test_changes_of_the_same_or_neighbouring_lines_conflict(base, ours, theirs, lines):
    assert merge_texts(base, ours, theirs) == (None, lines)


SHAPES = {  # most lines, the share of repeated lines, different repeated lines
    "distinct": (40, 0.1, 3),
    "repeated": (40, 1, 5),
    "short": (8, 0.8, 2),
    "long": (600, 0.5, 20),
}


def random_triple(seed, shape):
    """A text and two edited versions of it."""
    draw = random.Random(seed)
    most, share, kinds = SHAPES[shape]
    common = ["", "    }", "    return x", *(f"    word {number}" for number in range(kinds - 3))][:kinds]
    base = [
        draw.choice(common) if draw.random() < share else f"line {draw.randrange(10**6)}"
        for _ in range(draw.randrange(most))
    ]

    def edited(lines):
        lines = list(lines)
        for _ in range(draw.choice([1, 1, 2, 3, 5])):
            at = draw.randrange(len(lines) + 1)
            match draw.randrange(5):
                case 0:
                    lines[at:at] = [f"new {draw.randrange(1000)}" for _ in range(draw.randrange(1, 4))]
                case 1:
                    del lines[at : at + draw.randrange(1, 4)]
                case 2 if at < len(lines):
                    lines[at] += "x"
                case 3:
                    lines[at:at] = [draw.choice(common)]
                case 4:
                    start = draw.randrange(len(lines) + 1)
                    lines[at:at] = lines[start : start + draw.randrange(5)]
        return lines

    def text(lines):
        joined = "".join(f"{line}\n" for line in lines)
        return joined[:-1] if draw.random() < 0.1 else joined

    ours = edited(base)
    theirs = edited(ours if draw.random() < 0.1 else base)
    return text(base), text(ours), text(theirs)


def git_merged(directory, base, ours, theirs):
    for name, text in (("base", base), ("ours", ours), ("theirs", theirs)):
        (directory / name).write_text(text)
    command = ["git", "merge-file", "-p", "ours", "base", "theirs"]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


@needs("git")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("count", [60, pytest.param(20_000, marks=pytest.mark.long)])
def test_random_triples_are_merged_as_git_does(tmp_path, shape, count):
    triples = (random_triple(seed, shape) for seed in range(count))
    assert [each for each in triples if merge_texts(*each).text != git_merged(tmp_path, *each)] == []


@pytest.mark.full
def test_the_work_is_bounded():
    base = "".join(f"{number % 7}\n" for number in range(100_000))
    ours, theirs = base.replace("3\n", "x\n"), base.replace("5\n", "y\n")
    draw = random.Random(1)
    others = ["".join(f"{draw.randrange(50)}\n" for _ in range(100_000)) for _ in range(2)]
    began = time.monotonic()
    assert merge_texts(base, ours, theirs).text == ours.replace("5\n", "y\n")
    assert merge_texts(base, *others).text is None
    assert merge_texts("\n" * 500_000, "\n" * 500_001 + "x", "y" + "\n" * 500_000) == (None, ((1, 500_001),))
    assert time.monotonic() - began < 30
