"""A policy file for an MCP client: some calls are allowed, some asked about, and some refused.

The client here is a program. Claude Code, VS Code and others start the server with the same arguments, and
ask their user the same questions.
"""

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters, types

POLICY = """
deny = ["change(*.lock)"]     # refused, whatever else says
ask = ["delete"]              # the user decides
allow = ["change(src/**)"]    # no question; the user decides about all other changes

[protect]
read = ["*.private"]          # besides the default names, such as .env
"""
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("read", {"path": "notes.private"}),
    ("edit", {"path": "uv.lock", "old_string": "1", "new_string": "2"}),
    ("edit", {"path": "src/app.py", "old_string": "1", "new_string": "2"}),
    ("edit", {"path": "README.md", "old_string": "old", "new_string": "new"}),
    ("delete", {"path": "src/app.py"}),
]


async def ask_user(context: object, params: types.ElicitRequestParams) -> types.ElicitResult:
    """Show the question, and answer like a user who lets nothing be deleted."""
    del context
    print(f"? {params.message.rstrip()}")
    accepts = "delete" not in params.message
    print("> yes" if accepts else "> no")
    return types.ElicitResult(action="accept" if accepts else "decline")


def make_project(directory: Path) -> tuple[Path, Path]:
    """Make a project, and a policy file outside it, where no tool can change it."""
    project, policy = directory / "project", directory / "policy.toml"
    (project / "src").mkdir(parents=True)
    (project / "src" / "app.py").write_text("x = 1\n")
    (project / "README.md").write_text("old text\n")
    (project / "uv.lock").write_text("version = 1\n")
    (project / "notes.private").write_text("my notes\n")
    policy.write_text(POLICY)
    return project, policy


async def main(project: Path, policy: Path) -> None:
    """Make the calls of a model, and print what it is told."""
    arguments = ["-m", "agentfs", "mcp", "--root", str(project), "--policy", str(policy)]
    server = StdioServerParameters(command=sys.executable, args=arguments)
    async with Client(server, elicitation_callback=ask_user) as client:
        for name, sent in CALLS:
            result = await client.call_tool(name, sent)
            first = result.content[0]
            told = first.text.partition("\n")[0] if isinstance(first, types.TextContent) else ""
            print(f"{name} {sent['path']}: {told}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(main(*make_project(Path(directory))))
