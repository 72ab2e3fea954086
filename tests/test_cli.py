"""The command line as a shell sees it: exit status, standard output and standard error."""

import errno
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from agentfs.providers import FORMATS
from tests.forked import run_command as run
from tests.kit import put


@pytest.mark.full
@pytest.mark.parametrize("arguments", [
    ["call", "read", '{"path": "a.txt"}'], ["call", "read", "path=missing"], [], ["-V"], ["log", "--nothing"],
])  # fmt: skip
def test_it_is_a_module_that_runs(tmp_path, arguments):
    """The other tests call the same function in a forked process, which is faster."""
    (tmp_path / "a.txt").write_text("one\n")
    command = [sys.executable, "-m", "agentfs", *arguments]
    started = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    done = run(*arguments, cwd=tmp_path)
    assert [done.returncode, done.stdout, done.stderr] == [
        started.returncode, started.stdout, started.stderr,
    ]  # fmt: skip


def test_call_takes_a_root_and_standard_input(tmp_path):
    put(tmp_path, {"sub/a.txt": "old\n"})
    arguments = json.dumps({"path": "a.txt", "old_string": "old", "new_string": "new"})
    done = run("call", "edit", "-", "--root", "sub", cwd=tmp_path, stdin=arguments)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "sub" / "a.txt").read_text() == "new\n"
    shown = json.loads(run("call", "read", '{"path": "sub/a.txt"}', "--json", cwd=tmp_path).stdout)
    assert (shown["success"], shown["data"]["total_lines"]) == (True, 1)


@pytest.mark.parametrize("format_name", FORMATS)
def test_schemas_prints_json_for_each_provider(tmp_path, format_name):
    done = run("schemas", "--format", format_name, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "multi_edit" in done.stdout
    assert done.stdout == f"{json.dumps(json.loads(done.stdout), indent=2, ensure_ascii=False)}\n"


def test_schemas_and_call_speak_a_dialect(tmp_path):
    (tmp_path / "a.txt").write_text("one\n")
    done = run("schemas", "--dialect", "text-editor", "--format", "mcp", cwd=tmp_path)
    assert [tool["name"] for tool in json.loads(done.stdout)] == ["str_replace_based_edit_tool"]
    done = run("call", "Grep", '{"pattern": "one"}', "--dialect", "wave", cwd=tmp_path)
    assert (done.returncode, done.stdout.splitlines()[0], done.stderr) == (0, "a.txt", "")
    done = run("call", "str_replace_based_edit_tool", '{"command": "insert"}', cwd=tmp_path)
    assert done.returncode == 2, "without it the tools are agentfs's own"


def test_a_closed_pipe_prints_no_traceback(tmp_path):
    (tmp_path / "a.txt").write_text("x" * 30 + "\n", encoding="utf-8")
    (tmp_path / "many.txt").write_text("some line that is long enough\n" * 1500)
    call = f'{shlex.quote(sys.executable)} -m agentfs call read \'{{"path": "many.txt"}}\''
    command = f"{{ {call}; echo $? >status; }} | head -n 1"
    done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (tmp_path / "status").read_text() == "0\n"
    assert done.stderr == ""


def test_a_script_has_the_name_of_the_distribution():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    assert project["scripts"][project["name"]] == project["scripts"]["agentfs"]


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "sub").mkdir()
    return put(tmp_path, {"a.py": "import os\nprint(os)\n", "b.txt": "import nothing\n"})


FULL = (2, "agentfs: Standard output cannot be written: No space left on device.\n")


@pytest.mark.parametrize(("arguments", "status", "printed"), [
    (["call", "grep", "pattern=import", "glob=*.py"], 0, "1|import os"),
    (["call", "grep", "pattern=IMPORT", "ignore_case=true", "output_mode=count"], 0, "b.txt"),
    (["call", "grep", "pattern=a=b"], 1, "No matches"),
    (["call", "grep", '{"pattern": "absent"}'], 1, "No matches"),
    (["call", "glob", "pattern=*.rs"], 1, "0 files"), (["call", "ls"], 0, "a.py"),
    (["call", "ls", "path=sub"], 0, ""),
    (["call", "read", "path=a.py", "offset=2"], 0, "2|print(os)"),
    (["call", "write", "path=new/c.txt", "content=a=b\n"], 0, "Created"),
    (["call", "delete", "path=sub", "recursive=true"], 0, "Deleted"),
    (["call", "multi_edit", "path=b.txt", 'edits={"old_string": "noth", "new_string": "x"}'], 0, "+import x"),
])  # fmt: skip
def test_a_tool_is_called_with_names_and_values(tree, arguments, status, printed):
    done = run(*arguments, cwd=tree)
    assert (done.returncode, done.stderr) == (status, "")
    assert printed in done.stdout


@pytest.mark.parametrize(("arguments", "said"), [
    (["call", "read", '{"path": "missing.txt"}'], "missing.txt"),
    *((["call", "read", wrong], "") for wrong in ("", "nonsense", "[1]", '{"path": 1')),
    *(([*command, "--connect", "ssh 'host"], 'argument --connect: invalid split value: "ssh \'host"')
      for command in (["call", "ls", "{}"], ["mcp"])),
    *(([*command, "--dialect", "wav"], "Did you mean 'wave'?")
      for command in (["schemas"], ["call", "read", "{}"])),
    (["log", "--limit", "-1", "--state", "x"], "`--limit` must be 0 or more"),  # listed some
    (["schemas", "--root", "nowhere"], "agentfs: "), (["cal", "x"], "'cal' (choose from "), ([], ""),
    *((arguments, "") for arguments in (
        ["call", "grep"], ["call", "grep", "pattern=("], ["call", "read", "path=../x"], ["call", "grep", "x"],
        ["call", "grep", "pattern=x", "limit=many"], ["call", "write", "path=b.txt", "content=x"],
        ["nothing"], ["call", "nothing"], ["call", "read", "path=a.py", "path=b.txt"],
        ["call", "read", "path=a.py", "x"], ["call", "read", "path=a.py", "lines=2"], ["call"],
        ["--root", "."], ["log"], ["log", "--limit", "x"], ["call", "read", "path=a.py", "--mount", "x"],
        ["call", "ls", "--mount", "x="])),
])  # fmt: skip
def test_a_failure_is_2_and_on_standard_error(tree, arguments, said):
    done = run(*arguments, cwd=tree)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert arguments not in ([], ["cal", "x"]) or done.stderr.count("\n") == 1


@pytest.mark.parametrize("arguments", [
    ["--root", "sub", "call", "ls"], ["call", "--root", "sub", "ls"], ["call", "ls", "--root", "sub"],
    ["--root=sub", "--json", "call", "ls"],
    ["--mount", "x=sub", "--root", "other", "call", "read", "path=x/c.txt"],
])  # fmt: skip
def test_regression_options_go_before_or_after_the_command(tree, arguments):
    """`agentfs --root . ls` said "invalid choice: '.'"."""
    put(tree, {"sub/c.txt": "text\n", "other/y": ""})
    done = run(*arguments, cwd=tree)
    assert done.returncode == 0, done.stderr
    assert "c.txt" in done.stdout or "1|text" in done.stdout


def test_standard_input_keeps_its_line_ends(tree):
    given = json.dumps({"path": "c.txt", "content": "a\r\nb\rc\n"})
    assert run("call", "write", "-", cwd=tree, stdin=given).returncode == 0
    assert (tree / "c.txt").read_bytes() == b"a\r\nb\rc\n"


def test_root_and_state_come_from_the_environment(tree, monkeypatch):
    monkeypatch.setenv("AGENTFS_ROOT", str(tree / "sub"))
    monkeypatch.setenv("AGENTFS_STATE", str(tree / "state"))
    assert run("call", "write", "path=new.txt", "content=x", cwd=tree).returncode == 0
    assert (tree / "sub/new.txt").read_text() == "x"
    assert "new.txt" in run("log", cwd=tree).stdout
    assert run("call", "undo", cwd=tree).returncode == 0
    assert not (tree / "sub/new.txt").exists()
    monkeypatch.delenv("AGENTFS_STATE")
    assert "b.txt" in run("call", "ls", "--root", str(tree), cwd=tree).stdout
    monkeypatch.setenv("AGENTFS_ROOT", "")
    assert run("call", "ls", "path=sub", cwd=tree).returncode == 0


@pytest.mark.parametrize(("wrong", "said"), [
    ("call read --dialct x", "--dialct"), ("diff --state x --sinse=yes", "--sinse=yes"),
    ("mcp --read-olny", "--read-olny"), ("serve --rot .", "--root"),
    ("log --state x a.py b.txt", "a.py b.txt"),
])  # fmt: skip
def test_a_wrong_option_is_answered_in_one_line(tree, wrong, said):
    done = run(*wrong.split(), cwd=tree)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert said in done.stderr
    assert f"agentfs {wrong.split()[0]} --help" in done.stderr


def test_the_help_is_printed_by_help(tmp_path):
    asked = run("--help", cwd=tmp_path)
    assert (asked.returncode, asked.stderr) == (0, "")
    assert run("help", cwd=tmp_path).stdout == asked.stdout
    assert run("help", "call", cwd=tmp_path).stdout == run("call", "--help", cwd=tmp_path).stdout
    wrong = run("help", "cal", cwd=tmp_path)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "'cal'" in wrong.stderr


SHELLED = {
    "call read path=a.py >/dev/full": FULL, "call read path=a.py --json >/dev/full": FULL,
    "call read path=large.txt >/dev/full": FULL, "schemas >/dev/full": FULL, "--help >/dev/full": FULL,
    "diff --state ../state >/dev/full": FULL, "run --mode recorded -- echo a >/dev/full": (125, FULL[1]),
    "call read path=a.py >&-": (2, "agentfs: Standard output is closed.\n"),
    "call write - <&-": (2, "agentfs: Standard input is closed.\n"),
    "call write - <binary": (2, "agentfs: Standard input is not text in utf-8.\n"),
    "call read path=missing 2>/dev/full": (2, ""), "call read path=missing 2>&-": (2, ""),
    "run --mode recorded -- true 2>&-": (0, ""),  # it ended with 1
}  # fmt: skip


@pytest.mark.full
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
@pytest.mark.parametrize("line", SHELLED)
def test_regression_a_full_closed_or_binary_stream_prints_no_traceback(tree, line, monkeypatch):
    from agentfs import Workspace

    long = "some line that is long enough\n" * 1500
    work = put(tree / "work", {"a.py": "import os\n", "large.txt": long, "binary": b"\xff\xfe"})
    with Workspace(work, state=tree / "state") as ws:
        ws.write("b.py", "text\n" * 5000)
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)  # with it argparse lets a full device pass
    done = shelled(f'exec "$0" -m agentfs {line}', work)
    assert (done.returncode, done.stderr) == SHELLED[line]
    assert not (work / "new.txt").exists()


def shelled(line, directory, **more):
    """Run a line of a shell, in which `$0` is Python."""
    command = ["sh", "-c", line, sys.executable]
    streams = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
    return subprocess.run(command, cwd=directory, check=False, **streams, **more)


def test_a_character_outside_the_encoding_of_a_stream_is_escaped(tree, monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    (tree / "euro.txt").write_text("5 \u20ac\n")
    command = [sys.executable, "-m", "agentfs", "call", "read", "path=euro.txt"]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1|5 \\u20ac\n", "")


def test_a_system_error_is_not_blamed_on_standard_output(tmp_path, monkeypatch, capsys):
    from agentfs import cli
    from agentfs.history import state

    def failing(*_):
        raise OSError(errno.EMFILE, "Too many open files", "journal")

    monkeypatch.setattr(state, "read_journal", failing)
    assert cli.main(["log", "--state", str(tmp_path)]) == 2
    assert capsys.readouterr().err == 'agentfs: The system failed on "journal": Too many open files.\n'


@pytest.mark.full
def test_few_descriptors_are_not_an_error_of_standard_output(tmp_path):
    done = shelled('ulimit -n 6; exec "$0" -m agentfs mcp', tmp_path)
    assert done.returncode != 0
    assert "Standard output" not in done.stderr


@pytest.mark.full
@pytest.mark.parametrize("missing", ["mcp", "uvicorn", "anyio"])
def test_mcp_without_its_extra_names_it(tmp_path, missing):
    put(tmp_path, {"blocked/sitecustomize.py": f"import sys\nsys.modules[{missing!r}] = None\n"})
    path = {"PYTHONPATH": f"{tmp_path / 'blocked'}:{Path(__file__).parents[1]}"}
    done = shelled('exec "$0" -m agentfs mcp', tmp_path, env={**os.environ, **path})
    assert (done.returncode, done.stdout) == (2, "")
    install = "pip install mcp anyio uvicorn"
    assert done.stderr == f"agentfs: {missing!r} is not installed. Install the extra `mcp`: {install}\n"


def test_the_extras_declare_what_the_package_imports():
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


@pytest.mark.parametrize(("options", "command", "status"), [
    (["--policy", "../policy.toml"], "true", 0), (["--policy", "../policy.toml"], "git init", 125),
    (["--mode", "recorded", "--deny", "run(touch *)"], "touch x", 125),
    (["--mode", "recorded", "--allow", "run(true)"], "true", 0),
    (["--mode", "recorded", "--allow", "run(true)"], "touch x", 125),
])  # fmt: skip
def test_regression_a_command_obeys_the_rules_of_a_policy_file_and_of_options(
    tmp_path, options, command, status
):
    """`agentfs run` lacked `--policy`, `--deny` and `--allow`, which `agentfs mcp` has."""
    (tmp_path / "work").mkdir()
    (tmp_path / "policy.toml").write_text('run = "recorded"\ndeny = ["run(git *)"]\n')
    done = run("run", *options, "--", command, cwd=tmp_path / "work")
    assert done.returncode == status, done.stderr
    assert list((tmp_path / "work").iterdir()) == []


@pytest.mark.parametrize(("arguments", "status"), [
    (["run", "--nothing"], 125), (["run"], 125), (["--root", ".", "run", "--nothing"], 125),
    (["call", "run", "--nothing"], 2), (["call", "run", "command=true"], 2),
])  # fmt: skip
def test_only_run_itself_ends_with_its_own_status(tmp_path, arguments, status):
    assert run(*arguments, cwd=tmp_path).returncode == status
