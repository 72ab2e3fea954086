"""A plugin whose hints are all strings, some of them of names that only a type checker imports."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from agentfs import Workspace
from agentfs.tools.tool import tool

if TYPE_CHECKING:
    from agentfs.results import GrepResult


class Order(Enum):
    UP = "up"
    DOWN = "down"


@dataclass
class Style:
    """A style.

    Attributes:
        order: The order.
    """

    order: Order = Order.UP


class Outline:
    """A mixin with a tool of its own."""

    @tool(effect="read", default=True)
    def outline(self: Workspace, path: str, style: Style | None = None) -> list[str]:
        """Show the headings of a file.

        Args:
            path: File.
            style: How to show them.
        """
        found = [line for line in self.read(path).content.splitlines() if line.startswith("#")]
        return sorted(found, reverse=style is not None and style.order is Order.DOWN)


class OutlineWorkspace(Outline, Workspace):
    """A workspace that counts its searches."""

    searches = 0

    def grep(self, *args, **kwargs) -> GrepResult:
        self.searches += 1
        return super().grep(*args, **kwargs)

    def read(self, path: str, offset: int = 1) -> object:
        return super().read(path, offset)


async def shout(text: str, style: Style) -> GrepResult:
    """Shout.

    Args:
        text: The text.
        style: The style.
    """
    return f"{text.upper()} {style.order}"


def lost(text: GrepResult) -> str:
    """Lose.

    Args:
        text: The text.
    """
    return str(text)
