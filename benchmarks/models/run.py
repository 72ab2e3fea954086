"""Thirty tasks with five tool sets in one loop: what a model solves, and what it costs and damages.

    python benchmarks/models/run.py MODEL [--set NAME …] [--kind KIND …] [--rounds 3] [--out FILE]

MODEL is the name of a model of the provider whose key is set (see models.py), or `scripted`, which tests the
benchmark and measures nothing. Commands run under bubblewrap, without a network. Each outcome is a line of
JSON in FILE; the table has 95 % intervals.
"""

import argparse
import json
import math
import random
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import models
import tool_sets
from tasks import KINDS, Task, tasks

_MOST_TURNS = 40
_PROMPT = (
    "You work on the files of one directory with the given tools. Paths are relative to it. "
    "When the task is done, answer with a short text and no call."
)
_MEASURES = ("failed_edits", "turns", "tokens", "damaged")


@dataclass(frozen=True)
class Outcome:
    tools: str
    task: str
    kind: str
    solved: bool
    failed_edits: int | None  # None if nobody can tell which calls are edits
    turns: int
    tokens: int
    damaged: int


def attempt(task: Task, name: str, model: models.Model | None, *, sandboxed: bool) -> Outcome:
    """Let a model do a task with one of the tool sets. Without a model the scripted one does it."""
    with tempfile.TemporaryDirectory(prefix="agentfs-models-") as directory:
        tree = Path(directory).resolve()
        for path, data in task.files.items():
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            (tree / path).write_bytes(data)
        with tool_sets.SETS[name](tree, sandboxed=sandboxed) as tools:
            answer = model or models.scripted(task, tools)
            turns, tokens, failed, last = _loop(task, tools, answer, tree, sandboxed=sandboxed)
        after = {
            path.relative_to(tree).as_posix(): path.read_bytes()
            for path in tree.rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }
        passed = task.kind == "fix" and tool_sets.run_tests(tree, sandboxed=sandboxed)[1]
        solved = task.solved(after, last, tests_pass=passed)
        return Outcome(
            name,
            task.name,
            task.kind,
            solved,
            failed if tools.is_edit else None,
            turns,
            tokens,
            task.damaged(after),
        )


def _loop(
    task: Task, tools: tool_sets.Tools, model: models.Model, tree: Path, *, sandboxed: bool
) -> tuple[int, int, int, str]:
    """Return the turns, the tokens, the failed edits and the last text."""
    messages: list[models.Message] = [
        {"role": "system", "content": f"{_PROMPT}\n{tools.note}".strip()},
        {"role": "user", "content": task.prompt},
    ]
    schemas = [*tools.schemas, tool_sets.TESTS]
    tokens = failed = 0
    for turn in range(1, _MOST_TURNS + 1):
        reply, used = model(messages, schemas)
        tokens += used
        messages.append(reply)
        if not reply.get("tool_calls"):
            return turn, tokens, failed, reply.get("content") or ""
        for call in reply["tool_calls"]:
            name = call["function"]["name"]
            text, failure = _answer(name, call["function"]["arguments"], tools, tree, sandboxed=sandboxed)
            failed += failure
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})
    return _MOST_TURNS, tokens, failed, ""


def _answer(
    name: str, given: str, tools: tool_sets.Tools, tree: Path, *, sandboxed: bool
) -> tuple[str, bool]:
    """Make a call. Return its answer, and True if it is an edit that failed.

    A mistake of the model is an answer to it, whatever the tool set raises.
    """
    if name == "run_tests":
        return tool_sets.run_tests(tree, sandboxed=sandboxed)[0], False
    arguments: dict[str, Any] = {}
    try:
        arguments = json.loads(given or "{}")
        text, succeeded = tools.call(name, arguments)
    except Exception as error:  # noqa: BLE001 - as the docstring says
        text, succeeded = f"{type(error).__name__}: {error}", False
    return text, not succeeded and tools.is_edit is not None and tools.is_edit(name, arguments)


def wilson(solved: int, total: int) -> tuple[float, float]:
    """Return the 95 % interval of a share."""
    z = 1.96
    share, over = solved / total, 1 + z * z / total
    middle = share + z * z / (2 * total)
    width = z * math.sqrt(share * (1 - share) / total + z * z / (4 * total * total))
    return (middle - width) / over, (middle + width) / over


def bootstrap(groups: Sequence[Sequence[float]], draws: int = 2000) -> tuple[float, float]:
    """Return the 95 % interval of a mean; whole tasks are drawn, because rounds of one task are alike."""
    draw = random.Random(0)
    drawn = (draw.choices(groups, k=len(groups)) for _ in range(draws))
    means = sorted(statistics.fmean(each for group in each_draw for each in group) for each_draw in drawn)
    return means[int(draws * 0.025)], means[int(draws * 0.975)]


def table(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield the lines of a table with a row for each tool set."""
    yield "| tools | solved | failed edits a task | turns a task | tokens a task | damaged files a task |"
    yield "|---|---|---|---|---|---|"
    for name in dict.fromkeys(each.tools for each in outcomes):
        own = [each for each in outcomes if each.tools == name]
        low, high = wilson(sum(each.solved for each in own), len(own))
        cells = [name, f"{sum(each.solved for each in own)}/{len(own)} ({low:.0%} to {high:.0%})"]
        for measure in _MEASURES:
            groups: dict[str, list[float]] = {}
            for each in own:
                if getattr(each, measure) is not None:
                    groups.setdefault(each.task, []).append(getattr(each, measure))
            values = [value for group in groups.values() for value in group]
            if not values:
                cells.append("not known")
                continue
            low, high = bootstrap([*groups.values()])
            cells.append(f"{statistics.fmean(values):,.1f} ({low:,.1f} to {high:,.1f})")
        yield f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("--set", action="append", choices=tool_sets.SETS, help="by default all five")
    parser.add_argument("--kind", action="append", choices=KINDS, help="by default all five")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--base-url", help="the address of the provider's API")
    parser.add_argument("--out", help="append each outcome to this file, as a line of JSON")
    parser.add_argument("--no-sandbox", action="store_true", help="run commands of the model on this machine")
    options = parser.parse_args()
    model = None if options.model == "scripted" else models.chat(options.model, options.base_url)
    chosen = [task for task in tasks() if task.kind in (options.kind or KINDS)]
    outcomes = []
    for name in options.set or tool_sets.SETS:
        for task in [task for task in chosen for _ in range(options.rounds)]:
            outcomes.append(attempt(task, name, model, sandboxed=not options.no_sandbox))
            print(
                f"{name}: {task.name}: {'solved' if outcomes[-1].solved else 'not solved'}", file=sys.stderr
            )
            if options.out:
                with open(options.out, "a", encoding="utf-8") as file:
                    file.write(json.dumps({"model": options.model, **asdict(outcomes[-1])}) + "\n")
    if model is None:
        print("The model was a script: these are no measurements.\n")
    print("\n".join(table(outcomes)))


if __name__ == "__main__":
    main()
