"""A hostile remote side causes only an error, in time and within bounded memory."""

import base64
import dataclasses
import inspect
import itertools
import json
import queue
import threading
import time
import tracemalloc
import types
import typing
from collections.abc import Mapping, Sequence

import pytest

import agentfs
from agentfs import Allow, Limits, PermissionRequest, Policy, Workspace
from agentfs.base.advice import NextCall
from agentfs.base.visible import escape_controls, visible
from agentfs.errors import AgentFSError, DisconnectedError, NotFoundError
from agentfs.remote import wire
from agentfs.remote.client import connect
from agentfs.results import Result
from agentfs.tools.tool import declaration_of

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


HELLO = {"of": 0}
OPENED = {"version": agentfs.__version__, "root": "/far", "policy": wire.to_wire(Policy()), "notes": []}


def line(message):
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def remote_side(answer, **opened):
    """Return a script that opens correctly and answers a call by a function of its number."""

    def script(message):
        if message.get("call") == 0:
            yield line({**HELLO, "value": {**OPENED, **opened}})
        elif "call" in message:
            yield from answer(message["call"])

    return script


def opened(script, **options):
    """Connect to a remote side."""
    return connect(lambda: (side := RemoteSide(script), side), "/far", patience=PATIENCE, **options)


def run(script, call, **options):
    """Call a remote side; return the error, the peak of memory and the time."""
    tracemalloc.start()
    started = time.monotonic()
    error = None
    try:
        with opened(script, **options) as ws:
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


def greeting(**fields):
    return lambda _: iter([line({**HELLO, **fields})])


GREETINGS = {
    "garbage": lambda _: iter([b"\x00\xff\x1b]0;title\x07 garbage\n"] * 50),
    "an endless line": endless,
    "endless lines": lambda _: itertools.repeat(b"Welcome!\n"),
    "no answer": lambda _: iter(()),
    "an echo": lambda message: iter([line(message)] * 3),
    "deep": lambda _: iter([b'{"of":0,"value":' + b"[" * 100_000 + b"\n"]),
    "nothing": greeting(),
    "a version that is none": greeting(value={**OPENED, "version": 5}),
    "no policy": greeting(value={**OPENED, "policy": None}),
    "a policy that is none": greeting(value={**OPENED, "policy": {"$": "Policy", "mode": 5}}),
    "limits as a policy": greeting(value={**OPENED, "policy": {"$": "Limits"}}),
    "a root that is none": greeting(value={**OPENED, "root": 5}),
    "notes that are none": greeting(value={**OPENED, "notes": 5}),
    "one field more": greeting(value={**OPENED, "more": 5}),
    "an error that is none": greeting(error=5),
    "an error with a wrong message": greeting(error={"code": "io", "message": {"$": "os.system"}}),
    "cancelled unasked": greeting(cancelled=True),
}


@pytest.mark.parametrize("greeting", GREETINGS)
def test_an_invalid_first_message_is_disconnected(greeting):
    error, memory, taken = run(GREETINGS[greeting], lambda ws: ws.read("a"))
    assert isinstance(error, AgentFSError), greeting
    assert visible(str(error)).replace("\n", "") == str(error).replace("\n", "")
    assert memory < MEMORY
    assert taken < PATIENCE + 5


def read_answer(number, **fields):
    return {"of": number, "value": {"$": "ReadResult", "path": "a.txt", "kind": "text", **fields}}


def next_call(name, **arguments):
    return {"name": name, "arguments": arguments}


IO_ERROR = {"code": "io", "message": "x"}


def rows_answer(number, **given):
    rows = {"$": "rows", "of": "ReadResult", "names": ["path", "kind"], "rows": [["a", "text"]], **given}
    return line({"of": number, "value": {"$": "ListResult", "entries": rows, "total": 1}})


def nested_rows(depth):
    rows = []
    for _ in range(depth):
        rows = {"$": "rows", "of": "ReadResult", "names": ["path", "kind"], "rows": [["a", rows]]}
    return rows


def nested_advice(depth):
    text = "x" * 2_000_000
    for _ in range(depth):
        text = {"$": "Advice", "parts": [text]}
    return text


FUNCTION = {"$": "function", "number": 0}
ANSWERS = {
    "garbage": lambda n: iter([b"\xff\xfe\x00\n"]),
    "an endless line": endless,
    "another number": lambda n: iter([line({"of": n + 1000, "value": None})]),
    "a number that is none": lambda n: iter([line({"of": str(n), "value": None}), line({"of": [n]})]),
    "no value": lambda n: iter([line({"of": n})]),
    "another type": lambda n: iter([line({"of": n, "value": {"$": "WriteResult", "path": "a"}})]),
    "a text": lambda n: iter([line({"of": n, "value": "text"})]),
    "an unknown type": lambda n: iter([line({"of": n, "value": {"$": "subprocess.Popen", "args": "true"}})]),
    "a function": lambda n: iter([line({"of": n, "value": {"$": "function", "number": 0}})]),
    "a wrong field": lambda n: iter([line({"of": n, "value": {"$": "ReadResult", "path": 5}})]),
    "rows that are no list": lambda n: iter([rows_answer(n, rows=5)]),
    "rows that are a text": lambda n: iter([rows_answer(n, rows="ab")]),
    "a row that is too short": lambda n: iter([rows_answer(n, rows=[["a"]])]),
    "a row that is too long": lambda n: iter([rows_answer(n, rows=[["a", "text", 1]])]),
    "a row with a wrong type": lambda n: iter([rows_answer(n, rows=[["a", 5]])]),
    "a row that is an object": lambda n: iter([rows_answer(n, rows=[{"path": "a", "kind": "text"}])]),
    "rows of another class": lambda n: iter([rows_answer(n, of="Policy")]),
    "rows of no class": lambda n: iter([rows_answer(n, of=["ReadResult"])]),
    "rows with an unknown field": lambda n: iter([rows_answer(n, names=["path", "__class__"])]),
    "rows with fields that are no texts": lambda n: iter([rows_answer(n, names=[{}, []])]),
    "rows in rows": lambda n: iter([rows_answer(n, rows=[["a", nested_rows(50)]])]),
    "an unknown field": lambda n: iter([line({"of": n, "value": {"$": "ReadResult", "__class__": 5}})]),
    "deep": lambda n: iter([line({"of": n, "value": nested(200)})]),
    "too deep for JSON": lambda n: iter([b'{"of":1,"value":' + b"[" * 300_000 + b"\n"]),
    "a huge number": lambda n: iter([b'{"of": 1, "value": ' + b"9" * 900_000 + b"}\n"]),
    "a long separator": lambda n: iter(
        [line(read_answer(n, text={"$": "Joined", "parts": ["x" * 50_000, *["y"] * 50_000]}))]
    ),
    "an error of another kind": lambda n: iter(
        [line({"of": n, "error": {"exception": "SystemExit", "message": "x"}})]
    ),
    "an advice in an advice": lambda n: iter([line(read_answer(n, text=nested_advice(15)))]),
    "details that are wrong": lambda n: iter(
        [line({"of": n, "error": {"code": "io", "message": "x", "details": {"places": 5}}})]
    ),
    "cancelled unasked": lambda n: iter([line({"of": n, "cancelled": True})]),
    "raised unasked": lambda n: iter([line({"of": n, "raised": True})]),
    "nothing": lambda n: iter(()),
    "progress for ever": lambda n: (line({"of": n, "progress": i}) for i in itertools.count()),
    "progress that is wrong": lambda n: iter(
        [line({"of": n, "progress": e}) for e in ("x", -5, 1e300, None)]
    ),
    "answers to nothing": lambda n: (line({"of": i}) for i in itertools.count(1000)),
    **{
        f"the question {asked}": lambda n, asked=asked: iter([line({"of": n, "ask": asked})])
        for asked in (None, 5, [], [1, "x", 1], [1, FUNCTION], [1, {**FUNCTION, "number": 99}, 1])
    },
    "a question about nothing": lambda n: iter([line({"of": n + 5, "ask": [1, FUNCTION, 1]})]),
    "questions for ever": lambda n: (line({"of": n, "ask": [i, FUNCTION, "x"]}) for i in itertools.count()),
}
PERMISSION_CALLS = []


def permission(request):
    PERMISSION_CALLS.append(request)
    return Allow()


OPTIONS = {"policy": Policy(on_ask=permission), "limits": Limits(timeout=0.3)}


@pytest.mark.parametrize("answer", ANSWERS)
def test_an_invalid_answer_is_an_error_in_time(answer):
    PERMISSION_CALLS.clear()
    script = remote_side(ANSWERS[answer])
    error, memory, taken = run(script, lambda ws: ws.read("a.txt"), **OPTIONS)
    # Of Python's own errors, only a few known ones are raised here.
    assert isinstance(error, RuntimeError if "error" in answer else DisconnectedError), error
    assert memory < (MEMORY * 5 if answer == "an endless line" else MEMORY)
    assert taken < 15
    assert PERMISSION_CALLS == []


def test_unread_messages_for_a_call_are_bounded():
    request = wire.to_wire(PermissionRequest("read", "read", {}, ()))
    filler = line({"of": 1, "filler": "x" * 900_000})

    def answer(n):
        yield line({"of": n, "ask": [1, FUNCTION, request]})
        yield from [filler] * 200

    asked = []

    def permission(request):
        asked.append(request)
        time.sleep(1)

    options = {"limits": Limits(timeout=5), "policy": Policy(on_ask=permission)}
    error, memory, _ = run(remote_side(answer), lambda ws: ws.read("a"), **options)
    assert asked
    assert isinstance(error, DisconnectedError)
    assert memory < MEMORY


HIDDEN = "\x1b]0;title\x07\u202e\u2066name\x9b31m\x1b[2J\u3164"


def hostile(hint):
    """Return an encoded value of a type hint, with hidden characters in each text."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return hostile(next(each for each in arguments if each is not type(None)))
    if origin is typing.Literal:
        return arguments[0]
    if origin is tuple:
        return {"$": [hostile(arguments[0])] if arguments[1:] == (...,) else [*map(hostile, arguments)]}
    if origin in (list, Sequence):
        return [hostile(arguments[0])]
    if origin in (dict, Mapping):
        return {hostile(arguments[0]): hostile(arguments[1])}
    if hint == NextCall:
        return next_call("read", path=HIDDEN)
    if typing.is_typeddict(hint):
        return {name: hostile(each) for name, each in typing.get_type_hints(hint).items()}
    if dataclasses.is_dataclass(hint):
        hints = typing.get_type_hints(hint)
        given = {each.name: hostile(hints[each.name]) for each in dataclasses.fields(hint)}
        return {"$": hint.__name__, **given}
    if hint is bytes:
        return {"$": "bytes", "base64": base64.b64encode(HIDDEN.encode()).decode()}
    return {str: HIDDEN, int: 1, float: 1.0, bool: True, type(None): None}[hint]


def texts_in(value):
    """Yield each text in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from (text for pair in value.items() for each in pair for text in texts_in(each))
    elif isinstance(value, (list, tuple)):
        yield from (text for each in value for text in texts_in(each))


def assert_visible(*texts):
    for text in texts:
        assert escape_controls(text) == text, ascii(text)


METHODS = {
    name: typing.get_type_hints(inspect.unwrap(method))["return"]
    for name, method in vars(Workspace).items()
    if inspect.isfunction(method) and declaration_of(method) is not None and name != "start"  # no result
}


@pytest.mark.parametrize(
    "method", [name for name, returned in METHODS.items() if issubclass(returned, Result)]
)
def test_the_text_of_a_result_has_no_hidden_characters(method):
    answer = hostile(METHODS[method])
    results = []

    def use(ws):
        results.append(ws._call(method, {}, METHODS[method]))

    error, _, _ = run(remote_side(lambda n: iter([line({"of": n, "value": answer})])), use)
    assert error is None, error
    [result] = results
    assert_visible(result.text, *getattr(result, "notes", ()))


DETAILS = [
    "path",
    "places",
    "rows",
    "suggestion",
    "similar",
    "line_ids",
    "cause",
    "values",
    "argument",
    "lines",
]
DETAILS += ["failures", "nearest", "suggested_calls", "unknown", "stale", "real_path", "errno", HIDDEN]
DETAIL_VALUES = [HIDDEN, [HIDDEN], {HIDDEN: HIDDEN}, [[HIDDEN]], [{HIDDEN: [HIDDEN]}], 5, None]
LEAVES = sorted(wire._LEAVES)


@pytest.mark.parametrize("code", [*LEAVES, HIDDEN])
def test_the_text_of_an_error_has_no_hidden_characters(code):
    wrong = {"code": code, "message": HIDDEN, "hint": HIDDEN}
    hints = [HIDDEN, {"$": "Advice", "parts": [HIDDEN]}, {"$": "ToolName", "method": HIDDEN}]
    parts = [{"$": "ToolName", "method": HIDDEN}, {"$": "ParameterName", "name": HIDDEN, "quoted": True}]
    parts += [{"$": "Retry", "arguments": {HIDDEN: HIDDEN}}, {"$": "Retry", "arguments": {"a": HIDDEN}}]
    parts += [{"$": "Retry", "arguments": {}, "without": {"$": [HIDDEN]}}, next_call("read", path=HIDDEN)]
    hints += [{"$": kind, "parts": ["", part]} for kind in ("Advice", "Joined", "FirstOf") for part in parts]
    wrongs = [{**wrong, "hint": hint, "message": hint} for hint in hints]
    wrongs += [{**wrong, "details": {name: value}} for name in DETAILS for value in DETAIL_VALUES]
    for each in wrongs:
        try:
            error = wire.error_from_wire(each)
        except wire.ProtocolError:
            continue
        assert_visible(str(error))


def test_a_question_of_a_hostile_remote_side_has_no_hidden_characters():
    asked = []
    request = wire.to_wire(PermissionRequest("read", "read", {}, (), f"{HIDDEN}\n", HIDDEN))

    def answer(n):
        yield line({"of": n, "ask": [1, FUNCTION, request]})

    policy = Policy(on_ask=lambda given: asked.append(given) or Allow())
    run(remote_side(answer), lambda ws: ws.read("a"), policy=policy, limits=Limits(timeout=0.3))
    assert_visible(asked[0].tool, asked[0].diff)


def test_what_a_hostile_remote_side_says_of_itself_has_no_hidden_characters():
    shown = []

    def answer(n):
        yield line({"of": n, "value": [HIDDEN]})

    def use(ws):
        shown.extend([ws.root, repr(ws), *ws.recovery_notes])

    run(remote_side(answer, root=f"/{HIDDEN}", notes=[HIDDEN]), use)
    assert len(shown) == 3
    assert_visible(*shown)


MANY = {
    "lists": b"[],",
    "objects": b"{},",
    "objects with a field": b'{"ab":1},',
    "nested lists": b"[[]],",
    "texts": b'"ab",',
    "results": b'{"$":"Skipped"},',
    "tuples": b'{"$":[]},',
    "rows": b"[1],",
}
START = {"rows": b'{"$":"rows","of":"Skipped","names":["hidden"],"rows":'}  # of the values of a kind


@pytest.mark.parametrize("values", MANY)
def test_an_answer_of_many_small_values_takes_bounded_memory(values, monkeypatch):
    """Attack: 16 MiB of JSON took 833 MiB. All sizes here are 1/32, because tracing is slow."""
    monkeypatch.setattr(wire, "MAX_MEMORY", wire.MAX_MEMORY // 32)
    body = b'{"of":1,"value":[%b0]}' % (MANY[values] * ((1 << 19) // len(MANY[values])))
    tracemalloc.start()
    try:
        with pytest.raises(wire.ProtocolError, match="too much memory"):
            wire.parse_line(body + b"\n")
        assert tracemalloc.get_traced_memory()[1] < 3 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.full
@pytest.mark.parametrize("values", MANY)
def test_the_largest_accepted_answers_stay_within_the_memory_limit(values, monkeypatch):
    monkeypatch.setattr(wire, "MAX_MEMORY", 2 << 20)
    low, high = 0, (2 << 20) // len(MANY[values])
    while high - low > 250:  # the most values that pass
        middle = (low + high) // 2
        body = START.get(values, b"") + b"[%b0]" % (MANY[values] * middle)
        low, high = (middle, high) if wire.memory_of(body) <= wire.MAX_MEMORY else (low, middle)
    start = START.get(values, b"")
    rows = (MANY[values] * low).removesuffix(b",") if start else MANY[values] * low + b"0"
    text = b'{"value":%b[%b]%b}\n' % (start, rows, b"}" * bool(start))
    tracemalloc.start()
    try:
        message = wire.parse_line(text)
        decoded = wire.from_wire(message["value"])
        assert tracemalloc.get_traced_memory()[1] < wire.MAX_MEMORY * 1.1
        assert len(decoded) == low + (not start)
    finally:
        tracemalloc.stop()


def test_texts_of_the_remote_side_have_no_hidden_characters():
    hidden = "\x1b]0;title\x07\u202e\u2066name\x9b31m"
    wrong = {"code": "not_found", "message": hidden, "hint": {"$": "Advice", "parts": [hidden]}}
    value = {"of": 1, "error": wrong}
    error, _, _ = run(remote_side(lambda n: iter([line({**value, "of": n})])), lambda ws: ws.read(hidden))
    assert isinstance(error, NotFoundError)
    shown = []
    write = {"$": "WriteResult", "text": hidden, "notes": {"$": [hidden]}, "path": "a", "created": True}
    write |= {"bytes_written": 1, "diff": "", "revision": ""}

    def use(ws):
        written = ws.write("a", "")
        shown.extend([written.text, *written.notes])

    run(remote_side(lambda n: iter([line({"of": n, "value": write})])), use)
    noise = ["sh", "-c", "printf '\\033]0;title\\007' >&2; exit 3"]
    with pytest.raises(DisconnectedError) as caught:
        connect(noise, "/far", patience=5)
    assert "exit status 3" in str(caught.value)
    assert len(shown) == 2
    for text in (*shown, str(error), str(caught.value)):
        assert escape_controls(text) == text, ascii(text)
        assert "⟦U+001B⟧" in text
