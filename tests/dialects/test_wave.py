"""`wave`: each statement of the document, as `docs/reference/dialects/wave.md` lists them."""

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
from agentfs.results import Image
from agentfs.tools import tool
from tests.dialects.trees import lay_out
from tests.reading.conftest import make_image

TREE = {
    "README.md": "# A thing\n\nTODO: write\n",
    "src/main.py": "import os\n\n\ndef main():\n    # TODO: one\n    return os  # todo two\n",
    "src/util/text.js": "// TODO: three\nlet a = 1;\nlet b = 2;\n// TODO: four\n",
    "src/empty.txt": "",
}


@pytest.fixture
def ws(tmp_path):
    lay_out(tmp_path, TREE)
    with Workspace(tmp_path) as workspace:
        yield workspace


@pytest.fixture
def call(ws):
    tools = ws.tools(dialect="wave")
    return lambda name, **arguments: tools.call(name, arguments)


def execute(ws, name, args, **context):
    plugin = next(each for each in plugins(ws) if each.name == name)
    return asyncio.run(plugin.execute(args, {"workdir": ".", **context}))


# The parameters of the document: name, type, required, choices, default.
ARGUMENTS = {
    "Read": {"file_path": ("string", True), "offset": ("integer", False), "limit": ("integer", False)},
    "Write": {"file_path": ("string", True), "content": ("string", True)},
    "Edit": {
        "file_path": ("string", True), "old_string": ("string", True), "new_string": ("string", True),
        "replace_all": ("boolean", False),
    },
    "MultiEdit": {"file_path": ("string", True), "edits": ("array", True)},
    "LS": {"path": ("string", True), "ignore": ("array", False)},
    "Glob": {"pattern": ("string", True), "path": ("string", False)},
    "Grep": {
        "pattern": ("string", True), "path": ("string", False), "glob": ("string", False),
        "output_mode": ("string", False), "-B": ("integer", False), "-A": ("integer", False),
        "-C": ("integer", False), "-n": ("boolean", False), "-i": ("boolean", False),
        "type": ("string", False),
        "head_limit": ("integer", False), "multiline": ("boolean", False),
    },
}  # fmt: skip


def test_the_schema_has_exactly_the_documented_parameters(ws):
    found = {}
    for made in ws.tools(dialect="wave").schemas("anthropic"):
        schema = made["input_schema"]
        found[made["name"]] = {
            name: (shown["type"], name in schema["required"]) for name, shown in schema["properties"].items()
        }
    assert found == ARGUMENTS
    grep = ws.tools(dialect="wave").schemas("anthropic")[-1]["input_schema"]["properties"]
    assert grep["output_mode"]["enum"] == ["content", "files_with_matches", "count"]
    assert grep["output_mode"]["description"].endswith('Default "files_with_matches".')
    items = ws.tools(["MultiEdit"], dialect="wave").schemas("anthropic")[0]["input_schema"]["properties"]
    assert set(items["edits"]["items"]["properties"]) == {"old_string", "new_string", "replace_all"}
    assert items["edits"]["items"]["required"] == ["old_string", "new_string"]


def test_no_words_of_the_workspaces_own_tools_are_left(ws):
    told = json.dumps(ws.tools(dialect="wave").schemas("anthropic"))
    for name in ("multi_edit", "use edit", "in edit.", "include_ignored", "ignore_case"):
        assert name not in told


def test_a_plugin_has_its_name_and_config(ws):
    found = plugins(ws)
    assert [plugin.name for plugin in found] == list(ARGUMENTS)
    for plugin in found:
        assert plugin.config["type"] == "function"
        assert plugin.config["function"]["name"] == plugin.name
        assert plugin.config["function"]["description"]
        assert plugin.config["function"]["parameters"]["type"] == "object"


def test_execute_is_a_coroutine(ws):
    assert all(inspect.iscoroutinefunction(plugin.execute) for plugin in plugins(ws))
    result = execute(ws, "Read", {"file_path": "README.md"})
    assert isinstance(result, WaveResult)
    for name in ARGUMENTS:
        for sent in (
            {},
            {"nothing": 1},
            {"path": 5},
            {"file_path": None},
            {"file_path": "a\0b"},
            [],
            None,
            "x",
        ):
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


def test_the_wire_form_of_an_answer(call):
    result = call("Read", file_path="README.md")
    assert result.to_dict() == {
        "success": True,
        "content": "1|# A thing\n2|\n3|TODO: write",
        "shortResult": "Read README.md: lines 1-3 of 3",
        "filePath": "README.md",
    }
    assert result.data["total_lines"] == 3
    assert set(call("Grep", pattern="TODO").to_dict()) == {"success", "content", "shortResult"}


def test_the_wire_form_of_a_failure(call):
    wire = call("Read", file_path="READM.md").to_dict()
    assert wire["success"] is False
    assert wire["error"] == '"READM.md" does not exist.'
    assert wire["content"].startswith(wire["error"])
    assert "README.md" in wire["content"]
    unknown = call("Read", path="README.md", line="2")
    assert unknown.to_dict()["error"] == unknown.error["message"]


def test_the_wire_form_of_images(call, tmp_path):
    (tmp_path / "dot.png").write_bytes(make_image("PNG"))
    wire = call("Read", file_path="dot.png").to_dict()
    assert [sorted(image) for image in wire["images"]] == [["data", "mediaType"]]
    assert wire["images"][0]["mediaType"] == "image/png"
    assert base64.b64decode(wire["images"][0]["data"]).startswith(b"\x89PNG")
    assert "images" not in call("Read", file_path="README.md").to_dict()
    result = WaveResult(True, "", images=(Image("aGk=", "image/png"),))
    assert result.to_dict() == {
        "success": True,
        "content": "",
        "images": [{"data": "aGk=", "mediaType": "image/png"}],
    }


@pytest.mark.parametrize("absolute", [False, True])
def test_relative_paths_start_in_the_workdir(ws, tmp_path, absolute):
    workdir = str(tmp_path / "src") if absolute else "src"

    def call(name, **args):
        return execute(ws, name, args, workdir=workdir)

    read = call("Read", file_path="main.py", limit=1)
    assert read.to_dict()["filePath"] == "main.py"
    assert read.next == {"name": "Read", "arguments": {"file_path": "main.py", "offset": 2, "limit": 1}}
    assert read.content == '1|import os\n[line 1 of 6; more: Read(file_path="main.py", offset=2, limit=1)]'
    assert call("Read", file_path=str(tmp_path / "src/main.py")).file_path == "main.py"
    assert call("Read", file_path="../README.md").file_path == "../README.md"
    assert call("LS", path=".").content.splitlines() == ["util/", "empty.txt", "main.py"]
    assert call("LS", path="..").content.splitlines() == ["../src/", "../README.md"]
    assert call("Glob", pattern="*.js").content == "util/text.js"
    assert call("Glob", pattern="*.md", path=str(tmp_path)).content == "../README.md"
    assert call("Grep", pattern="TODO").content.startswith("main.py\nutil/text.js\n")
    assert call("Grep", pattern="TODO", path="..", output_mode="content").content.startswith(
        "../README.md\n3|"
    )
    made = call("Write", file_path="new.py", content="x\n")
    assert (made.file_path, made.content) == ("new.py", "Created: 1 line.")
    assert (tmp_path / "src/new.py").read_text() == "x\n"
    outside = call("Read", file_path="../../x")
    assert outside.error["code"] == "outside_workspace"
    assert outside.content.startswith('"../../x" leads out'), (
        "as it was asked for, not with the workdir before it"
    )


def test_every_path_of_an_answer_works_from_the_workdir(ws, tmp_path):
    """Wave showed paths from the root, which failed when they were passed back from the workdir."""
    (tmp_path / ".gitignore").write_text("*.log\n")
    (tmp_path / "src/a.log").write_text("needle\n")
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
def test_hints_name_paths_that_work_from_the_workdir(ws, name, args, hint):
    failed = execute(ws, name, args, workdir="src")
    assert not failed.success
    assert hint in failed.content
    assert "src/" not in failed.content.replace(str(args.get("file_path")), "")


def test_an_edit_names_another_file_by_its_path_from_the_workdir(ws):
    assert execute(ws, "Read", {"file_path": "README.md"}).success
    change = {"file_path": "main.py", "old_string": TREE["README.md"], "new_string": "x"}
    failed = execute(ws, "Edit", change, workdir="src")
    assert failed.data["details"]["cause"] == "other_file"
    assert failed.data["details"]["other_paths"] == ["../README.md"]


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


@pytest.mark.parametrize(("mode", "answer", "edits", "reads"), [
    (None, None, True, True), ("default", None, True, True), ("default", False, False, False),
    ("acceptEdits", False, True, False), ("plan", True, False, True), ("plan", None, False, True),
    ("bypassPermissions", False, True, True), ("yolo", True, False, False), ("bypass", True, False, False),
    ("", True, True, True),
])  # fmt: skip
def test_permission_modes(ws, mode, answer, edits, reads):
    context = {} if mode is None else {"permissionMode": mode}
    if answer is not None:
        context["canUseToolCallback"] = lambda *_: answer
    change = {"file_path": "README.md", "old_string": "thing", "new_string": "x"}
    assert execute(ws, "Edit", change, **context).success is edits
    assert execute(ws, "Read", {"file_path": "README.md"}, **context).success is reads


def test_a_context_does_not_loosen_the_plan_mode_of_the_workspace(tmp_path):
    (tmp_path / "a").write_text("1\n")
    with Workspace(tmp_path, policy=Policy(mode="plan")) as ws:
        change = {"file_path": "a", "old_string": "1", "new_string": "2"}
        assert execute(ws, "Edit", change, permissionMode="bypassPermissions").error["code"] == "refused"
    with Workspace(tmp_path, policy=Policy(deny=("edit",))) as ws:
        assert execute(ws, "Edit", change, permissionMode="bypassPermissions").error["code"] == "refused"
    with Workspace(tmp_path, policy=Policy(on_ask=lambda _: False)) as ws:
        assert execute(ws, "Edit", change, canUseToolCallback=lambda *_: True).error["code"] == "refused"
        assert execute(ws, "Edit", change, permissionMode="default").error["code"] == "refused"


@pytest.mark.parametrize(("answer", "allowed"), [(True, True), (False, False), (1, False), (None, False)])
def test_the_callback_decides(ws, answer, allowed):
    asked = []

    async def later(tool, args):
        await asyncio.sleep(0)
        asked.append((tool, dict(args)))
        return answer

    def now(tool, args):
        asked.append((tool, dict(args)))
        return answer

    change = {"file_path": "README.md", "old_string": "thing", "new_string": "thing!"}
    for callback in (later, now):
        assert execute(ws, "Edit", change, canUseToolCallback=callback).success is allowed
    assert asked == [("Edit", change)] * 2


@pytest.mark.parametrize(("policy", "context", "edits_asked", "reads_asked"), [
    ({}, {}, True, True),
    ({}, {"permissionMode": "default"}, True, True),
    ({}, {"permissionMode": "acceptEdits"}, False, True),
    ({}, {"permissionMode": "bypassPermissions"}, False, False),
    ({}, {"permissionMode": "plan"}, False, True),
    ({}, {"permissionMode": "yolo"}, False, False),
    ({"mode": "accept_edits"}, {}, False, True),
    ({"allow": ("*",)}, {}, True, True),
    ({"deny": ("edit",)}, {}, False, True),
    ({"on_ask": lambda _: False}, {}, False, False),
    ({}, {"permissionManager": lambda _: False}, False, False),
])  # fmt: skip
def test_when_the_callback_is_not_asked(tmp_path, policy, context, edits_asked, reads_asked):
    (tmp_path / "a").write_text("1\n")
    asked = []

    def callback(tool, _):
        asked.append(tool)
        return True

    with Workspace(tmp_path, policy=Policy(**policy)) as ws:
        context = {**context, "canUseToolCallback": callback}
        execute(ws, "Edit", {"file_path": "a", "old_string": "1", "new_string": "2"}, **context)
        execute(ws, "Read", {"file_path": "a"}, **context)
        execute(ws, "Read", {"no such argument": "a"}, **context)
    assert asked == ["Edit"] * edits_asked + ["Read"] * reads_asked


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
    context = ToolContext.of(
        {"workdir": "src", "permissionMode": "plan", "sessionId": 7, "taskManager": None}
    )
    assert context == ToolContext("src", permission_mode="plan", others={"sessionId": 7, "taskManager": None})
    assert ToolContext.of(context) is context


def test_read(call, ws):
    assert call("Read", file_path="src/main.py", offset=4, limit=2).content == (
        "4|def main():\n5|    # TODO: one\n"
        '[lines 4-5 of 6; more: Read(file_path="src/main.py", offset=6, limit=2)]'
    )
    assert call("Read", file_path="src/main.py", offset=-1).content.startswith("6|    return os")
    assert call("Read", file_path=f"{ws.root}/README.md").file_path == "README.md"
    whole = call("Read", file_path="README.md").content
    assert call("Read", file_path="README.md", offset=0).content == whole
    assert call("Read", file_path="README.md", offset=9).error["code"] == "past_end"
    ws.write("long.txt", "x\n" * 2500)
    assert call("Read", file_path="long.txt").data["end_line"] == 2000
    ws.write("wide.txt", ("x" * 500 + "\n") * 2500)
    wide = call("Read", file_path="wide.txt")
    assert 0 < wide.data["end_line"] < 2000
    assert wide.next["arguments"]["offset"] == wide.data["end_line"] + 1


def test_write(call, tmp_path):
    assert call("Write", file_path="new/a.py", content="x\n").data["created"] is True
    unread = call("Write", file_path="README.md", content="gone\n")
    assert unread.error["code"] == "unread"
    assert 'Call Read(file_path="README.md") first, or Edit' in unread.content
    assert (tmp_path / "README.md").read_text() == TREE["README.md"]
    call("Read", file_path="README.md", limit=1)
    assert call("Write", file_path="README.md", content="gone\n").error["code"] == "unread", "not to its end"
    call("Read", file_path="README.md")
    assert call("Write", file_path="README.md", content="new\n").success
    assert call("Write", file_path="README.md", content="newer\n").success
    (tmp_path / "README.md").write_text("changed outside\n")
    assert call("Write", file_path="README.md", content="x\n").error["code"] == "stale"


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
    (tmp_path / "crlf.txt").write_bytes(b"a\r\nb\r\na\r\n")
    assert call("Edit", file_path="crlf.txt", old_string="b\n", new_string="c\nd\n").success
    assert (tmp_path / "crlf.txt").read_bytes() == b"a\r\nc\r\nd\r\na\r\n"
    many = call("Edit", file_path="crlf.txt", old_string="a", new_string="z")
    assert many.error["code"] == "ambiguous"
    assert "replace_all" in many.content
    assert call("Edit", file_path="crlf.txt", old_string="a", new_string="z", replace_all=True).success
    assert (tmp_path / "crlf.txt").read_bytes() == b"z\r\nc\r\nd\r\nz\r\n"
    missed = call("Edit", file_path="crlf.txt", old_string="nope nope", new_string="z")
    assert missed.error["code"] == "no_match"
    assert "Call Read(" in missed.content


def test_an_edit_with_an_empty_old_string_creates_a_missing_file(call, tmp_path):
    made = call("Edit", file_path="new/deep.txt", old_string="", new_string="a\r\nb\n")
    assert made.success
    assert made.short_result.startswith("Created new/deep.txt")
    assert (tmp_path / "new/deep.txt").read_bytes() == b"a\r\nb\n"
    again = call("Edit", file_path="new/deep.txt", old_string="", new_string="other")
    assert again.error["code"] == "invalid_argument"
    assert "old_string is empty" in again.content
    assert (tmp_path / "new/deep.txt").read_bytes() == b"a\r\nb\n"
    edits = [{"old_string": "", "new_string": "one\ntwo\n"}, {"old_string": "two", "new_string": "three"}]
    failed = [*edits, {"old_string": "absent", "new_string": "x"}]
    assert call("MultiEdit", file_path="many.txt", edits=failed).error["code"] == "no_match"
    assert not (tmp_path / "many.txt").exists()
    assert call("MultiEdit", file_path="many.txt", edits=edits).success
    assert (tmp_path / "many.txt").read_text() == "one\nthree\n"
    assert call("MultiEdit", file_path="many.txt", edits=edits).error["code"] == "invalid_argument"
    assert call("MultiEdit", file_path="one.txt", edits=edits[:1]).success
    assert (tmp_path / "one.txt").read_text() == "one\ntwo\n"


CREATING = [
    {"old_string": "", "new_string": "one\r\ntwo\n"},
    {"old_string": "two", "new_string": "three"},
    {"old_string": "one", "new_string": "zero"},
]


def test_a_multi_edit_that_creates_a_file_asks_for_permission_once_and_reports_the_whole_file(ws):
    requests, asked = [], []
    context = {
        "permissionManager": lambda request: requests.append(request) or True,
        "canUseToolCallback": lambda tool, args: asked.append((tool, dict(args))) or True,
    }
    arguments = {"file_path": "new/many.txt", "edits": CREATING}
    created = execute(ws, "MultiEdit", arguments, **context)
    assert created.success
    assert created.short_result == "Created new/many.txt"
    assert ws.read("new/many.txt").content == "zero\r\nthree\n"
    assert asked == [("MultiEdit", arguments)]
    [request] = requests
    assert request.arguments["edits"][0].old_string == ""
    assert "+three" in request.diff


def test_the_edits_of_a_multi_edit_that_creates_a_file_are_numbered_as_given(call, tmp_path):
    failing = [*CREATING, {"old_string": "absent", "new_string": "x"}]
    failed = call("MultiEdit", file_path="many.txt", edits=failing)
    assert failed.error["message"].startswith("Edit 4 of 4: ")
    failing.insert(1, {"old_string": "nowhere", "new_string": "x"})
    failed = call("MultiEdit", file_path="many.txt", edits=failing)
    assert failed.error["message"].startswith("Edit 2 of 5: ")
    assert not (tmp_path / "many.txt").exists()


def test_multi_edit(call, tmp_path):
    edits = [
        {"old_string": "os", "new_string": "sys", "replace_all": True},
        {"old_string": "sys\n\n", "new_string": "sys\n"},
    ]
    assert call("MultiEdit", file_path="src/main.py", edits=edits).success
    assert (tmp_path / "src/main.py").read_text().startswith("import sys\n\ndef main")
    before = (tmp_path / "README.md").read_text()
    edits = [{"old_string": "thing", "new_string": "x"}, {"old_string": "absent", "new_string": "y"}]
    failed = call("MultiEdit", file_path="README.md", edits=edits)
    assert failed.error["code"] == "no_match"
    assert (tmp_path / "README.md").read_text() == before


def test_ls(call):
    listed = call("LS", path="src").content.splitlines()
    assert listed == ["src/util/", "src/empty.txt", "src/main.py"]
    assert call("LS", path="src", ignore=["*.txt", "util"]).content.splitlines()[0] == "src/main.py"
    assert call("LS").error["code"] == "invalid_argument"


def test_glob(call):
    assert call("Glob", pattern="**/*.{py,js}").content == "src/main.py\nsrc/util/text.js"
    assert call("Glob", pattern="*.js", path="src/util").content == "src/util/text.js"
    assert call("Glob", pattern="*.rs").success, "nothing found is no failure"


def test_grep_places(call):
    assert call("Grep", pattern="TODO").content.splitlines()[:3] == [
        "README.md",
        "src/main.py",
        "src/util/text.js",
    ]
    assert call("Grep", pattern="TODO", path="src/util").content.splitlines()[0] == "src/util/text.js"
    assert call("Grep", pattern="TODO", path="README.md").content.splitlines()[0] == "README.md"
    bad = call("Grep", pattern="f(")
    assert bad.error["code"] == "invalid_pattern"


def test_grep_filters(call):
    assert call("Grep", pattern="TODO", glob="*.py").content.splitlines()[0] == "src/main.py"
    assert call("Grep", pattern="TODO", type="js").content.splitlines()[0] == "src/util/text.js"
    for glob in ("src/util/*.js", "util/*.js"):
        assert list(call("Grep", pattern="TODO", path="src", glob=glob).data["counts"]) == [
            "src/util/text.js"
        ]


def test_grep_output_modes(call):
    assert "TODO" not in call("Grep", pattern="TODO").content
    content = call("Grep", pattern="TODO", output_mode="content", path="src/util").content
    assert content == "src/util/text.js\n1|// TODO: three\n4|// TODO: four"
    counted = call("Grep", pattern="let|=", output_mode="count", path="src/util/text.js")
    assert counted.content.splitlines()[0] == "src/util/text.js: 2 (4 matches)"
    assert call("Grep", pattern="x", output_mode="summary").error["code"] == "invalid_argument"


def test_grep_context(call):
    def lines(**context):
        result = call("Grep", pattern="let b", path="src/util/text.js", output_mode="content", **context)
        return result.content.splitlines()[1:]

    assert lines() == ["3|let b = 2;"]
    assert lines(**{"-A": 1}) == ["3|let b = 2;", "4-// TODO: four"]
    assert lines(**{"-B": 1}) == ["2-let a = 1;", "3|let b = 2;"]
    assert lines(**{"-C": 1}) == ["2-let a = 1;", "3|let b = 2;", "4-// TODO: four"]
    assert lines(**{"-C": 2, "-B": 0}) == ["3|let b = 2;", "4-// TODO: four"]


def test_grep_line_numbers(call):
    asked = {"pattern": "let", "path": "src/util/text.js", "output_mode": "content"}
    assert call("Grep", **asked).content.startswith("src/util/text.js\n2|let a = 1;\n3|let b")
    assert call("Grep", **asked, **{"-n": False}).content.startswith("src/util/text.js\nlet a = 1;\nlet b")


def test_grep_ignores_case(call):
    assert call("Grep", pattern="todo").content.splitlines()[0] == "src/main.py"
    assert call("Grep", pattern="todo", **{"-i": True}).data["total_files"] == 3


def test_grep_head_limit(call):
    files = call("Grep", pattern="TODO", head_limit=2)
    assert list(files.data["counts"]) == ["README.md", "src/main.py"]
    assert 'more: Grep(pattern="TODO", head_limit=4)]' in files.content
    more = call(files.next["name"], **files.next["arguments"])
    assert (len(more.data["counts"]), more.next) == (3, None)
    assert len(call("Grep", pattern="TODO", output_mode="content", head_limit=2).data["matches"]) == 2
    assert call("Grep", pattern="TODO", output_mode="count", head_limit=1).data["counts"].keys() == {
        "README.md"
    }
    assert len(call("Grep", pattern="TODO", head_limit=0).data["counts"]) == 3


def test_grep_multiline(call):
    asked = {"pattern": "three.let", "output_mode": "content"}
    assert call("Grep", **asked).data["total_matches"] == 0
    assert call("Grep", **asked, multiline=True).data["total_matches"] == 1


def test_the_preset_changes_nothing():
    assert (DIALECT.limits, DIALECT.policy) == ({}, {})


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
    """Each call has the directory and the callback of its own context."""
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


@pytest.mark.parametrize("wrong", [{"workdir": 5}, {"workdir": None}, {"permission_mode": []}])
def test_a_context_of_wrong_types_is_invalid_argument(wrong):
    with pytest.raises(InvalidArgumentError):
        ToolContext(**wrong)


def test_what_is_cut_names_a_call_of_the_same_tool_or_says_that_there_is_none(ws, call, tmp_path):
    """Grep has no offset, so its next call shows more from the start, in the words of the model's call."""
    (tmp_path / "many").mkdir()
    for number in range(300):
        (tmp_path / f"many/{number:03}.py").write_text("needle\n")
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
