"""Calls as a model makes them, right and wrong; each suggestion of an answer is followed to the letter.

    python benchmarks/suggestions.py TREE... [--calls 100] [--show]

A suggestion works if the suggested call succeeds. `--show` prints those that fail, and the answers of over
2,000 tokens. To run an older version, put its directory first in PYTHONPATH.
"""

import argparse
import random
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))  # behind the version that is measured

from agentfs import Policy, Workspace
from agentfs.text.display import estimate_tokens
from tests.test_suggestions import calls_in, changes_in

Call = tuple[str, dict[str, Any]]


class Texts:
    """The text files of a tree, with random pieces of them."""

    def __init__(self, top: Path, chance: random.Random) -> None:
        found = [each for each in sorted(top.rglob("*")) if each.is_file() and each.stat().st_size < 200_000]
        texts = {str(each.relative_to(top)): each.read_bytes() for each in found}
        self._texts = {
            path: data.decode()
            for path, data in texts.items()
            if data.isascii() and len(data.splitlines()) > 5
        }
        self._chance = chance

    def path(self) -> str:
        return self._chance.choice(sorted(self._texts))

    def lines(self, path: str, count: int = 1) -> str:
        """Return some lines of a file that are not empty."""
        lines = self._texts[path].splitlines()
        starts = [at for at, line in enumerate(lines) if len(line.split()) > 1] or [0]
        at = self._chance.choice(starts)
        return "\n".join(lines[at : at + count])

    def word(self, path: str) -> str:
        return self._chance.choice(re.findall(r"[A-Za-z_]{5,}", self._texts[path]) or ["nothing"])


def misspelled(text: str) -> str:
    """Return a text with two letters of its last name swapped."""
    above, slash, name = text.rpartition("/")
    return f"{above}{slash}{name[:1]}{name[2:3]}{name[1:2]}{name[3:]}"


# Each makes the call of a model that is nearly right.
KINDS: list[Callable[[Texts, str], Call]] = [
    lambda _, path: ("read", {"path": path}),
    lambda _, path: ("read", {"path": misspelled(path)}),
    lambda _, path: ("read", {"path": path.rpartition("/")[2]}),
    lambda _, path: ("read", {"path": path.rpartition("/")[0] or "."}),
    lambda _, path: ("read", {"path": path, "offset": 100_000}),
    lambda texts, path: ("grep", {"pattern": texts.word(path)}),
    lambda texts, path: ("grep", {"pattern": texts.word(path).swapcase(), "path": path}),
    lambda texts, path: ("grep", {"pattern": re.escape(texts.lines(path)), "glob": "*.zig"}),
    lambda texts, path: ("grep", {"pattern": texts.word(path) + "(", "path": path}),
    lambda texts, path: ("grep", {"pattern": texts.word(path) + "\\(.*\\n", "path": path}),
    lambda texts, path: ("grep", {"pattern": texts.word(path), "path": misspelled(path)}),
    lambda texts, path: ("grep", {"pattern": texts.word(path), "type": "nothing"}),
    lambda texts, path: ("grep", {"pattern": f"{texts.word(path)}\\|{texts.word(path)}", "path": path}),
    lambda texts, path: ("grep", {"query": texts.word(path), "output_mode": "content", "context": 3}),
    lambda _, path: ("glob", {"pattern": f"src/**/{path.rpartition('/')[2]}"}),
    lambda *_: ("glob", {"pattern": "**/*"}),
    lambda _, path: ("ls", {"path": misspelled(path.rpartition("/")[0] or "libs")}),
    lambda *_: ("ls", {"path": ".", "depth": 0}),
    lambda texts, path: ("edit", change(path, texts.lines(path, 2), lambda old: old.replace(" ", "  ", 1))),
    lambda texts, path: ("edit", change(path, texts.lines(path, 3), lambda old: old.replace("    ", "\t"))),
    lambda texts, path: ("edit", change(path, texts.lines(path, 2), misspelled)),
    lambda texts, path: ("edit", change(path, texts.word(path), str)),
    lambda texts, path: ("str_replace", {"path": path, "old_str": texts.lines(path), "new_str": "x"}),
    lambda _, path: ("write", {"path": path, "content": "new\n"}),
    lambda _, path: ("append", {"path": path.rpartition("/")[0] or ".", "content": "x\n"}),
    lambda _, path: ("edit_lines", {"path": path, "changes": [{"line_id": "abcdef", "new_content": "x"}]}),
    lambda _, path: ("run", {"command": f"cat '{path}'"}),
    lambda _, path: ("bash", {"command": f"wc -l '{path}'; echo x > made", "timeout": 60_000}),
    lambda *_: ("run", {"command": "seq 30000"}),
    lambda *_: ("changes", {"since": "nothing"}),
]  # fmt: skip


def change(path: str, old: str, mistake: Callable[[str], str]) -> dict[str, Any]:
    return {"path": path, "old_string": mistake(old), "new_string": "changed"}


def suggestions(name: str, arguments: dict[str, Any], result: Any, tools: Any) -> Iterator[Call]:
    """Yield the calls that an answer suggests, whole ones and those with other parameters."""
    if result.next:
        yield result.next["name"], result.next["arguments"]
    for called, given in calls_in(result.content):
        if called in tools:  # other calls are those of a file that the answer shows
            yield called, given or {}
    for passed, left in changes_in(result.content):
        yield name, {key: value for key, value in arguments.items() if key not in left} | passed


def measure(tree: Path, number: int, tally: Counter[str], *, show: bool) -> None:
    chance = random.Random(f"{tree.name}{number}")
    with tempfile.TemporaryDirectory() as directory:
        top = Path(shutil.copytree(tree, Path(directory) / "tree", symlinks=True))
        texts = Texts(top, chance)
        with Workspace(top, policy=Policy(run="staged")) as ws:
            tools = ws.tools("all")
            for at in range(number):
                name, arguments = KINDS[at % len(KINDS)](texts, texts.path())
                result = tools.call(name, arguments)
                tally["calls"] += 1
                size = estimate_tokens(result.content)
                tally["answers over 2,000 tokens"] += size > 2_000
                if show and size > 2_000:
                    print(f"{size} tokens: {name}({arguments})")
                found = [*suggestions(name, arguments, result, tools.names)]
                for called, given in [each for n, each in enumerate(found) if each not in found[:n]]:
                    followed = tools.call(called, given)
                    tally["suggestions"] += 1
                    tally["that work"] += followed.success
                    if show and not followed.success:
                        print(f"{name}({arguments})\n{result.content[-300:]}")
                        print(f"  {called}({given})\n  {followed.content[:300]}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trees", nargs="+", type=Path)
    parser.add_argument("--calls", type=int, default=100)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    tally = Counter[str]()
    for tree in options.trees:
        measure(tree, options.calls, tally, show=options.show)
    print(", ".join(f"{count} {what}" for what, count in tally.items()))


if __name__ == "__main__":
    main()
