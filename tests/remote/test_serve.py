"""`agentfs serve` as a process: its messages, its exit status, and what its command line allows."""

import json
import os
import subprocess
import sys
from contextlib import suppress

import pytest

import agentfs
from agentfs import Policy, Workspace, connect
from agentfs.errors import DisconnectedError, FileIOError, InvalidArgumentError, RefusedError
from agentfs.remote.server import Server

SERVE = [sys.executable, "-m", "agentfs", "serve", "--root"]


def serve(root, given: bytes | None, *command: str) -> tuple[int, bytes, str]:
    done = subprocess.run(
        [*command, *SERVE, str(root)],
        input=given,
        stdin=subprocess.DEVNULL if given is None else None,
        capture_output=True,
        check=False,
        timeout=60,
    )
    return done.returncode, done.stdout, done.stderr.decode()


@pytest.mark.full
@pytest.mark.parametrize(("given", "status", "message"), [
    (None, 0, ""),
    (b"hello\n", 2, "agentfs: This is not a message of agentfs: 'hello\\n'.\n"),
    (b'{"a"', 2, "agentfs: A line was cut off, or is too long.\n"),
])  # fmt: skip
def test_an_invalid_first_message_is_reported_on_standard_error(tmp_path, given, status, message):
    assert serve(tmp_path, given) == (status, b"", message)


@pytest.mark.full
def test_a_client_of_another_version_gets_the_version_and_an_error(tmp_path):
    settings = '[{"$": "Policy", "field_of_another_version": 1}, {"$": "Limits"}]'
    arguments = {"version": "0.0.1", "root": ".", "state": None, "settings": settings}
    call = {"of": 0, "method": "open", "arguments": arguments}
    status, out, err = serve(tmp_path, json.dumps(call).encode() + b"\n")
    answer = json.loads(out)
    assert (status, err, answer["of"], answer["error"]["code"]) == (0, "", 0, "unsupported")
    assert agentfs.__version__ in answer["error"]["message"]


@pytest.mark.full
def test_a_closed_standard_input_is_reported(tmp_path):
    status, out, err = serve(tmp_path, None, "sh", "-c", 'exec "$@" <&-', "sh")
    assert (status, out, err) == (2, b"", "agentfs: Standard input is closed.\n")


@pytest.mark.full
def test_a_killed_server_ends_the_calls_and_its_state_is_kept(tmp_path):
    root, state = tmp_path / "root", tmp_path / "states"
    root.mkdir()
    state.mkdir()
    command = [*SERVE, str(root), "--state", str(state)]
    with connect(command, ".", state="mine", patience=10) as ws:
        ws.write("a.txt", "one\n")
        ws._session._connection._process.kill()
        with pytest.raises(DisconnectedError):
            ws.append("a.txt", "two\n")
        assert [each.path for each in ws.changes().files] == ["a.txt"]
        assert ws.undo().steps == 1
    assert not (root / "a.txt").exists()


@pytest.mark.full
@pytest.mark.parametrize("descriptors", [10, 16])
def test_running_out_of_descriptors_is_a_typed_error_and_the_server_goes_on(tmp_path, descriptors):
    (tmp_path / "a.txt").write_text("one\n")
    limited = ["sh", "-c", f'ulimit -n {descriptors}; exec "$@"', "sh", *SERVE, str(tmp_path)]
    with connect(limited, ".", patience=10) as ws:
        assert ws.read("a.txt").content == "one\n"
        with suppress(FileIOError):
            ws.edit("a.txt", "one", "two")
            assert (tmp_path / "a.txt").read_text() == "two\n"
        assert ws.read("a.txt").total_lines == 1


def test_the_command_line_narrows_every_client(tmp_path):
    (tmp_path / "a.txt").write_text("one\n")
    (tmp_path / "b.txt").write_text("one\n")
    file = tmp_path.parent / f"{tmp_path.name}.toml"
    file.write_text('run = "recorded"\ndeny = ["delete(b.txt)"]\n')
    command = [*SERVE, str(tmp_path), "--policy", str(file), "--deny", "edit(b.txt)", "--protect", "a.txt"]
    with connect(command, ".", policy=Policy(run="recorded", mode="bypass")) as ws:
        assert ws.policy.deny == ("delete(b.txt)", "edit(b.txt)")
        assert ws.run("echo x").exit_status == 0
        assert "run" in ws.tools("all").names
        for name, *arguments in (("read", "a.txt"), ("edit", "b.txt", "one", "two"), ("delete", "b.txt")):
            with pytest.raises(PermissionError):
                getattr(ws, name)(*arguments)


def test_a_server_without_staged_commands_refuses_a_client_that_wants_them(tmp_path):
    with pytest.raises(RefusedError, match="no staged commands"):
        connect([*SERVE, str(tmp_path)], ".", policy=Policy(run="staged"))


@pytest.mark.parametrize("policy", [Policy(allow=["edit"]), Policy(ask=["edit"]), Policy(mode="plan")])
def test_a_server_refuses_a_policy_that_needs_somebody_to_ask(policy):
    with pytest.raises(InvalidArgumentError, match="whoever connects is asked"):
        Server(os.open(os.devnull, os.O_WRONLY), ".", policy)


@pytest.mark.full
def test_a_removed_root_fails_as_in_a_local_workspace(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    with connect([*SERVE, str(root)], ".") as ws, Workspace(root) as local:
        root.rmdir()
        for call in (lambda ws: ws.read("a.txt"), lambda ws: ws.write("a.txt", "x")):
            errors = []
            for each in (ws, local):
                with pytest.raises(OSError, match="was removed") as caught:
                    call(each)
                errors.append(caught.value)
            assert errors[0].to_dict() == errors[1].to_dict()
