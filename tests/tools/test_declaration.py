"""Methods declared with `tool` join the offered tools, the permission checks and the texts."""

import pytest

from agentfs import Policy, Toolset, Workspace
from agentfs.errors import InvalidArgumentError, RefusedError
from agentfs.providers import FORMATS
from agentfs.results import ReadResult
from agentfs.tools.tool import tool
from tests.tools.plugin_of_strings import OutlineWorkspace as OutlineWorkspaceOfStrings
from tests.tools.plugin_of_strings import lost, shout


class OutlineWorkspace(Workspace):
    """A workspace with an eighth default tool."""

    @tool(effect="read", default=True, advice="See the definitions of a file with {outline}.")
    def outline(self, path: str) -> ReadResult:
        """Show the definitions of a file.

        Args:
            path: File, relative to the workspace root.

        Returns:
            The lines that begin with `def`.
        """
        page = self.read(path)
        lines = [line for line in page.content.splitlines() if line.startswith("def ")]
        return ReadResult(path, "text", "\n".join(lines), 1, 1, 1, 1, page.revision, text="\n".join(lines))

    @tool(effect="write")
    def erase(self, path: str) -> ReadResult:
        """Erase a file.

        Args:
            path: File.
        """
        raise AssertionError(path)


@pytest.fixture
def root(tmp_path):
    (tmp_path / "a.py").write_text("import os\ndef f():\n    pass\n")
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
        assert tools.call("fs_outline", {"file_path": "a.py"}).content == "def f():"
        assert ws.tools("all").names[7] == "outline"
        assert "erase" in ws.tools("all").names
        assert "erase" not in tools.names


def test_a_new_tool_has_its_permission_and_arguments_checked(root):
    requests = []

    def ask(request):
        requests.append((request.method, request.effect, request.paths, request.tool))
        return request.method == "outline"

    with OutlineWorkspace(root, policy=Policy(on_ask=ask, ask=["*"])) as ws:
        assert (
            not ws.tools().call("outline", {"path": "a.py"}).success
        )  # it reads by `read`, which is refused
        with pytest.raises(RefusedError):
            ws.erase("a.py")
    assert requests[0] == ("outline", "read", ("a.py",), "outline")
    assert requests[-1] == ("erase", "write", ("a.py",), None)
    for rule in ("outline(*.py)", "outline", "read", "*"):
        with OutlineWorkspace(root, policy=Policy(deny=[rule])) as ws, pytest.raises(RefusedError):
            ws.outline("a.py")
    with OutlineWorkspace(root, policy=Policy(mode="plan")) as ws:
        assert ws.outline("a.py").content == "def f():"
        with pytest.raises(RefusedError, match="plan mode"):
            ws.erase("a.py")


def test_a_function_may_declare_its_effect():
    @tool(effect="read")
    def count(text: str) -> int:
        """Count.

        Args:
            text: The text.
        """
        return len(text)

    def plain(text: str) -> int:
        """Count.

        Args:
            text: The text.
        """
        return len(text)

    declared, other = Toolset([count, plain]).schemas("mcp")
    assert declared["annotations"]["readOnlyHint"] is True
    assert other["annotations"]["readOnlyHint"] is False


def test_an_unknown_effect_is_an_error_when_it_is_declared():
    with pytest.raises(InvalidArgumentError, match="'change'"):
        tool(effect="change")  # type: ignore[arg-type] # the error under test


@pytest.fixture
def plugged(tmp_path):
    (tmp_path / "a.md").write_text("# a\ntext\n# b\n")
    return tmp_path


def test_a_mixin_with_hints_as_strings_adds_a_tool(plugged):
    with OutlineWorkspaceOfStrings(plugged) as ws:
        tools = ws.tools()
        assert "outline" in tools
        style = tools.only("outline").schemas("anthropic")[0]["input_schema"]["properties"]["style"]
        assert style["properties"]["order"]["enum"] == ["up", "down"]
        sent = {"path": "a.md", "style": {"order": "down"}}
        assert tools.call("outline", sent).content == '["# b", "# a"]'
        assert Toolset([shout]).call("shout", {"text": "a", "style": {}}).content == "A Order.UP"
        with pytest.raises(InvalidArgumentError, match="`text`: its hint cannot be resolved"):
            Toolset([lost])


def test_a_tool_of_a_mixin_has_its_permission_checked(plugged):
    """The tools that a mixin declared were not guarded, so rules did not apply to them."""
    with OutlineWorkspaceOfStrings(plugged, policy=Policy(deny=["outline"])) as ws:
        with pytest.raises(RefusedError):
            ws.outline("a.md")
        assert ws.tools().call("outline", {"path": "a.md"}).error["code"] == "refused"
