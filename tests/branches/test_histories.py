"""Random histories of three branches and their parent, against `git merge-file`."""

import random
import subprocess
from pathlib import Path

import pytest

from agentfs import AgentFSError


def edited(draw: random.Random, text: str) -> str:
    lines = text.splitlines(keepends=True)
    for _ in range(draw.randint(1, 2)):
        at = draw.randrange(len(lines) + 1)
        new = [f"new {draw.randrange(10**6)}\n"] if draw.random() < 0.7 else []
        lines[at : at + draw.randint(0, 1)] = new
    return "".join(lines)


def merged_by_git(place: Path, ours: str, base: str, theirs: str) -> str | None:
    """Return the merged text, or None for a conflict."""
    for name, text in (("ours", ours), ("base", base), ("theirs", theirs)):
        (place / name).write_text(text)
    command = ["git", "merge-file", "-p", "ours", "base", "theirs"]
    ran = subprocess.run(command, cwd=place, check=False, capture_output=True, text=True)
    return None if ran.returncode else ran.stdout


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_random_histories_are_merged_as_git_merges_files(ws, tree, tmp_path):
    draw = random.Random(65)
    branches = [ws.branch(f"b{number}") for number in range(3)]
    for number in range(500):
        name = f"f{number}"
        parent = "".join(f"{draw.randrange(1000)}\n" for _ in range(draw.randint(0, 25)))
        ws.host.write(name, parent)
        bases, texts = dict[int, str](), dict[int, str]()
        for who in (draw.randrange(4) for _ in range(draw.randint(3, 7))):
            if who == 3:
                parent = edited(draw, parent)
                ws.host.write_bytes(name, parent.encode())
                continue
            bases.setdefault(who, parent)  # what has not been looked up is the present text
            texts[who] = edited(draw, texts.get(who, parent))
            branches[who].host.write_bytes(name, texts[who].encode())
        for who, text in sorted(texts.items()):
            wanted = merged_by_git(tmp_path, parent, bases[who], text)
            if wanted is None:
                with pytest.raises(AgentFSError) as raised:
                    branches[who].merge(paths=[name])
                conflict = {"path": name, "branch": text, "parent": parent}
                assert conflict.items() <= raised.value.details["conflicts"][0].items()
            else:
                branches[who].merge(paths=[name])
                parent = wanted
            assert (tree / name).read_text() == parent
