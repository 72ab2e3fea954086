"""The mark in a type hint that is for models alone."""

from typing import Any, NamedTuple


class ModelType(NamedTuple):
    """In an `Annotated` hint: the type that a model sees, where a program may pass more."""

    hint: Any
