"""Real frameworks take the tools as they are: their own machinery calls them, and shows what `call` gives.

The packages are fetched once, by uv, into environments of their own in pytest's cache.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentfs import Toolset, Workspace
from agentfs.results import Image, ReadResult
from agentfs.tools.spec import ToolSpec
from tests.interop.calls_in_frameworks import CALLS, FRAMEWORKS
from tests.interop.stand_in import serve
from tests.tool_samples import CLOSED

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
ENVIRONMENTS = dict.fromkeys(FRAMEWORKS, "frameworks.txt") | {"google-adk": "google_adk.txt"}
FILE = "one\ntwo\nthree\n"

pytestmark = pytest.mark.network


@pytest.fixture(scope="session")
def python_of(request):
    """Returns a function from a list of requirements to the interpreter of an environment that has them."""

    def interpreter(requirements):
        listed = HERE / requirements
        key = hashlib.sha256(listed.read_bytes() + sys.version.encode()).hexdigest()[:12]
        place = request.config.cache.mkdir(f"{listed.stem}-{key}")
        python = place / "bin" / "python"
        uv = [sys.executable, "-m", "uv"]
        with open(place.with_suffix(".lock"), "w") as lock:  # several processes of pytest may want it
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (place / "complete").exists():
                subprocess.run(
                    [*uv, "venv", "-q", "--clear", "--python", sys.executable, place], check=True, timeout=60
                )
                install = [*uv, "pip", "install", "-q", "--python", python, "-r", listed]
                subprocess.run(install, check=True, timeout=600)
                (place / "complete").touch()
        return str(python)

    return interpreter


@contextlib.contextmanager
def stand_ins():
    """Serve the stand-ins of the APIs; yields an environment in which the providers' packages find them."""
    server = serve()
    address = f"http://127.0.0.1:{server.server_address[1]}"
    keys = dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"), "none")
    yield {
        **os.environ, **keys, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore", "NO_PROXY": "127.0.0.1",
        "OPENAI_BASE_URL": f"{address}/v1", "ANTHROPIC_BASE_URL": address, "GOOGLE_GEMINI_BASE_URL": address,
        "OPENAI_AGENTS_DISABLE_TRACING": "1",
    }  # fmt: skip
    server.shutdown()
    server.server_close()


def run(python, script, *arguments, stdin=None):
    with stand_ins() as environment:
        done = subprocess.run(
            [python, str(HERE / script), *arguments],
            input=stdin, capture_output=True, text=True, check=False, timeout=300, env=environment,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="session")
def answers(python_of, tmp_path_factory):
    """The answers that each framework got, from one run in each environment."""
    directory = tmp_path_factory.mktemp("frameworks")
    for name in FRAMEWORKS:
        (directory / name).mkdir()
        (directory / name / "a.txt").write_text(FILE)
    found = {}
    for requirements in sorted(set(ENVIRONMENTS.values())):
        names = [name for name, needed in ENVIRONMENTS.items() if needed == requirements]
        found |= run(python_of(requirements), "calls_in_frameworks.py", str(directory), *names)
    return found, directory


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_framework_shows_what_call_gives(answers, framework, tmp_path):
    found, directory = answers
    (tmp_path / "a.txt").write_text(FILE)
    with Workspace(tmp_path) as ws:
        tools = ws.tools()
        wanted = [tools.call(name, arguments).content for name, arguments in CALLS]
    if framework == "google-genai":  # it refuses a list of records, as docs/how-to/frameworks.md says
        assert found[framework][1][5] is None
        wanted[5] = None
        assert (directory / framework / "a.txt").read_text() == FILE
    else:
        assert (directory / framework / "a.txt").read_text() == (tmp_path / "a.txt").read_text() != FILE
    printed, answered = found[framework]
    assert answered == wanted
    if framework not in {"mcp", "llama-index"}:  # a server, and one whose program only makes the tools
        assert printed.startswith("It holds:")
        assert "a.txt" in printed
    assert (directory / framework / "b.txt").read_text() == "old\n"


def look(path: str) -> ReadResult:
    """Look.

    Args:
        path: File.
    """
    images = (Image("QQ==", "image/png"),) if path == "picture" else ()
    return ReadResult(path, "text", "", 0, 0, 0, 0, "x", images=images, text="seen")


def test_the_providers_own_types_take_schemas_and_replies(python_of, tmp_path):
    with Workspace(tmp_path) as ws:
        sets = [ws.tools(), ws.tools(prefix="fs_", expose={"read": ["line_ids"]}), Toolset(CLOSED),
                Toolset([ToolSpec(look, parameters={"path": "-p"})])]  # fmt: skip
    schemas = {
        name: [tool for tools in sets for tool in tools.schemas(name)]
        for name in ("openai", "openai-responses", "anthropic", "mcp", "gemini")
    }
    replies = {}
    for path in ("a", "picture", 7.5):
        text = json.dumps({"path": path})
        for name, call in (
            ("openai", {"id": "1", "type": "function", "function": {"name": "look", "arguments": text}}),
            (
                "openai-responses",
                {"type": "function_call", "call_id": "1", "name": "look", "arguments": text},
            ),
            ("anthropic", {"type": "tool_use", "id": "1", "name": "look", "input": {"path": path}}),
            ("mcp", {"name": "look", "arguments": {"path": path}}),
            ("gemini", {"name": "look", "args": {"path": path}}),
        ):
            replies.setdefault(name, []).extend(Toolset([look]).run([call]))
    sent = json.dumps({"schemas": schemas, "replies": replies})
    assert run(python_of("frameworks.txt"), "check_provider_types.py", stdin=sent) == []
