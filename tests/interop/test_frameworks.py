"""The real frameworks and providers' packages: programs of the pages, and adapters.

The tests share a file, so that one process of pytest runs them all: its host imports each framework once.
"""

# ruff: noqa: E501 - a row of a table is one line

import base64
import json
from pathlib import Path
from typing import Annotated

import pytest

from agentfs import Toolset, Workspace
from agentfs.arguments.hints import Name
from agentfs.results import ReadResult
from scripts.pages import NO_PROGRAMS, ROOT, TUTORIAL, blocks_of, sessions
from tests.interop import calls_of_adapters, gate_in_frameworks
from tests.interop.calls_in_frameworks import CALLS, FRAMEWORKS, programs
from tests.providers.test_provider import calls, look
from tests.tool_samples import CLOSED
from tests.tools.gate_table import COLUMNS, KINDS

HERE = Path(__file__).parent
FILE = "one\ntwo\nthree\n"
LOOPS = sorted((HERE / "typed_loops").glob("*.py"))
IGNORES = ("type: ignore", "pyright:", "cast(", "Any")
PROGRAMS = {
    block.content: str(block)
    for pages in sessions()
    for page in pages
    if str(page.relative_to(ROOT)) not in NO_PROGRAMS
    for block in blocks_of(page)
    if block.language == "py" and block.content not in programs().values()
}

pytestmark = [pytest.mark.network, pytest.mark.full]


@pytest.mark.full
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_framework_shows_what_call_gives(run, tmp_path, framework):
    """Its own machinery takes the tools as they are."""
    own, its = tmp_path / "own", tmp_path / "its"
    for directory in (own, its):
        directory.mkdir()
        (directory / "a.txt").write_text(FILE)
    listed = "google_adk.txt" if framework == "google-adk" else "frameworks.txt"
    printed, answered = json.loads(run(its, HERE / "calls_in_frameworks.py", framework, requirements=listed))
    with Workspace(own) as ws:
        tools = ws.tools()
        wanted = [tools.call(name, arguments).content for name, arguments in CALLS]
    if framework == "google-genai":  # it refuses a list of records, as docs/how-to/frameworks.md says
        assert answered[5] is None
        wanted[5] = None
        assert (its / "a.txt").read_text() == FILE
    else:
        assert (its / "a.txt").read_text() == (own / "a.txt").read_text() != FILE
    assert answered == wanted
    if framework not in {"mcp", "llama-index"}:  # a server, and one whose program only makes the tools
        assert printed.startswith("It holds:")
        assert "a.txt" in printed
    assert (its / "b.txt").read_text() == "old\n"


@pytest.mark.parametrize("code", PROGRAMS, ids=PROGRAMS.values())
def test_a_program_runs(run, tmp_path, code):
    """Those of frameworks run above; README may have one that a page has too."""
    (tmp_path / "marker.txt").write_text("x")
    (tmp_path / "program.py").write_text(code)
    printed = run(tmp_path, "program.py")
    assert printed.startswith("It holds:"), printed
    assert "marker.txt" in printed


def test_the_tutorials_agent_asks_a_real_model(run, tmp_path):
    for block in blocks_of(TUTORIAL / "index.md"):
        if block.title:
            (tmp_path / block.title).parent.mkdir(exist_ok=True)
            (tmp_path / block.title).write_text(block.content)
    assert "It holds: cart.py" in run(tmp_path, "agent.py")


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.stem)
def test_a_typed_loop_needs_no_ignore_and_runs(run, tmp_path, loop):
    """test_backends.py shows that type checkers accept it."""
    assert not [each for each in IGNORES if each in loop.read_text()]
    (tmp_path / "marker.txt").write_text("x")
    printed = run(tmp_path, loop)
    assert printed.startswith("It holds:")
    assert "marker.txt" in printed


def dashed(path: Annotated[str, Name("-p")]) -> ReadResult:
    """Look.

    Args:
        path: File.
    """
    return look(path)


def test_the_providers_own_types_take_schemas_and_replies(run, tmp_path):
    with Workspace(tmp_path) as ws:
        sets = [ws.tools(), ws.tools(prefix="fs_", expose={"read": ["line_ids"]}), Toolset(CLOSED),
                Toolset([dashed])]  # fmt: skip
    schemas = {
        name: [tool for tools in sets for tool in tools.schemas(name)]
        for name in ("openai", "openai-responses", "anthropic", "mcp", "gemini")
    }
    replies = {}
    for path in ("a", "picture", 7.5):
        for name, call in calls(path).items():
            replies.setdefault(name, []).extend(Toolset([look]).answer([call]))
    sent = tmp_path / "sent.json"
    sent.write_text(json.dumps({"schemas": schemas, "replies": replies}))
    assert json.loads(run(tmp_path, HERE / "check_provider_types.py", sent)) == []


# The adapters: status, image and refusal arrive as the framework's own. tests/mcp has that of the MCP SDK.

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
# For each framework: the marks of a success, a failure and a refusal, and the text of the refusal.
MARKS = {
    "pydantic-ai": ("success", "failed", "denied", "Keep it."),
    "langchain": ("success", "error", "error", "Keep it.\nDo not try again in any way; tell the user, or go on without it."),
    # The SDK answers a refusal, without a call.
    "openai-agents": ({"success": True, "code": None}, {"success": False, "code": "not_found"}, None, "Tool execution was not approved."),
}  # fmt: skip


@pytest.fixture(scope="module", params=calls_of_adapters.FRAMEWORKS)
def adapted(run, tmp_path_factory, request):
    directory = tmp_path_factory.mktemp("adapter")
    (directory / "dot.png").write_bytes(base64.b64decode(PNG))
    return request.param, json.loads(run(directory, HERE / "calls_of_adapters.py", request.param))


@pytest.fixture(scope="session")
def tools(tmp_path_factory):
    with Workspace(tmp_path_factory.mktemp("own")) as ws:
        yield ws.tools()


def test_a_failing_call_is_a_failed_result_of_the_framework(adapted, tools):
    text = tools.call("read", {"path": "missing.txt"}).content
    framework, seen = adapted
    assert seen["answers"]["failing"] == [MARKS[framework][1], text]


def test_an_image_is_an_image_of_the_framework(adapted):
    framework, seen = adapted
    assert seen["image"] == PNG
    assert seen["answers"]["image"][0] == MARKS[framework][0]


def test_a_change_waits_for_the_frameworks_approval(adapted):
    framework, seen = adapted
    success, _, refused, text = MARKS[framework]
    assert seen["answers"]["allowed"] == [success, "Created: 1 line."]
    assert seen["answers"]["refused"] == [refused, text]
    assert seen["files"] == ["allowed.txt", "dot.png"]
    assert sorted(seen["asked"]) == ["allowed", "refused"]
    shown = (
        '"content": "new\\n"' if framework == "openai-agents" else "+++ b/refused.txt\n@@ -0,0 +1 @@\n+new"
    )
    assert shown in seen["asked"]["refused"]


def test_a_model_sees_our_schemas_and_instructions(adapted, tools):
    framework, seen = adapted
    own = {tool["name"]: tool["inputSchema"] for tool in tools.schemas("mcp")}
    if framework == "openai-agents":
        own = {tool["name"]: tool["parameters"] for tool in tools.schemas("openai-responses")}
    assert seen["schemas"] == own
    assert seen["instructions"] == tools.instructions()


@pytest.mark.parametrize("framework", gate_in_frameworks.FRAMEWORKS)
def test_each_setting_holds_for_every_kind_of_tool_through_an_adapter(run, tmp_path, framework):
    """The other ways to call are in tests/tools/test_gate_table.py."""
    cells, found = json.loads(run(tmp_path, HERE / "gate_in_frameworks.py", framework))
    assert cells == len(KINDS) * len(COLUMNS)
    assert found == {}
