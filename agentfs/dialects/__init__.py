"""Dialects: the tools of other contracts over a workspace, found by name.

`ws.tools(dialect="wave")` looks here. A dialect of your own is a `Dialect` that is registered; it needs one
file, as `examples/own_dialect.py` shows. `agentfs.dialects.toolkit` has what dialects are made of.
"""

from importlib import import_module

from agentfs.dialects.toolkit import Dialect, nearest
from agentfs.errors import InvalidArgumentError

__all__ = ["BUILT_IN", "Dialect", "find", "names", "register"]

# The dialects of the package; the module of each (its name with `_` for `-`) defines `DIALECT`.
BUILT_IN = (*("wave", "text-editor", "apply-patch", "rye", "dominds"), *("tree-sitter-analyzer", "codescout"))
_registered: dict[str, "Dialect"] = {}


def register(dialect: Dialect) -> Dialect:
    """Make a dialect known by its name, and return it; registering the same one again changes nothing.

    Raises:
        InvalidArgumentError: Another one has that name (`invalid_argument`).
    """
    name = dialect.name
    if _registered.get(name, dialect) is not dialect or name in (*BUILT_IN, "agentfs"):
        raise InvalidArgumentError(f"There is another dialect named {name!r}.", hint="Choose another name.")
    _registered[name] = dialect
    return dialect


def names() -> tuple[str, ...]:
    """Return the names of all dialects but `agentfs` itself: those of the package, then those registered."""
    return (*BUILT_IN, *_registered)


def find(name: str) -> Dialect:
    """Return the dialect of a name.

    Raises:
        InvalidArgumentError: There is none of that name; the nearest is named (`invalid_argument`).
    """
    if name in _registered:
        return _registered[name]
    if name in BUILT_IN:
        dialect: Dialect = import_module(f"agentfs.dialects.{name.replace('-', '_')}").DIALECT
        return dialect
    known = ("agentfs", *names())
    near = nearest(str(name).lower(), known)
    meant = f" Did you mean {near!r}?" if near else ""
    raise InvalidArgumentError(
        f"There is no dialect {name!r}.{meant}",
        hint=f"The dialects are {', '.join(known)}; `agentfs.dialects.register` adds one.",
        details={"dialect": name, "dialects": list(known), "nearest": near},
    )
