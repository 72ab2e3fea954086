"""Refuse the name of a new file that a model gives by mistake, and name the path that was meant."""

import json
import re

from agentfs.base import call_context
from agentfs.base.advice import Advice, Retry, call
from agentfs.errors import InvalidPathError
from agentfs.fs import Root, quote

_AROUND = re.compile(r"""\A(?:file://|~(?=/)|[A-Za-z]:(?=[\\/]))""")
_QUOTED = re.compile(r"""\A(["'`])(.+)\1\Z""", re.DOTALL)
# `\xe9` stands for a byte of a name that is not UTF-8.
_BACKSLASH = re.compile(r"\\(?!x[89a-f][0-9a-f])")


def check_new_name(root: Root, path: str, parameter: str = "path") -> None:
    """Raise `invalid_path` if a model names a new file by what looks like a mistake."""
    if not call_context.is_models_call() or (meant := _meant(path)) in {path, ""}:
        return
    meant = meant.removeprefix(f"{root.path}/").lstrip("/")
    # Only what was read may be replaced.
    there = root.entry(meant) if root.exists(meant) else None
    following = call("ls" if there.is_dir else "read", path=meant) if there else Retry({parameter: meant})
    raise InvalidPathError(
        f"{quote(path)} does not look like the name of a file, so none was created.",
        hint=Advice("If this file is meant, ", following, "."),
        details={"path": path, "meant": meant},
    )


def _meant(path: str) -> str:
    """Return a path without a line end, quotes, a list, a scheme, a drive, `~` and backslashes."""
    before = ""
    while before != path:
        before, path = path, path.strip()
        if path.startswith("["):
            try:
                names = json.loads(path)
            except ValueError:
                names = None
            path = names[0] if isinstance(names, list) and names and isinstance(names[0], str) else path
        path = _QUOTED.sub(r"\2", path)
    return _BACKSLASH.sub("/", _AROUND.sub("", path))
