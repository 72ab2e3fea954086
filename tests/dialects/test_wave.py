"""`wave`: each statement of the document, as `docs/reference/dialects/wave.md` lists them."""

# ruff: noqa: E501 - a row of a table is one line

import asyncio
import base64
import inspect
import json
import threading
from dataclasses import replace

import pytest

from agentfs import Policy, Workspace
from agentfs.dialects.wave import DIALECT, ToolContext, WaveResult, _policy, plugins
from agentfs.errors import InvalidArgumentError
from agentfs.permissions import Allow, Deny
from agentfs.tools import tool
from tests.dialects.answers import check, parameters
from tests.kit import put
from tests.reading.conftest import make_image

TREE = {
    "README.md": "# A thing\n\nTODO: write\n",
    "src/main.py": "import os\n\n\ndef main():\n    # TODO: one\n    return os  # todo two\n",
    "src/util/text.js": "// TODO: three\nlet a = 1;\nlet b = 2;\n// TODO: four\n",
    "src/empty.txt": "",
}


@pytest.fixture
def ws(tmp_path):
    put(tmp_path, TREE)
    with Workspace(tmp_path) as workspace:
        yield workspace


@pytest.fixture
def call(ws):
    tools = ws.tools(dialect="wave")
    return lambda name, **arguments: tools.call(name, arguments)


def execute(ws, name, args, **context):
    plugin = next(each for each in plugins(ws) if each.name == name)
    return asyncio.run(plugin.execute(args, {"workdir": ".", **context}))


PARAMETERS = {
    "Read": "file_path*, offset integer, limit integer",
    "Write": "file_path*, content*",
    "Edit": "file_path*, old_string*, new_string*, replace_all boolean",
    "MultiEdit": "file_path*, edits* array", "LS": "path*, ignore array", "Glob": "pattern*, path",
    "Grep": "pattern*, path, glob, output_mode, -B integer, -A integer, -C integer, -n boolean, -i boolean, "
    "type, head_limit integer, multiline boolean",
}  # fmt: skip


def test_the_schema_has_exactly_the_documented_parameters(ws):
    assert parameters(ws, "wave") == PARAMETERS
    schemas = {made["name"]: made["input_schema"] for made in ws.tools(dialect="wave").schemas("anthropic")}
    modes = schemas["Grep"]["properties"]["output_mode"]
    assert modes["enum"] == ["content", "files_with_matches", "count"]
    assert modes["description"].endswith('Default "files_with_matches".')
    items = schemas["MultiEdit"]["properties"]["edits"]["items"]
    assert set(items["properties"]) == {"old_string", "new_string", "replace_all"}
    assert items["required"] == ["old_string", "new_string"]
    for name in ("multi_edit", "use edit", "in edit.", "include_ignored", "ignore_case"):
        assert name not in json.dumps(schemas)


def test_a_plugin_has_its_name_and_config(ws):
    assert [plugin.name for plugin in plugins(ws)] == list(PARAMETERS)
    for plugin in plugins(ws):
        function = plugin.config["function"]
        assert (plugin.config["type"], function["name"]) == ("function", plugin.name)
        assert function["description"]
        assert function["parameters"]["type"] == "object"


def test_execute_is_a_coroutine(ws):
    assert all(inspect.iscoroutinefunction(plugin.execute) for plugin in plugins(ws))
    assert isinstance(execute(ws, "Read", {"file_path": "README.md"}), WaveResult)
    for name in PARAMETERS:
        for sent in ({}, {"nothing": 1}, {"path": 5}, {"file_path": None}, {"file_path": "a\0b"}, [], None):
            answer = execute(ws, name, sent)
            assert answer.success or answer.error["code"]


@pytest.mark.parametrize(("tool", "params", "workdir", "shown"), [
    ("Read", {"file_path": "src/a.py", "offset": 3}, ".", "src/a.py"),
    ("Read", {"file_path": "/w/src/a.py"}, "/w", "src/a.py"),
    ("Read", {"file_path": "/elsewhere/a.py"}, "/w", "/elsewhere/a.py"),
    ("Write", {"file_path": "a", "content": "x" * 999}, ".", "a"),
    ("MultiEdit", {"file_path": "a", "edits": [{}, {}]}, ".", "a (2 edits)"),
    ("Grep", {"pattern": "TODO\n", "path": "src"}, ".", "TODO  in src"),
    ("Glob", {"pattern": "**/*.py"}, ".", "**/*.py"),
    ("LS", {"path": "a\u202eb"}, ".", "a⟦U+202E⟧b"),
    ("LS", {}, ".", ""),
    ("LS", {"path": "x" * 500}, ".", "x" * 119 + "…"),
])  # fmt: skip
def test_compact_parameters(ws, tool, params, workdir, shown):
    plugin = next(each for each in plugins(ws) if each.name == tool)
    assert plugin.format_compact_params(params, ToolContext(workdir)) == shown
    assert plugin.formatCompactParams(params, {"workdir": workdir}) == shown


DOT = make_image("PNG")
READ_README = {
    "success": True, "content": "1|# A thing\n2|\n3|TODO: write", "shortResult": "Read README.md: lines 1-3 of 3", "filePath": "README.md",
}  # fmt: skip
WRONG = '"READM.md" does not exist.'


@pytest.mark.parametrize(("name", "args", "wanted"), [
    ("Read", {"file_path": "README.md"}, {"": READ_README}),
    ("Grep", {"pattern": "TODO"}, {"#": 3, "success": True, "content^": "README.md", "shortResult?": True}),
    ("Read", {"file_path": "READM.md"}, {"success": False, "error": WRONG, "content^": WRONG, "content~": "README.md"}),
    ("Read", {"path": "README.md", "line": "2"}, {"success": False, "error~": "line"}),
    ("Read", {"file_path": "dot.png"}, {"images#": 1, "images/0#": 2, "images/0/mediaType": "image/png", "images/0/data": base64.b64encode(DOT).decode()}),
])  # fmt: skip
def test_the_wire_form_of_an_answer(call, tmp_path, name, args, wanted):
    (tmp_path / "dot.png").write_bytes(DOT)
    check(call(name, **args).to_dict(), wanted)


FROM_SRC = [
    ("Read", {"file_path": "main.py", "limit": 1}, {
        "file_path": "main.py", "next/arguments": {"file_path": "main.py", "offset": 2, "limit": 1},
        "content": '1|import os\n[line 1 of 6; more: Read(file_path="main.py", offset=2, limit=1)]'}),
    ("Read", {"file_path": "{root}/src/main.py"}, {"file_path": "main.py"}),
    ("Read", {"file_path": "../README.md"}, {"file_path": "../README.md"}),
    ("LS", {"path": "."}, {"content": "util/\nempty.txt\nmain.py"}),
    ("LS", {"path": ".."}, {"content": "../src/\n../README.md"}),
    ("Glob", {"pattern": "*.js"}, {"content": "util/text.js"}),
    ("Glob", {"pattern": "*.md", "path": "{root}"}, {"content": "../README.md"}),
    ("Grep", {"pattern": "TODO"}, {"content^": "main.py\nutil/text.js\n"}),
    ("Grep", {"pattern": "TODO", "path": "..", "output_mode": "content"}, {"content^": "../README.md\n3|"}),
    ("Write", {"file_path": "new.py", "content": "x\n"}, {"file_path": "new.py", "content": "Created: 1 line."}),
    # As it was asked for, not with the workdir before it.
    ("Read", {"file_path": "../../x"}, {"error/code": "outside_workspace", "content^": '"../../x" leads out'}),
]  # fmt: skip


@pytest.mark.parametrize("absolute", [False, True])
def test_relative_paths_start_in_the_workdir(ws, absolute):
    workdir = f"{ws.root}/src" if absolute else "src"
    for name, args, wanted in FROM_SRC:
        given = {key: str(each).replace("{root}", ws.root) for key, each in args.items()}
        check(execute(ws, name, given, workdir=workdir), wanted)
    assert ws.read("src/new.py").content == "x\n"


def test_every_path_of_an_answer_works_from_the_workdir(ws, tmp_path):
    """Wave showed paths from the root, which failed when they were passed back from the workdir."""
    put(tmp_path, {".gitignore": "*.log\n", "src/a.log": "needle\n"})
    (tmp_path / "link.py").symlink_to("src/main.py")

    def call(name, **args):
        return execute(ws, name, args, workdir="src")

    paths = {
        *call("Glob", pattern="*", path="..").content.splitlines()[:5],
        *call("Grep", pattern="TODO").content.splitlines()[:2],
        *call("Read", file_path="../link.py").data["path"].splitlines(),
    }
    assert {"../README.md", "../src/main.py", "main.py", "util/text.js", "../link.py"} <= paths
    for path in paths:
        assert call("Read", file_path=path).success, path
    rule = call("Glob", pattern="*.log").content
    assert "as in a.log (ignored by ../.gitignore:1 *.log)" in rule
    assert call("Grep", pattern="needle", output_mode="content", path="a.log").success


@pytest.mark.parametrize(("name", "args", "hint"), [
    ("LS", {"path": "src"}, 'Did you mean "."?'),
    ("Read", {"file_path": "mian.py"}, 'Did you mean "main.py"?'),
    ("Read", {"file_path": "text.js"}, 'Did you mean "util/text.js"?'),
    ("Read", {"file_path": "README.md"}, 'Did you mean "../README.md"?'),
    ("Read", {"file_path": "src/main.py"}, 'Did you mean "main.py"?'),
    ("Write", {"file_path": "main.py", "content": "x"}, 'Read(file_path="main.py")'),
    ("Edit", {"file_path": "main.py", "old_string": "nothing like it", "new_string": "x"}, '"main.py"'),
])  # fmt: skip
def test_hints_name_paths_that_work_from_the_workdir(ws, monkeypatch, name, args, hint):
    monkeypatch.setattr("agentfs.search.missing_paths._SECONDS", 10)  # on a busy machine a walk takes longer
    failed = execute(ws, name, args, workdir="src")
    assert not failed.success
    assert hint in failed.content
    assert "src/" not in failed.content.replace(str(args.get("file_path")), "")
    ws.read("README.md")
    change = {"file_path": "main.py", "old_string": TREE["README.md"], "new_string": "x"}
    details = execute(ws, "Edit", change, workdir="src").data["details"]
    assert (details["cause"], details["other_paths"]) == ("other_file", ["../README.md"])


def test_rules_and_questions_keep_their_paths_from_the_root_under_a_workdir(ws, tmp_path):
    asked = []
    change = {"file_path": "main.py", "old_string": "import os", "new_string": "import sys"}
    execute(ws, "Edit", change, workdir="src", permissionManager=lambda request: asked.append(request.paths))
    assert asked == [("src/main.py",)]
    with Workspace(tmp_path, policy=Policy(deny=("edit(src/**)",))) as denied:
        assert execute(denied, "Edit", change, workdir="src").error["code"] == "refused"
        other = {**change, "file_path": "../README.md", "old_string": "thing"}
        assert execute(denied, "Edit", other, workdir="src").success, "the rule is about src alone"


@pytest.mark.parametrize(("workdir", "code"), [
    ("/", "outside_workspace"), ("..", "outside_workspace"), ("none", "not_found"),
    ("README.md", "not_a_directory"),
])  # fmt: skip
def test_a_workdir_that_is_not_a_directory_inside_the_root_is_refused(ws, tmp_path, workdir, code):
    result = execute(ws, "Read", {"file_path": str(tmp_path / "README.md")}, workdir=workdir)
    assert (result.success, result.error["code"]) == (False, code)


def test_a_permission_manager_is_asked(ws, tmp_path):
    asked = []

    def manager(request):
        asked.append((request.method, request.tool, request.paths, bool(request.diff)))
        return Deny("not this one") if request.changes else Allow()

    assert execute(ws, "Read", {"file_path": "README.md"}, permissionManager=manager).success
    change = {"file_path": "README.md", "old_string": "thing", "new_string": "x"}
    refused = execute(ws, "Edit", change, permissionManager=manager)
    assert refused.error["code"] == "refused"
    assert "not this one" in refused.content
    assert asked == [("read", "Read", ("README.md",), False), ("edit", "Edit", ("README.md",), True)]
    assert (tmp_path / "README.md").read_text() == TREE["README.md"]
    with pytest.raises(InvalidArgumentError):
        ToolContext(permission_manager=object())


@pytest.mark.parametrize(("answer", "allowed"), [(True, True), (False, False), (1, False), (None, False)])
def test_the_callback_decides(ws, answer, allowed):
    asked = []

    def now(tool, args):
        asked.append((tool, dict(args)))
        return answer

    async def later(tool, args):
        await asyncio.sleep(0)
        return now(tool, args)

    change = {"file_path": "README.md", "old_string": "thing", "new_string": "thing!"}
    for callback in (later, now):
        assert execute(ws, "Edit", change, canUseToolCallback=callback).success is allowed
    assert asked == [("Edit", change)] * 2


REFUSE = {"on_ask": lambda _: False}


# The policy of the workspace, the context with its callback's answer, whether Edit and Read work, and who is asked.
@pytest.mark.parametrize(("policy", "mode", "answer", "edits", "reads", "asked"), [
    *(({}, *row) for row in (
        (None, None, True, True, ""), ("default", None, True, True, ""), ("plan", None, False, True, ""), (None, True, True, True, "Edit Read"),
        ("", True, True, True, "Edit Read"), ("default", True, True, True, "Edit Read"), ("default", False, False, False, "Edit Read"),
        ("acceptEdits", True, True, True, "Read"), ("acceptEdits", False, True, False, "Read"), ("plan", True, False, True, "Read"),
        *(("bypassPermissions", answer, True, True, "") for answer in (True, False)), *((other, True, False, False, "") for other in ("yolo", "bypass")))),
    ({"mode": "accept_edits"}, None, True, True, True, "Read"), ({"allow": ("*",)}, None, True, True, True, "Edit Read"),
    ({"deny": ("edit",)}, None, True, False, True, "Read"), (REFUSE, None, True, False, False, ""),
    # A context does not loosen the policy.
    *((policy, "bypassPermissions", None, False, True, "") for policy in ({"mode": "plan"}, {"deny": ("edit",)})),
    (REFUSE, "default", None, False, True, ""),
], ids=lambda each: None if isinstance(each, dict) else str(each))  # fmt: skip
def test_permission_modes_and_when_the_callback_is_asked(tmp_path, policy, mode, answer, edits, reads, asked):
    (tmp_path / "a").write_text("1\n")
    called = []
    context = {} if mode is None else {"permissionMode": mode}
    if answer is not None:
        context["canUseToolCallback"] = lambda tool, _: called.append(tool) or answer
    with Workspace(tmp_path, policy=Policy(**policy)) as ws:
        edit = execute(ws, "Edit", {"file_path": "a", "old_string": "1", "new_string": "2"}, **context)
        assert (edit.success, edits or not policy or edit.error["code"] == "refused") == (edits, True)
        assert execute(ws, "Read", {"file_path": "a"}, **context).success is reads
        execute(ws, "Read", {"no such argument": "a"}, **context)
    assert called == asked.split()


def test_a_permission_manager_that_refuses_comes_before_the_callback(ws):
    asked = []
    context = {"permissionManager": lambda _: False, "canUseToolCallback": lambda *_: asked.append(1) or True}
    for name, given in (("Edit", {"old_string": "thing", "new_string": "x"}), ("Read", {})):
        execute(ws, name, {"file_path": "README.md", **given}, **context)
    assert not asked


def test_arguments_that_one_changes_reach_the_next(ws):
    asked = []

    def manager(request):
        return Allow({"new_string": "other"}) if request.changes else True

    def policy(request):
        asked.append((request.arguments["new_string"], "+# A other" in request.diff.split("\n")))
        return True

    with Workspace(ws.root, policy=replace(ws.policy, on_ask=manager)) as other:
        change = {"file_path": "README.md", "old_string": "thing", "new_string": "x"}
        assert execute(other, "Edit", change, permissionManager=policy).success
        assert other.read("README.md").content.startswith("# A other")
    assert asked == [("other", False)], "without the diff of other arguments"


def test_other_fields_of_a_context_are_kept():
    others = {"sessionId": 7, "taskManager": None}
    context = ToolContext.of({"workdir": "src", "permissionMode": "plan", **others})
    assert context == ToolContext("src", permission_mode="plan", others=others)
    assert ToolContext.of(context) is context
    for wrong in ({"workdir": 5}, {"workdir": None}, {"permission_mode": []}):
        with pytest.raises(InvalidArgumentError):
            ToolContext(**wrong)


MAIN, JS = "src/main.py", "src/util/text.js"
TODO = {"pattern": "TODO"}
IN_JS = {"path": JS, "output_mode": "content"}
LET_B, BEFORE, AFTER = "3|let b = 2;", "2-let a = 1;", "4-// TODO: four"
ANSWERS = {
    "Read": [
        ({"file_path": MAIN, "offset": 4, "limit": 2}, {"content":
            "4|def main():\n5|    # TODO: one\n"
            '[lines 4-5 of 6; more: Read(file_path="src/main.py", offset=6, limit=2)]'}),
        ({"file_path": MAIN, "offset": -1}, {"content^": "6|    return os"}),
        ({"file_path": "{root}/README.md"}, {"file_path": "README.md"}),
        *(({"file_path": "README.md", **offset}, {"content": "1|# A thing\n2|\n3|TODO: write"}) for offset in ({}, {"offset": 0})),
        ({"file_path": "README.md", "offset": 9}, {"error/code": "past_end"}),
        ({"file_path": "long.txt"}, {"data/end_line": 2000}),
    ],
    "LS": [
        ({"path": "src"}, {"content": "src/util/\nsrc/empty.txt\nsrc/main.py"}),
        ({"path": "src", "ignore": ["*.txt", "util"]}, {"content^": "src/main.py"}),
        ({}, {"error/code": "invalid_argument"}),
    ],
    "Glob": [
        ({"pattern": "**/*.{py,js}"}, {"content": f"{MAIN}\n{JS}"}),
        ({"pattern": "*.js", "path": "src/util"}, {"content": JS}),
        ({"pattern": "*.rs"}, {"success": True}),
    ],
    "Grep": [
        (TODO, {"content^": f"README.md\n{MAIN}\n{JS}\n", "content!": "TODO"}),
        *(({**TODO, **place}, {"content^": f"{file}\n", "data/total_files": 1}) for place, file in (
            ({"path": "src/util"}, JS), ({"path": "README.md"}, "README.md"), ({"glob": "*.py"}, MAIN),
            ({"type": "js"}, JS), ({"path": "src", "glob": "src/util/*.js"}, JS),
            ({"path": "src", "glob": "util/*.js"}, JS))),
        ({"pattern": "f("}, {"error/code": "invalid_pattern"}),
        ({**TODO, **IN_JS, "path": "src/util"}, {"content": f"{JS}\n1|// TODO: three\n4|// TODO: four"}),
        ({"pattern": "let|=", "path": JS, "output_mode": "count"}, {"content^": f"{JS}: 2 (4 matches)"}),
        ({"pattern": "x", "output_mode": "summary"}, {"error/code": "invalid_argument"}),
        *(({"pattern": "let b", **IN_JS, **context}, {"content": "\n".join([JS, *lines])})
          for context, *lines in (
            ({}, LET_B), ({"-A": 1}, LET_B, AFTER), ({"-B": 1}, BEFORE, LET_B),
            ({"-C": 1}, BEFORE, LET_B, AFTER), ({"-C": 2, "-B": 0}, LET_B, AFTER))),
        ({"pattern": "let", **IN_JS}, {"content^": f"{JS}\n2|let a = 1;\n3|let b"}),
        ({"pattern": "let", **IN_JS, "-n": False}, {"content^": f"{JS}\nlet a = 1;\nlet b"}),
        ({"pattern": "todo"}, {"data/total_files": 1}),
        ({"pattern": "todo", "-i": True}, {"data/total_files": 3}),
        *(({"pattern": "three.let", **multiline, **IN_JS}, {"data/total_matches": found}) for multiline, found in (({}, 0), ({"multiline": True}, 1))),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "args", "wanted"), [(name, *row) for name, rows in ANSWERS.items() for row in rows]
)
def test_answers(ws, name, args, wanted):
    ws.write("long.txt", "x\n" * 2500)
    given = {
        key: each.replace("{root}", ws.root) if key == "file_path" else each for key, each in args.items()
    }
    check(ws.tools(dialect="wave").call(name, given), wanted)


def test_a_read_shows_what_fits(call, ws):
    ws.write("wide.txt", ("x" * 500 + "\n") * 2500)
    wide = call("Read", file_path="wide.txt")
    assert 0 < wide.data["end_line"] < 2000
    assert wide.next["arguments"]["offset"] == wide.data["end_line"] + 1


def test_write(call, tmp_path):
    assert call("Write", file_path="new/a.py", content="x\n").data["created"] is True

    def write(content):
        result = call("Write", file_path="README.md", content=content)
        return result.content if result.success else result.error["code"]

    assert write("gone\n") == "unread"
    told = call("Write", file_path="README.md", content="gone\n").content
    assert 'Call Read(file_path="README.md") first, or Edit' in told
    assert (tmp_path / "README.md").read_text() == TREE["README.md"]
    call("Read", file_path="README.md", limit=1)
    assert write("gone\n") == "unread", "not to its end"
    call("Read", file_path="README.md")
    for content in ("new\n", "newer\n"):
        assert write(content) not in {"unread", "stale"}
    (tmp_path / "README.md").write_text("changed outside\n")
    assert write("x\n") == "stale"


@pytest.mark.parametrize("before", [b"a\r\nb\r\n", b"a\nb\n", b"a\r\nb\n", b"\xef\xbb\xbfa\r\n"])
@pytest.mark.parametrize("content", ["x\ny\n", "x\r\ny\r\n", "x\r\ny\n", "x"])
def test_write_writes_the_line_ends_given(call, tmp_path, before, content):
    (tmp_path / "file").write_bytes(before)
    call("Read", file_path="file")
    written = call("Write", file_path="file", content=content)
    bom = before[:3] if before.startswith(b"\xef") else b""
    assert (tmp_path / "file").read_bytes() == bom + content.encode()
    note = "the line ends are LF, as given; the file had CRLF"
    assert (note in written.content) is (content == "x\ny\n" and before.count(b"\n") == before.count(b"\r\n"))


@pytest.mark.parametrize("codec", ["utf-16", "utf-8-sig", "latin-1"])
def test_write_keeps_the_encoding(call, tmp_path, codec):
    (tmp_path / "file").write_bytes("caf\u00e9\n".encode(codec))
    call("Read", file_path="file")
    assert call("Write", file_path="file", content="th\u00e9\n").success
    assert (tmp_path / "file").read_bytes() == "th\u00e9\n".encode(codec)


def test_edit(call, tmp_path):
    file = tmp_path / "crlf.txt"
    file.write_bytes(b"a\r\nb\r\na\r\n")
    for old, new, more, wanted, after in (
        ("b\n", "c\nd\n", {}, {"success": True}, b"a\r\nc\r\nd\r\na\r\n"),
        ("a", "z", {}, {"error/code": "ambiguous", "content~": "replace_all"}, b"a\r\nc\r\nd\r\na\r\n"),
        ("a", "z", {"replace_all": True}, {"success": True}, b"z\r\nc\r\nd\r\nz\r\n"),
        ("nope", "z", {}, {"error/code": "no_match", "content~": "Call Read("}, b"z\r\nc\r\nd\r\nz\r\n"),
    ):
        check(call("Edit", file_path="crlf.txt", old_string=old, new_string=new, **more), wanted)
        assert file.read_bytes() == after


def edits(*pairs):
    return [{"old_string": old, "new_string": new} for old, new in pairs]


MADE = edits(("", "one\r\ntwo\n"), ("two", "three"), ("one", "zero"))
ABSENT = edits(("absent", "x"))


@pytest.mark.parametrize(("path", "given", "wanted", "after"), [
    ("src/main.py", [{**edits(("os", "sys"))[0], "replace_all": True}, *edits(("sys\n\n", "sys\n"))],
     {"success": True}, TREE["src/main.py"].replace("os", "sys").replace("\n\n\n", "\n\n")),
    ("README.md", edits(("thing", "x"), ("absent", "y")), {"error/code": "no_match"}, TREE["README.md"]),
    ("new.txt", MADE, {"success": True}, "zero\r\nthree\n"),
    ("new.txt", MADE[:1], {"success": True}, "one\r\ntwo\n"),
    ("README.md", MADE, {"error/code": "invalid_argument"}, TREE["README.md"]),
    ("new.txt", [*MADE, *ABSENT], {"error/code": "no_match", "error/message^": "Edit 4 of 4: "}, None),
    ("new.txt", [*MADE[:1], *ABSENT, *MADE[1:]], {"error/message^": "Edit 2 of 4: "}, None),
])  # fmt: skip
def test_multi_edit(call, tmp_path, path, given, wanted, after):
    check(call("MultiEdit", file_path=path, edits=given), wanted)
    file = tmp_path / path
    assert (file.read_bytes().decode() if file.exists() else None) == after


def test_an_edit_with_an_empty_old_string_creates_a_missing_file(call, tmp_path):
    made = call("Edit", file_path="new/deep.txt", old_string="", new_string="a\r\nb\n")
    assert made.short_result.startswith("Created new/deep.txt")
    again = call("Edit", file_path="new/deep.txt", old_string="", new_string="other")
    check(again, {"error/code": "invalid_argument", "content~": "old_string is empty"})
    assert (tmp_path / "new/deep.txt").read_bytes() == b"a\r\nb\n"


def test_a_multi_edit_that_creates_a_file_asks_for_permission_once_and_reports_the_whole_file(ws):
    requests, asked = [], []
    context = {
        "permissionManager": lambda request: requests.append(request) or True,
        "canUseToolCallback": lambda tool, args: asked.append((tool, dict(args))) or True,
    }
    arguments = {"file_path": "new/many.txt", "edits": MADE}
    assert execute(ws, "MultiEdit", arguments, **context).short_result == "Created new/many.txt"
    assert asked == [("MultiEdit", arguments)]
    [request] = requests
    assert request.arguments["edits"][0].old_string == ""
    assert "+three" in request.diff


def test_grep_head_limit(call):
    files = call("Grep", **TODO, head_limit=2)
    assert list(files.data["counts"]) == ["README.md", MAIN]
    assert 'more: Grep(pattern="TODO", head_limit=4)]' in files.content
    more = call(files.next["name"], **files.next["arguments"])
    assert (len(more.data["counts"]), more.next) == (3, None)
    assert len(call("Grep", **TODO, output_mode="content", head_limit=2).data["matches"]) == 2
    assert [*call("Grep", **TODO, output_mode="count", head_limit=1).data["counts"]] == ["README.md"]
    assert len(call("Grep", **TODO, head_limit=0).data["counts"]) == 3


def test_a_plugin_describes_its_tools_once_and_keeps_its_threads(ws, monkeypatch):
    """Each call made its own toolset and thread pool, which took nine times as long as the call."""
    found = {plugin.name: plugin for plugin in plugins(ws)}
    described: list[object] = []
    monkeypatch.setattr(tool, "_describe", lambda *given: described.append(given))
    threads: set[str] = set()

    def note(request):
        threads.add(threading.current_thread().name)
        return True

    async def calls():
        for number in range(20):
            context = {"workdir": "src" if number % 2 else ".", "permissionManager": note}
            assert (await found["LS"].execute({"path": "."}, context)).success
            assert (await found["Grep"].execute({"pattern": "TODO"}, context)).success

    earlier = {thread.name for thread in threading.enumerate()}  # of other tests; calls use them in turn
    asyncio.run(calls())
    assert described == []
    # By 40 calls. After a call, its thread is idle a moment later, so the next call may start another one.
    assert len(threads - earlier) <= 10


def test_calls_of_one_plugin_under_several_contexts_do_not_mix(ws):
    read = next(plugin for plugin in plugins(ws) if plugin.name == "Read")
    asked = []

    async def one(number):
        context = {
            "workdir": "src" if number % 2 else ".",
            "canUseToolCallback": lambda tool, args: asked.append(args["limit"]) or number % 3 > 0,
        }
        path = "main.py" if number % 2 else "README.md"
        return await read.execute({"file_path": path, "limit": number + 1}, context)

    async def main():
        return await asyncio.gather(*map(one, range(12)))

    results = asyncio.run(main())
    assert [result.success for result in results] == [number % 3 > 0 for number in range(12)]
    assert sorted(asked) == list(range(1, 13))


def test_what_is_cut_names_a_call_of_the_same_tool_or_says_that_there_is_none(ws, call, tmp_path):
    """Grep has no offset, so its next call shows more from the start, in the words of the model's call."""
    put(tmp_path, [f"many/{number:03}.py" for number in range(300)], "needle\n")
    sent = {"pattern": "NEEDLE", "path": "many", "glob": "*.py", "-i": True}
    for mode in ("files_with_matches", "content", "count"):
        page = call("Grep", **sent, output_mode=mode)
        seen = []
        while page.next is not None:
            assert page.next["arguments"]["glob"] == "*.py"
            seen.append(len(page.data["counts"]))
            page = call(page.next["name"], **page.next["arguments"])
        assert seen == sorted({*seen})
        assert len(page.data["counts"]) == 300
    cut = ws.view(limits=replace(ws.limits, output_tokens=100)).tools(dialect="wave")
    for limit in (50, 100_000):
        page = cut.call("Grep", {**sent, "output_mode": "content", "head_limit": limit})
        assert page.next is None


@pytest.mark.parametrize("is_async", [False, True])
def test_callbacks_that_are_not_async_need_no_event_loop_of_their_own(ws, is_async):
    """The composed callback was always async, so that a call in a thread with an event loop was an error."""

    async def manager(_):
        return True

    asked = manager if is_async else lambda _: True
    context = ToolContext(permission_manager=asked, can_use_tool_callback=lambda *_: True)

    async def call():
        policy = _policy(replace(ws.policy, ask=["read"]), context, ("Read", {}))
        return DIALECT.tools(ws.view(policy=policy)).call("Read", {"file_path": "README.md"})

    if is_async:
        with pytest.raises(InvalidArgumentError, match="event loop"):
            asyncio.run(call())
    else:
        assert asyncio.run(call()).success
