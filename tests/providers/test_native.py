"""The providers' own types of tools: what is sent, and how their calls are answered."""

import asyncio

import pytest

from agentfs import Policy, Toolset, Workspace
from tests.kit import described


@pytest.fixture
def ws(tmp_path):
    with Workspace(tmp_path, policy=Policy(run="recorded")) as ws:
        yield ws


@pytest.fixture
def tools(ws):
    dialects = [ws.tools(dialect=name) for name in ("text-editor", "memory", "apply-patch")]
    return ws.tools(["read", "run"]) + dialects[0] + dialects[1] + dialects[2]


def types(schemas):
    return [each.get("type") for each in schemas]


def test_each_provider_gets_its_own_types_and_schemas_for_the_rest(tools):
    assert types(tools.schemas("anthropic", native=True)) == [
        None, "bash_20250124", "text_editor_20250728", "memory_20250818", None,
    ]  # fmt: skip
    assert types(tools.schemas("openai-responses", native=True)) == [
        "function", "shell", "function", "function", "apply_patch",
    ]  # fmt: skip
    for name in ("openai", "gemini", "mcp"):
        assert tools.schemas(name, native=True) == tools.schemas(name)
    assert tools.schemas("anthropic")[0] == tools.schemas("anthropic", native=True)[0]


def test_a_tool_with_another_name_or_of_the_program_is_sent_with_its_schema(ws):
    @described
    def memory(path: str) -> str:
        return path

    for tools in (ws.tools(["run"], prefix="fs_"), ws.tools(["run"], prefix="sh_"), Toolset([memory])):
        assert types(tools.schemas("anthropic", native=True)) == [None]


def test_a_call_of_bash_runs_and_a_restart_succeeds(tools):
    sent = ({"command": "echo hi; exit 2"}, {"restart": True}, {})
    calls = [
        {"type": "tool_use", "id": str(at), "name": "bash", "input": each} for at, each in enumerate(sent)
    ]
    [message] = tools.answer(calls)
    ran, restarted, wrong = message["content"]
    assert "hi\n" in ran["content"][0]["text"]
    assert ["is_error" in each for each in (ran, restarted, wrong)] == [False, False, True]


def test_the_commands_of_a_shell_call_are_one_answer(tools, ws):
    action = {"commands": ["echo a > made", "cat made; echo no >&2; exit 3"], "max_output_length": 3}
    actions = [
        action,
        {"commands": ["sleep 9", "printf %30000s", "printf %30001s"], "timeout_ms": 300},
        {"commands": []},
    ]
    calls = [{"type": "shell_call", "call_id": str(n), "action": each} for n, each in enumerate(actions, 1)]
    first, second, empty = asyncio.run(tools.aanswer(calls))
    assert first == {
        "type": "shell_call_output", "call_id": "1", "max_output_length": 3,
        "output": [
            {"stdout": "", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}},
            {"stdout": "a\n", "stderr": "no\n", "outcome": {"type": "exit", "exit_code": 3}},
        ],
    }  # fmt: skip
    assert second["output"][0]["outcome"] == {"type": "timeout"}
    assert second["output"][1]["stdout"] == " " * 30_000
    assert "[1 character left out]" in second["output"][2]["stdout"]
    assert empty["output"][0]["outcome"]["exit_code"] == 126
    ws.undo()
    assert not ws.glob("made").files


def test_operations_of_apply_patch_are_answered_with_a_status(tools, tmp_path):
    operations = [
        {"type": "create_file", "path": "d/a.txt", "diff": "+one\n+two\n"},
        {"type": "update_file", "path": "d/a.txt", "diff": "@@\n one\n-two\n+2\n"},
        {"type": "delete_file", "path": "missing"},
        {"type": "create_file", "path": ".env", "diff": "+x"},
    ]
    calls = [
        {"type": "apply_patch_call", "call_id": str(n), "operation": o} for n, o in enumerate(operations)
    ]
    answers = tools.answer(calls)
    assert [each["status"] for each in answers] == ["completed", "completed", "failed", "failed"]
    assert {each["type"] for each in answers} == {"apply_patch_call_output"}
    assert "is protected" in answers[3]["output"]
    assert (tmp_path / "d/a.txt").read_text() == "one\n2\n"
