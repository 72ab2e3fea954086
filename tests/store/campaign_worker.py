"""A worker of the campaign: it edits shared files at random, pulls and pushes, until it is told to end.

Each of its lines has an id and a version, such as `w3-17 v2`. It writes `id version path` to its log when a
push has acknowledged the line.
"""

import os
import random
import sys
import time
from pathlib import Path

from agentfs import AgentFSError
from agentfs.store import StoredTree
from tests.store.conftest import impatient


def main() -> None:
    name, endpoint, bucket, cache, log, stop = sys.argv[1:7]
    run = int.from_bytes(os.urandom(6))  # the id of a process may be given again
    chance = random.Random(f"{name} {run}")
    tree = StoredTree(f"s3://{bucket}", cache, options=impatient(endpoint))
    number = 0
    with open(log, "a", buffering=1) as acknowledged:
        while not os.path.exists(stop):
            pending: dict[str, list[tuple[str, int]]] = {}
            for path in chance.sample([each for each in Path(cache).iterdir() if each.is_file()], 3):
                lines = path.read_text().splitlines(keepends=True)
                own = [at for at, line in enumerate(lines) if line.startswith(f"{name}-")]
                if own and chance.random() < 0.3:
                    at = chance.choice(own)
                    id_, version = lines[at].split()
                    lines[at] = f"{id_} v{int(version[1:]) + 1}\n"
                else:
                    number += 1
                    at = chance.randrange(len(lines) + 1)
                    lines.insert(at, f"{name}-{run}-{number} v1\n")
                id_, version = lines[at].split()
                pending.setdefault(path.name, []).append((id_, int(version[1:])))
                temporary = path.with_name(f".agentfs-{os.urandom(8).hex()}.tmp")
                temporary.write_text("".join(lines))
                temporary.rename(path)
            try:
                if chance.random() < 0.5:
                    resolve(tree, tree.pull().conflicts, pending)
                result = tree.push()
                for path in result.pushed:
                    for id_, version in pending.get(path, ()):
                        acknowledged.write(f"{id_} {version} {path}\n")
                resolve(tree, result.conflicts, pending)
            except AgentFSError as error:
                if error.code not in {"io", "refused", "busy"}:
                    raise
                time.sleep(0.01)
    while True:  # the proxy behaves from now on
        try:
            resolve(tree, tree.pull().conflicts, {})
            if not tree.push().conflicts and not tree.status().to_push:
                return
        except AgentFSError as error:
            sys.stderr.write(f"{name}: {error}\n")
            time.sleep(0.1)


def resolve(tree: StoredTree, conflicts: tuple[str, ...], pending: dict) -> None:
    """Take the text of the store; what was added here was never acknowledged."""
    for path in conflicts:
        pending.pop(path, None)
        kept = Path(tree, ".agentfs/conflicts", path)
        if kept.exists():
            Path(tree, path).write_bytes(kept.read_bytes())


if __name__ == "__main__":
    main()
