"""The registry of dialects, which offer a workspace's methods as the tools of another product.

`ws.tools(dialect="wave")` looks a dialect up here, and `register` adds one. `examples/own_dialect.py` shows
how to write one.
"""

from importlib import import_module

from agentfs.dialects.toolkit import Dialect, nearest
from agentfs.errors import InvalidArgumentError

__all__ = ["BUILT_IN", "Dialect", "find", "names", "register"]

# By name, the module of each and its constant.
BUILT_IN = {
    "wave": "wave.DIALECT",
    "text-editor": "anthropic_files.TEXT_EDITOR",
    "apply-patch": "apply_patch.DIALECT",
    "memory": "anthropic_files.MEMORY",
    "rye": "rye.DIALECT",
    "dominds": "dominds.DIALECT",
    "tree-sitter-analyzer": "tree_sitter_analyzer.DIALECT",
    "codescout": "codescout.DIALECT",
}
_registered: dict[str, "Dialect"] = {}


def register(dialect: Dialect) -> Dialect:
    """Make a dialect available to `Workspace.tools` by its name.

    Registering the same dialect again changes nothing.

    Args:
        dialect: The dialect.

    Returns:
        The dialect.

    Raises:
        InvalidArgumentError: Another dialect has this name (`invalid_argument`).
    """
    name = dialect.name
    if _registered.get(name, dialect) is not dialect or name in (*BUILT_IN, "agentfs"):
        raise InvalidArgumentError(f"There is another dialect named {name!r}.", hint="Choose another name.")
    _registered[name] = dialect
    return dialect


def names() -> tuple[str, ...]:
    """Return the names of all dialects except `agentfs`: the built-in ones, then the registered ones."""
    return (*BUILT_IN, *_registered)


def find(name: str) -> Dialect:
    """Return the dialect with a name.

    Args:
        name: The name, such as "wave".

    Returns:
        The dialect.

    Raises:
        InvalidArgumentError: No dialect has this name (`invalid_argument`); the error names the nearest.
    """
    if name in _registered:
        return _registered[name]
    if name in BUILT_IN:
        module, constant = BUILT_IN[name].split(".")
        dialect: Dialect = getattr(import_module(f"agentfs.dialects.{module}"), constant)
        return dialect
    known = ("agentfs", *names())
    near = nearest(str(name).lower(), known)
    meant = f" Did you mean {near!r}?" if near else ""
    raise InvalidArgumentError(
        f"There is no dialect {name!r}.{meant}",
        hint=f"The dialects are {', '.join(known)}; `agentfs.dialects.register` adds one.",
        details={"dialect": name, "dialects": list(known), "nearest": near},
    )
