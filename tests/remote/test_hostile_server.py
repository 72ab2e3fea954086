"""A hostile far side harms nothing here: an error in time, within bounded memory, and no other effect."""

import itertools
import json
import queue
import threading
import time
import tracemalloc

import pytest

from agentfs import Allow, Limits, PermissionRequest, Policy
from agentfs.errors import AgentFSError, DisconnectedError, NotFoundError, UnsupportedSystemError
from agentfs.remote import protocol
from agentfs.remote.client import connect
from agentfs.visible import escape_controls, visible

PATIENCE = 0.5
MEMORY = 64 << 20


class FarSide:
    """A stream whose far end is a function that is given each line, and yields what to send."""

    def __init__(self, script) -> None:
        self.script = script
        self.incoming = queue.SimpleQueue()
        self.rest = b""
        self.lines = itertools.chain.from_iterable(self.answers())
        self.closed = threading.Event()

    def answers(self):
        while (line := self.incoming.get()) is not None:
            yield self.script(json.loads(line))

    def write(self, data):
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            self.incoming.put(line)

    def readline(self, limit=1 << 30):
        data = b""
        while not data.endswith(b"\n") and len(data) < limit and not self.closed.is_set():
            part = next(self.lines, None)
            if part is None:
                break
            data += part[: limit - len(data)]
        return data

    def close(self):
        self.closed.set()
        self.incoming.put(None)


HELLO = {"protocol": protocol.VERSION, "root": "/far", "notes": [], "kept": True}
HELLO |= {"remote": {"version": "1", "python": "3", "engine": "re", "pid": 1}}


def line(message):
    return json.dumps(message).encode() + b"\n"


def far_side(answer, **hello):
    """Return a script that opens as it should, and answers a call by a function of its number."""

    def script(message):
        if "nonce" in message:
            yield line({"agentfs": message["nonce"], **HELLO, **hello})
        elif "call" in message:
            yield from answer(message["call"])

    return script


def run(script, call, **options):
    """Make a call of a far side; return its error, the most memory that it took, and its time."""
    tracemalloc.start()
    started = time.monotonic()
    error = None
    try:
        with connect(lambda _: FarSide(script), "/far", push=False, patience=PATIENCE, **options) as ws:
            call(ws)
    except (AgentFSError, RuntimeError) as caught:
        error = caught
    taken, memory = time.monotonic() - started, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return error, memory, taken


def nested(depth):
    value = "x"
    for _ in range(depth):
        value = {"a": value} if depth % 2 else [value]
    return value


def endless(_):
    while True:
        yield b"x" * 65536


def endless_parts(_):
    while True:
        yield b"+" + b"x" * 65536 + b"\n"


GREETINGS = {
    "garbage": lambda _: iter([b"\x00\xff\x1b]0;title\x07 garbage\n"] * 50),
    "an endless line": endless,
    "endless lines": lambda _: itertools.repeat(b"Welcome!\n"),
    "no answer": lambda _: iter(()),
    "another nonce": lambda _: iter([line({"agentfs": "other", **HELLO})] * 3),
    "no object": lambda message: iter([line([message.get("nonce")])]),
    "deep": lambda message: iter([b"[" * 100_000 + message.get("nonce", "").encode() + b"\n"]),
    "a report that is none": lambda message: iter(
        [line({"agentfs": message["nonce"], **HELLO, "remote": {"version": 5}})]
    ),
    "notes that are none": lambda message: iter([line({"agentfs": message["nonce"], **HELLO, "notes": 5})]),
    "another protocol": lambda message: iter(
        [line({"agentfs": message["nonce"], "error": {"code": "no such"}})]
    ),
    "an error with a wrong message": lambda message: iter(
        [line({"agentfs": message["nonce"], "error": {"code": "io", "message": {"$": "os.system"}}})]
    ),
}


@pytest.mark.parametrize("greeting", GREETINGS)
def test_a_wrong_first_message_is_disconnected(greeting):
    error, memory, taken = run(GREETINGS[greeting], lambda ws: ws.read("a"))
    assert isinstance(error, AgentFSError), greeting
    assert visible(str(error)).replace("\n", "") == str(error).replace("\n", "")
    assert memory < MEMORY
    assert taken < PATIENCE + 5


def read_answer(number, **fields):
    return {"answer": number, "value": {"$": "ReadResult", "path": "a.txt", "kind": "text", **fields}}


def next_call(name, **arguments):
    return {"name": name, "arguments": arguments}


IO_ERROR = {"code": "io", "message": "x"}
DATA = {"$": "bytes", "base64": ""}
ANSWERS = {
    "garbage": lambda n: iter([b"\xff\xfe\x00\n"]),
    "an endless line": endless,
    "no end of parts": endless_parts,
    "another number": lambda n: iter([line({"answer": n + 1000, "value": None})]),
    "a number that is none": lambda n: iter([line({"answer": str(n), "value": None}), line({"answer": [n]})]),
    "no value": lambda n: iter([line({"answer": n})]),
    "another type": lambda n: iter([line({"answer": n, "value": {"$": "WriteResult", "path": "a"}})]),
    "a text": lambda n: iter([line({"answer": n, "value": "text"})]),
    "an unknown type": lambda n: iter(
        [line({"answer": n, "value": {"$": "subprocess.Popen", "args": "true"}})]
    ),
    "a function": lambda n: iter([line({"answer": n, "value": {"$": "function", "number": 0}})]),
    "a wrong field": lambda n: iter([line({"answer": n, "value": {"$": "ReadResult", "path": 5}})]),
    "an unknown field": lambda n: iter([line({"answer": n, "value": {"$": "ReadResult", "__class__": 5}})]),
    "deep": lambda n: iter([line({"answer": n, "value": nested(200)})]),
    "too deep for JSON": lambda n: iter([b'{"answer":1,"value":' + b"[" * 300_000 + b"\n"]),
    "a huge number": lambda n: iter([b'{"answer": 1, "value": ' + b"9" * 900_000 + b"}\n"]),
    **{
        f"{value} as a number": lambda n, value=value: iter(
            [
                line({"answer": n, "error": {**IO_ERROR, "details": {"a": 0}}}).replace(
                    b'"a": 0', b'"a": ' + value
                )
            ]
        )
        for value in (b"NaN", b"-Infinity", b"1e999", b"9223372036854775808")
    },
    "a next call of no tool": lambda n: iter([line(read_answer(n, next=next_call("close")))]),
    "a next call without its path": lambda n: iter([line(read_answer(n, next=next_call("read", offset=1)))]),
    "a next call of wrong type": lambda n: iter([line(read_answer(n, next=next_call("read", path=5)))]),
    "a long separator": lambda n: iter(
        [line(read_answer(n, text={"$": "Joined", "parts": ["x" * 50_000, *["y"] * 50_000]}))]
    ),
    "details that are no JSON": lambda n: iter(
        [line({"answer": n, "error": {**IO_ERROR, "details": {"a": DATA}}})]
    ),
    "a retry that is no JSON": lambda n: iter(
        [
            line(
                read_answer(
                    n, text={"$": "FirstOf", "parts": ["x", {"$": "Retry", "arguments": {"a": DATA}}]}
                )
            )
        ]
    ),
    "an error of another kind": lambda n: iter(
        [line({"answer": n, "error": {"exception": "SystemExit", "message": "x"}})]
    ),
    "details that are wrong": lambda n: iter(
        [line({"answer": n, "error": {"code": "io", "message": "x", "details": {"places": 5}}})]
    ),
    "cancelled unasked": lambda n: iter([line({"answer": n, "cancelled": True})]),
    "raised unasked": lambda n: iter([line({"answer": n, "raised": True})]),
    "nothing": lambda n: iter(()),
    "progress for ever": lambda n: (line({"progress": n, "entries": i}) for i in itertools.count()),
    "progress that is wrong": lambda n: iter(
        [line({"progress": n, "entries": e}) for e in ("x", -5, 1e300, None)]
    ),
    "answers to nothing": lambda n: (line({"answer": i}) for i in itertools.count(1000)),
    "a function that is none": lambda n: iter([line({"ask": 1, "of": n, "function": 99, "arguments": []})]),
    "a question about nothing": lambda n: iter(
        [line({"ask": 1, "of": n + 5, "function": 0, "arguments": []})]
    ),
    "a question that is wrong": lambda n: iter([line({"ask": [], "of": n, "function": "x", "arguments": 5})]),
    "a question without arguments": lambda n: iter(
        [line({"ask": 1, "of": n, "function": 0, "arguments": []})]
    ),
    "questions for ever": lambda n: (
        line({"ask": i, "of": n, "function": 0, "arguments": ["x"]}) for i in itertools.count()
    ),
}
PERMISSION_CALLS = []


def permission(request):
    PERMISSION_CALLS.append(request)
    return Allow()


OPTIONS = {"policy": Policy(permission=permission), "limits": Limits(timeout=0.3)}


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_wrong_answer_is_an_error_in_time(answer):
    PERMISSION_CALLS.clear()
    script = far_side(ANSWERS[answer])
    error, memory, taken = run(script, lambda ws: ws.read("a.txt"), **OPTIONS)
    # An error of Python is one of a known few, as the method would raise it here.
    assert isinstance(error, RuntimeError if "error" in answer else DisconnectedError), error
    assert memory < (MEMORY + protocol.MAX_MESSAGE if answer == "no end of parts" else MEMORY)
    assert taken < 15
    assert PERMISSION_CALLS == []


def test_messages_that_wait_for_a_call_are_few():
    request = protocol.encode(PermissionRequest("read", "read", {}, ()))
    filler = line({"of": 1, "filler": "x" * 900_000})

    def answer(n):
        yield line({"ask": 1, "of": n, "function": 0, "arguments": [request]})
        yield from [filler] * 200

    asked = []

    def permission(request):
        asked.append(request)
        time.sleep(1)

    options = {"limits": Limits(timeout=5), "policy": Policy(permission=permission)}
    error, memory, _ = run(far_side(answer), lambda ws: ws.read("a"), **options)
    assert asked
    assert isinstance(error, DisconnectedError)
    assert memory < MEMORY


def test_an_error_of_a_newer_version_keeps_what_it_says():
    newer = {"code": "newer", "message": "m", "hint": "h", "details": {"a": 1}}
    error, _, _ = run(
        far_side(lambda n: iter([line({"answer": n, "error": newer})])), lambda ws: ws.read("a")
    )
    assert isinstance(error, UnsupportedSystemError)
    assert (error.message, error.hint, error.details) == ("m", "h", {"a": 1, "code": "newer"})


def test_advice_that_no_tool_can_follow_is_no_exception_of_a_tool():
    """The error of a call is put into the names of the tools where nothing catches what that raises."""
    advice = {"$": "Message", "parts": ["Call ", next_call("read", offset=5)]}
    wrong = {"code": "not_found", "message": "m", "hint": advice}
    answer, results = {"value": None}, []

    def use(ws):
        tools = ws.tools(dialect="codescout")
        answer.update({"error": wrong})
        del answer["value"]
        results.append(tools.call("read_file", {"path": "a"}))

    error, _, _ = run(far_side(lambda n: iter([line({"answer": n, **answer})])), use)
    assert error is None, error
    assert results[0].error["code"] == "disconnected"


def test_texts_that_come_from_there_have_no_hidden_characters():
    hidden = "\x1b]0;title\x07\u202e\u2066name\x9b31m"
    wrong = {"code": "not_found", "message": hidden, "hint": {"$": "Message", "parts": [hidden]}}
    value = {"answer": 1, "error": wrong}
    error, _, _ = run(far_side(lambda n: iter([line({**value, "answer": n})])), lambda ws: ws.read(hidden))
    assert isinstance(error, NotFoundError)
    shown = []
    write = {"$": "WriteResult", "text": hidden, "notes": {"$": [hidden]}, "path": "a", "created": True}
    write |= {"bytes_written": 1, "diff": "", "revision": ""}
    hello = {"notes": [hidden]}

    def use(ws):
        written = ws.write("a", "")
        shown.extend([written.text, *written.notes, *ws.recovery_notes])

    run(far_side(lambda n: iter([line({"answer": n, "value": write})]), **hello), use)
    noise = ["sh", "-c", "printf '\\033]0;title\\007' >&2; exit 3"]
    with pytest.raises(DisconnectedError) as caught:
        connect(noise, "/far", patience=5)
    assert "exit status 3" in str(caught.value)
    assert len(shown) == 3
    for text in (*shown, str(error), str(caught.value)):
        assert escape_controls(text) == text, ascii(text)
        assert "⟦U+001B⟧" in text
