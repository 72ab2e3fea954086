"""Listing and globbing beside fd, ripgrep, git and the Python peers: one tree, results checked, interleaved.

    python benchmarks/walk.py TREE [--peers DIRECTORY] [--rounds 9] [--glob "*.py"] [--profile]

TREE must be a git repository (`git init` is enough), so that all who know ignore rules apply them. DIRECTORY
has one virtual environment for each peer: deepagents, anthropic, agno, harness (pydantic-ai-harness); those
that are not there are left out. Every Python package, ours too, answers from a process that is already
running, as in an agent loop; the time is that of the call. For fd, rg and git it is that of the whole
process, which is how they are used.
"""

import argparse
import cProfile
import json
import os
import pstats
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

from agentfs import Limits, Workspace

# Each defines `run(task)`, which returns paths relative to the tree, and says whether the peer has cut them.
WORKERS = {
    "agentfs": """
from agentfs import Limits, Workspace
ws = Workspace(tree, limits=Limits(timeout=30))
def run(task):
    if task == "ls":
        result = ws.ls(depth=0, limit=10**6)
        return [e.path for e in result.entries if not e.is_dir or e.type == "symlink"], False
    return [e.path for e in ws.glob(task, limit=10**6).files], False
""",
    "agentfs, one page": """
from agentfs import Limits, Workspace
ws = Workspace(tree, limits=Limits(timeout=30))
def run(task):
    if task == "ls":
        return [e.path for e in ws.ls(depth=0).entries if not e.is_dir], True
    return [e.path for e in ws.glob(task).files], True
""",
    "deepagents": """
from deepagents.backends.filesystem import FilesystemBackend
backend = FilesystemBackend(root_dir=tree, virtual_mode=True)
def run(task):
    found = backend.glob("**/*" if task == "ls" else task)
    return [m["path"].lstrip("/") for m in found.matches], found.truncated
""",
    "anthropic": """
import asyncio
from anthropic.lib.tools.agent_toolset import AgentToolContext, beta_glob_tool
tool = beta_glob_tool(AgentToolContext(workdir=tree))
def run(task):
    said = asyncio.run(tool.func("**/*" if task == "ls" else f"**/{task}"))
    paths = [os.path.relpath(p, tree) for p in said.split("\\n")]
    return [p for p in paths if not os.path.isdir(os.path.join(tree, p))], True
""",
    "agno": """
from agno.tools.workspace import Workspace
ws = Workspace(tree)
def run(task):
    said = json.loads(ws.list_files(".", None if task == "ls" else task, True, 100))
    return [f["path"] for f in said["files"] if f["type"] == "file"], False
""",
    "harness": """
import asyncio
from pydantic_ai.workspaces import LocalWorkspaceBackend
from pydantic_ai_harness.filesystem._toolset import FileSystemToolset
tools = FileSystemToolset(allowed_patterns=[], denied_patterns=[], max_read_lines=2000,
    max_list_results=10**6, max_search_results=10**6, max_find_results=10**6)
backend = LocalWorkspaceBackend(tree)
def run(task):
    said = asyncio.run(tools.find_files("**/*" if task == "ls" else f"**/{task}", workspace=backend))
    lines = [l for l in said.split("\\n") if not l.startswith("[")]
    return [l for l in lines if not l.endswith("/")], len(lines) != len(said.split("\\n"))
""",
}
LOOP = """
import json, os, sys, time
tree = sys.argv[1]
{body}
out = os.fdopen(os.dup(1), "w"); os.dup2(2, 1)
for line in sys.stdin:
    began = time.perf_counter()
    try:
        paths, cut = run(line.rstrip("\\n"))
        answer = dict(ms=(time.perf_counter() - began) * 1000, paths=paths, cut=cut)
    except Exception as error:
        answer = dict(error=repr(error)[:300])
    out.write(json.dumps(answer) + "\\n"); out.flush()
"""


class Worker:
    """A Python package that answers from a running process."""

    def __init__(self, python: str, body: str, tree: str) -> None:
        code = LOOP.replace("{body}", body)
        self.process = subprocess.Popen(
            [python, "-c", code, tree],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def ask(self, task: str) -> tuple[float, list[str], bool]:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(task + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["ms"], answer["paths"], answer["cut"]


class Program:
    """A program that is started for each answer."""

    def __init__(self, command: list[str], glob: list[str], tree: str) -> None:
        self.command, self.glob, self.tree = command, glob, tree

    def ask(self, task: str) -> tuple[float, list[str], bool]:
        command = [
            *self.command,
            *([] if task == "ls" else [each.replace("GLOB", task) for each in self.glob]),
        ]
        began = time.perf_counter()
        done = subprocess.run(command, cwd=self.tree, capture_output=True, check=True)
        took = (time.perf_counter() - began) * 1000
        return (
            took,
            [os.fsdecode(line).removeprefix("./") for line in done.stdout.split(b"\n") if line],
            False,
        )


def contenders(tree: str, peers: str | None) -> dict[str, Worker | Program]:
    found: dict[str, Worker | Program] = {}
    for name in ("agentfs", "agentfs, one page"):
        found[name] = Worker(sys.executable, WORKERS[name], tree)
    if fd := shutil.which("fdfind") or shutil.which("fd"):
        found["fd -j1"] = Program([fd, "-j1", "-tf", "-tl", "--color=never"], ["-g", "GLOB"], tree)
    if rg := shutil.which("rg"):
        found["rg --files -j1"] = Program([rg, "--files", "-j1"], ["-g", "GLOB"], tree)
    found["git ls-files"] = Program(
        ["git", "-c", "core.quotePath=off", "ls-files", "-co", "--exclude-standard"], ["GLOB"], tree
    )
    for name in ("deepagents", "anthropic", "agno", "harness"):
        python = Path(peers or "/nonexistent") / name / "bin" / "python"
        if python.exists():
            found[name] = Worker(str(python), WORKERS[name], tree)
    return found


def check(task: str, everyone: dict[str, Worker | Program]) -> None:
    """Say where what someone finds differs from what fd finds, hidden names apart, which fd leaves out."""
    judge = next(name for name in ("fd -j1", "git ls-files") if name in everyone)
    wanted = set(everyone[judge].ask(task)[1])
    for name in list(everyone):
        try:
            _, paths, cut = everyone[name].ask(task)
        except RuntimeError as error:
            print(f"  {name}: fails: {error}")
            del everyone[name]
            continue
        visible = {path for path in paths if not path.startswith(".") and "/." not in path}
        missing, more = wanted - visible, visible - wanted
        hidden = len(set(paths)) - len(visible)
        said = f"{len(visible)} files" + (f" and {hidden} hidden" if hidden else "")
        if cut:
            said += ", cut short" + (f", {len(more)} of them not in {judge}" if more else "")
        elif missing or more:
            said += f": {len(missing)} missing, {len(more)} more than {judge}: {sorted(missing | more)[:3]}"
        else:
            said += f", as {judge}"
        print(f"  {name}: {said}")


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("tree")
    options.add_argument("--peers")
    options.add_argument("--rounds", type=int, default=9)
    options.add_argument("--glob", default="*.py")
    options.add_argument("--profile", action="store_true")
    given = options.parse_args()
    tree = os.path.realpath(given.tree)
    if given.profile:
        return profile(tree, given.glob)
    everyone = contenders(tree, given.peers)
    for task in ("ls", given.glob):
        print(f"\n{'all files' if task == 'ls' else task} in {tree}")
        some = dict(everyone)
        check(task, some)
        times: dict[str, list[float]] = {name: [] for name in some}
        for _ in range(given.rounds):
            for name, one in some.items():
                if times[name] and times[name][0] > 3000 and len(times[name]) >= 3:
                    continue
                times[name].append(one.ask(task)[0])
        ours = statistics.median(times["agentfs"])
        print(f"  {'':20} median ms    against agentfs")
        for name, taken in times.items():
            middle = statistics.median(taken)
            spread = f"({len(taken)} rounds, {min(taken):.1f} to {max(taken):.1f})"
            print(f"  {name:20} {middle:9.1f}    {middle / ours:6.2f}   {spread}")
    return None


def profile(tree: str, glob: str) -> None:
    with Workspace(tree, limits=Limits(timeout=30)) as ws:
        for name, call in (
            ("ls(depth=0)", lambda: ws.ls(depth=0)),
            (f"glob({glob!r})", lambda: ws.glob(glob)),
        ):
            call()
            print(f"\n{name}")
            with cProfile.Profile() as profiler:
                call()
            pstats.Stats(profiler).sort_stats("tottime").print_stats(12)


if __name__ == "__main__":
    main()
