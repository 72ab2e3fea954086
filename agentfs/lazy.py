"""Names and dialects whose modules are imported on first use, so that a process loads only what it calls."""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazy_names(package: str, names: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package.

    Args:
        package: The `__name__` of the package.
        names: The names to import, by the module that defines them.
    """
    module_of = {name: module for module, defined in names.items() for name in defined}

    def __getattr__(name: str) -> Any:  # noqa: N807 - a module takes it under this name
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(module_of[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return __getattr__


_finders: list[Callable[[str], Any]] = []


def set_finder(find: Callable[[str], Any]) -> None:
    """Look dialects up with a function that takes their name."""
    _finders[:] = [find]


def find_dialect(name: str) -> Any:
    """Return the dialect of a name; raise `invalid_argument` if there is none."""
    return _finders[0](name)
