"""ripgrep's arguments: what is taken, what is refused, and a differential against ripgrep itself."""

import base64
import json
import os
import random
import shlex
import shutil
import subprocess
from collections import Counter

import pytest

from agentfs import AgentFSError, Limits, Workspace
from agentfs.dialects.rg_args import ALLOWED, grep_arguments
from tests.conftest import program

USUAL = {
    "ignore_case": False, "smart_case": False, "glob": None, "type": None, "hidden": False, "context": 0,
}  # fmt: skip


@pytest.mark.parametrize(("rg_args", "meant"), [
    (None, {}),
    ("", {}),
    ([], {}),
    ("-i", {"ignore_case": True}),
    ("--ignore-case", {"ignore_case": True}),
    ("-S", {"smart_case": True}),
    ("-i -s", {}),
    ("-s --smart-case", {"smart_case": True}),
    ("-F", {"fixed_strings": True}),
    ("--fixed-strings -w", {"fixed_strings": True, "word": True}),
    ("--word-regexp", {"word": True}),
    ("-U", {"multiline": True, "dot_all": False}),
    ("-A3", {"after": 3}),
    ("-A 3 -A 4", {"after": 4}),
    ("-A=3", {"after": 3}),
    ("--after-context=3", {"after": 3}),
    ("-B 2 --context 1", {"before": 2, "context": 1}),
    ("-g '*.py' --glob=!test_*", {"glob": ["*.py", "!test_*"]}),
    ("-g '!test_*' -g '*.py' -g '!a'", {"glob": ["!test_*", "*.py", "!a"]}),
    ("-g 'two words'", {"glob": ["two words"]}),
    ("-tpy --type js", {"type": ["py", "js"]}),
    ("-t py -g 'src/**'", {"glob": ["src/**"]}),
    ("-t py -g '!src'", {"type": ["py"], "glob": ["!src"]}),
    ("-m 5", {"max_count": 5}),
    ("-L -. --no-ignore", {"follow_symlinks": True, "hidden": True, "include_ignored": True}),
    ("--follow --hidden", {"follow_symlinks": True, "hidden": True}),
    ("--max-filesize 1M", {"max_filesize": "1M"}),
    ("-E latin1", {"encoding": "latin1"}),
    ("-Eauto", {"encoding": None}),
    ("--sort path", {"sort": "path"}),
    ("--sort=modified", {"sort": "oldest"}),
    ("-iwA3", {"ignore_case": True, "word": True, "after": 3}),
    (["-i", "-A", "3"], {"ignore_case": True, "after": 3}),
    (["-A 3", "--glob *.py"], {"after": 3, "glob": ["*.py"]}),
    (["-g", "a b*"], {"glob": ["a b*"]}),
])  # fmt: skip
def test_arguments_are_kept_in_meaning(rg_args, meant):
    assert grep_arguments(rg_args) == {**USUAL, **meant}


@pytest.mark.parametrize(("rg_args", "named"), [
    ("--pre cat", "--pre"),
    (["--pre=cat"], "--pre"),
    ("--pre-glob '*'", "--pre-glob"),
    ("-z", "-z"),
    ("--search-zip", "--search-zip"),
    ("-e other", "-e"),
    ("-f patterns.txt", "-f"),
    ("--file=patterns.txt", "--file"),
    ("--json", "--json"),
    ("-l", "-l"),
    ("-v", "-v"),
    ("-P", "-P"),
    ("-uuu", "-u"),
    ("-il", "-l"),
    ("-r x", "-r"),
    ("--hostname-bin=x", "--hostname-bin"),
    ("--ignore-file=x", "--ignore-file"),
    ("--no-config", "--no-config"),
    ("--no-ignore-vcs", "--no-ignore-vcs"),
    ("--follo", "--follo"),
    ("-t", "-t"),
    ("--sort", "--sort"),
    ("--hidden=yes", "--hidden"),
    ("--sort accessed", "--sort"),
    ("-A x", "-A"),
    ("-A -1", "-A"),
    ("-m 0", "-m"),
    ("-E none", "-E"),
    ("-- src", "--"),
    ("src", "src"),
    ("-", "-"),
    ("'unclosed", "closing quotation"),
])  # fmt: skip
def test_all_else_is_refused_by_name(rg_args, named):
    with pytest.raises(AgentFSError) as caught:
        grep_arguments(rg_args)
    assert caught.value.code == "invalid_argument"
    assert named.lower() in caught.value.message.lower()
    assert ALLOWED in caught.value.hint


def test_refused_arguments_run_nothing(tmp_path):
    """Of the real program each of these runs a command or reads what lies outside; here nothing happens."""
    (tmp_path / "root").mkdir()
    (tmp_path / "root/a.txt").write_text("needle\n")
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/owned\ncat\n")
    program.chmod(0o755)
    (tmp_path / "secret").write_text("needle\n")
    with Workspace(tmp_path / "root") as ws:
        tools = ws.tools(dialect="dominds")
        for attack in (
            [f"--pre={program}"], ["--pre", str(program)], ["-f", "../secret"], ["--ignore-file=../secret"],
            [f"--file={tmp_path}/secret"], ["-e", "needle", "../secret"], ["--", "../secret"],
        ):  # fmt: skip
            arguments = {"pattern": "needle", "rg_args": attack}
            assert tools.call("ripgrep_search", arguments).error["code"] == "invalid_argument"
    assert not (tmp_path / "owned").exists()


# What real programs are asked, one or several at a time; each has an effect on the tree below.
POOL = [
    "-i", "-s", "-S", "-F", "-w", "-U", "-A1", "-B2", "-C 1", "--context=3", "-g '*.py'", "-g '!*.py'",
    "-g '*.{txt,md}'", "-g '!translation'", "-g 'translation/**'", "-t py", "-tmd -tpy", "-m 2",
    "--max-count=1", "-L", "-.", "--no-ignore", "--max-filesize 4K", "--max-filesize 12K",
    "--max-filesize=0001M", "--sort path", "--sort=modified",
]  # fmt: skip
PATTERNS = [
    "import", "def", "self", r"def \w+\(", r"^class\b", "Lazy", "lazy", r"\b[A-Z]{4,}\b", r"\.$", "é",
    "(?i)unicode", r"return\s+\w+\n", "needle", "a.b", "text", r"\d{3,}", "$", "x*",
]  # fmt: skip


@pytest.fixture(scope="module")
def rg():
    if (path := program("rg")) is None:
        pytest.skip("rg is not installed")
    return path


@pytest.fixture(scope="module")
def tree(django, tmp_path_factory):
    """A part of a real tree, and what the arguments are about: hidden, ignored, linked, encoded."""
    root = shutil.copytree(django / "django" / "utils", tmp_path_factory.mktemp("rg") / "utils")
    (root / ".gitignore").write_text("*.log\nignored/\n")
    (root / "a.log").write_text("needle in a log\n")
    (root / "ignored").mkdir()
    (root / "ignored/import.rst").write_text("import needle\n")
    (root / ".hidden.rst").write_text("hidden needle import\n")
    (root / "notes.md").write_text("# Needle\n\nimport text, a.b and aXb\n")
    (root / "latin.txt").write_bytes("caf\xff needle\n".encode("latin-1"))
    (root / "wide.txt").write_bytes("\ufeffwide needle é\n".encode("utf-16-le"))
    (root / "linked.md").symlink_to("notes.md")
    (root / "linked").symlink_to("translation")
    for number, path in enumerate(sorted(root.rglob("*"))):
        if not path.is_symlink():
            os.utime(path, (0, 1_500_000_000 + number * 7919 % 1000))
    return root


def by_rg(rg, tree, pattern, rg_args):
    """Return matching lines in order, and the text of all lines shown; None where rg refuses the pattern."""
    asked = [*shlex.split(rg_args), "-e", pattern, "--", "."]
    command = [rg, "--no-config", "--no-require-git", "--no-ignore-parent", "--no-ignore-global", "--json"]
    run = subprocess.run([*command, *asked], cwd=tree, capture_output=True, check=False)
    if run.returncode == 2:
        return None
    matched, shown = [], {}
    for event in map(json.loads, run.stdout.splitlines()):
        if event["type"] in ("match", "context"):
            data = event["data"]
            path = data["path"]["text"].removeprefix("./")
            first = data["line_number"]
            text = data["lines"].get("text") or base64.b64decode(data["lines"]["bytes"]).decode("latin-1")
            shown |= {(path, number): line for number, line in enumerate(text.splitlines() or [""], first)}
            if event["type"] == "match":
                matched.append((path, first))
    return matched, shown


def by_us(tree, pattern, rg_args):
    with Workspace(
        tree, limits=Limits(grep_results=100_000, output_tokens=10**8, grep_line_chars=10_000)
    ) as ws:
        result = ws.tools(dialect="dominds").call("ripgrep_search", {"pattern": pattern, "rg_args": rg_args})
    assert result.success, result.content
    matched, shown = [], {}
    for match in result.data["results"]:
        matched.append((match["path"], match["line"]))
        lines = enumerate(match["content"].split("\n"), match.get("start_line", match["line"]))
        shown |= {(match["path"], number): line for number, line in lines}
    return matched, shown


CASES = [
    pytest.param(PATTERNS[n % len(PATTERNS)], n, marks=[pytest.mark.long] if n >= 72 else [])
    for n in range(1000)
]


def chosen(seed):
    """Some arguments of the pool: none, each by itself, then several at once."""
    if seed <= len(POOL):
        return POOL[seed - 1] if seed else ""
    pick = random.Random(seed)
    some = pick.sample(POOL, pick.randint(1, 5))
    if "-U" in some:  # then `-m` counts in ripgrep what it tells as one, here lines
        some = [each for each in some if "-m" not in each or "max-filesize" in each]
    if any(each[:2] in ("-A", "-B") for each in some):  # versions of ripgrep differ in what `-C` then means
        some = [each for each in some if not each.startswith(("-C", "--context"))]
    # The last glob that matches decides; here one that leaves out and stands between others decides too.
    first = pick.random() < 0.5
    return " ".join(sorted(some, key=lambda each: each.startswith("-g '!") is not first))


@pytest.mark.parametrize(("pattern", "seed"), CASES, ids=str)
def test_arguments_mean_what_they_mean_to_ripgrep(rg, tree, pattern, seed):
    rg_args = chosen(seed)
    judged = by_rg(rg, tree, pattern, rg_args)
    if judged is None:
        return
    matched, shown = judged
    our_matched, our_shown = by_us(tree, pattern, rg_args)
    assert our_shown == shown, rg_args
    if "-U" not in rg_args:  # over lines, ripgrep tells of matches on neighbouring lines as one
        assert sorted(our_matched) == sorted(first_of_each(matched, grep_arguments(rg_args).get("max_count")))
    if grep_arguments(rg_args).get("sort") == "oldest":
        times = [os.path.getmtime(tree / path) for path, _ in our_matched]
        assert times == sorted(times)


def first_of_each(matched, most):
    """Of each file the first matches: ripgrep shows as matches also those in the lines after the last."""
    counts = Counter()
    kept = []
    for path, line in matched:
        counts[path] += 1
        if most is None or counts[path] <= most:
            kept.append((path, line))
    return kept
