"""An async tool of one's own beside the file tools: the calls of one turn run at the same time.

The tool asks a service that answers slowly. Here the service is a function; yours would use an HTTP client.
"""

import asyncio
import tempfile
from dataclasses import dataclass
from enum import StrEnum

from agentfs import Workspace
from agentfs.errors import NotFoundError
from agentfs.tools.tool import tool


class Channel(StrEnum):
    """The kind of a release."""

    STABLE = "stable"
    BETA = "beta"


@dataclass(frozen=True)
class Release:
    """A release of a package, which becomes JSON for the model."""

    package: str
    version: str


VERSIONS = {("parser", Channel.STABLE): "2.1", ("parser", Channel.BETA): "3.0b1"}


@tool(effect="none")  # changes nothing, so calls may run at the same time
async def latest_release(package: str, channel: Channel = Channel.STABLE) -> Release:
    """Look up the latest release of a package.

    Args:
        package: The name of the package.
        channel: The kind of the release.
    """
    await asyncio.sleep(0.2)  # the service is slow; other calls go on meanwhile
    if (package, channel) not in VERSIONS:
        raise NotFoundError(f"There is no {channel} release of {package}.", hint="Check its name.")
    return Release(package, VERSIONS[package, channel])


async def main() -> None:
    """Run the calls of one turn as an agent loop does."""
    with tempfile.TemporaryDirectory() as directory, Workspace(directory) as ws:
        ws.write("requirements.txt", "parser==2.0\n")
        tools = ws.tools(["read", "edit"]) + [latest_release]  # noqa: RUF005 - a toolset, not a list
        print(f"The model sees {', '.join(tools.names)}.")

        turn = [
            {"type": "tool_use", "id": "1", "name": "read", "input": {"path": "requirements.txt"}},
            {"type": "tool_use", "id": "2", "name": "latest_release", "input": {"package": "parser"}},
            {"type": "tool_use", "id": "3", "name": "latest_release", "input": {"package": "unknown"}},
        ]
        [message] = await tools.aanswer(turn)
        for block in message["content"]:
            failed = " (failed)" if block.get("is_error") else ""
            print(f"{block['tool_use_id']}{failed}: {block['content'][0]['text'].splitlines()[0]}")

        edit = {"path": "requirements.txt", "old_string": "parser==2.0", "new_string": "parser==2.1"}
        print((await tools.acall("edit", edit)).content)


if __name__ == "__main__":
    asyncio.run(main())
