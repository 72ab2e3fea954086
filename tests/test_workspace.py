"""The workspace as a whole: behaviour that its methods share."""

import errno
import json
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from agentfs import Policy, Workspace, workspace
from agentfs.fs import Root
from agentfs.providers import FORMATS
from agentfs.text.display import estimate_tokens
from tests.kit import code_of, put


@pytest.mark.parametrize(("root", "code"), [
    ("nowhere", "not_found"), ("file", "not_a_directory"), ("a\0b", "invalid_path"),
])  # fmt: skip
def test_a_root_that_is_none_is_an_error_at_once(tmp_path, monkeypatch, root, code):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    assert code_of(Workspace, root) == code


def test_the_root_stays_when_the_process_changes_directory(tmp_path, monkeypatch):
    put(tmp_path, {"a/f.txt": "here\n"})
    monkeypatch.chdir(tmp_path)
    with Workspace("a") as ws:
        monkeypatch.chdir("/")
        assert ws.read("f.txt").content == "here\n"


def test_a_view_may_add_rules_of_ask_and_removes_none(tmp_path):
    put(tmp_path, {"f.txt": "one\n"})
    with Workspace(tmp_path, policy=Policy(ask=["delete"])) as ws:
        stricter = ws.view(policy=Policy(ask=["read", "delete"], on_ask=lambda _: False))
        assert code_of(stricter.read, "f.txt") == code_of(stricter.delete, "f.txt") == "refused"
        for rules in ([], ["read"]):
            assert code_of(ws.view, policy=Policy(ask=rules)) == "invalid_argument"
        assert ws.read("f.txt").content == "one\n"


def test_a_transaction_that_has_ended_changes_nothing(ws, tmp_path):
    with ws.transaction() as changes:
        changes.write("a.txt", "x")
    assert code_of(changes.write, "b.txt", "x") == "closed"
    assert os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("broken", ["keep_tree", "open_history"])
def test_a_workspace_that_cannot_be_opened_leaves_no_descriptor_open(tmp_path, monkeypatch, broken):
    def fail(*_, **__):
        raise OSError(errno.EMFILE, "no more")

    Workspace(tmp_path).close()
    homes = {"keep_tree": Root, "open_history": workspace}
    monkeypatch.setattr(homes[broken], broken, fail)
    before = len(os.listdir("/dev/fd"))
    with pytest.raises(OSError) as caught:
        Workspace(tmp_path, watch=True)
    assert len(os.listdir("/dev/fd")) == before, caught.value


def test_two_workspaces_on_one_root_have_each_their_own_view(ws, tmp_path):
    put(tmp_path, {"a.txt": "one\n"})
    with Workspace(tmp_path) as other:
        other.read("a.txt")
        assert code_of(ws.write, "a.txt", "mine\n") == "unread"
        assert "overwrite" not in ws.tools().call("write", {"path": "a.txt", "content": "x"}).content
        other.write("a.txt", "theirs\n")


def test_edits_from_thirty_threads_all_land(ws, tmp_path):
    (tmp_path / "a.txt").write_text("".join(f"<{number}>\n" for number in range(30)))
    with ThreadPoolExecutor(30) as pool:
        list(pool.map(lambda n: ws.edit("a.txt", f"<{n}>", f"[{n}]"), range(30)))
    assert (tmp_path / "a.txt").read_text() == "".join(f"[{number}]\n" for number in range(30))


@pytest.mark.parametrize("provider", list(FORMATS))
def test_the_seven_schemas_cost_at_most_1773_tokens(ws, provider):
    compact = json.dumps(ws.tools().schemas(provider), separators=(",", ":"), ensure_ascii=False)
    assert max(len(compact) / 4, estimate_tokens(compact)) <= 1773


def visible(tools, name):
    schemas = {schema["name"]: schema["input_schema"] for schema in tools.schemas("anthropic")}
    return {*schemas[name]["properties"]}


def test_tools_are_offered_with_what_they_need_or_not_at_all(ws):
    tools = ws.tools("all")
    assert " ".join(tools.names) == (
        "read write edit multi_edit ls glob grep append edit_lines replace delete move undo redo checkpoint"
        " rollback changes"
    )
    assert "line_ids" in visible(tools, "read") & visible(tools, "grep")
    assert "line_ids" in visible(ws.tools(["grep", "edit_lines"]), "grep")
    assert "line_ids" not in visible(ws.tools(), "read")
    for names in ("edit_lines", ["edit_lines", "write"]):
        assert code_of(ws.tools, names) == "invalid_argument"


def test_a_model_reads_the_rest_of_a_long_line(ws, tmp_path):
    (tmp_path / "wide.txt").write_text("".join(f"<{number:04}>" for number in range(1000)))
    first = ws.tools().call("read", {"path": "wide.txt", "column": 2001})
    second = ws.tools().call(first.next["name"], first.next["arguments"])
    assert ("<0999>" in first.content, "<0999>" in second.content, second.next) == (False, True, None)


def test_a_mount_is_named_by_both_of_its_absolute_paths(tmp_path):
    """The path that the program passed, and the one that it leads to."""
    put(tmp_path, ["root/x", "real/a.txt"])
    (tmp_path / "link").symlink_to("real")
    with Workspace(tmp_path / "root", mounts={"lib": tmp_path / "link"}) as ws:
        for place in ("real", "link"):
            assert ws.read(f"{tmp_path}/{place}/a.txt").path == "lib/a.txt"
