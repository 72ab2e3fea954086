"""A staged command: what its sandbox shows and hides, from its start until all its processes are gone."""

import os
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager

from agentfs.commands.apply_effects import Since
from agentfs.commands.first_process import FirstProcess
from agentfs.commands.git_settings import has_settings, shown_settings
from agentfs.commands.hidden_files import Sweep
from agentfs.commands.masks import Mask, Masks
from agentfs.commands.outside import outside_of
from agentfs.commands.process import Process
from agentfs.commands.repository import Repository
from agentfs.commands.request import CommandRequest, Surroundings
from agentfs.commands.sandbox import Sandbox, find_sandbox
from agentfs.commands.stage import Stage, stage_places
from agentfs.commands.system import contents
from agentfs.fs import syscalls
from agentfs.fs.lock import lock_directories
from agentfs.fs.path import is_in
from agentfs.fs.settings_file import system_program
from agentfs.limits import Limits

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


class StagedProcess(Process):
    """A staged command under way.

    Attributes:
        stage: Its directories.
        masks: The files in place of protected ones, by real path.
        seen: The tree as it was before.
        since: When the command began.
    """

    masks: dict[str, Mask]
    seen: Sweep
    since: Since

    def __init__(self, stage: Stage, sandbox: Sequence[str], request: CommandRequest, limits: Limits) -> None:
        """Start a command in a sandbox, given as bubblewrap and its arguments."""
        self.stage, bash = stage, system_program("bash")
        with FirstProcess(stage, sandbox) as self._first:
            passed = self._first.passed
            counting = [] if bash is None else [bash, "-c", _COUNTING, "bash", str(passed[-1])]
            command = [*self._first.command, *counting, *request.arguments]
            super().__init__(command, request, limits, pass_fds=passed)
        self._first.begin(limits.snapshot_bytes, self._child.pid)

    @property
    def was_started(self) -> bool:
        """True if the command itself has ended, and not its sandbox."""
        return b"exit-code" in self._first.report

    def others(self) -> list[int]:
        """Return nothing: no process can leave the namespace of the sandbox, which ends with it."""
        return []

    def end(self) -> None:
        """Kill what is left, and wait until all processes are gone."""
        if not self.is_closed:
            super().end()
            self._first.end()
            self.left_over = sum(int(line) for line in self._first.report.split(b"\n") if line.isdigit())


@contextmanager
def staged_process(around: Surroundings, request: CommandRequest, cwd: str) -> Generator[StagedProcess]:
    """Begin a staged command, and remove its stage after the block, which waits for it and ends it.

    Args:
        around: The workspace, in its repository.
        request: The command.
        cwd: The directory in which it starts.
    """
    began, position = time.time_ns(), around.journal.log.position
    sandbox = find_sandbox(stage_places(around.repository.top))
    seen = around.look_for_hidden_files()
    with Stage(sandbox.place, around.root.path) as stage:
        given = around, sandbox, stage, seen, request.environment
        inside, masks = inside_of(*given, more=["--chdir", cwd], network=request.network)
        process = StagedProcess(stage, inside, request, around.limits)
        process.masks, process.seen, process.since = masks, seen, Since(began, position, seen.names)
        try:
            yield process
        finally:
            process.end()


def inside_of(
    around: Surroundings,
    sandbox: Sandbox,
    stage: Stage,
    seen: Sweep,
    environment: Mapping[str, str],
    *,
    more: Sequence[str],
    run_paths: Sequence[str] = (),
    network: bool = False,
) -> tuple[list[str], dict[str, Mask]]:
    """Return bubblewrap with its arguments, and the masks that were made for the hidden files of `seen`.

    Args:
        around: The workspace, in its repository.
        sandbox: How to make a sandbox.
        stage: Its directories.
        seen: The tree.
        environment: The environment of what runs inside.
        more: More arguments of bubblewrap.
        run_paths: What it sees besides the paths of the policy.
        network: True if it has the network of the system.
    """
    root, repository, size = around.root.top, around.repository, around.limits.snapshot_bytes
    paths = [*(os.fspath(each) for each in root.policy.run_paths), *run_paths]
    view = outside_of([each.source for each in root.trees], environment, paths, network=network)
    shown = stage.overlay.arguments(root.path)
    for tree in root.trees.others.values():
        overlay = stage.add_overlay(tree.source, is_read_only=tree.is_read_only)
        shown += overlay.arguments(os.path.join(root.path, tree.path) if tree.mount else tree.source)
    masks, hidden = Masks(root, stage), dict[str, bytes]()  # what is seen at each path outside
    for path in sorted(each for each in seen.hidden if not os.path.isabs(each)):
        source = root.trees.path_on_disk(path)
        hidden[source] = shown_settings(contents(source)) if has_settings(path) else b""
        masks.put(path, hidden[source])
    above = filter(os.path.isabs, seen.hidden)
    beside = [each for each in above if not (is_in(each, root.path) or is_in(each, repository.git))]
    masks.hide_from_git(repository, beside)
    for git in [each for each, names in seen.names.items() if each.endswith("/.git") and "HEAD" in names]:
        place = os.path.join(root.path, git)
        masks.hide_from_git(Repository(os.path.dirname(place), place), (), git)
    if repository.top != root.path:
        overlay = stage.add_overlay(repository.top, is_read_only=True)
        for path in sorted(beside):
            masks.put_in(overlay, os.path.relpath(path, repository.top))
        # The root is a file system of its own below the top of the repository.
        across = ["--setenv", "GIT_DISCOVERY_ACROSS_FILESYSTEM", "1"]
        shown = [*overlay.arguments(repository.top), *shown, *across]
    mounted = {each.point for each in syscalls.mount_table() if each.point.startswith(f"{root.path}/")}
    for point in sorted(mounted):
        directory, name = os.path.split(os.path.relpath(point, root.path))
        if root.unreadable_names(directory, [name]):
            continue  # its mask is shown
        if os.path.isdir(point):
            overlay = stage.add_overlay(point, is_read_only=True)
            for path in (each for each in hidden if is_in(each, point)):
                masks.put_in(overlay, os.path.relpath(path, point), hidden[path])
            shown += overlay.arguments(point)
        else:
            shown += ["--ro-bind", point, point]
    masks.restore_directories()
    for path in map(os.path.realpath, (*around.private, *lock_directories(os.geteuid()))):
        is_seen = view.shows(path) or (is_in(path, repository.top) and repository.top != root.path)
        shown += ["--tmpfs", path] if is_seen and os.path.isdir(path) else []  # directories of agentfs itself
    return sandbox.arguments(stage, view, size=size, shown=[*shown, *more]), masks.found
