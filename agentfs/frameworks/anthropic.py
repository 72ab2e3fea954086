"""Anthropic: a memory for the tool runner of its SDK."""

from typing import Any

from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError

from agentfs.dialects.memory import NAME
from agentfs.frameworks.versions import warn_if_newer
from agentfs.results import ToolResult
from agentfs.workspace import Workspace

warn_if_newer("anthropic", "2")


class AgentfsMemoryTool(BetaAbstractMemoryTool):
    """The dialect `memory` for `client.beta.messages.tool_runner(tools=[...])`.

    Its directory is `memories` of a workspace, whose rules hold. Several agents may use one directory, each
    with a workspace of its own. A failed command is a result with `is_error`.
    """

    def __init__(self, workspace: Workspace, **options: Any) -> None:
        """Use a workspace.

        Args:
            workspace: The workspace.
            **options: The options of `BetaAbstractMemoryTool`, such as `cache_control`.
        """
        super().__init__(**options)
        self._toolset = workspace.tools(dialect="memory")

    def call(self, input: Any) -> str:  # noqa: A002 - the SDK's name
        """Run a command as a model sent it, and return its answer.

        Args:
            input: The command.

        Raises:
            ToolError: It failed.
        """
        return _answer(self._toolset.call(NAME, input))

    def view(self, command: Any) -> str:
        """Run a command of one of the SDK's types; the other methods do the same.

        Args:
            command: The command.

        Raises:
            ToolError: It failed.
        """
        return self.call(command.to_dict())

    create = str_replace = insert = delete = rename = view


class AgentfsAsyncMemoryTool(BetaAsyncAbstractMemoryTool):
    """The same for the asynchronous client; commands run off the event loop."""

    def __init__(self, workspace: Workspace, **options: Any) -> None:
        """Use a workspace.

        Args:
            workspace: The workspace.
            **options: The options of `BetaAsyncAbstractMemoryTool`, such as `cache_control`.
        """
        super().__init__(**options)
        self._toolset = workspace.tools(dialect="memory")

    async def call(self, input: Any) -> str:  # noqa: A002 - the SDK's name
        """Run a command as a model sent it, and return its answer.

        Args:
            input: The command.

        Raises:
            ToolError: It failed.
        """
        return _answer(await self._toolset.acall(NAME, input))

    async def view(self, command: Any) -> str:
        """Run a command of one of the SDK's types; the other methods do the same.

        Args:
            command: The command.

        Raises:
            ToolError: It failed.
        """
        return await self.call(command.to_dict())

    create = str_replace = insert = delete = rename = view


def _answer(result: ToolResult) -> str:
    if not result.success:
        raise ToolError(result.content_with_notes)
    return result.content_with_notes
