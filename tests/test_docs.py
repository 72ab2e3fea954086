"""The pages are true: their examples type-check and run, and README's two lines are what CI needs."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from agentfs import Limits
from agentfs.cli.policy_file import read_policy_file
from scripts.forked_python import ForkedPython
from scripts.pages import blocks_of, sessions, with_outputs
from tests.test_public import leaves

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# Examples assert facts that their types already tell.
NOT_STRICT = '# mypy: disable-error-code="redundant-expr"'


@pytest.fixture(scope="module")
def python():
    with closing(ForkedPython()) as opened:
        yield opened


# Pages whose blocks start several processes.
SLOW = {"docs/tutorial/index.md", "docs/how-to/mcp.md", "docs/how-to/mounts.md", "docs/reference/cli.md"}


def by_tier() -> Iterator[object]:
    for pages in sessions():
        name = pages[0].relative_to(ROOT).as_posix()
        yield pytest.param(pages, id=name, marks=[pytest.mark.full] * (name in SLOW))


@pytest.mark.parametrize("pages", [*by_tier()])
def test_blocks_run_and_print_what_the_page_shows(pages, tmp_path, python):
    for page, text in with_outputs(pages, tmp_path, python).items():
        assert text == page.read_text(encoding="utf-8"), "python scripts/pages.py writes it anew"


@pytest.mark.full
def test_examples_type_check(tmp_path):
    """mypy would refuse two files of one name, which no pages have so far."""
    files = []
    for block in (block for page in PAGES for block in blocks_of(page) if block.language == "python"):
        files.append(tmp_path / (block.title or f"example_{len(files)}.py"))
        files[-1].parent.mkdir(parents=True, exist_ok=True)
        files[-1].write_text(f"# {block}\n{NOT_STRICT}\n{block.content}", encoding="utf-8")
    # With the options of the package's own check, so that each can use what the other has cached.
    command = [sys.executable, "-m", "mypy", *map(str, files)]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


# The files of docs/how-to/mcp.md, with the key that the client documents for its servers.
CLIENTS = {
    **dict.fromkeys((".mcp.json", "claude_desktop_config.json", ".cursor/mcp.json"), "mcpServers"),
    ".vscode/mcp.json": "servers", ".codex/config.toml": "mcp_servers",
}  # fmt: skip


@pytest.mark.full
async def test_the_mcp_configuration_of_each_client_starts_the_server(tmp_path):
    from mcp import Client, StdioServerParameters

    (tmp_path / "marker.txt").touch()
    commands = {}
    for block in blocks_of(ROOT / "docs" / "how-to" / "mcp.md"):
        if block.title:
            parse = json.loads if block.language == "json" else tomllib.loads
            [server] = parse(block.content)[CLIENTS[block.title]].values()
            assert server.pop("type", "stdio") == "stdio"
            root = re.compile(r"\.|/Users/you/project|\$\{workspaceFolder\}")
            args = [str(tmp_path) if root.fullmatch(each) else each for each in server.pop("args")]
            commands[block.title] = (server.pop("command"), *args)
            assert server == {}
    assert commands.keys() == CLIENTS.keys()
    for name, *args in set(commands.values()):
        command = shutil.which(name, path=os.path.dirname(sys.executable))
        async with Client(StdioServerParameters(command=command, args=args)) as client:
            listed = await client.call_tool("ls", {})
            assert listed.content[0].text.startswith("marker.txt")


def test_the_policy_file_of_the_mcp_page_is_valid(tmp_path):
    found = [block for block in blocks_of(ROOT / "docs" / "how-to" / "mcp.md") if block.language == "toml"]
    [text] = [block.content for block in found if "deny" in block.content]
    (tmp_path / "policy.toml").write_text(text)
    assert read_policy_file(str(tmp_path / "policy.toml"), Limits()).limits.read_lines == 1000


def test_the_files_that_pages_name_and_link_to_are_there():
    named = re.compile(r"\b(?:benchmarks|examples|scripts|tests)/[\w./-]*\w\.(?:py|txt|json)\b")
    found = []
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        text = page.read_text(encoding="utf-8")
        links = [each for each in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in each]
        found += [(page, ROOT / name) for name in named.findall(text)]
        found += [(page, page.parent / link) for link in links]
    assert len(found) > 150
    assert [f"{page.name}: {target}" for page, target in found if not target.exists()] == []


@pytest.mark.parametrize("heading", ["Try it", "Test it"])
def test_readme_has_one_line_to_copy(heading):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    section = readme.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    [block] = re.findall(r"^```sh\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    assert len(block.strip().splitlines()) == 1


def test_every_method_and_every_error_code_has_its_place_in_the_docs():
    from agentfs.errors import AgentFSError

    from_pages = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    for name in ("read", "write", "edit", "multi_edit", "ls", "glob", "grep"):
        assert re.search(rf"^# .*\b{name}\b", from_pages, re.MULTILINE)
    errors_page = (ROOT / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")
    assert [leaf.code for leaf in leaves(AgentFSError) if f"`{leaf.code}`" not in errors_page] == []
