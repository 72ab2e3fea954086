"""Dialects: the tools of other contracts over a workspace, found by name.

`ws.tools(dialect="wave")` looks here. A dialect of your own is a `Dialect` that is registered; it needs one
file, as `examples/own_dialect.py` shows.
"""

from agentfs.dialects.dialect import Dialect, find, names, register
from agentfs.dialects.rendering import (
    Problem,
    absolute_in,
    as_json,
    content_of,
    left_out,
    lines_of,
    problem_of,
)

__all__ = [
    "Dialect",
    "Problem",
    "absolute_in",
    "as_json",
    "content_of",
    "find",
    "left_out",
    "lines_of",
    "names",
    "problem_of",
    "register",
]
