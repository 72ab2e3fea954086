"""How the methods take paths: as text, or as any object that says its path."""

import os
from collections.abc import Sequence
from typing import Annotated, TypeAlias

from agentfs.tools.model_type import ShownAs

Path: TypeAlias = Annotated[str | os.PathLike[str], ShownAs(str)]
_OneOrMore: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
# A program may search several places at once; a model is told of one.
Paths: TypeAlias = Annotated[_OneOrMore, ShownAs(str)]
Files: TypeAlias = Annotated[_OneOrMore, ShownAs(str | list[str])]


def texts(path: Paths) -> str | list[str]:
    """Return one path or several as text."""
    return os.fspath(path) if isinstance(path, (str, os.PathLike)) else [os.fspath(each) for each in path]
