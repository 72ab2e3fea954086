"""The command line as a shell sees it: exit status, standard output and standard error."""

import errno
import json
import os
import random
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from agentfs.providers import FORMATS
from tests.conftest import needs, part_or_all, program
from tests.forked import run_command as run


@pytest.mark.full
def test_it_is_a_module_that_runs(tmp_path):
    """The other tests call the same function in a forked process, which is faster."""
    (tmp_path / "a.txt").write_text("one\n")
    for arguments in (
        ["call", "read", '{"path": "a.txt"}'],
        ["read", "missing"],
        [],
        ["-V"],
        ["ls", "--nothing"],
    ):
        command = [sys.executable, "-m", "agentfs", *arguments]
        started = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        done = run(*arguments, cwd=tmp_path)
        assert (done.returncode, done.stdout, done.stderr) == (
            started.returncode,
            started.stdout,
            started.stderr,
        )


def test_call_prints_the_answer(tmp_path):
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    done = run("call", "read", '{"path": "a.txt"}', cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1|one\n2|two\n", "")


def test_call_takes_a_root_and_standard_input(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.txt").write_text("old\n")
    arguments = json.dumps({"path": "a.txt", "old_string": "old", "new_string": "new"})
    done = run("call", "edit", "-", "--root", "sub", cwd=tmp_path, stdin=arguments)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "sub" / "a.txt").read_text() == "new\n"


def test_call_that_fails_says_so_on_standard_error(tmp_path):
    done = run("call", "read", '{"path": "missing.txt"}', cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "missing.txt" in done.stderr


@pytest.mark.parametrize("arguments", ["", "nonsense", "[1]", '{"path": 1'])
def test_call_with_bad_json_is_a_failure_without_a_traceback(tmp_path, arguments):
    done = run("call", "read", arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", [("call", "ls", "{}"), ("mcp",)])
def test_a_command_to_connect_with_an_open_quotation_is_a_failure_without_a_traceback(tmp_path, command):
    done = run(*command, "--connect", "ssh 'host", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == 'agentfs: --connect "ssh \'host" is not a command: No closing quotation.\n'


def test_call_prints_the_whole_result_as_json(tmp_path):
    (tmp_path / "a.txt").write_text("one\n")
    done = run("call", "read", '{"path": "a.txt"}', "--json", cwd=tmp_path)
    result = json.loads(done.stdout)
    assert result["success"] is True
    assert result["data"]["total_lines"] == 1


@pytest.mark.parametrize("format_name", FORMATS)
def test_schemas_prints_json_for_each_provider(tmp_path, format_name):
    done = run("schemas", "--format", format_name, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "multi_edit" in json.dumps(json.loads(done.stdout))


def test_schemas_and_call_speak_a_dialect(tmp_path):
    (tmp_path / "a.txt").write_text("one\n")
    done = run("schemas", "--dialect", "text-editor", "--format", "mcp", cwd=tmp_path)
    assert [tool["name"] for tool in json.loads(done.stdout)] == ["str_replace_based_edit_tool"]
    done = run("call", "Grep", '{"pattern": "one"}', "--dialect", "wave", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "a.txt\n")
    assert done.stderr == "[1 matching line in 1 file]\n"
    done = run("call", "str_replace_based_edit_tool", '{"command": "insert"}', cwd=tmp_path)
    assert done.returncode == 2, "without it the tools are agentfs's own"


@pytest.mark.parametrize("command", [["schemas"], ["call", "read", "{}"], ["mcp"]])
def test_an_unknown_dialect_is_a_failure_that_names_the_others(tmp_path, command):
    done = run(*command, "--dialect", "wav", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Did you mean 'wave'?" in done.stderr


def test_a_missing_root_is_a_usage_error(tmp_path):
    done = run("schemas", "--root", "nowhere", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("agentfs: ")


def test_no_command_is_a_usage_error(tmp_path):
    assert run(cwd=tmp_path).returncode == 2


def test_a_closed_pipe_prints_no_traceback(tmp_path):
    (tmp_path / "a.txt").write_text("x" * 30 + "\n", encoding="utf-8")
    (tmp_path / "many.txt").write_text("some line that is long enough\n" * 1500)
    call = f'{sys.executable} -m agentfs call read \'{{"path": "many.txt"}}\''
    command = f"{{ {call}; echo $? >status; }} | head -n 1"
    done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (tmp_path / "status").read_text() == "0\n"
    assert re.fullmatch(r"(\[lines 1-\d+ of 1500, .*\]\n)?", done.stderr)


def test_an_unknown_command_is_told_the_nearest_one(tmp_path):
    done = run("gerp", "x", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "'gerp' is not a command. Did you mean 'grep'?" in done.stderr
    assert "Did you mean" not in run("frobnicate", cwd=tmp_path).stderr


def test_root_and_state_come_from_the_environment(tree, monkeypatch):
    monkeypatch.setenv("AGENTFS_ROOT", str(tree / "sub"))
    monkeypatch.setenv("AGENTFS_STATE", str(tree / "state"))
    assert run("write", "new.txt", "x", cwd=tree).returncode == 0
    assert (tree / "sub/new.txt").read_text() == "x"
    assert "new.txt" in run("log", cwd=tree).stdout
    assert run("undo", cwd=tree).returncode == 0
    assert not (tree / "sub/new.txt").exists()
    monkeypatch.delenv("AGENTFS_STATE")
    assert run("ls", "--root", str(tree), cwd=tree).stdout == "state\nsub\na.py\nb.txt\n"
    monkeypatch.setenv("AGENTFS_ROOT", "")
    assert run("ls", "sub", cwd=tree).returncode == 0


def test_a_script_has_the_name_of_the_distribution():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    assert project["scripts"][project["name"]] == project["scripts"]["agentfs"]


@pytest.mark.full
def test_a_pipe_gets_all_entries_unless_asked(tmp_path):
    for number in range(700):
        (tmp_path / f"{number}.txt").write_text("TODO\n" * 4)
    for command, lines in (("ls", 700), ("glob *.txt", 700), ("find", 700), ("grep TODO", 2800)):
        done = run(*command.split(), cwd=tmp_path)
        assert (done.stdout.count("\n"), "more" in done.stderr) == (lines, False)
        assert run(*command.split(), "--limit", "3", cwd=tmp_path).stdout == "".join(
            done.stdout.splitlines(keepends=True)[:3]
        )
    (tmp_path / "long.txt").write_text("x" * 5000 + "\n" + "line\n" * 5000)
    assert run("read", "long.txt", cwd=tmp_path).stdout == (tmp_path / "long.txt").read_text()


def test_a_pipe_gets_all_pages_of_a_large_result(tmp_path, monkeypatch):
    monkeypatch.setattr("agentfs.search.entries.PAGE_BYTES", 20_000)
    (tmp_path / "a.txt").write_text("".join(f"TODO {number}\n" for number in range(500)))
    done = run("grep", "TODO", cwd=tmp_path)
    assert done.stdout == "".join(f"a.txt:{number + 1}:TODO {number}\n" for number in range(500))
    assert "more" not in done.stderr


@pytest.mark.full
def test_every_tool_is_a_command_and_changes_is_called_diff(tmp_path):
    from agentfs import Workspace

    shown = run("--help", cwd=tmp_path).stdout
    with Workspace(tmp_path) as ws:
        for name in ws.tool_names():
            if name == "changes":
                assert f"    {name} " not in shown
                name = "diff"  # noqa: PLW2901 - the same under a name that a person knows
            assert name in shown
            assert run(name, "--help", cwd=tmp_path).returncode == 0


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "a.py").write_text("import os\nprint(os)\n")
    (tmp_path / "b.txt").write_text("import nothing\n")
    (tmp_path / "sub").mkdir()
    return tmp_path


@pytest.mark.parametrize(("arguments", "status", "printed"), [
    (["grep", "import", "--glob", "*.py"], 0, "a.py:1:import os\n"),
    (["grep", "IMPORT", "--ignore-case", "--output-mode", "count"], 0, "b.txt:1\n"),
    (["grep", "import", "--glob", "*.py", "--glob", "*.txt", "--output-mode", "count"], 0, "b.txt:1\n"),
    (["grep", "absent"], 1, ""),
    (["grep", "-in", "IMPORT", "-g", "*.py", "."], 0, "a.py:1:import os\n"),
    (["grep", "IMPORT", ".", "-i", "-tpy"], 0, "a.py:1:import os\n"),
    (["grep", "import", "-c"], 0, "b.txt:1\n"),
    (["grep", "-l", "-e", "nothing", "-e", "p.int"], 0, "a.py\nb.txt\n"),
    (["grep", "-lF", "-e", "nothing", "-e", "p.int", "a.py", "b.txt"], 0, "b.txt\n"),
    (["grep", "-e", "import", "b.txt"], 0, "b.txt:1:import nothing\n"),
    (["grep", "--", "-c", "."], 1, ""),
    (["grep", "-w", "impor"], 1, ""),
    (["grep", "import", "b.txt", "a.py"], 0, "b.txt:1:import nothing\na.py:1:import os\n"),
    (["grep", "print", "b.txt", "a.py"], 0, "a.py:2:print(os)\n"),
    (["find", "-t", "f", "-t", "d", "-e", "py"], 0, "a.py\n"),
    (["glob", "*.txt", "sub", "."], 0, "b.txt\n"),
    (["glob", "*.py"], 0, "a.py"),
    (["glob", "*.rs"], 1, ""),
    (["ls", "--depth", "2"], 0, "a.py"),
    (["ls", "sub"], 0, ""),
    (["read", "a.py", "--offset", "2"], 0, "print(os)"),
    (["read", "a.py", "--line-ids"], 0, "import os"),
    (["write", "new/c.txt", "text"], 0, "Created"),
    (["edit", "b.txt", "nothing", "something"], 0, "+import something"),
    (["edit", "b.txt", "nothing", "something", "--preview"], 0, "Preview"),
    (["multi_edit", "b.txt", '[{"old_string": "nothing", "new_string": "x"}]'], 0, "+import x"),
    (["multi-edit", "b.txt", '{"old_string": "nothing", "new_string": "x"}'], 0, "+import x"),
])  # fmt: skip
def test_tools_are_called_as_a_shell_does(tree, arguments, status, printed):
    done = run(*arguments, cwd=tree)
    assert done.returncode == status, done.stderr
    assert printed in done.stdout
    assert "\033" not in done.stdout


@pytest.mark.parametrize("arguments", [
    ["grep"], ["grep", "("], ["read", "missing"], ["read", "../x"], ["grep", "x", "--limit", "many"],
    ["grep", "x", "--output-mode", "no"], ["write", "b.txt", "x"], ["nothing"], ["grep", "x", "missing"],
])  # fmt: skip
def test_a_failure_is_2_and_on_standard_error(tree, arguments):
    done = run(*arguments, cwd=tree)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_path_among_others_is_a_failure_that_prints_the_others(tree):
    done = run("grep", "import", "missing", "b.txt", cwd=tree)
    assert (done.returncode, done.stdout) == (2, "b.txt:1:import nothing\n")
    assert "missing" in done.stderr


def test_an_error_of_one_command_advises_another(tree):
    done = run("read", "missing.txt", cwd=tree)
    assert "Call `agentfs ls .` to see what is there." in done.stderr


def test_advice_is_spelled_as_options(tree):
    done = run("grep", "import", "--limit", "1", cwd=tree)
    assert "more: --offset 1]" in done.stderr
    (tree / ".hidden").write_text("absent\n")
    done = run("grep", "absent", cwd=tree)
    assert "pass --include-ignored" in done.stderr
    assert "=" not in done.stderr


def test_a_refusal_to_replace_an_unread_file_names_the_ways_of_the_command_line(tree, tmp_path_factory):
    """Each command opens a workspace of its own, so reading first is not enough."""
    history = ("--state", str(tmp_path_factory.mktemp("history")))
    refused = run("write", "a.py", "x", cwd=tree)
    assert refused.returncode == 2
    assert refused.stderr.endswith(
        "Without --state DIR no earlier read counts. `write` also takes --overwrite.\n"
    )
    assert "--state" not in run("write", "a.py", "x", *history, cwd=tree).stderr
    assert run("read", "a.py", *history, cwd=tree).returncode == 0
    assert run("write", "a.py", "x", *history, cwd=tree).returncode == 0
    assert run("write", "a.py", "y", "--overwrite", cwd=tree).returncode == 0


def test_write_takes_standard_input(tree):
    assert run("write", "c.txt", "-", cwd=tree, stdin="from a pipe\n").returncode == 0
    assert (tree / "c.txt").read_text() == "from a pipe\n"


def test_standard_input_keeps_its_line_ends(tree):
    assert run("write", "c.txt", "-", cwd=tree, stdin="a\r\nb\rc\n").returncode == 0
    assert (tree / "c.txt").read_bytes() == b"a\r\nb\rc\n"


def test_a_tool_prints_json(tree):
    done = run("read", "b.txt", "--json", "--root", str(tree), cwd=tree.parent)
    assert done.returncode == 0
    assert json.loads(done.stdout)["data"]["total_lines"] == 1


@pytest.mark.parametrize(("command", "status", "records"), [
    ("ls", 0, [{"path": "sub", "type": "directory"}, {"path": "a.py"}, {"path": "b.txt", "size": 15}]),
    ("ls sub", 0, []),
    ("glob *.py sub .", 0, [{"path": "a.py"}]),
    ("find -t d", 0, [{"path": "sub"}]),
    ("glob *.none", 1, []),
    ("grep import", 0, [{"path": "a.py", "line": 1, "text": "import os"}, {"path": "b.txt"}]),
    ("grep nothing", 0, [{"spans": [[7, 14]]}]),
    ("grep -l import", 0, [{"path": "a.py"}, {"path": "b.txt"}]),
    ("grep -c import", 0, [{"path": "a.py", "lines": 1, "matches": 1}, {"path": "b.txt", "lines": 1}]),
    ("grep --output-mode total import", 0, [{"total_matches": 2, "total_lines": 2, "total_files": 2}]),
    ("grep absent", 1, []),
    ("ls missing", 2, []),
])  # fmt: skip
def test_a_list_or_a_search_prints_an_object_for_each_entry(tree, command, status, records):
    done = run(*command.split(), "--json", cwd=tree)
    printed = [json.loads(line) for line in done.stdout.splitlines()]
    assert (done.returncode, len(printed)) == (status, len(records)), done.stderr
    for entry, expected in zip(printed, records, strict=True):
        assert expected.items() <= entry.items()


DECOYS = ("a.tmp", "sub/b.tmp", "site/c.tmp", "a b.tmp", "\u00e9.tmp", "[1]", "x: 1 B", "sub/.hidden/d.tmp")


@pytest.fixture
def decoys(tmp_path):
    """A tree whose ignored directory and counts each listing and each search names in its footer."""
    root = tmp_path / "decoys"
    for name in DECOYS:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("one TODO\ntwo\nthree TODO: x|1\n")
    for number in range(30):  # a model gets so many as a tree, with the directory above them on a line
        (root / "site" / f"{number}.txt").write_text("")
        (root / "sub" / f"{number}.txt").write_text(f"{number}\n")
    (root / ".gitignore").write_text("site/\n")
    (root / ".git").mkdir()  # without it neither rg nor fd heeds the other
    return root


@pytest.mark.parametrize(
    "command",
    [
        "glob '*.tmp'",
        "find --glob '*.tmp'",
        "glob '*.tmp' --color never",
        'call glob \'{"pattern": "*.tmp"}\'',
        'call Glob \'{"pattern": "*.tmp"}\' --dialect wave',
    ],
)
def test_a_pipe_to_xargs_deletes_only_the_found_files(decoys, command):
    """Attack: the footer names an ignored directory, and `xargs` takes each of its words for a path."""
    before = {path.relative_to(decoys) for path in decoys.rglob("*")}
    found = os.fsencode(run(*shlex.split(command), cwd=decoys).stdout)
    deletes = "grep -v ' ' | xargs rm -rf"
    subprocess.run(["sh", "-c", deletes], cwd=decoys, input=found, capture_output=True, check=True)
    gone = before - {path.relative_to(decoys) for path in decoys.rglob("*")}
    assert gone == {Path("a.tmp"), Path("sub/b.tmp"), Path("\u00e9.tmp")}


def test_a_name_with_a_line_feed_is_not_two_paths_in_a_pipe(tmp_path):
    """Attack: a file is named so that its second line is the name of another one."""
    (tmp_path / "x.tmp\nkept").write_text("")
    (tmp_path / "kept").mkdir()
    done = run("glob", "x*", cwd=tmp_path)
    assert done.stdout == "x.tmp\u27e6U+000A\u27e7kept\n"
    done = run("glob", "x*", "--null", cwd=tmp_path)
    assert done.stdout == "x.tmp\nkept\0"


def test_a_pipe_gets_the_bytes_of_a_name(tmp_path):
    names = {b"caf\xe9.tmp", rb"caf\xe8.tmp", "\u202e.tmp".encode(), b"\x1b[2J.tmp"}
    for name in names:
        Path(os.fsdecode(os.path.join(os.fsencode(tmp_path), name))).write_text("")
    done = run("glob", "*.tmp", cwd=tmp_path)
    assert set(os.fsencode(done.stdout).splitlines()) == names


@needs("rg")
@pytest.mark.parametrize(("ours", "theirs"), [
    ("TODO", "TODO"),
    ("TODO --context 1", "TODO -C1"),
    ("two --before 1 --after 0", "two -B1"),
    ("'[a-z]+ TODO' --ignore-case", "-i '[a-z]+ TODO'"),
    ("TODO --output-mode files_with_matches", "-l TODO"),
    ("TODO --output-mode count", "-c TODO"),
    ("TODO --null", "-0 TODO"),
    ("TODO --output-mode files_with_matches -0", "-l0 TODO"),
    ("'TODO\\ntwo' --multiline", "-U 'TODO\\ntwo'"),
    ("absent", "absent"),
])  # fmt: skip
def test_a_pipe_gets_the_output_of_ripgrep(decoys, ours, theirs):
    (decoys / "sub/long.tmp").write_text("x" * 5000 + " TODO " + "y" * 5000 + "\n")
    ripgrep = f"{program('rg')} --no-heading -n -H --sort path {theirs} </dev/null | cat"
    judge = subprocess.run(["sh", "-c", ripgrep], cwd=decoys, capture_output=True, text=True, check=False)
    done = run("grep", *shlex.split(ours), cwd=decoys)
    assert done.stdout == judge.stdout
    assert "left out" in done.stderr


@needs("fd")
@pytest.mark.parametrize("options", ["", "-t f", "-t d"])
def test_a_pipe_gets_the_output_of_fd(decoys, options):
    find = [program("fd"), "--strip-cwd-prefix", *options.split()]
    judge = subprocess.run(find, cwd=decoys, capture_output=True, text=True, check=True)
    done = run("find", *(["--types", options[-1]] if options else []), cwd=decoys)
    assert sorted(done.stdout.splitlines()) == sorted(line.rstrip("/") for line in judge.stdout.splitlines())
    listed = run("ls", "--depth", "0", cwd=decoys) if not options else done
    assert sorted(listed.stdout.splitlines()) == sorted(done.stdout.splitlines())


def random_tree(root, draw):
    """Make a repository with files of few words, hidden names and rules that ignore some of them."""
    (root / ".git").mkdir(parents=True)
    directories = [root]
    for _ in range(draw.randrange(6)):
        directory = draw.choice(directories) / draw.choice(
            ["src", "docs", "build", ".cache", "x y", "\u00e9"]
        )
        directory.mkdir(exist_ok=True)
        directories.append(directory)
    for _ in range(draw.randrange(1, 25)):
        name = draw.choice("abc") + draw.choice([".py", ".txt", ".md", ".log", "", ".tar.gz"])
        lines = [" ".join(draw.choices(["TODO", "todo", "TODOs", "a.b", "axb", ""], k=3)) for _ in range(9)]
        end = draw.choice(["\n", ""])
        path = draw.choice(directories) / (draw.choice(["", "", "", "."]) + name)
        path.write_text("\n".join(lines[: draw.randrange(10)]) + end)
    (root / ".gitignore").write_text("\n".join(draw.sample(["*.log", "build/", "/docs", "!a.log"], 2)) + "\n")


@needs("rg")
@needs("fd")
@part_or_all(20)
def test_a_pipe_gets_the_lines_of_rg_fd_and_ls_on_random_trees(tmp_path, every):
    rg = [program("rg"), "--no-heading", "-n", "-H", "--sort", "path", "--no-messages"]
    fd = [program("fd"), "--strip-cwd-prefix"]
    for seed in range(0, 200, every):
        draw, root = random.Random(seed), tmp_path / str(seed)
        random_tree(root, draw)
        options = draw.sample(["-i", "-w", "-v", "-F", "-S", "-x", "-n"], draw.randrange(3))
        options += draw.choice([[], ["-C1"], ["-A", "2"], ["-B", "1"], ["-l"], ["-c"], ["-0"], ["-m", "2"]])
        # With `-g` and `-t`, rg also searches hidden and ignored files that match; these globs match none.
        options += draw.choice([[], ["-tpy", "-g", "[!.]*.py"], ["-g", "[!.]*.py"], ["-g", "[!.]*.{md,txt}"]])
        options += draw.choice([["TODO"], ["a.b"], ["-e", "todo", "-e", "a.b"], ["^$"], ["absent"]])
        found = sorted(path.name for path in root.iterdir() if path.name[0] != ".")
        paths = draw.choice([[], [], draw.sample(found, min(2, len(found)))])
        if {"-m", "-v"} <= {*options}:
            options.remove("-v")
        kinds = draw.choice([[], ["-t", "f"], ["-t", "d"], ["-t", "f", "-t", "d"], ["-e", "py"], ["-d", "1"]])
        pattern = draw.choice(["*.py", "*", "a*", "*.{md,txt}", "[ab].*"])
        listed = draw.choice([".", *(each for each in found if (root / each).is_dir())])
        ours_theirs = [
            (["grep", *options, *paths], [*rg, *options, "--", *(paths or ["."])]),
            (["find", *kinds], [*fd, *kinds]),
            (["glob", pattern], [*fd, "-t", "f", "--glob", pattern]),
            (["ls", "--include-ignored", "--no-hidden", listed], ["ls", listed]),
        ]
        for ours, theirs in ours_theirs:
            judge = subprocess.run(theirs, cwd=root, capture_output=True, text=True, check=False)
            done = run(*ours, cwd=root)
            expected = [line.removeprefix("./").rstrip("/") for line in judge.stdout.split("\n")]
            if ours[0] == "ls" and listed != ".":
                expected = [line and f"{listed}/{line}" for line in expected]
            assert sorted(done.stdout.split("\n")) == sorted(expected), (seed, ours, done.stderr)
            if ours[0] == "grep":
                assert done.returncode == judge.returncode, (seed, ours, done.stderr)


def test_read_in_a_pipe_prints_the_file_as_cat_does(decoys):
    (decoys / "sub/end.txt").write_text("no line feed at the end\n\n x")
    for names in (["sub/end.txt"], ["a.tmp"], ["sub/end.txt", "a.tmp"]):
        ours = ["read", names[0]] if len(names) == 1 else ["read_many", json.dumps(names)]
        judge = subprocess.run(["cat", *names], cwd=decoys, capture_output=True, text=True, check=True)
        done = run(*ours, cwd=decoys)
        assert (done.stdout, done.stderr) == (judge.stdout, "")
    done = run("read", "a.tmp", "--limit", "1", cwd=decoys)
    assert (done.stdout, done.stderr.startswith("[line 1 of 3; more: ")) == ("one TODO\n", True)
    done = run("read_many", '["a.tmp", "missing"]', cwd=decoys)
    assert (done.stdout, done.stderr) == ("one TODO\ntwo\nthree TODO: x|1\n", "missing: not_found\n")


@pytest.mark.parametrize(
    "command",
    [
        ["read", "a.tmp", "--offset", "2"],
        ["read", "a.tmp", "--line-ids", "--limit", "1"],
        ["ls"],
        ["grep", "absent"],
        ["grep", "TODO", "--output-mode", "total"],
        ["grep", "TODO", "--output-mode", "summary"],
        ["grep", "TODO", "--limit", "1"],
        ["replace", "TODO", "DONE", "--preview"],
        ["glob", "*.none"],
        ["edit", "a.tmp", "two", "2", "--preview"],
        ["write", "new.txt", "x", "--preview"],
        ["move", "a.tmp", "b.tmp"],
        ["call", "ls", "{}"],
        ["call", "read", '{"path": "a.tmp", "limit": 1}'],
        ["call", "grep", '{"pattern": "TODO"}'],
        ["call", "LS", '{"path": "."}', "--dialect", "wave"],
        ["call", "Grep", '{"pattern": "TODO"}', "--dialect", "wave"],
        [
            "call",
            "str_replace_based_edit_tool",
            '{"command": "view", "path": "."}',
            "--dialect",
            "text-editor",
        ],
        ["call", "list_files", '{"roots": ["."]}', "--dialect", "tree-sitter-analyzer"],
    ],
    ids=" ".join,
)
def test_a_pipe_gets_no_footer_and_no_advice(decoys, command):
    done = run(*command, cwd=decoys)
    assert done.returncode in (0, 1), done.stderr
    for word in ("left out", "include_ignored", "more:", "of 3", "No matches", ".gitignore", "site"):
        assert word not in done.stdout, word


FULL = (2, "agentfs: Standard output cannot be written: No space left on device.\n")
SHELLED = {
    "read a.py >/dev/full": FULL,
    "read a.py --json >/dev/full": FULL,
    "read large.txt >/dev/full": FULL,
    "schemas >/dev/full": FULL,
    "--help >/dev/full": FULL,
    "diff --state ../state >/dev/full": FULL,
    "read a.py >&-": (2, "agentfs: Standard output is closed.\n"),
    "write new.txt x >&-": (2, "agentfs: Standard output is closed.\n"),
    "write new.txt - <&-": (2, "agentfs: Standard input is closed.\n"),
    "write new.txt - <binary": (2, "agentfs: Standard input is not text in utf-8: byte 0xff.\n"),
    "read missing 2>/dev/full": (2, ""),
    "read missing 2>&-": (2, ""),
    "grep import a.py 2>&- >/dev/null": (0, ""),
}


@pytest.mark.full
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
@pytest.mark.parametrize("line", SHELLED)
def test_a_full_closed_or_binary_stream_prints_no_traceback(tree, line, monkeypatch):
    from agentfs import Workspace

    (tree / "work").mkdir()
    (tree / "work/a.py").write_text("import os\n")
    (tree / "work/large.txt").write_text("some line that is long enough\n" * 1500)
    (tree / "work/binary").write_bytes(b"\xff\xfe")
    with Workspace(tree / "work", state=tree / "state") as ws:
        ws.write("b.py", "text\n" * 5000)
    command, work = ["sh", "-c", f'exec "$0" -m agentfs {line}', sys.executable], tree / "work"
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)  # with it argparse lets a full device pass
    done = subprocess.run(
        command, cwd=work, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == SHELLED[line]
    assert not (tree / "work/new.txt").exists()


def test_a_character_outside_the_encoding_of_a_stream_is_escaped(tree, monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    (tree / "euro.txt").write_text("5 \u20ac\n")
    command = [sys.executable, "-m", "agentfs", "read", "euro.txt"]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "5 \\u20ac\n", "")


def test_a_system_error_is_not_blamed_on_standard_output(tmp_path, monkeypatch, capsys):
    from agentfs import cli
    from agentfs.history.storage import state

    def failing(*_):
        raise OSError(errno.EMFILE, "Too many open files", "journal")

    monkeypatch.setattr(state, "read_journal", failing)
    assert cli.main(["log", "--state", str(tmp_path)]) == 2
    assert capsys.readouterr().err == "agentfs: The system failed on 'journal': Too many open files.\n"


@pytest.mark.full
def test_few_descriptors_are_not_an_error_of_standard_output(tmp_path):
    command = ["sh", "-c", 'ulimit -n 6; exec "$0" -m agentfs mcp', sys.executable]
    done = subprocess.run(
        command, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "Standard output" not in done.stderr


def test_delete_takes_r_for_a_directory_with_its_contents(tmp_path):
    (tmp_path / "d/e").mkdir(parents=True)
    (tmp_path / "d/e/f").write_text("x\n")
    refused = run("delete", "d", cwd=tmp_path)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "--recursive" in refused.stderr
    done = run("delete", "-r", "d", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, 'Deleted "d" (directory, 1 file).\n')
    assert not (tmp_path / "d").exists()


def test_append_and_copy_are_commands(tmp_path):
    assert run("append", "log", "-", cwd=tmp_path, stdin="one\n").returncode == 0
    assert run("append", "log", "two\n", cwd=tmp_path).stdout == "Appended line 2.\n"
    assert run("copy", "log", "other", cwd=tmp_path).returncode == 0
    assert (tmp_path / "other").read_text() == "one\ntwo\n"
    assert run("copy", "log", "other", cwd=tmp_path).returncode == 2
    assert run("copy", "--overwrite", "log", "other", cwd=tmp_path).returncode == 0


# --- line 17 of issue 41 ---


@pytest.mark.parametrize(("given", "status"), [
    ("one TODO\ntwo\n", 0), ("", 1), ("no line feed TODO", 0), ("caf\xe9 TODO\n", 0),
])  # fmt: skip
@pytest.mark.parametrize(
    ("options", "theirs"),
    [
        ("TODO", ""),
        ("TODO -c", ""),
        ("TODO -l", ""),
        ("TODO -", ""),
        ("TODO - a.tmp", ""),
        ("-e TODO -i", ""),
    ],
)
@needs("rg")
def test_grep_reads_standard_input_as_ripgrep_does(decoys, given, status, options, theirs):
    """Line 17: `grep x -` was an unknown path, and a pipe into `grep` was not read."""
    words = shlex.split(options)
    rg = [program("rg"), "--no-heading", "-n", "-H", "--sort", "path", *words]
    judge = subprocess.run(rg, cwd=decoys, input=given.encode(), capture_output=True, check=False)
    done = run("grep", *words, cwd=decoys, stdin=given)
    assert (done.stdout, done.returncode) == (judge.stdout.decode(), judge.returncode), done.stderr
    assert judge.returncode == (0 if "a.tmp" in options else status)


@needs("rg")
@pytest.mark.parametrize("stdin", ["pipe", "file", "device", "closed"])
def test_grep_searches_the_tree_unless_standard_input_is_a_pipe_or_a_file(decoys, stdin):
    (decoys / "sub/given").write_text("TODO\n")
    redirections = {"pipe": "<sub/given cat |", "file": "<sub/given", "device": "</dev/null", "closed": "<&-"}
    before, after = (redirections[stdin], "") if stdin == "pipe" else ("", redirections[stdin])
    found = []
    for command in (
        f"{sys.executable} -m agentfs grep TODO",
        f"{program('rg')} --no-heading -nH --sort path TODO",
    ):
        line = ["sh", "-c", f"{before} {command} {after}"]
        done = subprocess.run(
            line, cwd=decoys, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        found.append((done.stdout, done.returncode))
    if stdin == "closed":  # rg cannot tell it from a pipe
        assert "a b.tmp:1:one TODO\n" in found[0][0]
    else:
        assert found[0] == found[1]
    assert found[0][0].startswith("<stdin>:1:") is (stdin in {"pipe", "file"})


def test_standard_input_has_a_bound(tmp_path, monkeypatch):
    monkeypatch.setattr("agentfs.cli.output._MOST_INPUT", 100)
    done = run("grep", "x", "-", cwd=tmp_path, stdin="x" * 101)
    assert (done.returncode, done.stdout) == (2, "")
    assert "more than 100 bytes" in done.stderr


def test_json_names_standard_input_as_the_text_does(tmp_path):
    done = run("grep", "x", "-", "--json", cwd=tmp_path, stdin="x\n")
    assert json.loads(done.stdout)["path"] == "<stdin>"


@pytest.mark.parametrize(
    ("wrong", "near"),
    [
        ("grep x --maxcount 1", "--max-count"),
        ("grep x --ignore-cas=yes", "--ignore-case"),
        ("ls --dept 2 --hiden", "--hidden"),
        ("mcp --read-olny", "--read-only"),
        ("serve --rot .", "--root"),
        ("read a.py b.txt", ""),
    ],
)
def test_a_wrong_option_is_answered_in_one_line_with_the_nearest_name(tree, wrong, near):
    """Line 17: it printed the usage, 14 lines, and no nearest name."""
    done = run(*wrong.split(), cwd=tree)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert near in done.stderr
    assert f"agentfs {wrong.split()[0]} --help" in done.stderr


BAD_CALLS = """
grep '('
grep '[a'
grep 'f()'
grep -F 'a|b'
grep IMPORT
grep x missing
find a.py
find 'impo*'
find missing/deep
find --pattern '*.py'
find -e nope
glob '/a/*.py'
glob '*.pyy'
ls missing
ls a.py
read a.px
read sub
edit a.py 'import oss' x
edit a.py o x
write a.py x
delete sub
multi_edit a.py '[]'
replace nowhere x
grep import --limit 1
read a.py --limit 1
ls --limit 1
copy a.py b.txt
move a.py b.txt
""".strip().splitlines()


@pytest.mark.parametrize("call", BAD_CALLS)
def test_every_option_that_advice_names_exists(tree, call):
    """Line 17: `grep '('` advised `--pattern`, which `grep` does not have."""

    def options(command):
        return {*re.findall(r"--[a-z][a-z-]*", run(command, "--help", cwd=tree).stdout)}

    (tree / "sub/inner.py").write_text("")
    done = run(*shlex.split(call), cwd=tree)
    own = options(call.split()[0])
    for line in done.stderr.splitlines():
        others = re.findall(r"`agentfs ([a-z-]+)([^`]*)`", line)
        for name, rest in others:
            words = [word for word in shlex.split(rest) if word.startswith("--") and word != "--"]
            assert {*words} <= options(name), line
        plain = re.sub(r"`[^`]*`", "", line)
        assert {*re.findall(r"(?<![\w-])--[a-z][a-z-]*", plain)} <= own | {"--state"}, line


def test_an_invalid_pattern_can_be_passed_again_as_advised(tree):
    (tree / "call.py").write_text("f(\n")
    done = run("grep", "f(", cwd=tree)
    advised = re.search(r"pass (.*)\.", done.stderr)[1]
    again = run("grep", *shlex.split(advised), cwd=tree)
    assert (again.returncode, again.stdout) == (0, "call.py:1:f(\n"), done.stderr


def test_find_takes_the_pattern_first_as_fd_does(tree):
    """`fd NAME` finds names; `find NAME` took the name for a directory."""
    (tree / "sub/impo rt.txt").write_text("")
    assert run("find", "impo rt", cwd=tree).stdout == "sub/impo rt.txt\n"
    assert run("find", ".", "sub", cwd=tree).stdout == "sub/impo rt.txt\n"
    assert run("find", "^b", "sub", ".", cwd=tree).stdout == "b.txt\n"
    assert run("find", "sub", "--pattern", "txt$", cwd=tree).stdout == "sub/impo rt.txt\n"
    assert run("find", "-g", "*.txt", "sub", cwd=tree).stdout == "sub/impo rt.txt\n"
    assert run("find", "missing", "-g", "*.py", cwd=tree).returncode == 2
    assert run("find", "absent", cwd=tree).returncode == 1
    more = run("find", ".", "--limit", "1", cwd=tree)
    assert "more: --offset 1" in more.stderr


@needs("fd")
@pytest.mark.parametrize(
    "words",
    ["tmp", "-t f .", ". sub", "'^[ab]' sub site", "-e tmp", "-e tmp . sub", "B.TMP", "b.tmp -d 1", "-t d S"],
)
def test_find_finds_what_fd_does(decoys, words):
    words = shlex.split(words)
    judge = subprocess.run(
        [program("fd"), "--strip-cwd-prefix" if len([*words]) == 1 else "--color=never", *words],
        cwd=decoys,
        capture_output=True,
        text=True,
        check=False,
    )
    done = run("find", *words, cwd=decoys)
    expected = sorted(line.removeprefix("./").rstrip("/") for line in judge.stdout.splitlines())
    assert sorted(done.stdout.splitlines()) == expected, (done.stderr, judge.stderr)
    assert done.returncode == (0 if expected else 1)


def test_read_many_takes_several_paths_and_the_json_of_a_list(tree):
    """Line 17: `read-many a b` took one."""
    text = "import os\nprint(os)\nimport nothing\n"
    for paths in (["a.py", "b.txt"], ['["a.py", "b.txt"]'], ["--budget", "500", "a.py", "b.txt"]):
        assert run("read-many", *paths, cwd=tree).stdout == text
    assert run("read-many", "a.py", cwd=tree).stdout == "import os\nprint(os)\n"


def test_no_option_of_scalars_is_called_json(tree):
    """Line 17: `--max-filesize JSON`, which takes a number or a text."""
    for command in ("grep", "find", "read", "edit"):
        assert not re.search(
            r"--[\w-]+ JSON\b", run(command, "--help", cwd=tree).stdout.replace("--files JSON", "")
        )
    for size, found in (("1M", 0), ("5", 1), ("500", 0)):
        assert run("grep", "import", "--max-filesize", size, cwd=tree).returncode == found


@pytest.mark.full
@pytest.mark.parametrize(
    "command", [["ls"], ["grep", "x"], ["read", "\xe9.txt"], ["grep", "x", "--color", "always"]]
)
def test_names_that_are_not_ascii_in_the_c_locale(tmp_path, command):
    """Line 17: under LC_ALL=C without UTF-8 mode, a traceback on `\xe9.txt`."""
    (tmp_path / "\xe9.txt").write_text("x \xe9\n", encoding="utf-8")
    settings = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    expected, got = (
        subprocess.run(
            [sys.executable, "-m", "agentfs", *command],
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            env={**os.environ, **variables},
        )
        for variables in ({"LC_ALL": "C.UTF-8"}, settings)
    )
    assert (got.returncode, got.stdout, got.stderr) == (0, expected.stdout, expected.stderr)


@pytest.mark.full
@pytest.mark.parametrize("missing", ["mcp", "uvicorn", "anyio"])
def test_mcp_without_its_extra_names_it(tmp_path, missing):
    """Line 17: `agentfs mcp` without its extra was a traceback for `uvicorn`."""
    (tmp_path / "blocked").mkdir()
    (tmp_path / "blocked/sitecustomize.py").write_text(f"import sys\nsys.modules[{missing!r}] = None\n")
    done = subprocess.run(
        [sys.executable, "-m", "agentfs", "mcp"],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": f"{tmp_path / 'blocked'}:{Path(__file__).parents[1]}"},
    )
    assert (done.returncode, done.stdout) == (2, "")
    install = "pip install mcp anyio uvicorn"
    assert done.stderr == f"agentfs: {missing!r} is not installed. Install the extra `mcp`: {install}\n"


def test_the_extras_declare_what_the_package_imports():
    """Line 17: the extra `mcp` did not declare `uvicorn` and `anyio`."""
    root = Path(__file__).parents[1]
    extras = tomllib.loads((root / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    declared = {re.match(r"[\w-]+", each)[0] for each in extras["mcp"]}
    imported = {
        found.group(1)
        for path in (root / "agentfs/mcp").glob("*.py")
        for found in re.finditer(r"^(?:from|import) (\w+)", path.read_text(), re.MULTILINE)
    }
    provided = {"pydantic", "mcp_types"}  # parts of the interface of `mcp`, which requires them
    assert imported - {*sys.stdlib_module_names, "agentfs"} - provided <= declared
    assert {"argcomplete"} == {re.match(r"[\w-]+", each)[0] for each in extras["cli"]}


# --- item 8 of issue 49 ---


def test_the_help_is_printed_without_a_command_and_by_help(tmp_path):
    asked = run("--help", cwd=tmp_path)
    assert (asked.returncode, asked.stderr) == (0, "")
    assert run("help", cwd=tmp_path).stdout == asked.stdout
    bare = run(cwd=tmp_path)
    assert (bare.returncode, bare.stdout, bare.stderr) == (2, asked.stdout, "")
    assert run("help", "grep", cwd=tmp_path).stdout == run("grep", "--help", cwd=tmp_path).stdout
    assert run("help", "multi-edit", cwd=tmp_path).stdout.startswith("usage: agentfs multi_edit [OPTIONS] ")
    wrong = run("help", "gerp", cwd=tmp_path)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "Did you mean 'grep'?" in wrong.stderr


EXAMPLES = {
    line.split()[0]: line
    for line in (Path(__file__).parents[1] / "agentfs/cli/examples.txt").read_text().splitlines()
}


def commands(tmp_path):
    shown = run("--help", cwd=tmp_path).stdout
    return re.findall(r"^    ([a-z_]+) ", shown, re.MULTILINE)


@pytest.mark.full
def test_the_first_screen_of_each_command_has_its_example(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    names = commands(tmp_path)
    assert {"read", "grep", "run", "mcp", "diff"} <= {*names}
    for name in names:
        screen = "\n".join(run(name, "--help", cwd=tmp_path).stdout.splitlines()[:24])
        [example] = [" ".join(part.split()) for part in screen.split("\n\n") if part.startswith("example: ")]
        assert example.startswith(f"example: agentfs {name} ")
        assert example.removeprefix("example: agentfs ") == EXAMPLES[name]


@pytest.mark.full
def test_each_example_of_the_help_succeeds(tmp_path):
    assert sorted(EXAMPLES) == sorted(commands(tmp_path))
    work = tmp_path / "work"
    for name, content in {
        "src/app.py": "# TODO\ndef main():\n    return 1\n",
        "run/main.py": "main\n",
        "a.py": "# TODO\ndef main():\n    return 2\n",
        "tests/test_app.py": "",
        "README.md": "text\n",
        "Makefile": "test:\n\ttrue\n",
    }.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(content)
    assert run("write", "made.txt", "x", "--state", "../history", cwd=work).returncode == 0
    for name, line in EXAMPLES.items():
        if name == "run":
            continue  # tests/commands runs commands, where a sandbox is possible
        done = run(*shlex.split(line), cwd=work, stdin="" if name in {"mcp", "serve"} else None)
        if name == "edit_lines":  # the ids that one command shows are unknown to the next
            assert "No line ids" in done.stderr
            continue
        assert done.returncode == 0, (line, done.stderr)
        assert done.stdout or name in {"mcp", "serve"}, line


@needs("rg")
@pytest.mark.parametrize("words", [
    "-o TODO", "-o 'T|O'", "-oi todo", "-on TODO -m1", "-o 'one|TODO' -C1", "-o two -A1", "-ov TODO", "-oc O",
    "-ol TODO", "-oU 'TODO\\ntwo'", "-oU 'one|TODO\\ntwo\\nthree'", "-ow TODO -0", "-o absent", "-oF 'x|'",
    "-q TODO", "-q absent", "-q TODO missing a.tmp", "-q absent a.tmp missing", "-q -c TODO", "-qv TODO",
    "-Tpy -l TODO", "-Tmd -Tpy -l TODO", "-tpy -l TODO", "-T md TODO -c",
])  # fmt: skip
def test_o_q_and_not_types_are_those_of_ripgrep(decoys, words):
    for name in ("c.py", "d.md", "e.py/in.txt"):
        (decoys / name).parent.mkdir(exist_ok=True)
        (decoys / name).write_text("TODO TODO one\nTODOs\n")
    words = shlex.split(words)
    rg = [program("rg"), "--no-heading", "-n", "-H", "--sort", "path", *words]
    judge = subprocess.run(
        rg, cwd=decoys, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    done = run("grep", *words, cwd=decoys)
    assert (done.stdout, done.returncode) == (judge.stdout, judge.returncode), (done.stderr, judge.stderr)
    if "-q" in words[0] and "missing" not in words:
        assert done.stderr == ""


@needs("rg")
def test_the_type_list_names_the_types_and_the_globs_of_ripgrep(tmp_path):
    ours, theirs = (
        dict(line.split(": ", 1) for line in text.splitlines())
        for text in (
            run("grep", "--type-list", cwd=tmp_path).stdout,
            subprocess.run([program("rg"), "--type-list"], capture_output=True, text=True, check=True).stdout,
        )
    )
    assert theirs.keys() <= ours.keys()
    assert [*ours] == sorted(ours)
    plain = {name for name, globs in theirs.items() if "[" not in globs and "{" not in globs}
    same = {name for name in plain if {*ours[name].split(", ")} == {*theirs[name].split(", ")}}
    assert len(same) > 0.9 * len(theirs), {name: (ours[name], theirs[name]) for name in plain - same}


def test_a_long_listing_has_type_size_and_time_as_ls_does(tree):
    (tree / "link").symlink_to("a.py")
    os.utime(tree / "a.py", (1_000_000_000, 1_000_000_000))
    done = run("ls", "-l", cwd=tree)
    rows = [
        re.fullmatch(r"([-dls]) +(-|\d+) (\d{4}-\d\d-\d\d \d\d:\d\d) (.+)", line)
        for line in done.stdout.splitlines()
    ]
    judge = subprocess.run(
        ["ls", "-lL", "--time-style=+%Y-%m-%d %H:%M", "a.py", "b.txt", "sub", "-d", "link"],
        cwd=tree, capture_output=True, text=True, check=True,
    )  # fmt: skip
    theirs = {words[-1]: words for words in map(str.split, judge.stdout.splitlines())}
    assert [row[4] for row in rows] == ["sub", "a.py", "b.txt", "link"]
    assert [row[1] for row in rows] == ["d", "-", "-", "s"]
    for row in rows:
        words = theirs[row[4]]
        if row[4] != "link":
            assert row[3] == " ".join(words[-3:-1])
        if row[1] == "-":
            assert row[2] == words[-4]
    assert run("ls", "-l", "--json", cwd=tree).stdout == run("ls", "--json", cwd=tree).stdout
