"""Lists that models pass where a schema shows one path or one glob."""

import pytest

from agentfs import Workspace


@pytest.fixture
def tools(tmp_path):
    for name in ("src/a.py", "lib/b.py", "c.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("value\n")
    with Workspace(tmp_path) as ws:
        yield ws.tools("all")


@pytest.mark.parametrize("name", ["path", "paths"])
@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("grep", {"pattern": "value", "output_mode": "files_with_matches"}),
        ("glob", {"pattern": "*"}),
        ("find", {"types": "f"}),
        ("ls", {}),
        ("replace", {"old_string": "value", "new_string": "other"}),
    ],
)
def test_a_search_takes_a_list_of_paths(tools, method, arguments, name):
    result = tools.call(method, {**arguments, name: ["lib", "src"]})
    assert result.success, result.content
    assert "src/a.py" in result.content
    assert "lib/b.py" in result.content
    assert "c.md" not in result.content


def test_a_glob_takes_a_list_of_patterns(tools):
    assert tools.call("glob", {"pattern": ["*.md", "src/*"]}).content == "c.md\nsrc/a.py"


def test_the_schemas_show_one_path(tools):
    schemas = {each["name"]: each["inputSchema"]["properties"] for each in tools.schemas("mcp")}
    assert schemas["grep"]["path"]["type"] == schemas["glob"]["pattern"]["type"] == "string"


def test_c_counts_if_it_is_true_and_is_context_if_it_is_a_number(tools):
    assert tools.call("grep", {"pattern": "value", "path": "src", "-c": True}).content.startswith(
        "src/a.py: 1"
    )
    for name in ("-c", "-C", "C"):
        assert tools.call("grep", {"pattern": "value", "path": "src", name: 3}).content == "src/a.py\n1|value"
