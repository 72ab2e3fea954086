"""Tools in an MCP server of one's own: whose user is asked, and about what."""

import pytest
from mcp import Client, types
from mcp.server.mcpserver import MCPServer

from agentfs import Policy, Workspace
from agentfs.frameworks import ask
from agentfs.mcp import sdk_tools

FILE = {"path": "a.txt", "content": "new\n"}
MODES = ["auto", "legacy"]


@pytest.fixture
def ws(tmp_path):
    with Workspace(tmp_path, policy=Policy(allow=["read"], on_ask=ask)) as ws:
        yield ws


def server(ws, **options):
    return MCPServer("files", tools=sdk_tools(ws.tools(**options)))


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_that_cannot_ask_is_refused(ws, tmp_path, mode):
    async with Client(server(ws), mode=mode) as client:
        result = await client.call_tool("write", FILE)
    assert result.is_error
    assert "this client cannot ask (MCP's elicitation)" in result.content[0].text
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", MODES)
async def test_a_change_during_the_question_is_never_lost(ws, tmp_path, mode):
    file = tmp_path / "a.txt"
    file.write_text("one\ntwo\n")
    questions = []

    async def elicit(_, question):
        questions.append(question.message)
        if len(questions) == 1:
            file.write_text("zero\none\ntwo\n")
        return types.ElicitResult(action="accept", content={})

    async with Client(server(ws), mode=mode, elicitation_callback=elicit) as client:
        result = await client.call_tool("edit", {"path": "a.txt", "old_string": "two", "new_string": "2"})
    if mode == "legacy":  # the call waits for the answer
        assert "have changed since the call was allowed" in result.content[0].text
        assert file.read_text() == "zero\none\ntwo\n"
    else:  # the call is repeated, and its question is another one
        assert not result.is_error
        assert ["zero" in each for each in questions] == [False, True]
        assert file.read_text() == "zero\none\n2\n"


async def test_an_answer_to_another_question_does_not_count(ws, tmp_path):
    tool = next(each for each in sdk_tools(ws.tools()) if each.name == "write")
    assert not tool.output_schema

    async def elicit(_, question):
        return types.ElicitResult(action="accept" if "other.txt" in question.message else "decline")

    async with Client(server(ws), elicitation_callback=elicit) as client:
        assert not (await client.call_tool("write", {"path": "other.txt", "content": ""})).is_error
        assert (await client.call_tool("write", FILE)).is_error
    assert [each.name for each in tmp_path.iterdir()] == ["other.txt"]
