"""ripgrep's arguments: those accepted, those refused, and a comparison with ripgrep itself."""

# ruff: noqa: E501 - a row of a table is one line

import base64
import json
import os
import random
import shlex
import shutil
import subprocess
import time
from collections import Counter

import pytest

from agentfs import AgentFSError, Limits, Workspace
from agentfs.dialects.dominds.rg_args import ALLOWED, read_arguments
from tests.conftest import program
from tests.kit import error_of, put


def test_options_around_a_pattern_keep_its_meaning(tmp_path):
    (tmp_path / "a.txt").write_text("one\nOne two\nthree\n")

    def lines(pattern, rg_args):
        with Workspace(tmp_path) as ws:
            asked = {"pattern": pattern, "rg_args": rg_args}
            result = ws.tools(dialect="dominds").call("ripgrep_search", asked)
        return [match["line"] for match in result.data["results"]] if result.success else result.error["code"]

    assert lines("(?i)one", "-v") == [3]
    assert lines("(?i)ONE", "-x") == [1]
    assert lines("(?x) o n e # all", "-x") == [1]
    assert lines("one(?x) # all", "-x") == [1]
    assert lines("one|" + "x" * 996, "-x") == [1], "at most 1000 characters of the given pattern are taken"
    assert lines("one|two", "-x") == [1]
    assert lines("a)|(b", "-v") == "invalid_pattern", "it closes no group of ours"
    assert lines("one", "-v -U") == "invalid_argument"
    assert lines("o(n)e\\b", "-v -i -m1") == [3]


@pytest.mark.parametrize("make", [lambda: ["-i"] * 1_000_000, lambda: "-" + "i" * 2_000_000])
def test_very_long_rg_args_are_refused_at_once(make):
    rg_args = make()
    started = time.process_time()
    with pytest.raises(AgentFSError, match="more than 50,000 characters"):
        read_arguments(rg_args)
    assert time.process_time() - started < 5, "taking them apart one by one takes minutes"


# Each is refused by its first word.
REFUSED = [
    "--pre cat", "--pre-glob '*'", "-z", "--search-zip", "-e other", "-f patterns.txt", "--file=patterns.txt",
    "--json", "--passthru", "-q", "-0", "--files", "--color blue", "--max-depth 0", "--pcre2=yes", "-r x",
    "--hostname-bin=x", "--ignore-file=x", "--no-ignore-dot", "--sortr created", "-d 0", "-j x", "--text=yes",
    "--follo", "-t", "--sort", "--hidden=yes", "--sort accessed", "-A x", "-A -1", "-m 0", "-E none",
    "-- src", "src", "-",
]  # fmt: skip


@pytest.mark.parametrize(("rg_args", "named"), [
    *((each, each.replace("=", " ").split()[0]) for each in REFUSED),
    (["--pre=cat"], "--pre"), ("-iq", "-q"), ("'unclosed", "closing quotation"),
])  # fmt: skip
def test_other_arguments_are_refused_by_name(rg_args, named):
    error = error_of(read_arguments, rg_args)
    assert error.code == "invalid_argument"
    assert named.lower() in error.message.lower()
    assert ALLOWED in error.hint


def test_refused_arguments_run_nothing(tmp_path):
    """With the real rg, each of these runs a command or reads a file outside the root."""
    put(tmp_path, ["root/a.txt", "secret"], "needle\n")
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/owned\ncat\n")
    program.chmod(0o755)
    with Workspace(tmp_path / "root") as ws:
        tools = ws.tools(dialect="dominds")
        for attack in (
            [f"--pre={program}"], ["--pre", str(program)], ["-f", "../secret"], ["--ignore-file=../secret"],
            [f"--file={tmp_path}/secret"], ["-e", "needle", "../secret"], ["--", "../secret"],
        ):  # fmt: skip
            arguments = {"pattern": "needle", "rg_args": attack}
            assert tools.call("ripgrep_search", arguments).error["code"] == "invalid_argument"
    assert not (tmp_path / "owned").exists()


# The arguments to compare, one or several at a time. Each has an effect on the tree below.
POOL = [
    "-i", "-s", "-S", "-F", "-w", "-U", "-A1", "-B2", "-C 1", "--context=3", "-g '*.py'", "-g '!*.py'",
    "-g '*.{txt,md}'", "-g '!translation'", "-g 'translation/**'", "-t py", "-tmd -tpy", "-m 2",
    "--max-count=1", "-L", "-.", "--no-ignore", "--max-filesize 4K", "--max-filesize 12K",
    "--max-filesize=0001M", "--sort path", "--sort=modified",
    "-n", "-H", "-N", "-v", "-x", "-o", "-l", "-c", "-T py", "-Tmd", "-u", "-uu", "-P", "--color=always",
    "--no-heading", "--max-depth 1", "--max-depth=2", "--iglob '*.PY'", "--iglob '!Translation'",
    "-d 1", "-a", "-j2", "--no-messages", "--no-ignore-vcs", "--no-config", "--multiline-dotall", "--crlf",
    "--sortr path", "--sortr=modified", "--count-matches",
]  # fmt: skip
PATTERNS = [
    "import", "def", "self", r"def \w+\(", r"^class\b", "Lazy", "lazy", r"\b[A-Z]{4,}\b", r"\.$", "é",
    "(?i)unicode", r"return\s+\w+\n", "needle", "a.b", "text", r"\d{3,}", "$", "x*",
]  # fmt: skip


# More spellings, each compared alone with patterns that match in most files.
SPELLINGS = [
    "-i -s", "-Eauto", "-E latin1 -g latin.txt", "-E latin1 -E auto", "-p -I --heading --pretty --no-filename", "-j4 --threads 1 --text",
    "--line-number --with-filename --color never", "--ignore-case", "-s --smart-case", "--fixed-strings -w", "--word-regexp", "-x -w", "-w --line-regexp",
    "-x -F", "-v -w", "--invert-match -x", "-U --multiline-dotall", "-A=3", "--after-context=3", "-A 3 -A 4", "-iwA3", "-A 3 --glob *.py",
    "-g '*.py' --glob=!t*", "-g '!t*' -g '*.py' -g '!v*'", "-g 'two words'", "--iglob '!n[N-P]TES.*'", "-tpy --type md", "-T py -tmd",
    "-t md -g '*.py'", "-t py -g '!translation'", "-o -x", "-o -v", "--follow --hidden", "-L -. --no-ignore", "-u --unrestricted", "--sortr=none",
    "--sort path --sortr modified", "-d 2 -d1", "--max-depth 2 --max-depth=1", "-l --count", "-c --files-with-matches",
]  # fmt: skip


@pytest.fixture(scope="module")
def rg():
    if (path := program("rg")) is None:
        pytest.skip("rg is not installed")
    return path


@pytest.fixture(scope="module")
def tree(django_source, tmp_path_factory):
    """A part of a real tree, with hidden, ignored, linked and encoded files for the arguments."""
    utils = django_source / "django" / "utils"
    most = shutil.ignore_patterns("[a-s]*.py", "t[er]*.py")
    root = shutil.copytree(utils, tmp_path_factory.mktemp("rg") / "utils", ignore=most)
    put(root, {
        ".gitignore": "*.log\nignored/\n", "a.log": "needle in a log\n",
        "ignored/import.rst": "import needle\n", ".hidden.rst": "hidden needle import\n",
        "notes.md": "# Needle\n\nimport text, a.b and aXb\n",
        "latin.txt": "caf\xff needle\n".encode("latin-1"),
        "wide.txt": "\ufeffwide needle é\n".encode("utf-16-le"),
    })  # fmt: skip
    (root / "linked.md").symlink_to("notes.md")
    (root / "linked").symlink_to("translation")
    for number, path in enumerate(sorted(root.rglob("*"))):
        if not path.is_symlink():
            os.utime(path, (0, 1_500_000_000 + number * 7919 % 1000))
    return root


def run_rg(rg, tree, pattern, rg_args, *form):
    asked = [*shlex.split(rg_args), *form, "-e", pattern, "--", "."]
    command = [rg, "--no-config", "--no-require-git", "--no-ignore-parent", "--no-ignore-global"]
    return subprocess.run([*command, *asked], cwd=tree, capture_output=True, check=False)


def results_by_rg(rg, tree, pattern, rg_args, shows):
    """Return the files, counts or matched parts that ripgrep prints; None if it refuses the pattern."""
    run = run_rg(rg, tree, pattern, rg_args, "--null", "--no-heading", "-H", "-n", "--color=never")
    if run.returncode == 2:
        return None
    text = run.stdout.decode("latin-1").replace("./", "")
    if shows == "files":
        return [{"path": path} for path in text.split("\0")[:-1]]
    found = [line.partition("\0")[::2] for line in text.splitlines()]
    if shows == "counts":
        return [{"path": path, "count": int(count)} for path, count in found]
    parts = [(path, *rest.partition(":")[::2]) for path, rest in found]
    return [{"path": path, "line": int(line), "content": part} for path, line, part in parts if part]


def by_rg(rg, tree, pattern, rg_args):
    """Return matching lines in order, and the text of all lines shown; None if rg refuses the pattern."""
    run = run_rg(rg, tree, pattern, rg_args, "--json", "-n")
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


def results_by_us(tree, pattern, rg_args):
    with Workspace(
        tree, limits=Limits(grep_results=100_000, output_tokens=10**8, grep_line_chars=10_000)
    ) as ws:
        result = ws.tools(dialect="dominds").call("ripgrep_search", {"pattern": pattern, "rg_args": rg_args})
    assert result.success, result.content
    return result.data["results"]


def by_us(tree, pattern, rg_args):
    matched, shown = [], {}
    for match in results_by_us(tree, pattern, rg_args):
        matched.append((match["path"], match["line"]))
        lines = enumerate(match["content"].split("\n"), match.get("start_line", match["line"]))
        shown |= {(match["path"], number): line for number, line in lines}
    return matched, shown


CASES = [
    *((pattern, rg_args) for rg_args in SPELLINGS for pattern in ("import", "needle|^$|.*import.*")),
    *(
        pytest.param(PATTERNS[n % len(PATTERNS)], n, marks=[pytest.mark.long] if n >= 72 else [])
        for n in range(1000)
    ),
]


def chosen(seed):
    """Return arguments of the pool: none, then each by itself, then several at once."""
    if seed <= len(POOL):
        return POOL[seed - 1] if seed else ""
    pick = random.Random(seed)
    some = pick.sample(POOL, pick.randint(1, 5))
    if "-U" in some:  # with `-U`, `-m` counts joined matches in ripgrep, and lines here
        some = [each for each in some if "-m" not in each or "max-filesize" in each]
    if "-v" in some and "-U" in some:  # refused here
        some.remove("-U")
    if "-o" in some:  # with `-U` ripgrep prints the lines of a match separately
        some = [each for each in some if each != "-U"]
    # ripgrep prints context lines between the parts, and counts matches in those after the last of `-m`.
    if not {"-o", "-c", "--count-matches"}.isdisjoint(some):
        some = [each for each in some if not each.startswith(("-A", "-B", "-C", "--context"))]
    if any(each[:2] in ("-A", "-B") for each in some):  # then `-C` depends on ripgrep's version
        some = [each for each in some if not each.startswith(("-C", "--context"))]
    return " ".join(some)


@pytest.mark.parametrize(("pattern", "seed"), CASES, ids=str)
def test_arguments_mean_the_same_as_to_ripgrep(rg, tree, pattern, seed):
    rg_args = seed if isinstance(seed, str) else chosen(seed)
    shows, others = read_arguments(rg_args).shows, read_arguments(rg_args).options
    if shows != "lines":
        expected = results_by_rg(rg, tree, pattern, rg_args, shows)
        if expected is not None:
            assert by_place(results_by_us(tree, pattern, rg_args)) == by_place(expected), rg_args
        return
    judged = by_rg(rg, tree, pattern, rg_args)
    if judged is None:
        return
    matched, shown = judged
    our_matched, our_shown = by_us(tree, pattern, rg_args)
    assert our_shown == shown, rg_args
    if "-U" not in rg_args:  # with `-U`, ripgrep reports matches on neighbouring lines as one
        assert sorted(our_matched) == sorted(first_of_each(matched, others.get("max_count")))
    if others.get("sort") in {"oldest", "modified"}:
        times = [os.path.getmtime(tree / path) for path, _ in our_matched]
        assert times == sorted(times, reverse=others["sort"] == "modified")
    if others.get("sort") == "reverse":
        assert [path for path, _ in our_matched] == [path for path, _ in matched]


def test_flags_that_change_nothing_here(rg, tmp_path):
    """`$` matches before a CRLF even without `--crlf`; binary files are counted even with `-a`."""
    (tmp_path / "crlf.txt").write_bytes(b"one\r\none two\r\n")
    (tmp_path / "b.bin").write_bytes(b"one\0\n")
    judged, _ = by_rg(rg, tmp_path, "one$", "--crlf -g '*.txt'")
    for rg_args in ("", "--crlf", "-a", "-j1 --no-messages --no-config"):
        assert by_us(tmp_path, "one$", rg_args)[0] == judged
    with Workspace(tmp_path) as ws:
        asked = {"pattern": "one", "rg_args": "-a"}
        assert ws.tools(dialect="dominds").call("ripgrep_search", asked).data["skipped"] == {"binary": 1}


def by_place(results):
    return sorted(results, key=lambda each: (each["path"], each.get("line", 0)))


def first_of_each(matched, most):
    """Return the first matches of each file; ripgrep also shows matches in the lines after the last."""
    counts = Counter()
    kept = []
    for path, line in matched:
        counts[path] += 1
        if most is None or counts[path] <= most:
            kept.append((path, line))
    return kept
