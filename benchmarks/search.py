"""Searching contents beside ripgrep, git grep and the Python peers: all checked and interleaved.

    python benchmarks/search.py TREE [--name NAME] [--rounds 5] [--peers DIRECTORY] [--peer-patterns 4]
        [--rg RG] [--only NAME ...] [--out search-speed] [--json FILE]

TREE is a git repository, so that all who know ignore rules read the same. DIRECTORY has one virtual
environment for each peer. A package answers from a process that already runs: the time is that of the call.
Of rg and git grep it is that of the whole process. Peers are asked for the first patterns only, without rg
too. OUT.json gains the tree's figures, and OUT.tables.md shows all. FILE gets the medians, for charts.py.
"""

import argparse
import html
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from ratios import save

# name, pattern, options (i: ignoring case, m: multiline), and whether a match must have a literal
PATTERNS = {
    "linux": [
        ("rare literal", "usb_register_driver", "", True),
        ("frequent literal", "struct", "", True),
        ("literal, regex", r"\w+\s+=\s+kmalloc\(", "", True),
        ("constant", r"[A-Z]{5,}_TIMEOUT\s*=", "", True),
        ("ignoring case", "copyright", "i", True),
        ("alternation", "kmalloc|kzalloc|vmalloc", "", True),
        ("word", r"\bmutex\b", "", True),
        ("definition", r"^static int \w+_probe\(", "", True),
        ("class-heavy", r"[a-z]+_[a-z]+_[a-z]+\(\)", "", True),
        ("multiline", r"kfree\([^)]*\);\n\s*return -ENOMEM", "m", True),
        ("no literal", r"\b[A-Z]{12,}\b", "", False),
    ],
    "django": [
        ("rare literal", "get_template_names", "", True),
        ("frequent literal", "self", "", True),
        ("none found", "zz_no_such_name_zz", "", True),
        ("literal, regex", r"class \w+\(.*Mixin", "", True),
        ("constant", r"[A-Z_]{5,}_TIMEOUT\s*=", "", True),
        ("ignoring case", "queryset", "i", True),
        ("alternation", "ValueError|TypeError|KeyError", "", True),
        ("word", r"\bmodel\b", "", True),
        ("call", r"models\.ForeignKey\(", "", True),
        ("definition", r"^    def test_\w+\(self\):", "", True),
        ("class-heavy", r"[a-z]+_[a-z]+_[a-z]+\(\)", "", True),
        ("multiline", r"try:\n\s+import \w+", "m", True),
        ("no literal", r"\b[A-Z]{12,}\b", "", False),
        ("no literal, digits", r"\d{9,}", "", False),
        ("date", r"\d{4}-\d\d", "", False),
        ("space at the end", r"[ \t]+$", "", False),
        ("dotted call", r"[a-z_]+\.[a-z_]+\.[a-z_]+\(", "", False),
        ("assignment", r"^\s*\w+\s*=\s*\w+$", "", False),
        ("keyword", r"\w+=\w+\(", "", False),
        ("address", r"[\w.]+@[\w.]+\.\w+", "", False),
        ("words", r"\w+ \w+ \w+ \w+ \w+$", "", False),
        ("ignoring case, frequent", "the", "i", True),
        ("alternation, classes", r"(get|set)_\w+\(|del\w+\(", "", True),
        ("word, frequent", r"\bif\b", "", True),
        ("every word", r"\w+", "", False),
    ],
}

OURS = """
from agentfs import Limits, Workspace
ws = Workspace(tree, limits=Limits(timeout=30, file_bytes=2**26, watch_bytes=2**31), watch=WATCH)
for _ in range(9 if WATCH else 0):  # each keeps a part of the tree
    ws.grep("zz_no_such_name_zz", context=0)
def run(task):
    found = ws.grep(task["pattern"], ignore_case="i" in task["options"], multiline="m" in task["options"],
        context=0)
    return dict(lines=found.total_lines, files=found.total_files, cut=not found.exact)
"""
WORKERS = {
    "deepagents": """
from deepagents.backends.filesystem import FilesystemBackend
backend = FilesystemBackend(root_dir=tree, virtual_mode=True)
def run(task):
    if task["plain"] is False: raise ValueError("literals only")
    found = backend.grep(task["pattern"])
    m = found.matches or []
    return dict(lines=len(m), files=len({x["path"] for x in m}), cut=bool(found.truncated or found.error))
""",
    "anthropic": """
import asyncio
from anthropic.lib.tools.agent_toolset import AgentToolContext, beta_grep_tool
tool = beta_grep_tool(AgentToolContext(workdir=tree))
def run(task):
    said = asyncio.run(tool.func(("(?i)" if "i" in task["options"] else "") + task["pattern"]))
    lines = [] if said == "no matches" else said.splitlines()
    files = len({l.split(":")[0] for l in lines})
    return dict(lines=len(lines), files=files, cut="[output truncated" in said)
""",
    "harness": """
import asyncio
from pydantic_ai.workspaces import LocalWorkspaceBackend
from pydantic_ai_harness.filesystem._toolset import FileSystemToolset
tools = FileSystemToolset(allowed_patterns=[], denied_patterns=[], max_read_lines=2000,
    max_list_results=10**6, max_search_results=10**6, max_find_results=10**6)
backend = LocalWorkspaceBackend(tree)
def run(task):
    said = asyncio.run(tools.search_files(("(?i)" if "i" in task["options"] else "") + task["pattern"],
        workspace=backend))
    lines = [l for l in said.splitlines() if not l.startswith("[")]
    files = len({l.split(":")[0] for l in lines})
    return dict(lines=len(lines), files=files, cut=len(lines) != len(said.splitlines()))
""",
}
LOOP = """
import json, os, sys, time
tree = sys.argv[1]
{body}
def memory():
    return {k: int(v.split()[0]) for k, _, v in (l.partition(":") for l in open("/proc/self/status"))
        if k in ("VmHWM", "VmRSS")}
out = os.fdopen(os.dup(1), "w"); os.dup2(2, 1)
for line in sys.stdin:
    before = memory()
    began = time.perf_counter()
    try:
        answer = run(json.loads(line))
        answer.update(ms=(time.perf_counter() - began) * 1000)
        answer.update(before=before["VmRSS"], peak=memory()["VmHWM"])
    except BaseException as error:
        answer = dict(error=repr(error)[:200])
    out.write(json.dumps(answer) + "\\n"); out.flush()
"""
MOST_SECONDS = 30.0


class Worker:
    """A Python package that answers from a running process."""

    def __init__(self, python: str, body: str, tree: str, path: str | None = None) -> None:
        environment = dict(
            os.environ, PYTHONPATH=os.environ.get("PYTHONPATH", "") if "agentfs" in body else ""
        )
        if path is not None:
            environment["PATH"] = path
        self.process = subprocess.Popen(
            [python, "-c", LOOP.replace("{body}", body), tree],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )

    def ask(self, task: dict) -> dict:
        late = threading.Timer(MOST_SECONDS, self.process.kill)
        late.start()
        try:
            self.process.stdin.write(json.dumps(task) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            late.cancel()
        return json.loads(line) if line else {"error": f"no answer in {MOST_SECONDS:g} s"}


class Program:
    """A program that is started for each answer, and prints its lines with a NUL after the path."""

    def __init__(self, command: list[str], tree: str, *, git: bool = False) -> None:
        self.command, self.tree, self.git = command, tree, git

    def ask(self, task: dict) -> dict:
        if self.git and "m" in task["options"]:
            return {"error": "no multiline"}
        more = ["-i"] if "i" in task["options"] else []
        more += ["-U"] if "m" in task["options"] else []
        began = time.perf_counter()
        done = subprocess.run(
            [*self.command, *more, "-e", task["pattern"]], cwd=self.tree, capture_output=True, check=False
        )
        took = (time.perf_counter() - began) * 1000
        if done.returncode not in (0, 1):
            return {"error": done.stderr.decode()[:200]}
        lines = [line for line in done.stdout.split(b"\n") if b"\0" in line]
        return {
            "ms": took,
            "lines": len(lines),
            "files": len({line.split(b"\0")[0] for line in lines}),
            "cut": False,
        }


def path_without_rg() -> str:
    """Make a directory with every program but rg: some peers need others for their own search."""
    directory = tempfile.mkdtemp()
    for program in Path("/usr/bin").iterdir():
        if program.name != "rg":
            (Path(directory) / program.name).symlink_to(program)
    return directory


def contenders(tree: str, rg: str, peers: str | None) -> dict[str, Worker | Program]:
    found: dict[str, Worker | Program] = {
        "agentfs": Worker(sys.executable, OURS.replace("WATCH", "False"), tree),
        "agentfs, watched": Worker(sys.executable, OURS.replace("WATCH", "True"), tree),
    }
    options = ["--no-config", "-n", "-0", "--no-heading", "--color=never"]
    found["rg"] = Program([rg, *options], tree)
    found["rg -j1"] = Program([rg, *options, "-j1"], tree)
    found["git grep"] = Program(["git", "grep", "--untracked", "-I", "-P", "-n", "-z"], tree, git=True)
    bare = path_without_rg()
    with_rg = f"{Path(rg).parent}:/usr/bin:/bin"
    for name in ("deepagents", "anthropic", "harness"):
        python = Path(peers or "/nonexistent") / name / "bin" / "python"
        if python.exists():
            found[name] = Worker(str(python), WORKERS[name], tree, bare)
            found[f"{name} with rg"] = Worker(str(python), WORKERS[name], tree, with_rg)
    return found


def measure(everyone: dict, patterns: list, rounds: int, peer_patterns: int) -> Iterator[dict]:
    """Ask everyone for each pattern, one after the other, and give what each took and found."""
    for number, (name, pattern, options, literal) in enumerate(patterns):
        task = {
            "pattern": pattern,
            "options": options,
            "plain": pattern.replace("_", "").isalnum() and not options,
        }
        row = {"name": name, "pattern": pattern, "options": options, "literal": literal, "who": {}}
        asked = {
            who: one
            for who, one in everyone.items()
            if who.startswith(("agentfs", "rg", "git")) or number < peer_patterns
        }
        for turn in range(rounds + 1):  # the first, unmeasured, is the check of results
            for who, one in list(asked.items()):
                peer = not who.startswith(("agentfs", "rg", "git"))
                if peer and turn > 1:
                    continue
                if peer and turn == 1 and row["who"].get(who, {}).get("ms", [0])[0] > 1000:
                    continue
                answer = one.ask(task)
                if "error" in answer:
                    row["who"][who] = {"error": answer["error"]}
                    del asked[who]
                    continue
                kept = row["who"].setdefault(who, {**answer, "ms": []})
                if turn or peer:
                    kept["ms"].append(round(answer["ms"], 1))
                kept["peak"] = max(kept.get("peak", 0), answer.get("peak", 0))
        judge = row["who"]["rg"]
        row["same"] = {
            who: (each["lines"], each["files"]) == (judge["lines"], judge["files"])
            for who, each in row["who"].items()
            if "error" not in each
        }
        shown = {
            w: round(statistics.median(e["ms"]))
            for w, e in row["who"].items()
            if "error" not in e and e["ms"]
        }
        print(
            name,
            shown,
            "differ:",
            [(w, row["who"][w]["lines"], row["who"][w]["files"]) for w, s in row["same"].items() if not s],
            flush=True,
        )
        yield row


def median(row: dict, who: str) -> float | None:
    times = row["who"].get(who, {}).get("ms")
    return statistics.median(times) if times else None


def ratio(rows: list[dict], one: str, other: str) -> float | None:
    alike = [row for row in rows if row["same"].get(one) and row["same"].get(other)]
    found = [a / b for row in alike if (a := median(row, one)) and (b := median(row, other))]
    return statistics.median(found) if found else None


def table(tree: str, part: dict) -> list[str]:
    rows = part["rows"]
    names = list(dict.fromkeys(who for row in rows for who in row["who"]))
    said = [
        f"## {tree}",
        "",
        f"{part['machine']}; {part['rounds']} rounds, medians in ms. `*`: other totals than rg.",
        "",
    ]
    said += ["| pattern | lines | " + " | ".join(names) + " |", "|---|---|" + "---|" * len(names)]
    for row in rows:
        cells = []
        for who in names:
            value, marks = median(row, who), "" if row["same"].get(who) else " *"
            marks += " cut" if row["who"].get(who, {}).get("cut") else ""
            cells.append("–" if value is None else f"{value:.0f}{marks}")
        # A `|` in a cell that GitHub and the site show alike.
        shown = html.escape(row["pattern"], quote=False).replace("|", "&#124;").replace("\n", "\\n")
        said.append(
            f"| {row['name']}: <code>{shown}</code> | {row['who']['rg']['lines']:,} | "
            + " | ".join(cells)
            + " |"
        )
    said += [
        "",
        "| median ratio over patterns | with a literal | ignoring case | without a literal |",
        "|---|---|---|---|",
    ]
    sets = (
        [r for r in rows if r["literal"] and "i" not in r["options"]],
        [r for r in rows if "i" in r["options"]],
        [r for r in rows if not r["literal"]],
    )
    for one in [name for name in names if name.startswith("agentfs")]:
        for other in [name for name in names if not name.startswith("agentfs")]:
            values = [ratio(each, one, other) for each in sets]
            shown = " | ".join("–" if v is None else f"{v:.2f}" for v in values)
            said.append(f"| {one} / {other} | {shown} |")
    memory = [
        (row["who"]["agentfs"]["peak"] - part["rows"][0]["who"]["agentfs"]["before"]) / 1024
        for row in rows
        if "peak" in row["who"]["agentfs"]
    ]
    if memory:
        said += ["", f"Memory: the peak of the agentfs process is {max(memory):.0f} MiB above its start."]
    return said


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("tree")
    options.add_argument("--name", default="linux", choices=sorted(PATTERNS))
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--peers")
    options.add_argument("--peer-patterns", type=int, default=4)
    options.add_argument("--rg", default="rg")
    options.add_argument("--only", nargs="+")
    options.add_argument("--out", default="search-speed")
    options.add_argument("--json", help="the file for the medians")
    given = options.parse_args()
    tree = os.path.realpath(given.tree)
    everyone = contenders(tree, given.rg, given.peers)
    if given.only:
        everyone = {name: everyone[name] for name in given.only}
    before = os.getloadavg()
    rows: list[dict] = []
    for row in measure(everyone, PATTERNS[given.name], given.rounds, given.peer_patterns):
        rows.append(row)
        write(given, rows, before)


def write(given: argparse.Namespace, rows: list[dict], before: tuple[float, ...]) -> None:
    """Write what there is so far: a long run that is broken off has shown something."""
    loads = f"load {before[0]:.1f} before and {os.getloadavg()[0]:.1f} after"
    machine = f"{os.cpu_count()} cores, Python {sys.version.split()[0]}, {loads}"
    out = Path(f"{given.out}.json")
    parts = json.loads(out.read_text()) if out.exists() else {}
    parts[given.name] = {"machine": machine, "rounds": given.rounds, "rows": rows}
    out.write_text(json.dumps(parts, indent=1) + "\n")
    said = [line for name, part in parts.items() for line in [*table(name, part), ""]]
    Path(f"{given.out}.tables.md").write_text("\n".join(said))
    if given.json:
        save(given.json, given.name, [medians(row) for row in rows])


def medians(row: dict) -> dict:
    """Return one pattern as `charts.py` takes it."""
    times = {who.removeprefix("agentfs, "): median(row, who) for who in row["who"]}
    return {
        "pattern": row["pattern"],
        "label": row["name"],
        "lines": row["who"]["rg"]["lines"],
        "ms": {who: round(ms, 1) for who, ms in times.items() if ms is not None},
    }


if __name__ == "__main__":
    main()
