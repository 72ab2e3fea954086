"""The one mark in a hint that is for models alone."""

from typing import Any, NamedTuple


class ShownAs(NamedTuple):
    """In an `Annotated` hint: what a model is told, where a program may pass more."""

    hint: Any
