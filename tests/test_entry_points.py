"""Dialects and providers of other packages, found by their entry points."""

import subprocess
import sys

import pytest

from agentfs import Toolset, Workspace, dialects, providers
from agentfs.errors import InvalidArgumentError

PLUGIN = """
from agentfs.dialects.toolkit import Dialect, ToolSpec
from agentfs.providers.provider import Format, Provider, SchemaRules, ToolCall, field

def specs(workspace):
    return [ToolSpec(workspace.read, name="cat")]

DIALECT = Dialect("plugged", specs)
OTHER = Dialect("another name", specs)

class Acme(Provider):
    formats = {"acme": Format(SchemaRules(unions=False))}

    def schema(self, tool, name, *, strict):
        return {"fn": tool.name, "schema": tool.parameters}

    def read_call(self, call):
        if field(call, "acme"):
            return ToolCall(self, None, field(call, "name"), field(call, "arguments"))
        return None

    def reply(self, call, result):
        return {"says": result.content}
"""
ENTRIES = """
[agentfs.dialects]
plugged = acme_plugin:DIALECT
misnamed = acme_plugin:OTHER
broken = missing_module:DIALECT
wave = acme_plugin:OTHER

[agentfs.providers]
acme = acme_plugin:Acme
"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    packages = tmp_path / "packages"
    (packages / "acme_plugin-1.0.dist-info").mkdir(parents=True)
    (packages / "acme_plugin.py").write_text(PLUGIN)
    (packages / "acme_plugin-1.0.dist-info" / "METADATA").write_text("Name: acme-plugin\nVersion: 1.0\n")
    (packages / "acme_plugin-1.0.dist-info" / "entry_points.txt").write_text(ENTRIES)
    monkeypatch.syspath_prepend(str(packages))
    monkeypatch.delitem(sys.modules, "acme_plugin", raising=False)
    monkeypatch.setattr(dialects, "_registered", {})
    providers._installed.cache_clear()
    yield packages
    providers._installed.cache_clear()


@pytest.fixture
def ws(tmp_path):
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "a.txt").write_text("one\n")
    with Workspace(tmp_path / "tree") as workspace:
        yield workspace


def test_a_dialect_of_another_package_is_found_by_its_name(installed, ws):
    assert "plugged" not in dialects.names()
    assert ws.tools(dialect="plugged").call("cat", {"path": "a.txt"}).content == "1|one"
    assert "plugged" in dialects.names()
    assert dialects.find("plugged") is dialects.find("plugged")


def test_an_unusable_entry_point_is_an_error_of_its_own_name_only(installed, ws):
    with pytest.raises(InvalidArgumentError, match="no dialect 'misnamed'"):
        ws.tools(dialect="misnamed")
    with (
        pytest.warns(UserWarning, match="broken of agentfs.dialects"),
        pytest.raises(InvalidArgumentError, match="no dialect 'broken'"),
    ):
        ws.tools(dialect="broken")
    assert "Read" in ws.tools(dialect="wave")


def test_a_provider_of_another_package_makes_schemas_reads_calls_and_replies(installed, ws):
    tools = Toolset([ws.read])
    assert tools.schemas("acme")[0]["fn"] == "read"
    call = {"name": "read", "arguments": {"path": "a.txt"}}
    assert tools.answer([{"acme": True, **call}])[0] == {"says": "1|one"}
    assert tools.answer([call])[0]["isError"] is False  # MCP's
    assert tools.answer([{"acme": True, **call}])[0] == {"says": "1|one"}
    with pytest.raises(InvalidArgumentError, match=r"gemini, .*acme"):
        tools.schemas("acmee")
    with pytest.raises(InvalidArgumentError, match="no strict mode"):
        tools.schemas("acme", strict=True)


def test_an_entry_point_that_is_not_a_provider_is_left_out_with_a_warning(installed, ws):
    (installed / "acme_plugin-1.0.dist-info" / "entry_points.txt").write_text(
        "[agentfs.providers]\nbad = acme_plugin:DIALECT\nacme = acme_plugin:Acme\n"
    )
    with pytest.warns(UserWarning, match="bad of agentfs.providers cannot be loaded: it is not a Provider"):
        assert Toolset([ws.read]).schemas("acme")


def test_built_in_names_do_not_look_for_other_packages():
    program = (
        "import sys, tempfile, agentfs\n"
        "ws = agentfs.Workspace(tempfile.mkdtemp())\n"
        "tools = ws.tools(dialect='wave')\n"
        "tools.schemas('gemini')\n"
        "tools.answer([{'type': 'tool_use', 'id': '1', 'name': 'LS', 'input': {}}])[0]\n"
        "print('importlib.metadata' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
