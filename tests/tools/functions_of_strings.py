"""Functions whose hints are all strings, some of them of names that only a type checker imports."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

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
