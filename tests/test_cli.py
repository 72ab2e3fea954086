"""The command line as a shell sees it: exit status, standard output and standard error."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from agentfs.schema import FORMATS


def run(*arguments: str, cwd: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "agentfs", *arguments]
    return subprocess.run(
        command, cwd=cwd, input=stdin, capture_output=True, text=True, check=False, timeout=60
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
    assert (done.returncode, done.stdout) == (1, "")
    assert "missing.txt" in done.stderr


@pytest.mark.parametrize("arguments", ["", "nonsense", "[1]", '{"path": 1'])
def test_call_with_bad_json_is_a_failure_without_a_traceback(tmp_path, arguments):
    done = run("call", "read", arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "Traceback" not in done.stderr


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


def test_a_missing_root_is_a_usage_error(tmp_path):
    done = run("schemas", "--root", "nowhere", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("agentfs: ")


def test_no_command_is_a_usage_error(tmp_path):
    assert run(cwd=tmp_path).returncode == 2


def test_a_reader_that_goes_away_is_no_traceback(tmp_path):
    (tmp_path / "a.txt").write_text("x" * 30 + "\n", encoding="utf-8")
    (tmp_path / "many.txt").write_text("some line that is long enough\n" * 1500)
    command = f'{sys.executable} -m agentfs call read \'{{"path": "many.txt"}}\' | head -n 1'
    done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stderr == ""
