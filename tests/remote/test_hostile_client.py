"""A hostile client gets nothing outside the root and nothing that the server's command line forbids."""

import contextlib
import copy
import functools
import json
import os
import threading
import time

import pytest

from agentfs import Limits, Policy, Protect
from agentfs.errors import AgentFSError
from agentfs.remote import protocol
from agentfs.remote.server import Options, Server
from agentfs.remote.transport import line_reader

SECRET = "the secret outside"


class Client:
    """Speaks to a server line by line, without our own client code."""

    def __init__(self, options, **hello) -> None:
        far_input, self.output = os.pipe()
        near_input, far_output = os.pipe()
        self.input = os.fdopen(near_input, "rb")
        self.failure = None
        self.thread = threading.Thread(target=self.serve, args=(options, far_input, far_output))
        self.thread.start()
        given = {
            "protocol": protocol.PROTOCOL_VERSION,
            "nonce": "n",
            "client": "c",
            "root": "",
            "state": None,
            "session": None,
        }
        given |= {"watch": False, "again": False, "secret": "s"}
        given |= {"policy": protocol.to_wire(Policy()), "limits": protocol.to_wire(Limits())}
        self.answer = self.ask({**given, **hello})
        self.number = 0

    def serve(self, options, far_input, far_output):
        """Run the server like `serve`, in this process."""
        server = Server(options, far_output)
        with os.fdopen(far_input, "rb") as reader:
            try:
                server.run(line_reader(reader.readline, protocol.MAX_LINE))
            except (protocol.ProtocolError, AgentFSError):
                pass
            except BaseException as error:  # noqa: BLE001 - it would end a real server with a traceback
                self.failure = error
            finally:
                server.end()
                os.close(far_output)

    def send(self, *lines):
        for line in lines:
            data = line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n"
            with contextlib.suppress(BrokenPipeError):
                while data:
                    data = data[os.write(self.output, data) :]

    def receive(self):
        return json.loads(self.input.readline() or b'{"ended": true}')

    def ask(self, message):
        self.send(message)
        return self.receive()

    def call(self, method, arguments=None, **fields):
        self.number += 1
        number = fields.pop("request", self.number)
        return self.ask(
            {
                "request": number,
                "method": method,
                "arguments": arguments or {},
                "key": f"key{number}",
                **fields,
            }
        )

    def end(self):
        if not self.input.closed:
            os.close(self.output)
            self.thread.join(20)
            self.input.close()
        assert not self.thread.is_alive()
        assert self.failure is None


@pytest.fixture
def tree(tmp_path):
    root = tmp_path / "root"
    (root / "inside").mkdir(parents=True)
    (root / "a.txt").write_text("one\n")
    (root / ".env").write_text("TOKEN=1\n")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text(SECRET)
    (tmp_path / "outside" / "linked.txt").write_text("in the root under another name\n")
    (root / "link").symlink_to(tmp_path / "outside")
    os.link(tmp_path / "outside" / "linked.txt", root / "hard.txt")
    return root


@pytest.fixture
def start(tree):
    clients = []

    def started(*, read_only=False, **hello):
        clients.append(Client(Options(root=str(tree), read_only=read_only), **hello))
        return clients[-1]

    before = content(tree.parent)
    yield started
    for each in clients:
        each.end()
    assert content(tree.parent) == before


def content(directory):
    return {
        str(path): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def code(answer):
    return answer.get("error", {}).get("code")


WIDER = [
    {"root": ".."},
    {"root": "/"},
    {"root": "link"},
    {"root": "inside/../.."},
    {"root": "\0"},
    {"root": 5},
    {"state": "/tmp/agentfs-hostile"},
    {"watch": "yes"},
    {"limits": protocol.to_wire(Limits(timeout=30))},
    {"limits": protocol.to_wire(Limits(file_bytes=200 << 20))},
    {"limits": protocol.to_wire(Limits(watch_bytes=1 << 40))},
    {"limits": {"$": "Limits", "timeout": 1e999}},
    {"limits": {"$": "Limits", "timeout": "10"}},
    {"limits": {}},
    {"policy": protocol.to_wire(Policy(protect=Protect(read=[])))},
    {"policy": protocol.to_wire(Policy(protect=Protect(read=[*Protect.READ, "!.env"])))},
    {"policy": protocol.to_wire(Policy(protect=Protect(write=["x"])))},
    {"policy": {"$": "Policy", "hardlinks": "inplace"}},
    {"policy": {"$": "Limits"}},
    {"policy": {"$": "os.system", "command": "true"}},
    {"protocol": 10**9},
]


@pytest.mark.parametrize("wider", WIDER, ids=lambda each: json.dumps(each)[:60])
def test_the_first_message_cannot_widen(start, wider):
    client = start(**wider)
    assert "error" in client.answer or "ended" in client.answer, client.answer
    assert SECRET not in json.dumps(client.answer)
    assert not os.path.exists("/tmp/agentfs-hostile")


@pytest.mark.parametrize(
    "views",
    [
        [{"policy": protocol.to_wire(Policy(read_only=False))}],
        [{"policy": protocol.to_wire(Policy(read_only=False, mode="bypass"))}, {}],
        [
            {"limits": protocol.to_wire(Limits(output_tokens=1))},
            {"policy": protocol.to_wire(Policy(overwrite="always"))},
        ],
    ],
)
@pytest.mark.parametrize(
    "method", ["write", "edit", "delete", "move", "replace", "splice", "edit_lines", "undo", "begin"]
)
def test_a_view_cannot_lift_read_only(start, views, method):
    client = start(read_only=True)
    arguments = {
        "write": {"path": "new.txt", "content": "x"},
        "edit": {"path": "a.txt", "old_string": "one", "new_string": "two"},
        "edit_lines": {"path": "a.txt", "edits": []},
        "delete": {"path": "a.txt"},
        "move": {"source": "a.txt", "destination": "b.txt"},
        "replace": {"old_string": "one", "new_string": "two"},
        "splice": {"path": "a.txt", "function": {"$": "function", "number": 0}},
        "undo": {},
        "begin": {"name": "t", "method": "transaction", "arguments": {}},
    }[method]
    client.call("read", {"path": "a.txt"})
    answer = client.call(method, arguments, views=views)
    if method == "begin" and "value" in answer:
        answer = client.call("write", {"path": "new.txt", "content": "x"}, block="t", views=views)
        client.call("end", block="t")
    assert "value" not in answer, answer


WIDER_VIEWS = [
    {"policy": protocol.to_wire(Policy(protect=Protect(read=[])))},
    {"limits": protocol.to_wire(Limits(timeout=30))},
    {"limits": protocol.to_wire(Limits(file_bytes=200 << 20))},
    {"policy": {"$": "Policy", "hardlinks": "inplace", "overwrite": "always"}},
    {"only": [".."]},
    {"workdir": ".."},
    {"workdir": "link"},
    {"nothing": 1},
    [],
    "view",
]


@pytest.mark.parametrize("view", WIDER_VIEWS, ids=lambda each: json.dumps(each)[:60])
def test_a_view_cannot_widen(start, view):
    client = start()
    for method, arguments in (("read", {"path": ".env"}), ("write", {"path": "hard.txt", "content": "x"})):
        answer = client.call(method, arguments, views=[view])
        assert "value" not in answer, answer


PATHS = [
    "../outside/secret.txt",
    "link/secret.txt",
    "/etc/passwd",
    "inside/../../outside/secret.txt",
    "a\0b",
    "",
]


@pytest.mark.parametrize(
    "path", [*PATHS, ["a.txt", "../outside/secret.txt"], {"$": "bytes", "base64": "Li4="}, 5, None]
)
def test_no_path_leads_outside_the_root(start, path):
    client = start()
    for method in ("read", "ls", "grep", "write", "edit", "delete"):
        arguments = {"path": path}
        arguments |= {"grep": {"pattern": "secret"}, "write": {"content": "x"}}.get(method, {})
        arguments |= {"edit": {"old_string": "secret", "new_string": "x"}}.get(method, {})
        answer = client.call(method, arguments)
        assert SECRET not in json.dumps(answer)
        assert "root:x" not in json.dumps(answer)


@pytest.mark.parametrize(
    "message",
    [
        {"method": "__init__", "arguments": {"root": "/"}},
        {"method": "_root"},
        {"method": "close"},
        {"method": "tools"},
        {"method": "policy"},
        {"method": "__class__"},
        {"method": ["read"]},
        {"method": None},
        {"method": "read", "arguments": {"self": 1, "path": "a.txt"}},
        {"method": "read", "arguments": ["a.txt"]},
        {"method": "read", "arguments": {"path": "a.txt", "__class__": 1}},
        {"method": "write", "arguments": {"path": "x", "content": {"$": "function", "number": 0}}},
        {"method": "end", "block": "not begun"},
        {"method": "end", "block": {"a": 1}},
        {"method": "abort"},
        {"method": "begin", "arguments": {}},
        {"method": "begin", "arguments": {"name": "t", "method": "close", "arguments": {}}},
        {"method": "begin", "arguments": {"name": "t", "method": ["transaction"], "arguments": {}}},
        {"method": "read", "block": "other", "arguments": {"path": "a.txt"}},
        {"method": "read", "views": "x" * 100, "arguments": {"path": "a.txt"}},
        {"method": "write", "arguments": {"path": "x", "content": "x", "\ud800": 1}},
        {
            "method": "splice",
            "arguments": {"path": "../outside/secret.txt", "function": {"$": "function", "number": 0}},
        },
        {"method": "read", "arguments": {"path": "a.txt"}, "key": ["k"], "seconds": "soon"},
    ],
    ids=lambda each: json.dumps(each)[:60],
)
def test_an_invalid_call_is_an_error_and_the_next_one_works(start, message):
    client = start()
    answer = client.call(**{"method": None, **message})
    if "value" not in answer:
        assert "error" in answer or "ended" in answer, answer
    if "ended" not in answer:
        assert "value" in client.call("read", {"path": "a.txt"})


LINES = [
    b"\xff\xfe\n",
    b"{}\n",
    b"[]\n",
    b"null\n",
    b'{"request": true, "method": "ls", "arguments": {}}\n',
    b'{"request": 1.5}\n',
    b'{"request": -1, "method": "read", "arguments": {"path": "a.txt"}}\n',
    b'{"reply": 99, "to": 1, "value": true}\n',
    b'{"cancel": 99}\n',
    b'{"ping": "x"}\n',
    b"[" * 500_000 + b"\n",
    b'{"request": 1, "arguments": ' + b'{"a":' * 5000 + b"1" + b"}" * 5001 + b"\n",
    b'{"request": ' + b"9" * 100_000 + b"}\n",
    b"+" + b"x" * 1000 + b"\n",
    b"x" * (protocol.MAX_LINE + 2),
    b"\n" * 1000,
    bytes(range(128)) * 20 + b"\n",
]


@pytest.mark.parametrize("line", LINES, ids=lambda each: repr(each[:30]))
def test_an_invalid_line_ends_the_server_or_is_ignored(start, line):
    client = start()
    assert "error" not in client.answer
    client.send(line)
    client.end()


def test_an_answer_without_a_question_permits_nothing(start, tree):
    policy = protocol.to_wire(Policy(on_ask=print), [])
    client = start(policy=policy)
    allow = {"$": "Allow"}
    for number in range(3):  # to questions that are not asked yet
        client.send({"reply": 1, "to": number, "value": allow}, {"reply": 2, "to": number, "value": allow})
    question = client.call("write", {"path": "new.txt", "content": "x"}, request=1)
    assert "ask" in question, question
    for wrong in ({"to": 99}, {"to": None}, {}, {"to": str(question["ask"])}):
        client.send({"reply": 1, "value": allow, **wrong})
    client.send({"reply": 7, "to": question["ask"], "value": allow})
    client.send({"reply": 1, "to": question["ask"], "value": "yes"})
    answer = client.receive()
    assert "value" not in answer, answer


def test_the_seconds_of_a_client_are_bounded(start):
    client = start()
    for seconds in (-1, 0, 1e-9, 1e308, None, True, {"a": 1}):
        answer = client.call("grep", {"pattern": "one"}, seconds=seconds)
        assert "answer" in answer or "error" in answer
    client.send(b'{"request": 900, "method": "ls", "arguments": {}, "seconds": NaN}\n')
    assert client.receive()["answer"] == 900


def test_a_client_cannot_lift_the_deadline_of_a_method_without_a_timeout(tree, start):
    (tree / "many.txt").write_text("".join(f"line {number}\n" for number in range(50_000)))
    client = start(limits=protocol.to_wire(Limits(timeout=0.2)))
    edits = [{"old_string": f"line {number}\n", "new_string": "x\n"} for number in range(49_000, 46_000, -1)]
    arguments = {"path": "many.txt", "edits": edits, "preview": True}
    for seconds in (1e9, 1e308):
        began = time.monotonic()
        answer = client.call("multi_edit", arguments, seconds=seconds)
        assert code(answer) == "timeout"
        assert time.monotonic() - began < 1.5
    for seconds in (b"NaN", b"Infinity", b"1e999", b'"1"', b"true", b"[1]"):
        line = b'{"request": 5, "method": "ls", "arguments": {}, "seconds": %b}\n' % seconds
        assert code(client.ask(line)) == "invalid_argument"
    (tree / "many.txt").unlink()


@pytest.mark.parametrize("timeout", [30, 1e9, 10.5, float("nan"), float("inf")])
def test_a_client_cannot_lift_the_timeout_of_a_search(start, timeout):
    client = start()
    assert "value" not in client.call("grep", {"pattern": "one", "timeout": timeout})
    assert "value" in client.call("grep", {"pattern": "one", "timeout": 1})


def test_a_client_cannot_count_the_tokens_of_an_answer(start):
    limits = {"$": "Limits", "count_tokens": {"$": "function", "number": 0}}
    assert code(start(limits=limits).answer) == "refused"
    answer = start().call("read", {"path": "a.txt"}, views=[{"limits": limits}])
    assert code(answer) == "refused"


WRONG = [
    -(10**9),
    -1,
    2**63,
    10**30,
    1.5,
    "1",
    True,
    [1],
    {"a": 1},
    "x" * 10_000,
    "\x1b[2J",
    "\ud800",
    "\u202e",
]
NOT_FINITE = [b"NaN", b"Infinity", b"-Infinity", b"1e999"]


def lines_with(message, *place):
    """Yield a message as a line, once for each wrong value at one place."""
    for value in WRONG:
        changed = copy.deepcopy(message)
        inner = functools.reduce(lambda found, name: found[name], place[:-1], changed)
        inner[place[-1]] = value
        yield json.dumps(changed).encode() + b"\n"
    changed = copy.deepcopy(message)
    functools.reduce(lambda found, name: found[name], place[:-1], changed)[place[-1]] = "HERE"
    for value in NOT_FINITE:
        yield json.dumps(changed).encode().replace(b'"HERE"', value) + b"\n"


def test_no_limit_of_a_view_widens_an_answer(tree, start):
    """Attack: `line_overhead=-10**9` leaves out the limit of the bytes that a read returns."""
    (tree / "long.txt").write_text(f"{'one line of a text ' * 15}\n" * 2000)
    client = start()
    call = {"request": 1, "method": "read", "arguments": {"path": "long.txt"}}
    call["views"] = [{"limits": {"$": "Limits", "read_lines": 1000}}]
    for number, line in enumerate(lines_with(call, "views", 0, "limits", "line_overhead")):
        client.send(line.replace(b'"request": 1', b'"request": %d' % number))
        answer = next(protocol.messages(client.input.readline))
        assert len(json.dumps(answer)) < 300_000, line[-80:]
    assert "value" in client.call("read", {"path": "a.txt"})
    (tree / "long.txt").unlink()


OPTIONS = ["samples", "overlap", "unique", "whole_line", "invert", "dot_all"]


@pytest.mark.parametrize(("method", "name"), [*(("grep", name) for name in OPTIONS), ("find", "unique")])
def test_no_option_of_a_search_widens_an_answer(tree, start, method, name):
    """Attack: a number of samples, or another option, that leaves out the limits of a search."""
    (tree / "long.txt").write_text(f"{'one line of a text ' * 15}\n" * 2000)
    client = start()
    arguments = {"grep": {"pattern": "one", "output_mode": "summary", "context": 2}}.get(method, {})
    if name == "overlap":
        arguments["output_mode"] = "content"
    if name == "dot_all":
        arguments |= {"pattern": "one.line", "multiline": True}
    call = {"request": 1, "method": method, "arguments": arguments}
    for number, line in enumerate(lines_with(call, "arguments", name)):
        client.send(line.replace(b'"request": 1', b'"request": %d' % number))
        answer = next(protocol.messages(client.input.readline))
        assert len(json.dumps(answer)) < 300_000, line[-80:]
        value = json.loads(line)["arguments"][name]
        if type(value) is not (int if name == "samples" else bool):
            assert code(answer) == "invalid_argument", value
    assert "value" in client.call("read", {"path": "a.txt"})
    (tree / "long.txt").unlink()


CALL_FIELDS = ["method", "arguments", "views", "block", "key", "tool", "progress", "seconds", "again"]


@pytest.mark.parametrize("name", CALL_FIELDS)
def test_a_wrong_field_of_a_call_is_an_error_and_the_next_one_works(start, name):
    client = start()
    message = {"request": 1, "method": "grep", "arguments": {"pattern": "one"}, name: None}
    right = {"key": str, "tool": str, "method": str, "block": str, "progress": bool, "again": bool}
    right |= {"arguments": dict, "views": list, "seconds": (int, float)}
    for number, line in enumerate(lines_with(message, name)):
        client.send(line.replace(b'"request": 1', b'"request": %d' % number))
        answer = client.receive()
        assert answer["answer"] == number
        value = json.loads(line)[name]
        if not isinstance(value, right.get(name, dict)) or (type(value) is bool and name == "seconds"):
            assert "error" in answer, (name, value)
    assert "value" in client.call("grep", {"pattern": "one"})


HELLO_FIELDS = ["nonce", "client", "protocol", "root", "state", "session", "policy", "limits", "watch"]


@pytest.mark.parametrize("name", [*HELLO_FIELDS, "again", "kept", "forget"])
def test_a_wrong_field_of_the_first_message_is_an_error(start, name):
    for number, value in enumerate([*WRONG, None]):
        start(**{"client": f"c{number}", name: value}).end()  # `end` fails if an exception ended the server


@pytest.mark.parametrize("client", ["\u00e9", "\u4e2d", "a/b", "..", "", "a b", "x" * 65, 5, None])
def test_a_client_with_an_invalid_name_gets_an_error(start, client):
    assert code(start(client=client).answer) == "invalid_argument"


def test_unread_replies_are_bounded(start):
    policy = protocol.to_wire(Policy(on_ask=print), [])
    client = start(policy=policy)
    assert "ask" in client.call("write", {"path": "new.txt", "content": "x"}, request=1)
    for number in range(1000):
        client.send({"reply": 1, "to": 1000 + number, "value": None})
    client.end()
