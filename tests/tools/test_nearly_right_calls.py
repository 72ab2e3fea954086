"""Calls that are nearly right, as models send them: taken as meant, or told the right way."""

import pytest

from agentfs import Workspace


@pytest.fixture
def tools(tmp_path):
    (tmp_path / "a.py").write_text("a = 1\nb = 2\n")
    with Workspace(tmp_path) as ws:
        yield ws.tools("all", expose={"read": ["line_ids"]})


def test_regression_a_line_id_may_be_sent_as_it_is_shown(tools):
    shown = tools.call("read", {"path": "a.py", "line_ids": True}).content.partition("|")[0]
    changes = [{"line_id": shown, "new_content": "a = 3"}]
    assert tools.call("edit_lines", {"path": "a.py", "changes": changes}).success
    assert tools.call("read", {"path": "a.py"}).content.startswith("1|a = 3\n")


def test_regression_an_unknown_file_type_is_told_how_to_choose_files_by_name(tools):
    answer = tools.call("grep", {"pattern": "a", "type": "xyz"}).content
    assert 'pass glob="*.xyz" and leave out type' in answer
    assert "xz" not in answer.replace("xyz", "")


@pytest.mark.parametrize(
    ("name", "hint"), [("TodoWrite", ""), ("WebSearch", ""), ("reads", "read"), ("gerp", "grep")]
)
def test_regression_only_a_misspelt_tool_is_guessed(tools, name, hint):
    answer = tools.call(name, {})
    assert answer.error["code"] == "unknown_tool"
    assert (f"did you mean `{hint}`?" if hint else "did you mean") in answer.content or not hint
    assert hint or "did you mean" not in answer.content


def test_regression_undo_of_a_path_without_steps_says_so(tools):
    tools.call("append", {"path": "b.py", "content": "x"})
    answer = tools.call("undo", {"paths": ["a.py"]}).content
    assert answer.startswith("There is nothing to undo. No step that can be undone has changed these paths.")
