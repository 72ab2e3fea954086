"""Permissions: modes, rules and the callback, before every method, with no lock held."""

import asyncio
import os
import re
import threading
from dataclasses import replace
from glob import iglob
from hashlib import blake2b
from pathlib import Path

import pytest
from hypothesis import strategies as st

from agentfs import Allow, Deny, PermissionRequest, Policy, Workspace
from agentfs.errors import InvalidArgumentError
from tests import kit
from tests.conftest import law
from tests.kit import code_of, described, error_of, put, refused

EDIT = {"old_string": "one", "new_string": "two"}
CHANGES = [
    ("write", {"path": "new.txt", "content": "x"}), ("edit", {"path": "src/a.txt", **EDIT}),
    ("multi_edit", {"path": "src/a.txt", "edits": [EDIT]}),
]  # fmt: skip


@described
def other(text: str) -> str:
    return text


READS = [
    ("read", {"path": "src/a.txt"}), ("ls", {}), ("glob", {"pattern": "*.txt"}), ("grep", {"pattern": "one"}),
]  # fmt: skip


@pytest.fixture
def tree(tmp_path):
    return put(tmp_path, {"src/a.txt": "one\n", "lib/b.txt": "one\n"})


def codes(tree, policy, calls):
    with Workspace(tree, policy=policy) as ws:
        results = [ws.tools().call(name, arguments) for name, arguments in calls]
    return [result.error["code"] if result.error else "" for result in results]


def no(request):
    return Deny("not today")


@pytest.mark.parametrize(("policy", "reads", "changes"), [
    (Policy(), "", ""), (Policy(on_ask=lambda request: True), "", ""), (Policy(on_ask=no), "", "refused"),
    (Policy(on_ask=lambda request: not request.changes), "", "refused"),
    (Policy(on_ask=lambda request: "yes"), "", "refused"), (Policy(mode="plan"), "", "refused"),
    (Policy(mode="plan", on_ask=lambda request: True), "", "refused"),
    (Policy(mode="accept_edits", on_ask=no), "", ""), (Policy(mode="bypass", on_ask=no), "", ""),
    (Policy(mode="bypass", deny=["change"]), "", "refused"), (Policy(on_ask=no, allow=["*"]), "", ""),
    (Policy(on_ask=no, allow=["read", "ls"]), "", "refused"),
    (Policy(allow=["read"]), "", "refused"), (Policy(allow=["change"]), "", ""),
    (Policy(deny=["*"], allow=["*"], on_ask=lambda request: True), "refused", "refused"),
    (Policy(ask=["change"]), "", "refused"), (Policy(ask=["delete"], on_ask=no), "", "refused"),
    (Policy(ask=["delete"], allow=["read(lib/**)"], on_ask=no), "", "refused"),
    (Policy(ask=["delete"], allow=["read(lib/**)"], on_ask=lambda request: True), "", ""),
    (Policy(ask=["change"], allow=["*"]), "", "refused"),
    (Policy(ask=["change"], allow=["*"], on_ask=no), "", "refused"),
    (Policy(ask=["*"], allow=["*"], on_ask=lambda request: True), "", ""),
    (Policy(ask=["*"], deny=["change"], on_ask=lambda request: True), "", "refused"),
    (Policy(ask=["*"], mode="bypass"), "refused", "refused"),
    (Policy(ask=["change"], mode="bypass", on_ask=no), "", "refused"),
    (Policy(ask=["delete"], mode="bypass", on_ask=no), "", ""),
    (Policy(ask=["*"], mode="plan", on_ask=lambda request: True), "", "refused"),
    (Policy(ask=["*"], mode="accept_edits", on_ask=no), "refused", "refused"),
    (Policy(ask=["edit(src/**)"], mode="accept_edits", on_ask=lambda request: True), "", ""),
    (Policy(ask=["edit(lib/**)"], mode="accept_edits", on_ask=no), "", ""),
])  # fmt: skip
def test_modes_rules_and_answers(tree, policy, reads, changes):
    assert set(codes(tree, policy, READS)) == {reads}
    if changes:
        assert set(codes(tree, policy, CHANGES)) == {changes}
    else:
        assert codes(tree, policy, CHANGES[:2]) == ["", ""]


ASKED = {
    "read": {"path": "src/a.txt"}, "edit": {"path": "src/a.txt", **EDIT},
    "multi_edit": {"path": "src/a.txt", "edits": [EDIT]}, "write": {"path": "src/n.txt", "content": "x"},
    "delete": {"path": "src/a.txt"}, "move": {"path": "src/a.txt", "to": "x.txt"},
    "replace": {"old_string": "one", "new_string": "two"}, "undo": {}, "redo": {},
}  # fmt: skip


@pytest.mark.parametrize(("rule", "asked"), [
    ("read(src/**)", {"read", "edit", "multi_edit", "write", "delete", "move"}),
    ("change(src/**)", {"edit", "multi_edit", "write", "delete", "move", "replace"}),
    ("edit(src/**)", {"edit", "multi_edit", "replace"}),
    ("edit(lib/**)", {"replace"}), ("create(src/**)", {"write"}),
    ("write(src/**)", {"edit", "multi_edit", "write", "replace"}),
    ("delete", {"delete", "move", "undo"}), ("delete(lib/**)", {"undo"}), ("create(x.txt)", {"move"}),
    ("move", {"move"}), ("*(link.txt)", set()),
])  # fmt: skip
def test_an_ask_rule_asks_about_the_calls_that_it_covers_and_no_others(tree, rule, asked):
    seen = set()
    policy = Policy(ask=[rule], allow=["*"], on_ask=lambda request: seen.add(request.method))
    for name, arguments in ASKED.items():
        with Workspace(tree, policy=policy) as ws:
            if name in ("undo", "redo"):
                ws.host.write("lib/new.txt", name)
            if name == "redo":
                ws.host.undo()
            ws.tools("all").call(name, arguments)
        (tree / "src" / "a.txt").write_text("one\n")
        (tree / "x.txt").unlink(missing_ok=True)
    assert seen == asked


@pytest.mark.parametrize("rule", ["*(link.txt)", "read(around/**)", "read(around)", "read(./top/src/a.txt)"])
@pytest.mark.parametrize("kind", ["deny", "ask"])
def test_regression_a_rule_about_a_link_holds_for_its_target(tree, rule, kind):
    """A rule about a link closed only paths through the link, and recordings showed the file."""
    for link, target in {"link.txt": "src/a.txt", "around": "src", "top": "."}.items():
        (tree / link).symlink_to(target)
    with Workspace(tree, policy=Policy(**{kind: [rule]})) as ws:
        for path in ("link.txt", "around/a.txt", "src/a.txt", "top/around/a.txt"):
            error_of(ws.read, path)
        with ws.recording("command") as recording:
            (tree / "src" / "a.txt").write_text("hidden\n")
    (file,) = recording.result.files
    assert (file.protected, recording.result.patch) == (True, b"")


def test_no_call_reaches_a_file_that_an_ask_rule_covers_without_asking(tree):
    """Attack: calls that find files by themselves, or that name a directory above, are not about the file."""
    policy = Policy(ask=["read(src/**)", "change(src/**)"], allow=["*"], on_ask=no)
    (tree / "src" / "a.txt").write_text("hidden text\n")
    calls = [
        ("grep", {"pattern": "hid"}), ("grep", {"pattern": "hidd", "path": ["lib", "."]}),
        ("read", {"path": "src/a.txt"}), ("move", {"path": "src", "to": "moved"}),
        ("replace", {"old_string": "hidden", "new_string": "x"}), ("delete", {"path": "src"}),
        ("replace", {"old_string": "hidden", "new_string": "x", "glob": "**/a.txt"}),
    ]  # fmt: skip
    for mode in ("default", "accept_edits", "bypass"):  # no mode answers the question
        with Workspace(tree, policy=replace(policy, mode=mode)) as ws:
            for name, arguments in calls:
                result = ws.tools("all").call(name, arguments)
                assert "hidden text" not in result.content, name
            assert ws.grep("hid").skipped.protected == 1
    assert (tree / "src" / "a.txt").read_text() == "hidden text\n"


def test_an_allowed_question_allows_the_files_that_it_showed(tree):
    policy = Policy(ask=["*(src/**)"], allow=["*"], on_ask=lambda request: True)
    with Workspace(tree, policy=policy) as ws:
        tools = ws.tools("all")
        assert "one" in tools.call("grep", {"pattern": "one", "path": "src"}).content
        done = tools.call("replace", {"old_string": "one", "new_string": "two"})
        assert done.success, done.content
        assert tools.call("undo").success
        assert tools.call("edit", {"path": "src/a.txt", **EDIT}).success


def test_a_refusal_has_the_reason_and_says_not_to_retry(tree):
    with Workspace(tree, policy=Policy(on_ask=no)) as ws:
        result = ws.tools().call("edit", {"path": "src/a.txt", **EDIT})
    assert result.content == "not today.\nDo not try again in any way; tell the user, or go on without it."


def test_the_callback_gets_all_facts(tree):
    asked: list[PermissionRequest] = []

    def ask(request):
        return asked.append(request) or True

    with Workspace(tree, policy=Policy(on_ask=ask)) as ws:
        ws.tools(prefix="fs_").call("fs_edit", {"file_path": "./src/../src/a.txt", **EDIT})
    with Workspace(tree, policy=Policy(on_ask=ask, ask=["read"])) as ws:
        ws.read("lib/b.txt")
    edit, read = asked
    assert (edit.method, edit.effect, edit.tool) == ("edit", "write", "fs_edit")
    assert edit.changes == (("src/a.txt", "one\n", "two\n"),)
    assert edit.paths == ("src/a.txt",)
    assert edit.arguments["new_string"] == "two"
    assert edit.diff.splitlines()[-2:] == ["-one", "+two"]
    assert (read.method, read.changes, read.diff, read.tool) == ("read", (), "", None)


@pytest.mark.parametrize("rules", [{"allow": ["read"]}, {"ask": ["edit"], "allow": ["*"]}])
def test_the_user_is_not_asked_about_a_failing_call_if_reading_is_allowed(tree, rules):
    asked = []
    with Workspace(tree, policy=Policy(**rules, on_ask=asked.append)) as ws:
        tools = ws.tools()
        for arguments in (
            {"path": "src/a.txt", "old_string": "absent", "new_string": "x"},
            {"path": "../a.txt", **EDIT}, {"path": "nothing.txt", **EDIT}, {"path": 1, **EDIT},
            {"path": "src", **EDIT},
        ):  # fmt: skip
            assert tools.call("edit", arguments).error["code"] != "refused"
        assert tools.call("write", {"path": "src/a.txt", "content": "x"}).error["code"] == "unread"
    assert asked == []


@pytest.mark.parametrize(("rule", "path", "covered"), [
    ("edit(src/**)", "src/a.txt", True), ("edit(src/**)", "lib/b.txt", False),
    ("edit(src)", "src/a.txt", True), ("edit(*.txt)", "lib/b.txt", True),
    ("create(src/**)", "src/a.txt", False), ("write(src/**)", "src/a.txt", True),
    ("delete(src/**)", "src/a.txt", False), ("change(src/**)", "src/a.txt", True),
    ("edit(link/**)", "link/a.txt", True), ("edit(src/**)", "link/a.txt", True), ("edit", "lib/b.txt", True),
    ("edit(./a.txt)", "src/a.txt", False), ("edit(src/**)", "./lib/../src/a.txt", True),
    ("edit(src/**)", "link.txt", True), ("edit(src/**)", "lib/../link/a.txt", True),
    ("edit(link.txt)", "link.txt", True), ("edit(link)", "link/a.txt", True),
    *((f"edit({glob})", path, True) for glob in ("**/lin*/**", "*ink", "{link,other}/**") for path in (
        "link/a.txt", "lib/../link/a.txt", "other link/a.txt", "lib/again/a.txt",
        "lib/again/../link/a.txt")),
])  # fmt: skip
@pytest.mark.parametrize("kind", ["deny", "ask"])
def test_a_rule_covers_every_spelling_of_a_path(tree, kind, rule, path, covered):
    links = {"link": "src", "link.txt": "src/a.txt", "other link": "link", "lib/again": "../link"}
    for link, target in links.items():
        os.symlink(target, tree / link)
    expected = ["refused" if covered else ""]
    policy = Policy(**{kind: [rule]}, allow=["*"])
    assert codes(tree, policy, [("edit", {"path": path, **EDIT})]) == expected
    assert (tree / "src" / "a.txt").read_text() == ("two\n" if "src" in path and not covered else "one\n")


@pytest.mark.parametrize("rule", [
    "./src/**", "src//**", "src/./**", "./src/.", ".", "./", "/", "src/**/.",
])  # fmt: skip
def test_a_rule_with_another_spelling_of_a_path_protects_it(tmp_path, rule):
    tree = put(tmp_path / "tree", {"src/a.txt": "one\n"})
    os.symlink(tree, tmp_path / "link")
    rule = f"read({rule})"
    for root, old, new in ((tree, "one", "two"), (tmp_path / "link", "two", "one")):
        policy = Policy(deny=[rule])
        with Workspace(root, policy=policy) as ws:
            for view in (ws, ws.view(workdir="src"), ws.view(only=["src"]), ws.view(policy=policy)):
                assert "The rule" in str(error_of(view.read, f"{tree}/src/a.txt"))
        with Workspace(root, policy=Policy(allow=[rule.replace("read", "edit")])) as ws:
            assert ws.edit("src/a.txt", old, new).replacements == 1


@pytest.mark.parametrize(("glob", "said"), [
    (" src/**", "leave out the space"), ("src/** ", "leave out the space"), ("src /*", "leave out the space"),
    ("'src/**'", "leave out the quotes"), ('"src"/**', "leave out the quotes"), ("`a`", "leave out the quo"),
    ("~/src/**", "`~` stands for no directory"), ("~", "`~` stands for no directory"),
    ("!src/**", "has no exceptions"), ("{{src, lib}}/**", "leave out the space"),
    ("{{{outside}/src,lib}}/**", "in its braces"), ("{{src/.,lib}}/**", "in its braces"),
    ("{outside}/src/**", r"begins with `/`.\nRules are about paths relative to the root: write `read\("),
    ("/usr", "begins with `/`"), ("/src/**", "begins with `/`"),
    ("[", "has a wrong glob"), ("{{a", "has a wrong glob"), ("../src", "has a wrong glob"),
])  # fmt: skip
def test_a_rule_that_protects_something_else_than_it_says_is_refused(tree, tmp_path_factory, glob, said):
    """`deny=["read(/root/secrets/**)"]` was accepted and protected nothing."""
    rule = f"read({glob.format(outside=tmp_path_factory.mktemp('outside'))})"
    with Workspace(tree) as ws:
        for setting in ("deny", "ask", "allow"):
            error = error_of(Workspace, tree, policy=Policy(**{setting: [rule]}))
            assert error.message.startswith("The rule `read(")
            assert re.search(said, str(error))
        assert re.search(said, str(error_of(ws.view, policy=Policy(deny=[rule]))))


NAMES = st.sampled_from(["src", "a.txt", ".", "", " ", "'", "~", "!", "*", "**", "{src,lib}", "?"])


@law(60, 200, parts=st.lists(NAMES, max_size=6), start=st.sampled_from(["", "/", "./", "{tree}/"]))
def test_a_rule_that_leads_to_a_file_by_the_rules_of_paths_protects_it_or_is_an_error(tree, parts, start):
    """The judge is the system: the glob without wildcards as a path, with them expanded by `glob`."""
    text = start.format(tree=tree) + "/".join(parts)
    above = "/" if start == "{tree}/" else f"{tree}/"
    meant = {
        os.path.realpath(each)
        for alternative in ("src", "lib")
        for each in iglob(above + text.replace("{src,lib}", alternative), recursive=True)
        if os.path.isdir(each) or not each.endswith("/")
    }
    try:
        ws = Workspace(tree, policy=Policy(deny=[f"read({text})"]))
    except InvalidArgumentError:
        return
    with ws:
        for path in (tree / "src" / "a.txt", tree / "lib" / "b.txt"):
            if meant & {str(path), str(path.parent), str(tree)}:
                assert code_of(ws.read, path) == "refused"


def test_rules_apply_to_the_file_of_a_kept_page(tree):
    asked = []
    policy = Policy(deny=["grep(src/**)"], ask=["read"], on_ask=lambda request: asked.append(request) or True)
    with Workspace(tree, policy=policy) as ws:
        name = kit.keep(ws, ws.read("src/a.txt"))
        assert ws.tools().call("grep", {"pattern": "one", "path": name}).error["code"] == "refused"
        assert ws.read(name).content == ws.read("src/a.txt").content
        assert {request.paths for request in asked} == {("src/a.txt",)}
        assert ws.grep("one", path=kit.keep(ws, "one\n")).total_lines == 1, "a text is no file"


@pytest.mark.parametrize(("policy", "call", "code"), [
    (Policy(allow=["edit(src/**)"]), ("edit", {"path": "src/link/b.txt", **EDIT}), "refused"),
    (Policy(allow=["edit(src/**)"]), ("edit", {"path": "src/a.txt", **EDIT}), ""),
    (Policy(deny=["write(src/**)"]), ("write", {"path": "src/new/deep/x.txt", "content": "x"}), "refused"),
    (Policy(allow=["write(src/**)"]), ("write", {"path": "src/new/deep/x.txt", "content": "x"}), ""),
    (Policy(allow=["create(src/**)"]), ("edit", {"path": "src/n", "old_string": "", "new_string": "x"}), ""),
    (Policy(allow=["create(src/**)"]), ("write", {"path": "n", "content": "x"}), "refused"),
    (Policy(allow=["create(src/**)"]), ("edit", {"path": "src/a.txt", **EDIT}), "refused"),
    (Policy(deny=["move(src/**)"]), ("move", {"path": "src/a.txt", "to": "lib/a.txt"}), "refused"),
])  # fmt: skip
def test_a_rule_covers_links_new_directories_and_both_paths_of_a_move(tree, policy, call, code):
    os.symlink("../lib", tree / "src" / "link")
    with Workspace(tree, policy=policy) as ws:
        result = ws.tools("all").call(*call)
    assert (result.error["code"] if result.error else "") == code
    assert (tree / "lib" / "b.txt").read_text() == "one\n"
    assert (tree / "src/new").exists() is (call[1]["path"].startswith("src/new") and not code)


def test_regression_denying_edit_denies_every_way_to_change_what_exists(tree):
    with Workspace(tree, policy=Policy(deny=["edit(src/**)"])) as ws:
        for call in (
            lambda: ws.multi_edit("src/a.txt", [EDIT]),
            lambda: ws.append("src/a.txt", "x\n"),
            lambda: ws.write("src/a.txt", "x\n", overwrite=True),
            lambda: ws.replace("one", "two"),
        ):
            assert code_of(call) == "refused"


def test_changed_arguments_are_used_and_checked_again(tree):
    """A callback can answer with every type that a program can pass."""
    answers = {
        "edit": Allow({"path": Path("lib/b.txt")}),
        "multi_edit": Allow({"edits": [{"old_string": "two", "new_string": "three"}]}),
    }
    policy = Policy(on_ask=lambda request: answers.get(request.method, True))
    with Workspace(tree, policy=policy) as ws:
        assert ws.edit("src/a.txt", "one", "two").path == "lib/b.txt"
        assert ws.multi_edit("lib/b.txt", [{"old_string": "two", "new_string": "other"}]).replacements == 1
    elsewhere = Allow({"path": "lib/b.txt", "old_string": "three"})
    with Workspace(tree, policy=Policy(on_ask=lambda request: elsewhere, deny=["edit(lib/**)"])) as ws:
        assert code_of(ws.edit, "src/a.txt", "one", "two") == "refused"
    for name in ("nothing", "self"):
        with Workspace(tree, policy=Policy(on_ask=lambda request, name=name: Allow({name: 1}))) as ws:
            error = error_of(ws.edit, "src/a.txt", "one", "two")
            assert (error.code, name in str(error)) == ("invalid_argument", True)
            result = ws.tools().call("edit", {"path": "src/a.txt", **EDIT})
            assert result.error["code"] == "invalid_argument"
    assert (tree / "lib" / "b.txt").read_text() == "three\n"
    assert (tree / "src" / "a.txt").read_text() == "one\n"


def test_a_link_swapped_while_the_user_is_asked_is_detected(tree):
    """Attack: the approved directory becomes a link to a denied one."""

    def swap(request):
        os.rename(tree / "src", tree / "moved")
        os.symlink("lib", tree / "src")
        os.rename(tree / "lib" / "b.txt", tree / "lib" / "a.txt")
        return True

    with Workspace(tree, policy=Policy(on_ask=swap, deny=["edit(lib/**)"])) as ws:
        assert code_of(ws.edit, "src/a.txt", "one", "two") == "refused"
    assert (tree / "lib" / "a.txt").read_text() == "one\n"


@pytest.mark.parametrize(("change", "path"), [
    (lambda ws: ws.edit("src/a.txt", "one", "two"), "src/a.txt"),
    (lambda ws: ws.write("src/a.txt", "two\n"), "src/a.txt"),
    (lambda ws: ws.write("src/new.txt", "two\n"), "src/new.txt"),
])  # fmt: skip
def test_a_file_that_changes_while_the_user_is_asked_is_not_changed(tree, change, path):
    """Otherwise the change would differ from the diff that was allowed."""
    theirs = "one\ntheirs\n"
    ask = Policy(on_ask=lambda _: (tree / path).write_text(theirs) > 0, allow=["read"], overwrite="always")
    with Workspace(tree, policy=ask) as ws:
        assert code_of(change, ws) == "stale"
    assert (tree / path).read_text() == "one\ntheirs\n"


def test_no_lock_is_held_while_the_user_is_asked(tree):
    """The callback reads the file, and edits it with another workspace in another thread."""
    other = Workspace(tree)

    def ask(request):
        worker = threading.Thread(target=lambda: other.edit("src/a.txt", "one", "one "))
        worker.start()
        worker.join(5)
        assert not worker.is_alive(), "a lock is held"
        return True

    with other, Workspace(tree, policy=Policy(on_ask=ask)) as ws:
        assert code_of(ws.edit, "src/a.txt", "one", "two") == "stale"


@pytest.mark.parametrize(("policy", "asks"), [
    ({"mode": "plan"}, False), ({"ask": ["read"]}, True), ({"allow": ["read"]}, False),
])  # fmt: skip
def test_a_preview_of_a_change_is_asked_about_as_a_read(tree, policy, asks):
    asked = []
    policy = Policy(on_ask=lambda request: asked.append(request) or True, **policy)
    with Workspace(tree, policy=policy) as ws:
        assert "+two" in ws.edit("src/a.txt", "one", "two", preview=True).diff
    assert [(each.effect, each.changes, each.diff) for each in asked] == [("read", (), "")] * asks
    assert (tree / "src" / "a.txt").read_text() == "one\n"


def test_a_callback_that_raises_refuses_the_call_and_the_program_gets_the_exception(tree, caplog):
    def ask(request):
        raise ZeroDivisionError("secret reason")

    events = []
    with Workspace(tree, policy=Policy(on_ask=ask), on_event=events.append) as ws:
        result = ws.tools().call("edit", {"path": "src/a.txt", **EDIT})
        error = error_of(ws.edit, "src/a.txt", "one", "two")
    assert result.error["code"] == error.code == "refused"
    assert "secret reason" not in f"{result.content}{result.to_dict()}"
    assert "ZeroDivisionError" not in result.content
    assert isinstance(error.__cause__, ZeroDivisionError)
    raised = [event.exception.__cause__ for event in events if event.kind == "refused"]
    assert [str(each) for each in raised] == ["secret reason"] * 2
    assert "secret reason" in caplog.text
    assert (tree / "src" / "a.txt").read_text() == "one\n"


@pytest.mark.parametrize("rules", [
    {"deny": ["rread(secret/**)"]}, {"deny": ["reads"]}, {"allow": ["edit_file(src/**)"]},
    {"deny": ["tools"]}, {"deny": ["checkpoint"]}, {"allow": ["changes_(src)"]},
])  # fmt: skip
@pytest.mark.parametrize("use", [
    lambda tools: tools.call("read", {"path": "src/a.txt"}), lambda tools: tools.schemas(),
    lambda tools: tools.functions(), lambda tools: tools + [other],  # noqa: RUF005 - a toolset
    lambda tools: tools.answer([]),
    lambda tools: asyncio.run(tools.acall("ls")), lambda tools: asyncio.run(tools.aanswer([])),
])  # fmt: skip
def test_a_rule_that_names_no_tool_is_an_error_of_the_toolset(tree, rules, use):
    with Workspace(tree, policy=Policy(**rules)) as ws:
        error = refused(lambda: use(ws.tools("all")), "invalid_argument")
    assert "names no tool" in error.message
    assert "read" in error.hint
    assert "create" in error.hint
    assert "rread" not in str(rules) or "did you mean `read`" in error.message


SECRET_LINES = [f"secret_line_{number} = {number}" for number in range(30)]
MISSES = [
    *(("agentfs", name, arguments) for name, arguments in (
        ("edit", {"path": "s.py", "old_string": "secret_line_3 = 4", "new_string": "x"}),
        ("edit", {"path": "s.py", "old_string": "secret_line", "new_string": "x"}),
        ("multi_edit",
         {"path": "s.py", "edits": [{"old_string": " secret_line_3 = 3\n\n", "new_string": "x"}]}),
        ("edit_lines", {"path": "s.py", "changes": [{"line_id": "abcdef", "new_content": "x"}]}),
        ("replace", {"old_string": "secret_line_99", "new_string": "x", "expect": 3}),
        ("replace", {"old_string": "secret_line", "new_string": "x", "expect": 3}),
        ("write", {"path": "s.py", "content": "x"}))),
    *(("text-editor", "str_replace_based_edit_tool", {"path": "s.py", **arguments}) for arguments in (
        {"command": "str_replace", "old_str": "secret_line_3 = 4", "new_str": "x"},
        {"command": "insert", "insert_line": 500, "insert_text": "x"})),
    ("wave", "Edit", {"file_path": "s.py", "old_string": "secret_line", "new_string": "x"}),
    ("wave", "MultiEdit",
     {"file_path": "s.py", "edits": [{"old_string": "secret_line_3 = 4", "new_string": "x"}]}),
    ("codescout", "edit_file", {"path": "s.py", "old_string": "secret_line_3 = 4", "new_string": "x"}),
    ("rye", "edit_lines", {"path": "s.py", "changes": [{"line_id": "abcdef", "new_content": "x"}]}),
    *(("apply-patch", "apply_patch",
       {"input": f"*** Begin Patch\n*** Update File: s.py\n{hunk}\n+x\n*** End Patch"})
      for hunk in ("@@\n-secret_line_3 = 4", "@@ nothing\n secret_line_2 = 2\n-y")),
]  # fmt: skip


@pytest.mark.parametrize(("dialect", "name", "arguments"), MISSES)
def test_an_error_quotes_nothing_of_a_file_before_the_callback_allowed_it(tree, dialect, name, arguments):
    """Attack: a change fails, and the error shows lines of the file."""
    (tree / "s.py").write_text("\n".join(SECRET_LINES) + "\n")
    asked = []
    policy = Policy(ask=["read(**)"], on_ask=lambda request: bool(asked.append(request)))
    with Workspace(tree, policy=policy) as ws:
        result = ws.tools("all", dialect=dialect).call(name, arguments)
    shown = f"{result.to_dict()}{result.content}{result.data}"
    assert not result.success
    sent = str(arguments)
    assert [line for line in SECRET_LINES if line in shown and line not in sent] == []
    assert "30" not in result.content, "the number of lines"
    assert asked or result.error["code"] in ("refused", "unread"), "nothing is quoted of an unread file"


def test_an_error_that_the_callback_allowed_quotes_the_file(tree):
    (tree / "s.py").write_text("\n".join(SECRET_LINES) + "\n")
    with Workspace(tree, policy=Policy(on_ask=lambda request: True)) as ws:
        result = ws.tools().call("edit", MISSES[0][2])
    assert result.error["code"] == "no_match"
    assert SECRET_LINES[3] in result.content


def test_a_request_has_no_character_that_a_terminal_hides(tree):
    """Attack: a model hides a line of the diff, or a part of a path, from the person who approves."""
    asked = []
    policy = Policy(on_ask=lambda request: asked.append(request) or True)
    erase, reverse = "\x1b[1A\x1b[2K", "\u202e"
    with Workspace(tree, policy=policy) as ws:
        tools = ws.tools("all")
        text = f"harmless\nrm -rf ~{erase}\r{reverse}\u200b\n"
        tools.call("write", {"path": f"a{reverse}{erase}.txt", "content": text})
        tools.call("Create\x1b_file", {"path": f"b{reverse}", "content": text})
        tools.call("replace", {"old_string": "harmless", "new_string": f"x{erase}"})
    assert len(asked) >= 2
    for request in asked:
        shown = f"{request.method}{request.effect}{request.tool}{''.join(request.paths)}{request.diff}"
        assert all(char.isprintable() or char in "\n\t" for char in shown), shown
    assert "+rm -rf ~⟦U+001B⟧[1A⟦U+001B⟧[2K⟦U+000D⟧⟦U+202E⟧⟦U+200B⟧" in asked[0].diff
    assert asked[0].paths == ("a⟦U+202E⟧⟦U+001B⟧[1A⟦U+001B⟧[2K.txt",)
    assert (tree / f"a{reverse}{erase}.txt").exists()


# Texts that one hash of 48 bits does not tell apart, found in 20 s: `blake2b(text, digest_size=6)`.
SHOWN, COLLIDING = "limit = 114368\n", "limit = 11667593\n"


def test_a_text_with_the_same_short_hash_is_another_version(tree):
    """Attack: what was read, named or allowed is swapped for a text with the same 48 bits of hash."""
    file = tree / "src" / "a.txt"
    assert len({blake2b(text.encode(), digest_size=6).digest() for text in (SHOWN, COLLIDING)}) == 1
    file.write_text(SHOWN)
    swap = Policy(allow=["read"], on_ask=lambda _: file.write_text(COLLIDING) > 0)
    with Workspace(tree, policy=swap) as ws:
        assert code_of(ws.edit, "src/a.txt", "limit", "maximum") == "stale"
    file.write_text(SHOWN)
    with Workspace(tree) as ws:
        ws.read("src/a.txt")
        file.write_text(COLLIDING)
        assert code_of(ws.write, "src/a.txt", "x\n") == "stale"
    assert file.read_text() == COLLIDING
