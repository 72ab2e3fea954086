"""Modules and dialects that are imported on first use, so that a process loads only what it calls."""

from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any


def lazy_submodules(package: str) -> Callable[[str], ModuleType]:
    """Return the `__getattr__` of a package; it imports a submodule when it is first used.

    Args:
        package: The `__name__` of the package.
    """

    def __getattr__(name: str) -> ModuleType:  # noqa: N807 - a module takes it under this name
        module = f"{package}.{name}"
        try:
            return import_module(module)
        except ModuleNotFoundError as error:
            if error.name != module:
                raise
            raise AttributeError(f"module {package!r} has no attribute {name!r}") from None

    return __getattr__


_finders: list[Callable[[str], Any]] = []


def set_finder(find: Callable[[str], Any]) -> None:
    """Set the function that `find_dialect` calls."""
    _finders[:] = [find]


def find_dialect(name: str) -> Any:
    """Return the dialect of a name; raise `invalid_argument` if there is none."""
    return _finders[0](name)
