"""A staged command: what its sandbox shows and hides, from its start until all its processes are gone."""

import json
import os
import select
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

from agentfs.commands.hidden_files import Sweep
from agentfs.commands.masks import Mask, put_masks
from agentfs.commands.outside import Outside, outside_of
from agentfs.commands.process import Process
from agentfs.commands.repository import Repository, work_tree_above
from agentfs.commands.request import CommandRequest, Surroundings
from agentfs.commands.sandbox import find_sandbox
from agentfs.commands.stage import Overlay, Stage, stage_places
from agentfs.commands.system import has_children, limit_process, pipe_that_stays_open
from agentfs.commands.system_calls import filter_of_calls
from agentfs.fs import Root, syscalls
from agentfs.fs.context import file_clock
from agentfs.fs.lock import lock_directories
from agentfs.fs.path import is_in
from agentfs.fs.settings_file import system_program
from agentfs.limits import Limits

# Runs the sandbox. When the process that holds the lock of the stage dies, `flock` gets the lock, and all are
# killed. Bubblewrap alone is not, if this happens while it starts.
WATCHED = """
PATH=/usr/bin:/bin flock "$0/." /bin/sh -c "kill -9 0" >&- 2>&- &
"$@"
status=$?
exec 2>&-
kill $!
wait
exit $status
"""
# Runs the command in the sandbox, and reports how many processes it leaves, to the descriptor $1.
_COUNTING = """
fd=$1; shift
exec {error}>&2 2>/dev/null
(exec {fd}>&- "$@" 2>&$error {error}>&-)
status=$?
set -- /proc/[0-9]*
echo $(($# - 2)) >&$fd
exit $status
"""
_CLOCK_STEP = 0.0005  # seconds, less than one step of the file clock
MOST_PROCESSES = 8192
_END_SECONDS = 5.0  # until the processes of a killed sandbox are gone


class StagedProcess(Process):
    """A sandbox under way."""

    def __init__(self, stage: Stage, sandbox: Sequence[str], request: CommandRequest, limits: Limits) -> None:
        """Make a sandbox, given as bubblewrap and its arguments; the command waits for `begin`."""
        self._status, status = pipe_that_stays_open()
        block, self._block = os.pipe()
        self._counted, count = pipe_that_stays_open()
        bash = system_program("bash")
        counting = [] if bash is None else [bash, "-c", _COUNTING, "bash", str(count)]
        self._report, self._first, self._first_fd = b"", 0, -1  # the first process inside
        own = ["--json-status-fd", str(status), "--block-fd", str(block)]
        rules, more = rules_on_calls()
        own += [*more, "--", *counting]
        watched = ["/bin/sh", "-c", WATCHED, stage.path, *sandbox, *own, *request.arguments]
        try:
            super().__init__(watched, request, limits, pass_fds=(status, block, count, rules))
        except BaseException:
            for fd in (self._status, self._block, self._counted):
                os.close(fd)
            raise
        finally:
            for fd in (status, block, count, rules):
                os.close(fd)

    def limit(self, most_bytes: int) -> None:
        """Wait for the sandbox, and limit what the command may use: files have at most `most_bytes`."""
        while b"\n" not in self._report and self._read_report():
            pass
        with suppress(OSError, ValueError, KeyError):  # if the sandbox cannot be made
            self._first = json.loads(self._report.split(b"\n")[0])["child-pid"]
            self._first_fd = os.pidfd_open(self._first)
            limit_process(self._first, most_bytes, MOST_PROCESSES)

    def begin(self) -> None:
        """Start the command."""
        with suppress(OSError):  # if the sandbox could not be made
            os.write(self._block, b"x")

    def _read_report(self) -> bytes:
        more = os.read(self._status, 4096)
        self._report += more
        return more

    @property
    def was_started(self) -> bool:
        """True if the command itself has ended, and not its sandbox."""
        return b"exit-code" in self._report

    def _count_left_over(self) -> int:
        os.set_blocking(self._counted, False)
        with suppress(OSError, ValueError):
            return int(os.read(self._counted, 32))
        return 0

    def _kill_escaped(self) -> None:
        """Do nothing: no process can leave the namespace of the sandbox, which ends with it."""

    def end(self) -> None:
        """Kill what is left, and wait until all processes are gone."""
        if self.is_closed:
            return
        super().end()
        while self._read_report():
            pass
        if self._first_fd >= 0 and has_children(self._first):
            select.select([self._first_fd], [], [], _END_SECONDS)
        for fd in (self._status, self._first_fd, self._block, self._counted):
            if fd >= 0:
                os.close(fd)


class Staged(NamedTuple):
    """A staged command that has begun.

    Attributes:
        process: The command.
        overlays: The overlays of the trees, by real path.
        seen: The tree as it was before.
        stage: The directories of the command.
        masks: What it sees in place of protected files.
        above: The work tree that the root is a part of, if any.
        began: A time of the file clock: every change of a file since then has a later time.
        position: The position of the journal before.
    """

    process: StagedProcess
    overlays: dict[str, Overlay]
    seen: Sweep
    stage: Stage
    masks: dict[str, Mask]
    above: Root | None
    began: int
    position: int


def rules_on_calls() -> tuple[int, list[str]]:
    """Return a descriptor of the rules on system calls, and the arguments of bubblewrap that apply them."""
    calls = filter_of_calls(os.uname().machine)
    rules, write = os.pipe()
    os.write(write, calls)
    os.close(write)
    return rules, ["--seccomp", str(rules)] if calls else []


@contextmanager
def staged_process(
    around: Surroundings, repository: Repository, request: CommandRequest, cwd: str
) -> Generator[Staged]:
    """Begin a staged command, and remove its stage after the block, which waits for it and ends it.

    Args:
        around: The workspace.
        repository: The repository of its root.
        request: The command.
        cwd: The directory in which it starts.
    """
    began, position = time.time_ns(), around.journal.log.position
    root, size = around.root.top, around.limits.snapshot_bytes
    sandbox = find_sandbox(stage_places(repository.top))
    above = work_tree_above(root, repository)
    seen = around.hidden_files.find(root, above)
    with Stage(sandbox.place, root.path) as stage:
        more = [os.fspath(each) for each in root.policy.run_paths]
        view = outside_of(root.path, request.environment, more, network=request.network)
        shown, overlays, masks = trees_inside(around, repository, stage, seen, above)
        shown += [*own_directories_hidden(around, view, repository.top), "--chdir", cwd]
        arguments = sandbox.arguments(stage, view, size=size, shown=shown)
        process = StagedProcess(stage, [sandbox.program, *arguments], request, around.limits)
        try:
            process.limit(size)
            while file_clock() <= began:  # then every later change has a later time
                time.sleep(_CLOCK_STEP)
            process.begin()
            yield Staged(process, overlays, seen, stage, masks, above, began, position)
        finally:
            process.end()


def own_directories_hidden(around: Surroundings, view: Outside, top: str) -> list[str]:
    """Return the arguments that hide directories of agentfs itself, in the view and in `top`."""
    own = [os.path.realpath(each) for each in (*around.private, *lock_directories(os.geteuid()))]
    seen = [path for path in own if view.shows(path) or (is_in(path, top) and top != around.root.path)]
    return [each for path in seen if os.path.isdir(path) for each in ("--tmpfs", path)]


def trees_inside(
    around: Surroundings, repository: Repository, stage: Stage, seen: Sweep, above: Root | None
) -> tuple[list[str], dict[str, Overlay], dict[str, Mask]]:
    """Return the arguments that show all trees, their overlays by real path, and the masks of `seen`."""
    root = around.root.top
    shown, overlays = _overlays_of(stage, root)
    beside = [each for each in seen.above if not (is_in(each, root.path) or is_in(each, repository.git))]
    masks = put_masks(root, overlays, seen.hidden, repository, beside)
    if above is not None:
        overlay = stage.add_overlay(above.path, is_read_only=True)
        put_masks(above, {"": overlay}, (os.path.relpath(each, above.path) for each in beside))
        # The root is a file system of its own below the top of the repository.
        across = ["--setenv", "GIT_DISCOVERY_ACROSS_FILESYSTEM", "1"]
        shown = [*overlay.arguments(above.path), *shown, *across]
    return [*shown, *_mounts_inside(root)], overlays, masks


def _overlays_of(stage: Stage, root: Root) -> tuple[list[str], dict[str, Overlay]]:
    """Return the arguments that show the other trees, and the overlays of all trees by real path."""
    found = stage.overlay.arguments(root.path)
    overlays = {"": stage.overlay}
    for tree in root.trees.others.values():
        overlay = overlays[tree.path] = stage.add_overlay(tree.source, is_read_only=tree.is_read_only)
        found += overlay.arguments(os.path.join(root.path, tree.path) if tree.mount else tree.source)
    return found, overlays


def _mounts_inside(root: Root) -> list[str]:
    """Return the arguments that show what is mounted in the tree, read-only."""
    inside = [each.point for each in syscalls.mount_table() if each.point.startswith(f"{root.path}/")]
    return [each for point in inside for each in ("--ro-bind", point, point)]
