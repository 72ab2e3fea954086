"""The sandbox of a branch: its directory, which is kept, and the server of its tree."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from glob import glob
from typing import IO, Any

import agentfs
from agentfs.branches.inside import STATE
from agentfs.commands.apply_effects import Since
from agentfs.commands.first_process import FirstProcess
from agentfs.commands.git_settings import git_directory
from agentfs.commands.hidden_files import Sweep
from agentfs.commands.masks import Mask
from agentfs.commands.request import Surroundings, environment_of
from agentfs.commands.sandbox import Sandbox
from agentfs.commands.stage import Stage
from agentfs.commands.staged_process import inside_of
from agentfs.commands.system import contents
from agentfs.errors import BusyError, FileIOError, NotFoundError, ProtectedError
from agentfs.fs import Root, quote
from agentfs.fs.lock import open_locked
from agentfs.fs.own_directories import drop_own_file, open_own_file, put_own_file
from agentfs.history.report import name_paths

_SERVE = """
import sys
sys.path.append(sys.argv[1])
from agentfs.branches.inside import serve_branch
serve_branch(*sys.argv[2:])
"""
_END_SECONDS, _PAUSE = 5.0, 0.005  # to wait for the processes of a program that was killed
_OVERHEAD = 2**24  # bytes of the database of a journal, a file too, besides the contents
_FACTS = "facts.json"
_MOUNTED = "mounted"  # locked while processes of the sandbox live
_BUSY = "busy"  # exists while commands may run
_ERRORS = "errors"  # standard error of the sandbox


class BranchSandbox:
    """The directory of a branch and the processes in it. Thread-safe.

    Attributes:
        stage: The directories of the overlay.
        running: The commands under way.
        is_open: False after its end.
    """

    is_open = False

    def __init__(self, around: Surroundings, sandbox: Sandbox, name: str) -> None:
        """Open the directory, `name` in the place of the sandbox, or with "" a temporary one."""
        self._around = around.in_repository()
        self._sandbox = sandbox
        self._lock = threading.RLock()
        self._owner = os.getpid()
        self._facts: dict[str, Any]
        self._server: tuple[subprocess.Popen[bytes], FirstProcess] | None = None
        self.running: list[str] = []  # commands
        self.stage, self.is_open = Stage(sandbox.place, around.root.path, name), True
        if facts := contents(self.path_of(_FACTS)):
            self._facts = json.loads(facts)
            return
        self.stage.end()  # with what is left of an opening that was killed
        self.stage = Stage(sandbox.place, around.root.path, name)
        new = {"began": time.time_ns(), "position": around.journal.log.position}
        self._facts = {**new, "hidden": [], "exposed": [], "masks": {}}

    def __del__(self) -> None:
        self.end()

    def end(self, *, discard: bool = False) -> None:
        """End all processes and give up the directory, which is removed unless it is kept for later."""
        if self.is_open and os.getpid() == self._owner:
            self.is_open = False
            self._stop()
            is_kept = self.stage.is_kept and not discard
            self.stage.end(keep=is_kept and os.path.exists(self.path_of(_FACTS)))

    def path_of(self, name: str) -> str:
        """Return the path of a file in the directory."""
        return os.path.join(self.stage.path, name)

    @property
    def facts(self) -> tuple[Since, dict[str, Mask]]:
        """The first opening, and what the branch sees in place of protected files, except those of git."""
        masks = {path: Mask(*each) for path, each in self._facts["masks"].items()}
        return Since(self._facts["began"], self._facts["position"]), masks

    def start(self) -> tuple[IO[bytes], IO[bytes]]:
        """Start the server, with masks for all protected files; return its output and its input."""
        with self.stopped(), self._mounted() as lock:
            now, place = self._look(), self.stage.add_place(STATE)
            root, package = self._around.root.top, agentfs.__path__[0]
            environment = environment_of(None, is_staged=True)
            new = now._replace(hidden=now.hidden.difference(self._facts["masks"]))
            given = self._around, self._sandbox, self.stage, new, environment
            more = ["--bind", place, STATE, "--chdir", root.path, "--sync-fd", str(lock)]
            inside, made = inside_of(*given, more=more, run_paths=[package])
            masks = {path: each for path, each in made.items() if not git_directory(path)}
            self._keep_facts(hidden=[*now.hidden], masks={**self._facts["masks"], **masks})
            repositories = [each for each, names in now.names.items() if "HEAD" in names]
            protect = root.policy.protect
            settings = protect.read, protect.write, [*map(root.trees.path_on_disk, repositories)]
            server = [sys.executable, "-I", "-c", _SERVE, os.path.dirname(package), root.path]
            errors = self.path_of(_ERRORS)
            with open(errors, "wb") as written, FirstProcess(self.stage, inside) as first:
                process = subprocess.Popen(  # noqa: S603 - our own program
                    [*first.command, *server, json.dumps(settings)],
                    env=environment,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=written,
                    pass_fds=(lock, *first.passed),
                    start_new_session=True,
                )
            self._server = process, first
            first.begin(2 * self._around.limits.snapshot_bytes + _OVERHEAD, process.pid)
            if not first.number:
                reason = contents(errors).decode("utf-8", "backslashreplace").strip()
                raise FileIOError(f"The branch could not be opened: {reason}", details={"reason": reason})
            streams: tuple[Any, Any] = process.stdout, process.stdin
            return streams

    @contextmanager
    def _mounted(self) -> Generator[int]:
        """Hold the lock of the running sandbox, which those of a program that was killed may still have."""
        until = time.monotonic() + _END_SECONDS
        while (lock := open_locked(self.path_of(_MOUNTED), os.O_CREAT)) is None:
            if time.monotonic() > until:
                raise BusyError("The processes of the branch have not ended.", hint="Try again.")
            time.sleep(_PAUSE)
        try:
            yield lock
        finally:
            os.close(lock)

    @contextmanager
    def stopped(self) -> Generator[None]:
        """End all processes of the sandbox, and keep others from starting during the block."""
        with self._lock:
            self._stop()
            yield

    def _stop(self) -> None:
        if self._server is not None:
            (process, first), self._server = self._server, None
            first.end()
            process.wait()

    @contextmanager
    def command(self, text: str) -> Generator[None]:
        """Note that a command runs during the block."""
        with self._lock:
            self.running.append(text)
            os.close(open_own_file(self.path_of(_BUSY)))
        try:
            yield
        finally:
            with self._lock:
                self.running.remove(text)

    def check(self) -> bool:
        """Return True if protected files without a mask have appeared, which no command has seen.

        Raises:
            ProtectedError: A command may have seen one, and copied it.
        """
        with self._lock:
            now = self._look()
            self.check_exposed()
            return bool(now.hidden.difference(self._facts["hidden"]))

    @property
    def is_busy(self) -> bool:
        """True if commands may have run since the last check."""
        return os.path.lexists(self.path_of(_BUSY))

    def check_exposed(self) -> None:
        """Raise an error if a command may have seen a protected file."""
        if exposed := self._facts["exposed"]:
            raise ProtectedError(
                f"Protected files appeared while a command of the branch ran: {name_paths(exposed)}."
                " The branch may have a copy, so nothing of it is shown or merged.",
                hint=f"Discard it. What it has written is in {quote(self.stage.overlay.upper)} until then.",
                details={"paths": exposed},
            )

    def _look(self) -> Sweep:
        """Look for protected files; note those that a command may have seen before they had masks."""
        # Looked at first: a process that ends now may have seen what has not appeared yet.
        was_busy = self.is_busy
        is_busy = was_busy and (bool(self.running) or self._has_commands())
        now = self._around.look_for_hidden_files()
        appeared = sorted(now.hidden.difference(self._facts["hidden"]))
        if was_busy and appeared and not self._facts["exposed"]:
            self._keep_facts(exposed=appeared)
        if was_busy and not is_busy:
            drop_own_file(self.path_of(_BUSY))
        return now

    def _keep_facts(self, **changed: Any) -> None:
        self._facts |= changed
        put_own_file(self.path_of(_FACTS), json.dumps(self._facts).encode())

    def _has_commands(self) -> bool:
        """Return True if there is a process besides the server and the first one, or that is not known."""
        servers = _children(str(self._server[1].number)) if self._server else []
        return len(servers) > 1 or any(map(_children, servers))


def _children(process: str) -> list[str]:
    files = glob(f"/proc/{process}/task/*/children")
    return [each for file in files for each in contents(file).decode().split()] if files else ["unknown"]


def check_place(root: Root) -> None:
    """Raise `not_found` if the root is not at its path any more."""
    there = None
    with suppress(OSError):
        there = os.stat(root.path)
    if there is None or not os.path.samestat(there, root.trees.status("")):
        raise NotFoundError(
            f"The root was moved away from {quote(root.path)}.", hint="Open a workspace where it is now."
        )
