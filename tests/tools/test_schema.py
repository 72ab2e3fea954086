import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from agentfs import Workspace
from agentfs.errors import InvalidArgumentError
from agentfs.tools.toolset import Toolset
from tests.provider_rules import CHECKERS, SCHEMA_OF, STRICT, anthropic_request
from tests.tool_samples import CLOSED, change, measure, search, settings

SNAPSHOTS = Path(__file__).parents[1] / "snapshots"
MODES = [(name, False) for name in CHECKERS] + [(name, True) for name in STRICT]


@pytest.fixture
def seven(tmp_path):
    with Workspace(tmp_path) as ws:
        yield ws.tools()


def properties(toolset, provider="openai", *, strict=False):
    return {
        (tool.get("function") or tool)["name"]: SCHEMA_OF[provider](tool)["properties"]
        for tool in toolset.schemas(provider, strict=strict)
    }


@pytest.mark.parametrize(("provider", "strict"), MODES)
def test_schemas_follow_each_providers_rules(seven, provider, strict):
    assert len(seven) == 7
    tools = [*seven.schemas(provider, strict=strict), *Toolset(CLOSED).schemas(provider, strict=strict)]
    assert [wrong for tool in tools for wrong in CHECKERS[provider](tool, strict=strict)] == []


def test_the_seven_fit_one_strict_request_to_anthropic(seven):
    assert anthropic_request(seven.schemas("anthropic", strict=True)) == []


def test_the_exact_schema_of_one_tool():
    assert Toolset([search]).schemas("openai") == [{
        "type": "function",
        "function": {
            "name": "search",
            "description": "Search the contents of files.\nA second paragraph.",
            "parameters": {
                "type": "object",
                "properties": {
                    "pattern": {"type": "string", "description": "Regular expression: `a|b`."},
                    "path": {"type": "string", "description": 'Where. Default ".".'},
                    "glob": {
                        "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
                        "description": "Only files that match",
                    },
                    "output_mode": {
                        "type": "string",
                        "enum": ["content", "files_with_matches"],
                        "description": 'What to show. Default "content".',
                    },
                    "ignore_case": {"type": "boolean", "description": "Ignore case. Default false."},
                    "limit": {
                        "type": ["integer", "null"],
                        "description": "Most matches; null: all. Default 100.",
                    },
                },
                "required": ["pattern"],
                "additionalProperties": False,
            },
        },
    }]  # fmt: skip


def test_openai_strict_makes_optional_parameters_nullable():
    shown = properties(Toolset([search, change]), strict=True)
    assert shown["search"]["pattern"]["type"] == "string"
    assert shown["search"]["path"]["type"] == ["string", "null"]
    assert shown["search"]["glob"]["anyOf"][-1] == {"type": "null"}
    assert shown["search"]["output_mode"]["anyOf"][-1] == {"type": "null"}
    assert shown["change"]["edits"]["items"]["properties"]["replace_all"]["type"] == ["boolean", "null"]


@pytest.mark.parametrize("provider", ["gemini", "mcp"])
def test_a_union_becomes_a_string_if_any_of_may_be_refused(provider):
    shown = properties(Toolset([search]), provider)["search"]["glob"]
    assert shown == {"type": "string", "description": "Only files that match"}


def test_gemini_enumerates_strings_and_describes_other_choices():
    level = properties(Toolset([measure]), "gemini")["measure"]["level"]
    assert level == {"type": "integer", "description": "How deep. One of 1, 2, 3. Default 1."}


def test_mcp_annotations_follow_from_the_effect(seven):
    hints = {tool["name"]: tool["annotations"] for tool in seven.schemas("mcp")}
    for name in ("read", "ls", "glob", "grep"):
        assert hints[name]["readOnlyHint"] is True
        assert hints[name]["openWorldHint"] is False
    # By default a tool that does not only read is destructive, not idempotent, and of an open world.
    assert hints["write"] == hints["multi_edit"] == {"readOnlyHint": False, "openWorldHint": False}
    assert Toolset([search]).schemas("mcp")[0]["annotations"] == {"readOnlyHint": False}


@pytest.mark.parametrize(("provider", "strict", "named"), [
    ("open-ai", False, "openai-responses"), ("mcp", True, "no strict mode"),
    ("gemini", True, "no strict mode"),
])  # fmt: skip
def test_an_unknown_format_is_an_error_that_lists_the_formats(provider, strict, named):
    with pytest.raises(InvalidArgumentError, match=named):
        Toolset([search]).schemas(provider, strict=strict)


@pytest.mark.parametrize("provider", STRICT)
def test_open_objects_have_no_strict_schema(provider):
    toolset = Toolset([settings])
    assert CHECKERS[provider](toolset.schemas(provider)[0], strict=False) == []
    with pytest.raises(InvalidArgumentError, match="settings has no strict schema"):
        toolset.schemas(provider, strict=True)


def test_each_schema_is_a_new_object():
    toolset = Toolset([search])
    toolset.schemas()[0]["function"]["parameters"]["properties"].clear()
    assert properties(toolset)["search"]


@pytest.mark.parametrize(("provider", "strict"), MODES)
@pytest.mark.parametrize(("arguments", "right"), [
    ({"pattern": "x"}, True), ({"pattern": 1}, False), ({"pattern": "x", "other": 1}, False),
    ({"pattern": "x", "output_mode": "all"}, False), ({"pattern": "x", "ignore_case": "true"}, False),
])  # fmt: skip
def test_a_schema_accepts_the_right_arguments_only(provider, strict, arguments, right):
    schema = SCHEMA_OF[provider](Toolset([search]).schemas(provider, strict=strict)[0])
    full = dict.fromkeys(schema["properties"]) | arguments if "openai" in provider and strict else arguments
    if provider == "anthropic" and strict:  # flags are required
        full = {"ignore_case": False, **full}
    assert Draft202012Validator(schema).is_valid(full) is right


@pytest.mark.parametrize(("provider", "strict"), MODES)
def test_the_seven_equal_the_snapshot(seven, provider, strict):
    """`scripts/snapshots.py` writes the snapshots."""
    kept = (SNAPSHOTS / snapshot(provider, strict)).read_text(encoding="utf-8")
    # The order of keys matters too, because providers cache prompts by their text.
    made = seven.schemas(provider, strict=strict)
    assert json.dumps(made, indent=2, ensure_ascii=False) + "\n" == kept


def test_each_provider_has_one_snapshot():
    assert {path.name for path in SNAPSHOTS.iterdir()} == {snapshot(*mode) for mode in MODES}


def snapshot(provider, strict):
    return f"{provider}{'-strict' if strict else ''}.json"
