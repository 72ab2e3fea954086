"""The adapters with the real packages: status, image and refusal arrive as the framework's own."""

import base64

import pytest

from agentfs import Workspace
from tests.interop.calls_of_adapters import FRAMEWORKS
from tests.interop.test_frameworks import python_of, run

pytestmark = pytest.mark.network
__all__ = ["python_of"]  # a fixture

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
NO_ADVICE = "\nDo not try again in any way; tell the user, or go on without it."
# For each framework: the marks of a success, a failure and a refusal, and the text of the refusal.
MARKS = {
    "pydantic-ai": ("success", "failed", "denied", "Keep it."),
    "langchain": ("success", "error", "error", f"Keep it.{NO_ADVICE}"),
    "openai-agents": (
        {"success": True, "code": None},
        {"success": False, "code": "not_found"},
        None,  # the SDK answers, without a call
        "Tool execution was not approved.",
    ),
    "mcp": (False, True, True, f"The user did not allow this call.{NO_ADVICE}"),
}


@pytest.fixture(scope="session")
def found(python_of, tmp_path_factory):
    """The answers that each framework received, from one process."""
    directory = tmp_path_factory.mktemp("adapters")
    for name in FRAMEWORKS:
        (directory / name).mkdir()
        (directory / name / "dot.png").write_bytes(base64.b64decode(PNG))
    return run(python_of("frameworks.txt"), "calls_of_adapters.py", str(directory))


@pytest.fixture(scope="session")
def tools(tmp_path_factory):
    with Workspace(tmp_path_factory.mktemp("own")) as ws:
        yield ws.tools()


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_failing_call_is_a_failed_result_of_the_framework(found, tools, framework):
    text = tools.call("read", {"path": "missing.txt"}).content
    assert found[framework]["answers"]["failing"] == [MARKS[framework][1], text]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_an_image_is_an_image_of_the_framework(found, framework):
    assert found[framework]["image"] == PNG
    assert found[framework]["answers"]["image"][0] == MARKS[framework][0]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_change_waits_for_the_frameworks_approval(found, framework):
    success, _, refused, text = MARKS[framework]
    seen = found[framework]
    assert seen["answers"]["allowed"] == [success, "Created: 1 line."]
    assert seen["answers"]["refused"] == [refused, text]
    assert seen["files"] == ["allowed.txt", "dot.png"]
    assert sorted(seen["asked"]) == ["allowed", "refused"]
    shown = (
        '"content": "new\\n"' if framework == "openai-agents" else "+++ b/refused.txt\n@@ -0,0 +1 @@\n+new"
    )
    assert shown in seen["asked"]["refused"]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_model_sees_our_schemas_and_instructions(found, tools, framework):
    own = {tool["name"]: tool["inputSchema"] for tool in tools.schemas("mcp")}
    if framework == "openai-agents":
        own = {tool["name"]: tool["parameters"] for tool in tools.schemas("openai-responses")}
    assert found[framework]["schemas"] == own
    assert found[framework]["instructions"] == tools.instructions()
