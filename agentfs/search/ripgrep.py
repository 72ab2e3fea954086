r"""The opt-in ripgrep engine: `rg` says which files may have a match; results come from the confined root.

`rg` opens paths by itself, and so loses races that the confined root does not. It only names files, which are
then opened, classified and searched as every file is, so that results are the same without it. They do not
depend on its encodings and line ends: where a match must contain some plain text, it searches for that and
for what may be binary or UTF-16; else for the pattern and for every file that is not plain ASCII with `\n`.
Ignore rules are left to the walk.
"""

import os
import re
import shutil
import subprocess
import sysconfig
from functools import cache

from agentfs.errors import InvalidArgumentError
from agentfs.patterns.compile import Pattern
from agentfs.patterns.rust_syntax import escaped, rust_syntax
from agentfs.search.options import GrepOptions

_LEAST_VERSION = 13
_UNUSUAL = r"[\x00\r\x80-\xff]"  # no plain text, or line ends that are not `\n`
_WIDE = r"[\x00\xfe\xff]"  # what is binary, and UTF-16 and UTF-32 with a byte order mark, has one of these
_ARGUMENTS = (
    *("--no-config", "--encoding=none", "--files-with-matches", "--null", "--text"),
    *("--no-ignore", "--hidden", "--color=never", "--no-messages"),
)
_NAME = "rg.exe" if os.name == "nt" else "rg"


def find_rg() -> str:
    """Return the path of `rg`, at least version 13: from `AGENTFS_RG`, the `[rg]` extra, or PATH."""
    named = os.environ.get("AGENTFS_RG")
    bundled = os.path.join(sysconfig.get_path("scripts"), _NAME)
    found = named or (bundled if os.path.isfile(bundled) else shutil.which("rg"))
    if not found:
        raise InvalidArgumentError(
            'The engine "ripgrep" needs rg, and there is none.',
            hint="Install ripgrep, set AGENTFS_RG to its path, or leave `engine` out.",
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


def candidates(
    rg: str, root: str, paths: list[str], options: GrepOptions, pattern: Pattern, seconds: float
) -> set[str] | None:
    """Ask which files below some real paths may have a match; return their real paths.

    None where the pattern may mean something else to `rg`, or it failed: then Python searches all files.
    Raises TimeoutError when the seconds are over.
    """
    if options.multiline or options.encoding or options.follow_symlinks or options.files:
        return None
    expression = rust_syntax(pattern.syntax, ignore_case=pattern.ignore_case)
    # In another order than that of paths, files are opened one by one and not directory by directory.
    if expression is None or options.sort != "path":
        return None
    plan = pattern.plan
    unusual = _UNUSUAL
    if plan.literals and min(map(len, plan.literals)) > 1:
        texts = (*map(escaped, plan.literals), *plan.case_fold_extras)
        expression = ("(?i)" if pattern.ignore_case else "") + "|".join(texts)
        unusual = _WIDE
    arguments = [*_ARGUMENTS, "-e", expression, "-e", f"(?-u){unusual}"]
    if not any(".git" in path.split("/") for path in paths):
        arguments.append("--glob=!.git")
    try:
        run = subprocess.run(  # noqa: S603 - a list, no shell; the pattern follows -e, paths follow --
            [rg, *arguments, "--", *(path or "." for path in paths)],
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
