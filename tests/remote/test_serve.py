"""`agentfs serve` started by hand: its messages and its exit status."""

import json
import os
import signal
import subprocess
import time
from contextlib import suppress

import pytest

from agentfs import Workspace, connect
from agentfs.errors import FileIOError
from tests.remote.test_reconnect import SERVE


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


@pytest.mark.parametrize(
    ("given", "status", "message"),
    [
        (None, 0, ""),
        (b"hello\n", 2, "agentfs: A line is not JSON in ASCII.\n"),
        (b"[1]\n", 2, "agentfs: A line is not a JSON object.\n"),
        (b'{"a"', 2, "agentfs: A line was cut off.\n"),
    ],
)
def test_an_invalid_first_message_is_reported_on_standard_error(tmp_path, given, status, message):
    assert serve(tmp_path, given) == (status, b"", message)


def test_a_client_of_another_version_gets_an_error(tmp_path):
    status, out, err = serve(tmp_path, b'{"protocol":0}\n')
    assert (status, err, json.loads(out)["error"]["code"]) == (0, "", "invalid_argument")


def test_a_closed_standard_input_is_reported(tmp_path):
    status, out, err = serve(tmp_path, None, "sh", "-c", 'exec "$@" <&-', "sh")
    assert (status, out, err) == (2, b"", "agentfs: Standard input is closed.\n")


@pytest.mark.parametrize(
    ("number", "ends"),
    [(signal.SIGTERM, True), (signal.SIGHUP, True), (signal.SIGINT, False), (signal.SIGPIPE, False)],
)
def test_a_signal_ends_the_server_in_order_or_not_at_all(tmp_path, number, ends):
    (tmp_path / "a.txt").write_text("one\n")
    inherited = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup ignores it, and so do its children
    try:
        connected = connect([*SERVE, str(tmp_path)], ".", push=False)
    finally:
        signal.signal(signal.SIGHUP, inherited)
    with connected as ws:
        process = ws.remote.pid

        def change(text: str) -> list[tuple[int, int, str]]:  # the change is under way at the remote side
            if ws.remote.pid == process:
                os.kill(process, number)
                time.sleep(0.1)
            return [(0, 0, "x")]

        ws.splice("a.txt", change)
        assert ws.remote.reconnects == ends
        assert (tmp_path / "a.txt").read_text() == "xone\n"


def test_a_removed_root_fails_as_in_a_local_workspace(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    with connect([*SERVE, str(root)], ".", push=False) as ws, Workspace(root) as local:
        root.rmdir()
        for call in (lambda ws: ws.read("a.txt"), lambda ws: ws.write("a.txt", "x")):
            errors = []
            for each in (ws, local):
                with pytest.raises(OSError, match="was removed") as caught:
                    call(each)
                errors.append(caught.value)
            assert errors[0].to_dict() == errors[1].to_dict()


@pytest.mark.parametrize("descriptors", [8, 10, 12, 16])
def test_running_out_of_descriptors_is_a_typed_error_and_the_server_goes_on(tmp_path, descriptors):
    (tmp_path / "a.txt").write_text("one\n")
    limited = ["sh", "-c", f'ulimit -n {descriptors}; exec "$@"', "sh", *SERVE, str(tmp_path)]
    with connect(limited, ".", push=False, patience=5) as ws:
        assert ws.read("a.txt").content == "one\n"
        with suppress(FileIOError):
            ws.edit("a.txt", "one", "two")
            assert (tmp_path / "a.txt").read_text() == "two\n"
        assert ws.read("a.txt").total_lines == 1
        assert ws.remote.reconnects == 0
