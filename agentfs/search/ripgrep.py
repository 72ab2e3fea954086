r"""The opt-in ripgrep engine: `rg` says which files may have a match; what is shown is read through the root.

`rg` opens paths by itself, and so loses races that the confined root does not. It only names files. Those
are opened, judged and searched as every file is, and answers are the same as without it. Nothing rests on
what it makes of encodings and line ends: where a match must contain some plain text, it is asked for that and
for what may be binary or UTF-16; else for the pattern and for every file that is no plain ASCII with `\n`.
Ignore rules are left to the walk.
"""

import os
import re
import shutil
import subprocess
import sysconfig
from functools import cache

from agentfs.errors import InvalidArgumentError
from agentfs.patterns.rust_syntax import escaped, rust_syntax
from agentfs.search.request import Request

_LEAST_VERSION = 13
_ODD = r"[\x00\r\x80-\xff]"  # no plain text, or line ends that are not `\n`
_WIDE = r"[\x00\xfe\xff]"  # what is binary, and UTF-16 and UTF-32 with a byte order mark, has one of these
_NAME = "rg.exe" if os.name == "nt" else "rg"


def find_rg() -> str:
    """Return the path of `rg`: from `AGENTFS_RG`, the `[rg]` extra, or PATH.

    Raises:
        InvalidArgumentError: There is none, or it is older than version 13 (invalid_argument).
    """
    named = os.environ.get("AGENTFS_RG")
    bundled = os.path.join(sysconfig.get_path("scripts"), _NAME)
    found = named or (bundled if os.path.isfile(bundled) else shutil.which("rg"))
    if not found:
        raise InvalidArgumentError(
            'The engine "ripgrep" needs rg, and there is none.',
            hint="Install agentfs-workspace[rg], set AGENTFS_RG to its path, or leave `engine` out.",
        )
    version = _version(found)
    if version < _LEAST_VERSION:
        raise InvalidArgumentError(
            f"{found} is no ripgrep of version {_LEAST_VERSION} or newer.",
            hint="Install a newer one, set AGENTFS_RG to its path, or leave `engine` out.",
            details={"path": found, "version": version},
        )
    return found


@cache
def _version(path: str) -> int:
    try:
        said = subprocess.run(  # noqa: S603 - the program that the user installed, and no argument of a model
            [path, "--version"], capture_output=True, timeout=5, check=False
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return 0
    found = re.match(rb"ripgrep (\d+)", said)
    return int(found[1]) if found else 0


def nominated(rg: str, root: str, paths: list[str], request: Request, seconds: float) -> set[str] | None:
    """Ask which files may have a match.

    Args:
        rg: The program.
        root: The directory to run in.
        paths: The directories to search, as the system spells them, relative to the root; "" is the root.
        request: What is searched for.
        seconds: How long it may take.

    Returns:
        The paths relative to the root, as the system spells them; None when the pattern may mean something
        else there, or `rg` failed: then Python searches all.

    Raises:
        TimeoutError: The seconds are over.
    """
    if request.multiline or request.word or request.encoding or request.follow_symlinks or request.files:
        return None
    if request.sort != "path":
        return None  # the files are then opened one by one, in another order than that of directories
    pattern = request.compiled()
    asked = rust_syntax(pattern.pattern, ignore_case=pattern.ignore_case)
    if asked is None:
        return None
    plan = pattern.plan
    odd = _ODD
    if plan.literals and min(map(len, plan.literals)) > 1:
        texts = (*map(escaped, plan.literals), *plan.case_fold_extras)
        asked, odd = ("(?i)" if pattern.ignore_case else "") + "|".join(texts), _WIDE
    options = [
        "--no-config",
        "--encoding=none",
        "--files-with-matches",
        "--null",
        "--text",
        "--no-ignore",
        "--hidden",
        "--color=never",
    ]
    if not any(".git" in path.split("/") for path in paths):
        options.append("--glob=!.git")
    command = [rg, *options, "--no-messages", "-e", asked, "-e", f"(?-u){odd}", "--"]
    try:
        run = subprocess.run(  # noqa: S603 - a list, no shell; the pattern stands behind -e, paths behind --
            [*command, *(path or "." for path in paths)],
            cwd=root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=max(seconds, 0.01),
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise TimeoutError from None
    except OSError:
        return None
    # 0: found, 1: nothing found. Anything else, and output that is cut, says that files may be missing.
    if run.returncode not in (0, 1) or (run.stdout and not run.stdout.endswith(b"\0")):
        return None
    return {os.fsdecode(name.removeprefix(b"./")) for name in run.stdout.split(b"\0") if name}
