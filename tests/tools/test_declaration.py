"""Functions and methods declared with `tool`."""

import pytest

from agentfs import Policy, Toolset, Workspace
from agentfs.providers import FORMATS
from agentfs.tools.tool import tool
from tests.kit import described, error_of
from tests.tools.functions_of_strings import lost, shout


class OutlineWorkspace(Workspace):
    """A workspace with an eighth default tool."""

    @tool(effect="read", default=True, advice="See the definitions of a file with {outline}.")
    def outline(self, path: "str", most: "int | None" = None) -> str:
        """Show the definitions of a file.

        Args:
            path: File, relative to the workspace root.
            most: How many.
        """
        lines = [line for line in self.read(path).content.splitlines() if line.startswith("def ")]
        return "\n".join(lines[:most])


@pytest.fixture
def root(tmp_path):
    (tmp_path / "a.py").write_text("import os\ndef f():\n    pass\ndef g():\n    pass\n")
    return tmp_path


def test_a_method_of_a_subclass_is_an_eighth_default_tool(root):
    with OutlineWorkspace(root) as ws:
        tools = ws.tools(prefix="fs_")
        assert tools.names[-1] == "fs_outline"
        assert len(tools.names) == 8
        assert "definitions of a file with `fs_outline`" in tools.instructions()
        for name in FORMATS:
            assert "fs_outline" in str(tools.schemas(name)[-1])
        assert tools.schemas("mcp")[-1]["annotations"]["readOnlyHint"] is True
        assert tools.call("fs_outline", {"path": "a.py", "most": "1"}).content == "def f():"
        assert ws.tools("all").names[7] == "outline"


@pytest.mark.parametrize("rule", ["outline", "read(*.py)", "read", "*"])
def test_the_rules_hold_for_a_tool_of_a_subclass(root, rule):
    """It is a tool of the program, and what it does by methods of the workspace is under their rules."""
    with OutlineWorkspace(root, policy=Policy(deny=[rule])) as ws:
        assert ws.tools().call("outline", {"path": "a.py"}).error["code"] == "refused"
    with OutlineWorkspace(root, policy=Policy(mode="plan")) as ws:
        assert ws.tools().call("outline", {"path": "a.py"}).success


def test_a_function_may_declare_its_effect():
    @described
    def plain() -> int:
        return 1

    @tool(effect="read")
    @described
    def count() -> int:
        return 1

    shown = [each["annotations"]["readOnlyHint"] for each in Toolset([count, plain]).schemas("mcp")]
    assert shown == [True, False]
    assert "'change'" in str(error_of(lambda: tool(effect="change")(plain)))  # type: ignore[arg-type] # a wrong one


def test_hints_may_be_strings():
    tools = Toolset([shout])
    style = tools.schemas("anthropic")[0]["input_schema"]["properties"]["style"]
    assert style["properties"]["order"]["enum"] == ["up", "down"]
    assert tools.call("shout", {"text": "a", "style": {"order": "down"}}).content == "A Order.DOWN"
    assert "`text`: its hint cannot be resolved" in str(error_of(Toolset, [lost]))
