"""Where dialects are found by name; those of the package are imported when they are first asked for."""

from importlib import import_module

from agentfs.dialects.dialect import Dialect
from agentfs.errors import InvalidArgumentError
from agentfs.tools.aliases import nearest

# The module of each; it has the dialect as `DIALECT`.
_MODULES = {
    "wave": "agentfs.dialects.wave",
    "text-editor": "agentfs.dialects.text_editor",
    "apply-patch": "agentfs.dialects.apply_patch",
    "rye": "agentfs.dialects.rye",
    "dominds": "agentfs.dialects.dominds",
    "tree-sitter-analyzer": "agentfs.dialects.tree_sitter_analyzer",
    "codescout": "agentfs.dialects.codescout",
}
_own: dict[str, Dialect] = {}


def register(dialect: Dialect) -> Dialect:
    """Make a dialect known by its name.

    Args:
        dialect: The dialect; registering the same one again changes nothing.

    Returns:
        The dialect.

    Raises:
        InvalidArgumentError: Another one has that name (`invalid_argument`).
    """
    name = dialect.name
    if _own.get(name, dialect) is not dialect or name in _MODULES or name == "agentfs":
        raise InvalidArgumentError(f"There is another dialect named {name!r}.", hint="Choose another name.")
    _own[name] = dialect
    return dialect


def names() -> tuple[str, ...]:
    """Return the names of all dialects but `agentfs` itself: those of the package, then those registered."""
    return (*_MODULES, *_own)


def find(name: str) -> Dialect:
    """Return a dialect.

    Args:
        name: Its name.

    Raises:
        InvalidArgumentError: There is none of that name; the nearest is named (`invalid_argument`).
    """
    if name in _own:
        return _own[name]
    if name in _MODULES:
        dialect: Dialect = import_module(_MODULES[name]).DIALECT
        return dialect
    known = ("agentfs", *names())
    near = nearest(str(name).lower(), known)
    meant = f" Did you mean {near!r}?" if near else ""
    raise InvalidArgumentError(
        f"There is no dialect {name!r}.{meant}",
        hint=f"The dialects are {', '.join(known)}; `agentfs.dialects.register` adds one.",
        details={"dialect": name, "dialects": list(known), "nearest": near},
    )
