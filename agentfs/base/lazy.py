"""Modules and dialects that are imported on first use, so that a process loads only what it calls."""
# ruff: noqa: PLC0414 - the alias of an import marks it as public

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

_modules: list[str] = []
_ELSEWHERE = ("regex", "pypdf", "PIL.Image")  # imported by the modules that need them


class _LazyModule:
    """A module that is imported when one of its names is first used.

    Each name is looked up once, as with `from module import name`.
    """

    def __init__(self, module: str) -> None:
        self._module = module
        _modules.append(module)

    def __getattr__(self, name: str) -> Any:
        value = getattr(import_module(self._module), name)
        setattr(self, name, value)
        return value


if TYPE_CHECKING:
    import asyncio as asyncio
    import base64 as base64
    import ctypes as ctypes
    import difflib as difflib
    import hashlib as hashlib
    import html as html
    import logging as logging
    import shutil as shutil
    import signal as signal
    import sqlite3 as sqlite3
    import subprocess as subprocess
    import tomllib as tomllib
    from concurrent import futures as futures
    from importlib import resources as resources

    import bracex as bracex
    from pathspec.patterns.gitignore import spec as spec
    from wcmatch import glob as glob
else:
    # Their imports take long, and many processes never use them. Some Pythons lack sqlite3.
    _MODULES = """
        asyncio base64 bracex concurrent.futures ctypes difflib hashlib html importlib.resources logging
        pathspec.patterns.gitignore.spec shutil signal sqlite3 subprocess tomllib wcmatch.glob
    """
    globals().update({each.rpartition(".")[2]: _LazyModule(each) for each in _MODULES.split()})


def import_before_writes(root: str) -> None:
    """Import all modules of first use now if Python looks for them in a tree, where a model may write them.

    The directory of a program is the first in `sys.path`, and often the root.
    """
    places = {os.path.realpath(place) for place in sys.path}
    if any(f"{place}/".startswith(f"{root.rstrip('/')}/") and "-packages" not in place for place in places):
        for module in (*_modules, *_ELSEWHERE):
            with suppress(ImportError):  # it is reported on first use
                import_module(module)


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


# Packages that are above workspaces, by name, and the function that imports each; set by `agentfs/__init__`.
above: dict[str, Callable[[], Any]] = {}
