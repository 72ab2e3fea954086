"""Events at the worst moment: each test produces one order of events without sleeping for it."""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from types import SimpleNamespace

import pytest

from agentfs import Deny, Limits, PermissionRequest, Policy, connect
from agentfs.base import call_context
from agentfs.errors import DisconnectedError, FileIOError, RefusedError, UnsupportedSystemError
from agentfs.remote import bootstrap_near, protocol, session
from agentfs.remote.server import Options, Server
from agentfs.results import UndoResult
from tests.remote.test_hostile_client import Client
from tests.remote.test_hostile_server import HELLO, RemoteSide, line
from tests.remote.test_reconnect import Fault, opener, tree

END = None  # a script yields it to end the stream
WAIT = 20.0


def script(on_call=None, **on):
    """Return a script that opens correctly and answers each kind of message by a function."""
    on["request"] = on_call

    def answers(message) -> Iterator[bytes | None]:
        if "nonce" in message:
            yield line({"agentfs": message["nonce"], **HELLO})
        for kind, function in on.items():
            if kind in message and function is not None:
                for each in function(message):
                    yield each if each is END or isinstance(each, bytes) else line(each)

    return answers


def value(message, result=None):
    return {"answer": message["request"], "value": protocol.to_wire(result)}


def answered(message):
    return [value(message)]


UNDONE = UndoResult(text="undone", steps=1, files=(), undoable=0, redoable=1)


def undone(message):
    return [value(message, UNDONE)]


class RemoteSides:
    """Opens a stream for each script in order, and then raises OSError."""

    def __init__(self, *scripts) -> None:
        self.left, self.opened = [*scripts], 0

    def __call__(self, _):
        self.opened += 1
        if not self.left:
            raise OSError("no route to host")
        first = self.left.pop(0)
        return RemoteSide(first)


def open_far(*scripts, patience=WAIT, **options):
    sides = RemoteSides(*scripts)
    return sides, connect(sides, "/far", push=False, patience=patience, **options)


def in_thread(function):
    """Run a function in a thread; return the thread and a list for its result or exception."""
    outcome = []

    def run() -> None:
        try:
            outcome.append(function())
        except BaseException as error:  # noqa: BLE001 - the test examines it
            outcome.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, outcome


def with_call(call, function):
    call_context.current.set(call)
    return function()


def ask(message):
    request = PermissionRequest("forget", "none", {}, (), "", None)
    return {"ask": 1, "of": message["request"], "function": 0, "arguments": protocol.to_wire([request])}


def test_a_slow_answer_to_a_question_does_not_count_as_silence():
    patience, numbers = 3.0, []

    def on_call(message):
        numbers.append(message["request"])
        yield ask(message)

    def permission(_):
        time.sleep(patience / 2)  # longer than the remote side may be silent
        return Deny()

    # The remote side answers only after a ping.
    side = script(on_call, ping=lambda _: [{"answer": numbers[0], "value": None}])
    sides, ws = open_far(side, patience=patience, policy=Policy(on_ask=permission))
    with ws:
        ws.forget()
        assert (sides.opened, len(numbers)) == (1, 1)


def test_a_long_answer_that_comes_slowly_does_not_count_as_silence():
    patience, parts = 3.0, []

    def on_call(message):
        text = line(value(message, UNDONE))
        parts.extend([*(b"+" + text[at : at + 1] + b"\n" for at in range(6)), text[6:]])
        return ()

    side = script(on_call, ping=lambda _: [parts.pop(0)] if parts else ())
    sides, ws = open_far(side, patience=patience)
    with ws:
        assert ws.undo() == UNDONE
        assert sides.opened == 1


def test_a_remote_side_that_cannot_open_is_tried_again():
    full = FileIOError("No space left.")

    def refuse(message):
        yield line({"agentfs": message["nonce"], "error": protocol.encode_error(full)})

    sides, ws = open_far(script(lambda _: [END]), refuse, script(undone))
    with ws:
        assert ws.undo() == UNDONE
        assert sides.opened == 3


def test_made_is_unknown_if_the_package_cannot_be_installed_on_reconnecting(monkeypatch):
    failures = iter([None, *[UnsupportedSystemError("The package cannot be installed.")] * 20])

    def start(*_):
        if failure := next(failures):
            raise failure

    monkeypatch.setattr(bootstrap_near, "start_server", start)
    sides = RemoteSides(script(lambda _: [END]), *[script()] * 20)
    with connect(sides, "/far", patience=0.3) as ws, pytest.raises(DisconnectedError) as caught:
        ws.undo()
    assert caught.value.details["made"] is None


def test_a_change_cancelled_without_a_connection_is_waited_for():
    lost, cancelled = threading.Event(), threading.Event()

    def open_stream(_):
        if sides.opened:
            lost.set()
            assert cancelled.wait(WAIT)
        return sides(_)

    sides = RemoteSides(script(lambda _: [END]), script(undone))
    with connect(open_stream, "/far", push=False, patience=WAIT) as ws:
        call = call_context.Execution("undo")
        thread, outcome = in_thread(lambda: with_call(call, ws.undo))
        assert lost.wait(WAIT)
        assert call.abandon() is False
        cancelled.set()
        thread.join(WAIT)
        assert outcome == [UNDONE]


def test_progress_after_a_cancellation_does_not_end_a_change():
    begun, numbers = threading.Event(), []

    def on_call(message):
        numbers.append(message)
        begun.set()
        return ()

    def on_cancel(message):
        return [{"progress": message["cancel"], "entries": 1000}, value(numbers[0], UNDONE)]

    _, ws = open_far(script(on_call, cancel=on_cancel))
    with ws:
        call = call_context.Execution("undo", on_progress=lambda _: None)
        thread, outcome = in_thread(lambda: with_call(call, ws.undo))
        assert begun.wait(WAIT)
        assert call.abandon() is False
        thread.join(WAIT)
        assert outcome == [UNDONE]


def test_an_interrupt_is_raised_even_if_the_connection_is_lost():
    def on_call(_):
        os.kill(os.getpid(), signal.SIGINT)
        return ()

    sides, ws = open_far(script(on_call, cancel=lambda _: [END]), script(undone))
    with ws:
        with pytest.raises(KeyboardInterrupt):
            ws.undo()
        assert sides.opened == 1


def test_a_callback_that_raises_refuses_the_call_even_if_the_connection_is_lost():
    asked = []

    def permission(request):
        asked.append(request)
        raise LookupError

    def on_call(message):
        yield ask(message)

    side = script(on_call, reply=lambda _: [END])
    _, ws = open_far(side, script(on_call), policy=Policy(on_ask=permission))
    with ws:
        with pytest.raises(RefusedError) as refused:
            ws.undo()
        assert isinstance(refused.value.__cause__, LookupError)
        assert len(asked) == 1


def test_a_call_ends_within_its_timeout_plus_patience():
    silent = script(ping=lambda message: [{"pong": message["ping"]}])
    sides, ws = open_far(silent, silent, patience=0.5, limits=Limits(timeout=0.2))
    with ws:
        with pytest.raises(DisconnectedError, match="in time"):
            ws.undo()
        assert sides.opened == 1


def test_a_timeout_that_a_model_requests_does_not_prolong_the_wait():
    silent = script(ping=lambda message: [{"pong": message["ping"]}])
    _, ws = open_far(silent, silent, patience=0.5, limits=Limits(timeout=0.2))
    with ws:
        call = call_context.Execution("grep")
        thread, outcome = in_thread(lambda: with_call(call, lambda: ws.grep("x", timeout=1000.0)))
        thread.join(WAIT)
        assert isinstance(outcome[0], DisconnectedError)


def test_closing_ends_an_attempt_to_connect():
    trying = threading.Event()

    def silent(_):
        trying.set()
        return ()

    _, ws = open_far(script(lambda _: [END]), silent, patience=60)
    thread, outcome = in_thread(ws.undo)
    assert trying.wait(WAIT)
    closing, _ = in_thread(ws.close)
    closing.join(WAIT)
    thread.join(WAIT)
    assert not closing.is_alive()
    assert isinstance(outcome[0], DisconnectedError)


def test_a_lost_call_of_a_transaction_is_not_made_and_needs_no_new_connection():
    def on_call(message):
        return answered(message) if message["method"] == "begin" else [END]

    sides, ws = open_far(script(on_call))
    with ws:
        with pytest.raises(DisconnectedError) as caught, ws.transaction() as changes:
            changes.undo()
        assert caught.value.details["made"] is False
        assert sides.opened == 1


def test_the_transaction_of_a_cancelled_call_is_aborted():
    given_up = threading.Event()

    def on_abort(_):
        given_up.set()
        return ()

    _, ws = open_far(script(answered, abort=on_abort))
    call = call_context.Execution("undo")

    def change() -> None:
        with ws.transaction():
            assert call.abandon()

    with ws:
        thread, outcome = in_thread(lambda: with_call(call, change))
        thread.join(WAIT)
        assert isinstance(outcome[0], call_context.Cancelled)
        assert given_up.wait(WAIT)


def test_a_server_ends_even_if_a_call_ends_at_the_same_time(tmp_path, monkeypatch):
    policy = protocol.to_wire(Policy(on_ask=lambda _: Deny()), [])
    client = Client(Options(root=str(tmp_path), any_policy=True), policy=policy)
    ended = []
    end, abandon = Server.end, call_context.Execution.abandon

    def abandon_late(call):
        """Let the call end by itself first."""
        server, request = requests[call]
        request.replies.put({"to": 1, "value": None})
        while request.number in server._requests:
            time.sleep(0.001)
        return abandon(call)

    def note_end(server) -> None:
        requests.update({each.call: (server, each) for each in server._requests.values()})
        end(server)
        ended.append(server)

    requests = {}
    monkeypatch.setattr(Server, "end", note_end)
    monkeypatch.setattr(call_context.Execution, "abandon", abandon_late)
    assert "ask" in client.call("write", {"path": "a.txt", "content": "x"})
    with suppress(OSError):
        client.end()
    assert ended


# A server that gets SIGTERM, on its first run, while it starts the thread of a call.
ENDED_AT_A_CALL = """
import os, signal, sys, threading
from agentfs import Workspace
from agentfs.remote.server import Options, Server, serve

start, run, end, close = threading.Thread.start, Server._run, Server.end, Workspace.close
ending, closed = threading.Event(), threading.Event()
if not os.path.exists(sys.argv[2]):
    open(sys.argv[2], "x").close()
    threading.Thread.start = lambda thread: (start(thread), os.kill(os.getpid(), signal.SIGTERM))
    Server._run = lambda *given: (ending.wait(20), closed.wait(0.3), run(*given))[-1]
    Server.end = lambda server: (ending.set(), end(server))
    Workspace.close = lambda workspace: (close(workspace), closed.set())
serve(Options(root=sys.argv[1], any_policy=True))
"""


def test_a_server_that_ends_while_a_call_begins_waits_for_its_thread(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    command = [sys.executable, "-c", ENDED_AT_A_CALL, str(root), str(tmp_path / "ended")]
    with connect(command, ".", push=False, patience=WAIT) as ws:
        assert ws.write("a.txt", "one\n").created
        assert ws.remote.reconnects == 1


def other_home(tmp_path):
    homes = iter([tmp_path / "home", tmp_path / "new home"])
    return "lock_directory", lambda _: str(next(homes))


def other_boot(_):
    boots = iter(["first", "second"])
    return "boot_id", lambda: next(boots)


@pytest.mark.parametrize("lost", [other_home, other_boot])
@pytest.mark.parametrize("kind", ["change", "transaction"])
def test_a_remote_side_that_lost_its_outcomes_repeats_no_change(tmp_path, monkeypatch, lost, kind):
    """For example a new container with the same files, or a machine that lost power."""
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.txt").write_text("one\n")
    monkeypatch.setattr(session, *lost(tmp_path))
    fault = Fault("from_far", 0)
    with connect(opener(fault), root, push=False, patience=WAIT) as ws:
        with pytest.raises(DisconnectedError) as caught:  # noqa: PT012 - the fault hits the end of the block
            if kind == "change":
                fault.armed = True
                ws.splice("a.txt", [(0, 0, "x")])
            else:
                with ws.transaction() as changes:
                    changes.splice("a.txt", [(0, 0, "x")])
                    fault.armed = True
        assert caught.value.details["made"] is None
        assert tree(root) == {"a.txt": b"xone\n"}


def test_a_change_is_known_after_a_thousand_others(tmp_path, monkeypatch):
    """One thread waits before it reconnects, while another thread has already reconnected."""
    (tmp_path / "a.txt").write_text("one\n")
    fault = Fault("from_far", 0)

    def others(_):
        for number in range(1001):
            ws.checkpoint(f"other {number}")

    clock = SimpleNamespace(monotonic=time.monotonic, sleep=others)
    with connect(opener(fault), tmp_path, push=False, patience=60) as ws:
        monkeypatch.setattr("agentfs.remote.connection.time", clock)
        fault.armed = True
        with pytest.raises(DisconnectedError) as caught:
            ws.splice("a.txt", [(0, 0, "x")])
        assert caught.value.details["made"] is True
        assert tree(tmp_path) == {"a.txt": b"xone\n"}
