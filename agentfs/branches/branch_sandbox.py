"""The sandbox of a branch: its directory, which is kept, and the server of its tree."""

import base64
import json
import os
import select
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from typing import IO, Any

import agentfs
from agentfs.branches.inside import STATE, server_settings
from agentfs.commands.hidden_files import Sweep
from agentfs.commands.masks import Mask, make_directories
from agentfs.commands.outside import outside_of
from agentfs.commands.repository import repository_of, with_git, work_tree_above
from agentfs.commands.request import Surroundings, environment_of
from agentfs.commands.sandbox import Sandbox
from agentfs.commands.stage import Overlay, Stage
from agentfs.commands.staged_process import (
    MOST_PROCESSES,
    WATCHED,
    own_directories_hidden,
    rules_on_calls,
    trees_inside,
)
from agentfs.commands.system import limit_process
from agentfs.errors import BusyError, FileIOError, NotFoundError, ProtectedError
from agentfs.fs import Root, quote
from agentfs.fs.context import file_clock
from agentfs.fs.lock import open_locked
from agentfs.fs.own_directories import OwnDirectory
from agentfs.history.report import name_paths

_SERVE = """
import sys
sys.path.append(sys.argv[1])
from agentfs.branches.inside import serve_branch
serve_branch(*sys.argv[2:])
"""
_END_SECONDS, _PAUSE = 5.0, 0.005  # to wait for the processes of a sandbox
_CLOCK_STEP = 0.0005  # seconds, less than one step of the file clock
_FACTS = "facts.json"
_MOUNTED = "mounted"  # locked while processes of the sandbox live
_BUSY = "busy"  # exists while commands may run
_ERRORS = "errors"  # standard error of the sandbox
_OF_GIT = ("HEAD", "ORIG_HEAD", "index", "packed-refs", "refs", "logs")


class BranchSandbox:
    """The directory of a branch and the processes in it. Thread-safe.

    Attributes:
        stage: The directories of the overlay.
        files: The directory.
        began: The time of the file clock at the first opening.
        position: The position of the parent's journal then.
        masks: What the branch sees in place of protected files.
        running: The commands under way.
    """

    is_open = False

    def __init__(self, around: Surroundings, sandbox: Sandbox, name: str) -> None:
        """Open the directory, `name` in the place of the sandbox, or with "" a temporary one."""
        self._repository = repository_of(around.root.path)
        self._around = around._replace(root=with_git(around.root, self._repository))
        self._sandbox = sandbox
        self._lock = threading.Lock()
        self._owner = os.getpid()
        self._process: subprocess.Popen[bytes] | None = None
        self._first, self._first_fd = 0, -1  # the first process inside, which has no parent there
        self.running: list[str] = []  # commands
        self.stage = Stage(sandbox.place, around.root.path, name)
        self.files, self.is_open = OwnDirectory(self.stage.path), True
        facts = self.read(_FACTS)
        self._is_new = facts is None
        if facts is None:
            self.stage.end(keep=False)  # of an opening that was killed
            self.stage = Stage(sandbox.place, around.root.path, name)
            self.files = OwnDirectory(self.stage.path)
            os.mkdir(self.files.path_of("state"), 0o700)
            self.began, self.position = time.time_ns(), around.journal.log.position
            self._hidden, self._exposed = Sweep(set(), {}), list[str]()
            self.masks: dict[str, Mask] = {}
            while file_clock() <= self.began:  # then every later change has a later time
                time.sleep(_CLOCK_STEP)
        else:
            known = json.loads(facts)
            self.began, self.position, self._exposed = known["began"], known["position"], known["exposed"]
            self._hidden = Sweep({*known["hidden"]}, {})
            self.masks = {path: _mask(*each) for path, each in known["masks"].items()}

    def __del__(self) -> None:
        self.end()

    def end(self, *, discard: bool = False) -> None:
        """End all processes and give up the directory, which is removed unless it is kept for later."""
        if self.is_open and os.getpid() == self._owner:
            self.is_open = False
            self._stop()
            self.stage.end(keep=self.stage.is_kept and not discard and not self._is_new)

    def read(self, name: str) -> bytes | None:
        """Return the content of a file of the directory, or None if there is none."""
        with suppress(FileNotFoundError), open(self.files.path_of(name), "rb") as file:
            return file.read()
        return None

    def start(self) -> tuple[IO[bytes], IO[bytes]]:
        """Start the server, with masks for all protected files; return its output and its input."""
        with self.unmounted() as lock, self._lock:
            root = self._around.root.top
            above = work_tree_above(root, self._repository)
            self._note_exposed(now := self._around.hidden_files.find(root, above))
            new = Sweep(now.hidden - {*self.masks}, now.names, now.above)
            del self.stage.overlays[1:]  # the same are added again
            shown, overlays, masks = trees_inside(self._around, self._repository, self.stage, new, above)
            self.masks |= masks
            if self._is_new:
                _copy_git(root, overlays, now)
            self._hidden, self._is_new = now, False
            if not self.running:
                self.files.drop(_BUSY)
            self._keep_facts()
            return self._started(shown, lock)

    def _started(self, shown: list[str], lock: int) -> tuple[IO[bytes], IO[bytes]]:
        """Start the sandbox; its first process takes over the lock."""
        root, size = self._around.root.top, self._around.limits.snapshot_bytes
        package = agentfs.__path__[0]
        run_paths = [*(os.fspath(each) for each in root.policy.run_paths), package]
        environment = environment_of(None, is_staged=True)
        view = outside_of(root.path, environment, run_paths, network=False)
        shown += own_directories_hidden(self._around, view, self._repository.top)
        shown += ["--bind", self.files.path_of("state"), STATE, "--chdir", root.path]
        report, status = os.pipe()
        blocked, block = os.pipe()
        rules, more = rules_on_calls()
        own = [*more, "--sync-fd", lock, "--json-status-fd", status, "--block-fd", blocked]
        sandbox = [self._sandbox.program, *self._sandbox.arguments(self.stage, view, size=size, shown=shown)]
        server = [sys.executable, "-I", "-c", _SERVE, os.path.dirname(package), root.path]
        server.append(server_settings(root.policy))
        with open(report, "rb") as reported, open(self.files.path_of(_ERRORS), "w+b") as errors:
            try:
                self._process = subprocess.Popen(  # noqa: S603 - our own program
                    ["/bin/sh", "-c", WATCHED, self.stage.path, *sandbox, *map(str, own), "--", *server],
                    env=environment,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    pass_fds=(lock, status, blocked, rules),
                    start_new_session=True,
                )
            finally:
                os.close(status)
                os.close(blocked)
                os.close(rules)
            line = reported.readline()
            if not line:
                reason = errors.read().decode("utf-8", "backslashreplace").strip()
                raise FileIOError(f"The branch could not be opened: {reason}", details={"reason": reason})
        self._first = json.loads(line)["child-pid"]
        self._first_fd = os.pidfd_open(self._first)
        limit_process(self._first, size, MOST_PROCESSES)
        with open(block, "wb") as begin:
            begin.write(b"x")
        streams: tuple[Any, Any] = self._process.stdout, self._process.stdin
        return streams

    def _stop(self) -> None:
        """Kill all processes of the sandbox, and wait until they are gone."""
        process, fd = self._process, self._first_fd
        self._process, self._first, self._first_fd = None, 0, -1
        if fd >= 0:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(fd, signal.SIGKILL)
            select.select([fd], [], [], _END_SECONDS)  # all others have ended before
            os.close(fd)
        if process is not None:
            process.wait()

    @contextmanager
    def unmounted(self) -> Generator[int]:
        """End all processes of the sandbox, and keep others from starting; yield the lock that does."""
        with self._lock:
            self._stop()
        until = time.monotonic() + _END_SECONDS
        # Those of a program that was killed may still be ending.
        while (lock := open_locked(self.files.path_of(_MOUNTED), os.O_CREAT)) is None:
            if time.monotonic() > until:
                raise BusyError("The processes of the branch have not ended.", hint="Try again.")
            time.sleep(_PAUSE)
        try:
            yield lock
        finally:
            os.close(lock)

    @contextmanager
    def command(self, text: str) -> Generator[None]:
        """Note that a command runs during the block."""
        with self._lock:
            self.running.append(text)
            os.close(self.files.open(_BUSY))
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
            root = self._around.root.top
            # Looked at first: a process that ends now may have seen what has not appeared yet.
            is_busy = self.is_busy and (bool(self.running) or self._has_commands())
            now = self._around.hidden_files.find(root, work_tree_above(root, self._repository))
            self._note_exposed(now)
            self.check_exposed()
            if not is_busy:
                self.files.drop(_BUSY)
            return bool(now.appeared_since(self._hidden))

    @property
    def is_busy(self) -> bool:
        """True if commands may have run since the last check."""
        return os.path.lexists(self.files.path_of(_BUSY))

    def check_exposed(self) -> None:
        """Raise an error if a command may have seen a protected file."""
        if self._exposed:
            raise ProtectedError(
                f"Protected files appeared while a command of the branch ran: {name_paths(self._exposed)}."
                " The branch may have a copy, so nothing of it is shown or merged.",
                hint=f"Discard it. What it has written is in {quote(self.stage.overlay.upper)} until then.",
                details={"paths": self._exposed},
            )

    def _note_exposed(self, now: Sweep) -> None:
        if self.is_busy and (appeared := now.appeared_since(self._hidden)) and not self._exposed:
            self._exposed = appeared
            self._keep_facts()

    def _keep_facts(self) -> None:
        facts = {
            "began": self.began,
            "position": self.position,
            "hidden": [*self._hidden.hidden, *self._hidden.above],
            "exposed": self._exposed,
            "masks": {path: _plain(mask) for path, mask in self.masks.items()},
        }
        self.files.put(_FACTS, json.dumps(facts).encode())

    def _has_commands(self) -> bool:
        """Return True if there is a process besides the server and the first one, or that is not known."""
        try:
            servers = _children(self._first)
            return len(servers) != 1 or bool(_children(servers[0]))
        except OSError:
            return True


def _children(process: int) -> list[int]:
    tasks = f"/proc/{process}/task"
    found: list[int] = []
    for task in os.listdir(tasks):
        with open(f"{tasks}/{task}/children", "rb") as file:
            found += map(int, file.read().split())
    return found


def _copy_git(root: Root, overlays: Mapping[str, Overlay], seen: Sweep) -> None:
    """Give the branch references and an index of its own in each git directory.

    Otherwise they would change under the branch when the parent commits.
    """
    made: dict[str, os.stat_result] = {}
    for directory, names in seen.names.items():
        if directory and "HEAD" in names and ("objects" in names or "commondir" in names):
            tree = root.trees.of(directory)
            below, upper = tree.below(directory), overlays[tree.path].upper
            make_directories(tree.source, upper, below, made)
            for name in set(_OF_GIT).intersection(names):
                _copy(os.path.join(tree.source, below, name), os.path.join(upper, below, name))


def check_place(root: Root) -> None:
    """Raise `not_found` if the root is not at its path any more."""
    there = None
    with suppress(OSError):
        there = os.stat(root.path)
    if there is None or not os.path.samestat(there, root.trees.status("")):
        raise NotFoundError(
            f"The root was moved away from {quote(root.path)}.", hint="Open a workspace where it is now."
        )


def _copy(source: str, target: str) -> None:
    if os.path.lexists(target):  # an index that hides the masks
        return
    with suppress(FileNotFoundError):  # git has just replaced it
        if stat.S_ISDIR(os.lstat(source).st_mode):
            shutil.copytree(source, target, symlinks=True)
        else:
            shutil.copy2(source, target, follow_symlinks=False)


def _plain(mask: Mask) -> list[Any]:
    content = base64.b64encode(mask.content).decode()
    return [list(mask.status), mask.status.st_mtime_ns, content, mask.hides, mask.is_shown]


def _mask(status: list[int], time_ns: int, content: str, hides: bool, is_shown: bool) -> Mask:
    found = os.stat_result(status, {"st_mtime_ns": time_ns})
    return Mask(found, base64.b64decode(content), hides, is_shown)
