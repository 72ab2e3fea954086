"""Three agents at once, each in a branch of one tree, and the merge of their work.

Each agent is a script here. The first two change other lines of one file, and the third changes a line that
the first has changed too.
"""

import tempfile
from concurrent.futures import ThreadPoolExecutor

from agentfs import Policy, Workspace
from agentfs.errors import ConflictError

TEXT = "name = 'demo'\n\nversion = 1\n\ndebug = True\n"
AGENTS = {
    "version": "sed -i 's/version = 1/version = 2/' settings.py",
    "debug": "sed -i 's/debug = True/debug = False/' settings.py; echo off > debug.txt",
    "other": "sed -i 's/version = 1/version = 3/' settings.py",
}


def main() -> None:
    """Run the agents, merge what fits, and name what does not."""
    directory = tempfile.mkdtemp()
    with Workspace(directory, policy=Policy(run="staged")) as ws:
        ws.write("settings.py", TEXT)
        branches = {name: ws.branch(name) for name in AGENTS}

        def work(name: str) -> None:
            branches[name].run(AGENTS[name])

        with ThreadPoolExecutor() as pool:
            list(pool.map(work, AGENTS))
        for name, branch in branches.items():
            try:
                print(f"{name}: {[file.path for file in branch.merge().files]}")
            except ConflictError as conflict:
                print(f"{name}: {conflict}")
            branch.discard()
        print(ws.read("settings.py").content)


if __name__ == "__main__":
    main()
