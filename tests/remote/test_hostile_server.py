"""A hostile remote side causes only an error, in time and within bounded memory."""

import itertools
import json
import queue
import threading
import time
import tracemalloc

import pytest

from agentfs import Allow, Limits, PermissionRequest, Policy
from agentfs.base.visible import visible
from agentfs.errors import AgentFSError, DisconnectedError
from agentfs.remote import wire
from agentfs.remote.client import connect

PATIENCE = 0.2
MEMORY = 64 << 20


class RemoteSide:
    """A stream to a script: a function that takes each message and yields the lines to send back."""

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

    def flush(self):
        pass

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


OPENED = ["/far", {"$": "Policy"}, []]


def lines(messages, number=0):
    """Return the lines of messages, which answer a call unless they name another one."""
    for each in messages() if callable(messages) else messages:
        yield each if isinstance(each, bytes) else json.dumps({"of": number, **each}).encode() + b"\n"


def remote_side(answers):
    def script(message):
        if message["of"] == 0:
            return lines([{"value": OPENED}])
        return lines(answers, message["of"]) if "method" in message else iter(())

    return script


def run(script, call, **options):
    """Call a remote side; return the error, the peak of memory and the time."""
    tracemalloc.start()
    started = time.monotonic()
    error = None
    try:
        with connect(lambda: (side := RemoteSide(script), side), "/far", patience=PATIENCE, **options) as ws:
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


def nested_advice(depth):
    text = "x" * 2_000_000
    for _ in range(depth):
        text = {"$": "Advice", "parts": [text]}
    return text


def endless():
    return itertools.repeat(b"x" * 65536)


def of_error(**fields):
    return [{"error": {"$": "error", **fields}}]


GREETINGS = {
    "garbage": [b"\x00\xff\x1b]0;title\x07 garbage\n"] * 50,
    "an endless line": endless,
    "endless lines": lambda: itertools.repeat(b"Welcome!\n"),
    "no answer": [],
    "deep": [b'{"of":0,"value":' + b"[" * 100_000 + b"\n"],
    "nothing": [{}],
    "no policy": [{"value": ["/far", None, []]}],
    "a policy that is none": [{"value": ["/far", {"$": "Policy", "mode": 5}, []]}],
    "limits as a policy": [{"value": ["/far", {"$": "Limits"}, []]}],
    "a root that is none": [{"value": [5, {"$": "Policy"}, []]}],
    "notes that are none": [{"value": [*OPENED[:2], [5]]}],
    "one value more": [{"value": [*OPENED, 5]}],
    "an error that is none": [{"error": 5}],
    "an error with a wrong message": of_error(message={"$": "os.system"}),
    "an error with an unknown code": of_error(code="x", message="x"),
    "cancelled unasked": [{"cancelled": True}],
}


@pytest.mark.parametrize("greeting", [*GREETINGS, "an echo"])
def test_an_invalid_first_message_is_disconnected(greeting):
    def script(message):
        return lines([message] * 3 if greeting == "an echo" else GREETINGS[greeting])

    error, memory, taken = run(script, lambda ws: ws.read("a"))
    assert isinstance(error, AgentFSError), greeting
    assert visible(str(error)).replace("\n", "") == str(error).replace("\n", "")
    assert memory < MEMORY
    assert taken < PATIENCE + 5


def of_value(name, **fields):
    return [{"value": {"$": name, **fields}}]


def read_answer(text):
    return of_value("ReadResult", path="a.txt", kind="text", text=text)


REQUEST = json.loads(wire.to_text(PermissionRequest("read", "read", {}, ())))
QUESTION = {"ask": 1, "function": 0, "arguments": [REQUEST]}
COUNT = {"ask": 1, "function": 1, "arguments": ["x"]}
QUESTIONS = [(None, None), (5, [REQUEST]), (0, []), ("x", [1]), (0, [1]), (-1, [REQUEST])]
ANSWERS = {
    "garbage": [b"\xff\xfe\x00\n"], "an endless line": endless,
    "another number": [{"of": 1001, "value": None}],
    "a number that is none": [{"of": "1", "value": None}, {"of": [1]}],
    "no value": [{}],
    "another type": of_value("WriteResult", path="a"),
    "a text": [{"value": "text"}],
    "an unknown type": of_value("subprocess.Popen", args="true"),
    "a function": of_value("function", number=0),
    "a wrong field": of_value("ReadResult", path=5),
    "an unknown field": of_value("ReadResult", __class__=5),
    "deep": [{"value": nested(200)}],
    "too deep for JSON": [b'{"of":1,"value":' + b"[" * 300_000 + b"\n"],
    "a huge number": [b'{"of": 1, "value": ' + b"9" * 900_000 + b"}\n"],
    "a long separator": read_answer({"$": "Joined", "parts": ["x" * 20_000, *["y"] * 20_000]}),
    "an exception of another kind": of_error(exception="SystemExit", message="x"),
    "an advice in an advice": read_answer(nested_advice(15)),
    "details that are wrong": of_error(code="io", message="x", details=5),
    "cancelled unasked": [{"cancelled": True}], "raised unasked": [{"raised": True}], "nothing": [],
    "progress for ever": lambda: ({"progress": i} for i in itertools.count()),
    "progress that is wrong": [{"progress": each} for each in ("x", -5, 1e300, None)],
    "answers to nothing": lambda: ({"of": i} for i in itertools.count(1000)),
    **{f"the question {f, a}": [{"ask": 1, "function": f, "arguments": a}] for f, a in QUESTIONS},
    "a question about nothing": [{"of": 6, **QUESTION}],
    "questions for ever": lambda: itertools.repeat(COUNT),
}  # fmt: skip
PERMISSION_CALLS = []


def permission(request):
    PERMISSION_CALLS.append(request)
    return Allow()


OPTIONS = {"policy": Policy(on_ask=permission), "limits": Limits(timeout=0.3, count_tokens=len)}


# They go on until the time is up; "questions for ever" stays in the first tier.
BUSY = {"an endless line", "answers to nothing", "progress for ever"}


@pytest.mark.parametrize(
    "answer", [pytest.param(name, marks=[pytest.mark.full] * (name in BUSY)) for name in ANSWERS]
)
def test_an_invalid_answer_is_an_error_in_time(answer):
    PERMISSION_CALLS.clear()
    error, memory, taken = run(remote_side(ANSWERS[answer]), lambda ws: ws.read("a.txt"), **OPTIONS)
    # Of Python's own errors, only a few known ones are raised here.
    assert isinstance(error, RuntimeError if "error" in answer else DisconnectedError), error
    assert memory < (MEMORY * 5 if answer == "an endless line" else MEMORY)
    assert taken < 15
    assert PERMISSION_CALLS == []


def test_unread_messages_for_a_call_are_bounded():
    asked = []

    def permission(request):
        asked.append(request)
        time.sleep(1)

    options = {"limits": Limits(timeout=5), "policy": Policy(on_ask=permission)}
    script = remote_side([QUESTION, *[{"of": 1, "filler": "x" * 900_000}] * 200])
    error, memory, _ = run(script, lambda ws: ws.read("a"), **options)
    assert asked
    assert isinstance(error, DisconnectedError)
    assert memory < MEMORY


MANY = {
    "lists": b"[],", "objects": b"{},", "objects with a field": b'{"ab":1},', "nested lists": b"[[]],",
    "texts": b'"ab",', "results": b'{"$":"Skipped"},', "bytes": b'{"$":"bytes","base64":""},',
}  # fmt: skip


@pytest.mark.parametrize(
    "values", [pytest.param(each, marks=[pytest.mark.full] * (each == "texts")) for each in MANY]
)
def test_an_answer_of_many_small_values_takes_bounded_memory(values, monkeypatch):
    """Attack: 16 MiB of JSON took 833 MiB. All sizes here are 1/64, because tracing is slow."""
    monkeypatch.setattr(wire, "MAX_MEMORY", wire.MAX_MEMORY // 64)
    body = b'{"of":1,"value":[%b0]}' % (MANY[values] * ((1 << 18) // len(MANY[values])))
    tracemalloc.start()
    try:
        with pytest.raises(wire.ProtocolError, match="too much memory"):
            wire.from_line(body + b"\n")
        assert tracemalloc.get_traced_memory()[1] < 3 << 19
    finally:
        tracemalloc.stop()


@pytest.mark.full
@pytest.mark.parametrize("values", MANY)
def test_the_largest_accepted_answers_stay_within_the_memory_limit(values, monkeypatch):
    monkeypatch.setattr(wire, "MAX_MEMORY", 2 << 20)
    low, high = 0, (2 << 20) // len(MANY[values])
    while high - low > 250:  # the most values that pass
        middle = (low + high) // 2
        body = b'{"value":[%b0]}\n' % (MANY[values] * middle)
        low, high = (middle, high) if wire.memory_of(body) <= wire.MAX_MEMORY else (low, middle)
    text = b'{"value":[%b0]}\n' % (MANY[values] * low)
    tracemalloc.start()
    try:
        message = wire.from_line(text)
        assert tracemalloc.get_traced_memory()[1] < wire.MAX_MEMORY * 1.1
        assert len(message["value"]) == low + 1
    finally:
        tracemalloc.stop()


def test_the_reason_of_a_loss_has_no_hidden_characters():
    noise = ["sh", "-c", "printf '\\033]0;title\\007' >&2; exit 3"]
    with pytest.raises(DisconnectedError) as caught:
        connect(noise, "/far", patience=5)
    assert "exit status 3" in str(caught.value)
    assert "⟦U+001B⟧" in str(caught.value)
