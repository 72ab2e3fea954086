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

from agentfs import Allow, Limits, PermissionRequest, Policy, Workspace
from agentfs.base.advice import NextCall
from agentfs.base.visible import escape_controls, visible
from agentfs.errors import AgentFSError, DisconnectedError, NotFoundError, UnsupportedSystemError
from agentfs.remote import protocol
from agentfs.remote.client import connect
from agentfs.results import Result
from agentfs.tools.tool import declaration_of

PATIENCE = 0.5
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


HELLO = {"protocol": protocol.PROTOCOL_VERSION, "root": "/far", "notes": [], "kept": True}
HELLO |= {"remote": {"version": "1", "python": "3", "engine": "re", "pid": 1}}


def line(message):
    return json.dumps(message).encode() + b"\n"


def remote_side(answer, **hello):
    """Return a script that opens correctly and answers a call by a function of its number."""

    def script(message):
        if "nonce" in message:
            yield line({"agentfs": message["nonce"], **HELLO, **hello})
        elif "request" in message:
            yield from answer(message["request"])

    return script


def opened(script, **options):
    """Connect to a remote side."""
    return connect(lambda _: RemoteSide(script), "/far", push=False, patience=PATIENCE, **options)


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
def test_an_invalid_first_message_is_disconnected(greeting):
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


def rows_answer(number, **given):
    rows = {"$": "rows", "of": "ReadResult", "names": ["path", "kind"], "rows": [["a", "text"]], **given}
    return line({"answer": number, "value": {"$": "ReadManyResult", "files": rows, "left": []}})


def nested_rows(depth):
    rows = []
    for _ in range(depth):
        rows = {"$": "rows", "of": "ReadResult", "names": ["path", "kind"], "rows": [["a", rows]]}
    return rows


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
    "a retry that is not JSON": lambda n: iter(
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


OPTIONS = {"policy": Policy(on_ask=permission), "limits": Limits(timeout=0.3)}


@pytest.mark.parametrize("answer", ANSWERS)
def test_an_invalid_answer_is_an_error_in_time(answer):
    PERMISSION_CALLS.clear()
    script = remote_side(ANSWERS[answer])
    error, memory, taken = run(script, lambda ws: ws.read("a.txt"), **OPTIONS)
    # Of Python's own errors, only a few known ones are raised here.
    assert isinstance(error, RuntimeError if "error" in answer else DisconnectedError), error
    assert memory < (MEMORY + protocol.MAX_MESSAGE if answer == "no end of parts" else MEMORY)
    assert taken < 15
    assert PERMISSION_CALLS == []


def test_unread_messages_for_a_call_are_bounded():
    request = protocol.to_wire(PermissionRequest("read", "read", {}, ()))
    filler = line({"of": 1, "filler": "x" * 900_000})

    def answer(n):
        yield line({"ask": 1, "of": n, "function": 0, "arguments": [request]})
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


def test_an_error_of_a_newer_version_keeps_its_texts():
    newer = {"code": "newer", "message": "m", "hint": "h", "details": {"a": 1}}
    error, _, _ = run(
        remote_side(lambda n: iter([line({"answer": n, "error": newer})])), lambda ws: ws.read("a")
    )
    assert isinstance(error, UnsupportedSystemError)
    assert (error.message, error.hint, error.details) == ("m", "h", {"a": 1, "code": "newer"})


def test_advice_that_no_tool_can_follow_does_not_make_a_tool_raise():
    """The error is rendered with the names of the tools, outside any handler of exceptions."""
    advice = {"$": "Advice", "parts": ["Call ", next_call("read", offset=5)]}
    wrong = {"code": "not_found", "message": "m", "hint": advice}
    answer, results = {"value": "."}, []  # the working directory of a view

    def use(ws):
        tools = ws.tools(dialect="codescout")
        answer.update({"error": wrong})
        del answer["value"]
        results.append(tools.call("read_file", {"path": "a"}))

    error, _, _ = run(remote_side(lambda n: iter([line({"answer": n, **answer})])), use)
    assert error is None, error
    assert results[0].error["code"] == "disconnected"


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
# Fields that programs need unchanged.
EXACT = {"path", "paths", "name", "to", "target", "moved_from", "files", "counts", "failed", "left", "rules"}
EXACT |= {
    "unread_rules",
    "since",
    "content",
    "diff",
    "patch",
    "before",
    "after",
    "newline",
    "data",
    "next",
    "text",
}


@pytest.mark.parametrize(
    "method", [name for name, returned in METHODS.items() if issubclass(returned, Result)]
)
def test_each_text_of_a_result_has_no_hidden_characters(method):
    answer = hostile(METHODS[method])
    results = []

    def use(ws):
        results.append(ws._call(method, {}, METHODS[method]))

    error, _, _ = run(remote_side(lambda n: iter([line({"answer": n, "value": answer})])), use)
    assert error is None, error
    [result] = results
    assert_visible(result.text, result.whole, *getattr(result, "notes", ()))

    def check(value):
        if dataclasses.is_dataclass(value):
            for each in dataclasses.fields(value):
                if each.name not in EXACT:
                    check(getattr(value, each.name))
        else:
            assert_visible(*texts_in(value))

    check(result)


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
LEAVES = sorted(protocol._leaves())


@pytest.mark.parametrize("code", [*LEAVES, HIDDEN])
def test_each_text_of_an_error_has_no_hidden_characters(code):
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
            error = protocol.decode_error(each)
        except protocol.ProtocolError:
            continue
        assert_visible(str(error), repr(error.filename) if isinstance(error, OSError) else "")
        suggested = error.details.pop("suggested_calls", [])  # their arguments are exact, and shown as JSON
        assert_visible(*texts_in(error.details), *(call["name"] for call in suggested if "name" in call))


CALLS = {
    "agentfs": {"read": {"path": "a"}, "grep": {"pattern": "a"}, "glob": {"pattern": "a"}, "ls": {}},
    "wave": {"Read": {"file_path": "/far/a"}, "Grep": {"pattern": "a"}, "Glob": {"pattern": "a"}},
    "rye": {
        "read": {"file_path": "a"},
        "glob": {"pattern": "a"},
        "edit_lines": {"file_path": "a", "edits": [{"line_id": "aaaaaa", "new_content": "x"}]},
    },
    "dominds": {"read_file": {"path": "a"}, "list_dir": {}, "ripgrep_snippets": {"pattern": "a"}},
    "codescout": {"read_file": {"path": "a"}, "search_pattern": {"pattern": "a"}, "list_dir": {"path": "."}},
    "tree-sitter-analyzer": {
        "list_files": {"roots": ["."]},
        "search_content": {"roots": ["."], "query": "a"},
        "find_and_grep": {"roots": ["."], "query": "a"},
    },
    "text-editor": {"str_replace_based_edit_tool": {"command": "view", "path": "a"}},
    "apply-patch": {"apply_patch": {"input": "*** Begin Patch\n*** Delete File: a\n*** End Patch"}},
}


@pytest.mark.parametrize(
    ("dialect", "name"), [(dialect, name) for dialect, names in CALLS.items() for name in names]
)
def test_a_tool_shows_no_hidden_characters_of_a_hostile_remote_side(dialect, name):
    """In a dialect with JSON or YAML output, each text of the document is checked."""
    errors = [{"code": code, "message": HIDDEN, "hint": HIDDEN, "details": {}} for code in LEAVES[::4]]
    details = {each: [HIDDEN] for each in ("line_ids", "places", "unknown", "nearest", "types", "suggestion")}
    errors += [{"code": code, "message": HIDDEN, "hint": HIDDEN, "details": details} for code in LEAVES]
    answers = [{"error": each} for each in errors]
    answers += [{"value": hostile(returns)} for returns in METHODS.values()]
    shown = []
    current = {}

    def script(message):
        if message.get("method") == "view":
            return iter([line({"answer": message["request"], "value": "."})])
        return remote_side(lambda n: iter([line({"answer": n, **current})]))(message)

    with opened(script) as ws:
        tools = ws.tools(dialect=dialect)
        for answer in answers:
            current.clear()
            current.update(answer)
            shown.append(tools.call(name, CALLS[dialect][name]))
    assert len(shown) == len(answers)
    for result in shown:
        assert_visible(result.short_result, *result.notes, *texts_in(result.error or {}))
        assert_visible(result.content.replace("\r", "") if dialect == "apply-patch" else result.content)


def test_a_question_of_a_hostile_remote_side_has_no_hidden_characters():
    asked = []
    request = protocol.to_wire(PermissionRequest("read", "read", {}, (), f"{HIDDEN}\n", HIDDEN))

    def answer(n):
        yield line({"ask": 1, "of": n, "function": 0, "arguments": [request]})

    policy = Policy(on_ask=lambda given: asked.append(given) or Allow())
    run(remote_side(answer), lambda ws: ws.read("a"), policy=policy, limits=Limits(timeout=0.3))
    assert_visible(asked[0].tool, asked[0].diff)


def test_the_report_of_a_hostile_remote_side_has_no_hidden_characters():
    remote = {"version": HIDDEN, "python": HIDDEN, "engine": HIDDEN, "pid": 1}
    shown = []

    def use(ws):
        shown.extend([ws.root, repr(ws), repr(ws.remote), *ws.recovery_notes])
        shown.extend(texts_in(vars(ws.remote)))

    run(remote_side(lambda _: iter(()), root=f"/{HIDDEN}", notes=[HIDDEN], remote=remote), use)
    assert len(shown) > 6
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
    monkeypatch.setattr(protocol, "MAX_MEMORY", protocol.MAX_MEMORY // 32)
    body = b'{"answer":1,"value":[%b0]}' % (MANY[values] * ((1 << 19) // len(MANY[values])))
    parts = [b"+" + body[at : at + 450_000] + b"\n" for at in range(0, len(body), 450_000)]
    lines = iter([*parts, b"=\n"])
    tracemalloc.start()
    try:
        with pytest.raises(protocol.ProtocolError, match="bytes of memory"):
            next(protocol.messages(lambda: next(lines)))
        assert tracemalloc.get_traced_memory()[1] < 3 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("values", MANY)
def test_the_largest_accepted_answers_stay_within_the_memory_limit(values, monkeypatch):
    monkeypatch.setattr(protocol, "MAX_MEMORY", 2 << 20)
    low, high = 0, (2 << 20) // len(MANY[values])
    while high - low > 250:  # the most values that pass
        middle = (low + high) // 2
        body = START.get(values, b"") + b"[%b0]" % (MANY[values] * middle)
        low, high = (middle, high) if protocol._memory(body) <= protocol.MAX_MEMORY else (low, middle)
    start = START.get(values, b"")
    rows = (MANY[values] * low).removesuffix(b",") if start else MANY[values] * low + b"0"
    text = b'{"value":%b[%b]%b}\n' % (start, rows, b"}" * bool(start))
    tracemalloc.start()
    try:
        [message] = protocol.messages(iter([text, b""]).__next__)
        decoded = protocol.from_wire(message["value"])
        assert tracemalloc.get_traced_memory()[1] < protocol.MAX_MEMORY * 1.1
        assert len(decoded) == low + (not start)
    finally:
        tracemalloc.stop()


def test_texts_of_the_remote_side_have_no_hidden_characters():
    hidden = "\x1b]0;title\x07\u202e\u2066name\x9b31m"
    wrong = {"code": "not_found", "message": hidden, "hint": {"$": "Advice", "parts": [hidden]}}
    value = {"answer": 1, "error": wrong}
    error, _, _ = run(remote_side(lambda n: iter([line({**value, "answer": n})])), lambda ws: ws.read(hidden))
    assert isinstance(error, NotFoundError)
    shown = []
    write = {"$": "WriteResult", "text": hidden, "notes": {"$": [hidden]}, "path": "a", "created": True}
    write |= {"bytes_written": 1, "diff": "", "revision": ""}
    hello = {"notes": [hidden]}

    def use(ws):
        written = ws.write("a", "")
        shown.extend([written.text, *written.notes, *ws.recovery_notes])

    run(remote_side(lambda n: iter([line({"answer": n, "value": write})]), **hello), use)
    noise = ["sh", "-c", "printf '\\033]0;title\\007' >&2; exit 3"]
    with pytest.raises(DisconnectedError) as caught:
        connect(noise, "/far", patience=5)
    assert "exit status 3" in str(caught.value)
    assert len(shown) == 3
    for text in (*shown, str(error), str(caught.value)):
        assert escape_controls(text) == text, ascii(text)
        assert "⟦U+001B⟧" in text
