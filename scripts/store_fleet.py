"""Simulate many workers on trees in S3: requests, conflicts and cost in an hour.

Each worker pulls its tree, edits files for some minutes, and pushes them. `pull_requests` and `push_requests`
are those that `tests/store/test_requests.py` counts. An edit changes one line. It conflicts if another worker
has pushed the same line or one beside it since this worker's pull; other edits of the file are merged.
Prices are those of S3 Standard in us-east-1, without storage; transfer within the region is free.

Usage: python scripts/store_fleet.py [--workers N] [--objects N] [--trees N] [--hot SHARE] …
"""

import argparse
import heapq
import random
from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Iterable

PAGE = 1000  # keys in one answer
DOLLARS = {"LIST": 0.005 / 1000, "PUT": 0.005 / 1000, "GET": 0.0004 / 1000}


def pull_requests(objects: int, changed: int) -> Counter[str]:
    """Return the requests of a pull from a tree with so many objects, `TREE` included."""
    return Counter(LIST=max(-(-objects // PAGE), 1), GET=changed)


def push_requests(changed: int, merged: int) -> Counter[str]:
    """Return the requests of a push. A PUT that fails its condition is followed by a GET and another PUT."""
    return Counter(GET=1 + merged, PUT=changed + merged)


def cost(requests: Counter[str]) -> float:
    """Return the dollars of requests."""
    return sum(DOLLARS[kind] * count for kind, count in requests.items())


class Tree:
    """The pushes to one tree: their times, workers, objects and lines."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.pushes: list[tuple[int, int]] = []  # object and worker
        self.lines: dict[int, list[tuple[float, int]]] = defaultdict(list)

    def changed_since(self, time: float, worker: int) -> int:
        """Return the number of objects that others were the last to push, after a time."""
        last = dict(self.pushes[bisect(self.times, time) :])
        return len(last) - [*last.values()].count(worker)

    def push(self, time: float, pulled: float, worker: int, edits: Iterable[tuple[int, int]]) -> Counter[str]:
        """Push edits, and return how many were pushed, merged and in conflict."""
        outcome: Counter[str] = Counter()
        for path, line in edits:
            others = [each for when, each in self.lines[path] if when > pulled]
            if any(abs(line - each) <= 1 for each in others):
                outcome["conflicts"] += 1
                continue
            outcome["pushed"] += 1
            outcome["merged"] += bool(others)
            self.lines[path].append((time, line))
            self.times.append(time)
            self.pushes.append((path, worker))
        return outcome


def simulate(options: argparse.Namespace) -> tuple[Counter[str], Counter[str]]:
    """Return the requests and the outcomes of all workers."""
    chance, size = random.Random(options.seed), options.objects // options.trees  # noqa: S311 - no secret
    trees = [Tree() for _ in range(options.trees)]
    requests: Counter[str] = Counter()
    outcomes: Counter[str] = Counter()
    # A worker pulls, pushes after `session` minutes on average, and begins again.
    turns = [(chance.uniform(0, options.session), worker, -1.0) for worker in range(options.workers)]
    heapq.heapify(turns)
    while turns:
        time, worker, pulled = heapq.heappop(turns)
        tree = trees[worker % options.trees]
        if pulled >= 0:
            edits: dict[int, int] = {}
            while len(edits) < min(options.edits, size):
                hot = chance.random() < options.hot
                path = chance.randrange(max(size // 1000, 1) if hot else size)
                edits[path] = chance.randrange(options.lines)
            outcome = tree.push(time, pulled, worker, edits.items())
            outcomes += outcome
            merged = outcome["merged"] + outcome["conflicts"]  # a conflict is found in the same way
            requests += push_requests(outcome["pushed"], merged)
        if time > options.hours * 60:
            continue
        requests += pull_requests(size + 1, tree.changed_since(pulled, worker))
        outcomes["pulls"] += 1
        heapq.heappush(turns, (time + chance.expovariate(1 / options.session), worker, time))
    return requests, outcomes


def main() -> None:
    """Simulate, and print the totals."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=1000)
    parser.add_argument("--objects", type=int, default=10_000_000)
    parser.add_argument("--trees", type=int, default=1000)
    parser.add_argument("--session", type=float, default=5.0, help="minutes from pull to push, on average")
    parser.add_argument("--edits", type=int, default=10, help="files in a session")
    parser.add_argument("--lines", type=int, default=100, help="of a file")
    parser.add_argument(
        "--hot", type=float, default=0.2, help="share of the edits in a thousandth of the files"
    )
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    requests, outcomes = simulate(options)
    size = options.objects // options.trees
    print(
        f"{options.workers:,} workers, {options.trees:,} trees of {size:,} objects, {options.hours:g} hours"
    )
    print(
        f"{outcomes['pulls']:,} pulls; edits: {outcomes['pushed']:,} pushed, of which {outcomes['merged']:,}"
    )
    print(f"were merged, and {outcomes['conflicts']:,} conflicts")
    print("requests: " + ", ".join(f"{requests[kind]:,} {kind}" for kind in DOLLARS))
    print(f"cost: ${cost(requests):,.2f}; first pull of one tree: ${cost(pull_requests(size + 1, size)):.4f}")


if __name__ == "__main__":
    main()
