"""The programs that a staged command finds although they lie below directories that it has of its own.

A staged command has its own `/tmp`, `/run` and `/dev/shm`. A virtual environment in a checkout below `/tmp`
would be gone there, with its interpreter.
"""

import os
import sys
from collections.abc import Iterator

from agentfs.fs.path import is_in

PRIVATE = ("/run", "/tmp", "/dev/shm")  # noqa: S108 - a staged command has new ones
# A directory with one of these is the installation of the programs in its `bin`.
_MARKS = ("lib", "libexec", "pyvenv.cfg", "versions")


def installations(search_path: str, root: str) -> list[tuple[str, str]]:
    """Return (real path, path) of the directories to show in private ones, outer directories first.

    Args:
        search_path: The command's `PATH`.
        root: The real path of the workspace, whose own files the command sees anyway.
    """
    found: dict[str, str] = {}
    for path in {sys.prefix, sys.base_prefix, *_of_programs(search_path)}:
        real = os.path.realpath(path)
        if real != "/" and os.path.isdir(real):
            found |= {each: real for each in (path, real) if _is_hidden(each) and not is_in(each, root)}
    return sorted((real, path) for path, real in found.items() if not is_in(root, real))


def _of_programs(search_path: str) -> Iterator[str]:
    """Yield the installations of the directories of a `PATH`, and of the interpreters in them."""
    for directory in search_path.split(os.pathsep):
        if os.path.isabs(directory):
            yield _installation(directory)
            python = os.path.join(directory, "python3")
            if os.path.islink(python):  # of a virtual environment
                yield _installation(os.path.dirname(os.path.realpath(python)))


def _installation(directory: str) -> str:
    """Return the directory to show for a directory of programs: its parent, if that is their installation."""
    parent = os.path.dirname(os.path.normpath(directory))
    personal = (os.path.expanduser("~"), os.path.expanduser("~/.local"), *PRIVATE)
    marked = any(os.path.lexists(os.path.join(parent, mark)) for mark in _MARKS)
    return parent if marked and parent not in personal else os.path.normpath(directory)


def _is_hidden(path: str) -> bool:
    return any(is_in(path, private) and path != private for private in PRIVATE)
