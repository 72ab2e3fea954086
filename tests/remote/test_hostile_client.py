"""A hostile client gets no further than `--root` and the policy of the server."""

import contextlib
import json
import os
import threading

import pytest

import agentfs
from agentfs import Policy, Protect
from agentfs.remote import wire
from agentfs.remote.server import Server
from tests.kit import put

SECRET = "the secret outside"


class Client:
    """Speaks to a server line by line, without our own client code."""

    def __init__(self, options, **arguments) -> None:
        far_input, self.output = os.pipe()
        near_input, far_output = os.pipe()
        self.input = os.fdopen(near_input, "rb")
        self.failure = None
        self.thread = threading.Thread(target=self.serve, args=(options, far_input, far_output))
        self.thread.start()
        settings = json.dumps([arguments.pop(name.lower(), {"$": name}) for name in ("Policy", "Limits")])
        opening = {"version": agentfs.__version__, "root": "", "state": None, "settings": settings}
        self.answer = self.ask({"of": 0, "method": "open", "arguments": {**opening, **arguments}})
        self.number = 0

    def serve(self, options, far_input, far_output):
        server = Server(far_output, **options)
        with os.fdopen(far_input, "rb") as reader:
            try:
                server.run(reader)
            except wire.ProtocolError:
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
        message = {"of": self.number, "method": method, "arguments": arguments or {}, "within": []}
        return self.ask({**message, **fields})

    def end(self):
        if not self.input.closed:
            os.close(self.output)
            self.thread.join(20)
            self.input.close()
        assert not self.thread.is_alive()
        assert self.failure is None


@pytest.fixture
def tree(tmp_path):
    root, outside = tmp_path / "root", tmp_path / "outside"
    put(root, {"a.txt": "one\n", ".env": "TOKEN=1\n"})
    put(outside, {"secret.txt": SECRET, "linked.txt": "in the root under another name\n"})
    for name in ("inside", ".ssh/deep"):
        (root / name).mkdir(parents=True)
    (root / "to-a.txt").symlink_to("a.txt")
    (root / "link").symlink_to(outside)
    os.link(outside / "linked.txt", root / "hard.txt")
    return root


@pytest.fixture
def start(tree):
    clients = []

    def started(policy_of_server=None, **hello):
        clients.append(Client({"root": str(tree), "policy": policy_of_server or Policy()}, **hello))
        return clients[-1]

    before = content(tree.parent)
    yield started
    for each in clients:
        each.end()
    assert content(tree.parent) == before


def content(directory):
    found = (path for path in sorted(directory.rglob("*")) if path.is_file() and not path.is_symlink())
    return {str(path): path.read_bytes() for path in found}


def plain(value):
    return json.loads(wire.to_text(value))


def within(*steps):
    return [*map(json.dumps, steps)]


def short(value):
    return json.dumps(value)[:60]


WIDER = [
    *({"root": each} for each in ("..", "/", "link", "inside/../..", "\0", 5, "a.txt", ".ssh", ".ssh/deep")),
    *({"state": each} for each in ("/tmp/agentfs-hostile", "inside")),
    *({"limits": {"$": "Limits", **each}} for each in ({"timeout": "10"}, {"file_bytes": 10**12})),
    *({"policy": plain(Policy(run=each))} for each in ("recorded", "staged")),
    *({"policy": {"$": "Policy", **each}} for each in ({"no_such_field": "x"}, {"protect": 5})),
    *({"policy": each} for each in ({"$": "Limits"}, {"$": "os.system", "command": "true"})),
    *({"version": "99.0"}, {"version": None}, {"more": 1}),
]


@pytest.mark.parametrize("wider", WIDER, ids=short)
def test_the_first_message_cannot_widen(start, wider):
    client = start(**wider)
    assert "error" in client.answer or "ended" in client.answer, client.answer
    assert SECRET not in json.dumps(client.answer)
    assert not os.path.exists("/tmp/agentfs-hostile")


def test_a_client_keeps_its_state_inside_that_of_the_server_only(tree, tmp_path_factory):
    states = tmp_path_factory.mktemp("states")
    (states / "link").symlink_to(tree)
    wanted = {"mine": True, "../other": False, "/etc": False, "link": False, "link/x": False}
    for state, allowed in wanted.items():
        client = Client({"root": str(tree), "state": str(states)}, state=state)
        client.end()
        assert ("value" in client.answer) == allowed, client.answer
    assert (states / "mine").is_dir()
    assert not (states.parent / "other").exists()


NARROW = {
    "read-only": (Policy(read_only=True), "write", {"path": "new.txt", "content": "x"}),
    "a rule": (Policy(deny=["write(new*)"]), "write", {"path": "new.txt", "content": "x"}),
    "a name": (Policy(protect=Protect(read=["a.txt"])), "read", {"path": "a.txt"}),
    "an exception": (Policy(), "read", {"path": ".env"}),
    "no links": (Policy(symlinks="never"), "read", {"path": "to-a.txt"}),
}
WIDE = {
    "default": Policy(),
    "bypass": Policy(mode="bypass", overwrite="always"),
    "no names": Policy(protect=Protect(read=[], write=[])),
    "exceptions": Policy(protect=Protect(read=[*Protect.READ, "!.env", "!a.txt"])),
    "allowed": Policy(allow=["*"]),
}


@pytest.mark.parametrize("narrow", NARROW)
@pytest.mark.parametrize("wide", WIDE)
def test_the_policy_of_the_server_holds_for_every_policy_of_a_client(start, narrow, wide):
    own, method, arguments = NARROW[narrow]
    client = start(own, policy=plain(WIDE[wide]))
    policy = plain(WIDE[wide])
    for steps in ([], [["host", {}]], [["view", {"policy": policy}]], [["view", {}]]):
        answer = client.call(method, arguments, within=within(*steps))
        assert "value" not in answer, answer


CHANGES = {
    "write": {"path": "new.txt", "content": "x"},
    "edit": {"path": "a.txt", "old_string": "one", "new_string": "two"},
    "edit_lines": {"path": "a.txt", "edits": []},
    "delete": {"path": "a.txt"}, "move": {"path": "a.txt", "to": "b.txt"},
    "replace": {"old_string": "one", "new_string": "two"},
    "undo": {}, "mkdir": {"path": "new"}, "transaction": {},
}  # fmt: skip


@pytest.mark.parametrize("method", CHANGES)
@pytest.mark.parametrize("steps", [[], [["host", {}]], [["view", {"policy": plain(Policy(mode="bypass"))}]]])
def test_nothing_lifts_read_only(start, method, steps):
    client = start(Policy(read_only=True))
    client.call("read", {"path": "a.txt"})
    answer = client.call(method, CHANGES[method], within=within(*steps))
    if method == "transaction" and "value" in answer:
        inside = within(["block", answer["value"]])
        ended = {"block": answer["value"], "raised": False}
        answer = client.call("write", {"path": "new.txt", "content": "x"}, within=inside)
        client.call("leave", ended)
    assert "value" not in answer, answer


VIEWS = [{"only": [".."]}, {"workdir": ".."}, {"workdir": "link"}, {"nothing": 1}, {"policy": 5}]
WITHIN = [
    *(5, None, "view", {"view": {}}, ["view"], [["view"]], [["view", 5]]),
    *([["view", each]] for each in (*VIEWS, {"policy": {"$": "Limits"}})),
    *([["block", "not begun"]], [["block", {"a": 1}]]),
    *([["block", "not begun"], ["host", {}]], [["host", {}], ["block", "not begun"]]),
    [["view", {}]] * 2000,
]


@pytest.mark.parametrize("steps", WITHIN, ids=short)
def test_a_wrong_view_is_an_error_and_the_next_call_works(start, steps):
    client = start()
    for inside in (steps, within(*steps)) if isinstance(steps, list) else (steps,):
        assert "value" not in client.call("read", {"path": "a.txt"}, within=inside)
    assert "value" in client.call("read", {"path": "a.txt"})


PATHS = ["../outside/secret.txt", "link/secret.txt", "/etc/passwd", "inside/../../outside/secret.txt"]
PATHS += ["a\0b", "", ["a.txt", "../outside/secret.txt"], {"$": "bytes", "base64": "Li4="}, 5, None]


@pytest.mark.parametrize("path", PATHS)
def test_no_path_leads_outside_the_root(start, path):
    client = start()
    more = {"grep": {"pattern": "secret"}, "write": {"content": "x"}}
    more["edit"] = {"old_string": "secret", "new_string": "x"}
    for method in ("read", "read_bytes", "ls", "grep", "write", "edit", "delete"):
        answer = json.dumps(client.call(method, {"path": path, **more.get(method, {})}))
        assert SECRET not in answer
        assert "root:x" not in answer


FUNCTION = {"$": "Function", "number": 0}
MESSAGES = [
    *({"method": each} for each in ("_root", "close", "tools", "policy", "__class__", "leave", "recording")),
    *({"method": ["read"]}, {"method": None}),
    {"method": "__init__", "arguments": {"root": "/"}},
    {"method": "open", "arguments": {"root": "inside"}},
    {"method": "recorded", "arguments": {"function": FUNCTION}},
    {"method": "read", "arguments": {"self": 1, "path": "a.txt"}},
    {"method": "read", "arguments": ["a.txt"]},
    {"method": "read", "arguments": {"path": "a.txt", "__class__": 1}},
    {"method": "write", "arguments": {"path": "x", "content": FUNCTION}},
    {"method": "leave", "arguments": {"block": "not begun", "raised": False}},
    {"method": "leave", "arguments": {"block": {"a": 1}, "raised": True}},
    {"method": "transaction", "arguments": {"block": "t"}},
    {"method": "write", "arguments": {"path": "x", "content": "x", "\ud800": 1}},
]


@pytest.mark.parametrize("message", MESSAGES, ids=short)
def test_an_invalid_call_is_an_error_and_the_next_one_works(start, message):
    client = start()
    answer = client.call(**{"method": None, **message})
    assert "error" in answer or answer.get("value") is None, answer
    assert "value" in client.call("read", {"path": "a.txt"})


LINES = [
    b"\xff\xfe\n", b"{}\n", b"[]\n", b"null\n",
    b'{"of": true, "method": "ls", "arguments": {}}\n',
    b'{"of": 1.5}\n',
    b'{"of": -1, "method": "read", "arguments": {"path": "a.txt"}, "within": []}\n',
    b'{"reply": 99, "of": 1, "value": true}\n', b'{"of": 99, "cancel": true}\n',
    b'{"of": [1], "cancel": true}\n', b"[" * 500_000 + b"\n",
    b'{"of": 1, "method": "x", "arguments": ' + b'{"a":' * 5000 + b"1" + b"}" * 5001 + b"\n",
    b'{"of": ' + b"9" * 100_000 + b"}\n", b'{"of": 1', b"\n" * 1000, bytes(range(128)) * 20 + b"\n",
]  # fmt: skip


@pytest.mark.parametrize("line", LINES, ids=lambda each: repr(each[:30]))
def test_an_invalid_line_ends_the_server_or_is_ignored(start, line):
    client = start()
    assert "error" not in client.answer
    client.send(line)
    client.end()


def test_a_line_without_an_end_is_bounded(start, monkeypatch):
    monkeypatch.setattr(wire, "MAX_LINE", 1 << 20)
    client = start()
    client.send(b"x" * ((1 << 20) + 2))
    assert client.receive() == {"ended": True}


def test_an_answer_without_a_question_permits_nothing(start):
    client = start(policy={"$": "Policy", "on_ask": {"$": "Function", "number": 0}})
    allow = {"$": "Allow"}
    for number in range(3):  # to questions that are not asked yet
        client.send({"reply": number, "of": 1, "value": allow}, {"reply": number, "of": 2, "value": allow})
    question = client.call("write", {"path": "new.txt", "content": "x"})
    assert "ask" in question, question
    for wrong in ({"reply": 99}, {"reply": None}, {}, {"reply": str(question["ask"])}):
        client.send({"of": 1, "value": allow, **wrong})
    client.send({"reply": question["ask"], "of": 7, "value": allow})
    client.send({"reply": question["ask"], "of": 1, "value": "yes"})
    answer = client.receive()
    assert "value" not in answer, answer


WRONG = [-1, 2**63, 1.5, "1", True, [1], {"a": 1}, "\x1b[2J", "\ud800", {"$": "Allow"}]


@pytest.mark.parametrize("name", ["method", "arguments", "within", "tool", "progress"])
def test_a_wrong_field_of_a_call_is_an_error_and_the_next_one_works(start, name):
    client = start()
    for value in WRONG:
        answer = client.call(**{"method": "grep", "arguments": {"pattern": "one"}, name: value})
        assert "value" not in answer or name in ("tool", "progress"), (name, value)
    assert "value" in client.call("grep", {"pattern": "one"})


@pytest.mark.parametrize("name", ["version", "root", "state", "policy", "limits"])
def test_a_wrong_field_of_the_first_message_is_an_error(start, name):
    for value in [*WRONG, None]:
        start(**{name: value}).end()  # `end` fails if an exception ended the server
