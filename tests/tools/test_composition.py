"""Toolsets made from others: more tools, fewer tools."""
# ruff: noqa: RUF005 - a toolset is not a list

import pytest

from agentfs import ToolResult, Toolset
from agentfs.tools.tool import Tool
from tests.kit import described, refused


@described
def count(text: str) -> int:
    return len(text)


@pytest.fixture
def ws(ws):
    ws.write("a.txt", "one\n")
    return ws


def test_a_function_is_added_to_the_tools_of_a_workspace(ws):
    tools = ws.tools(["read", "grep"])
    more = tools + [count]
    assert (tools.names, more.names) == (("read", "grep"), ("read", "grep", "count"))
    assert more.call("count", {"text": "abc"}).content == "3"
    assert more.call("read", {"path": "a.txt"}).content == "1|one"
    assert "named count" in str(refused(lambda: more + [count], "invalid_argument"))
    tools = ws.tools(["read"]) + Toolset([count]) + [Tool(function=count, name="size")]
    assert tools.names == ("read", "count", "size")


def test_a_toolset_has_a_length_names_and_tools(ws):
    tools = ws.tools(prefix="fs_")
    assert len(tools) == 7
    assert "fs_read" in tools
    assert "read" not in tools
    assert [tool.name for tool in tools] == list(tools.names)
    reading = [tool.name for tool in tools if tool.effect in ("read", "search")]
    assert reading == ["fs_read", "fs_ls", "fs_glob", "fs_grep"]
    assert Toolset(tools).schemas() == tools.schemas()
    assert Toolset(tools, prefix="x_").names[0] == "x_fs_read"


def test_only_chooses_tools_by_name(ws):
    tools = ws.tools()
    assert tools.only(["grep", "read"]).names == ("grep", "read")
    assert tools.only("ls").names == ("ls",)
    few = tools.only(["read", "ls", "glob", "grep"])
    assert few.call("write", {"path": "b", "content": ""}).error["code"] == "unknown_tool"
    assert "`write`" not in few.instructions()
    assert '"raed"' in str(refused(lambda: tools.only(["raed"]), "unknown_tool"))


def test_a_tool_is_not_offered_without_the_tool_that_it_needs(ws):
    said = str(refused(lambda: ws.tools(["edit_lines", "ls"]), "invalid_argument"))
    assert "edit_lines needs values that only read and grep show" in said


def test_added_tools_keep_their_own_renderer(ws):
    def shout(context):
        return ToolResult(context.result.success, context.result.content.upper())

    tools = Toolset([ws.read], render=shout) + [count, Tool(function=ws.ls, render=shout)]
    assert tools.call("read", {"path": "a.txt"}).content == "1|ONE"
    assert tools.call("ls").content.startswith("A.TXT")
    assert tools.call("count", {"text": "a"}).content == "1"
    assert tools.call("nothing").content.startswith("THERE IS NO TOOL")
    assert Toolset(tools).call("read", {"path": "a.txt"}).content == "1|ONE"
