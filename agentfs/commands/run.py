"""`run`: a command from its start to its result, staged, recorded, or recorded in the background."""

import os
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

from agentfs.base import call_context
from agentfs.base.advice import Advice, call
from agentfs.commands.apply_effects import Base, apply_effects, result_of
from agentfs.commands.background import BackgroundCommands, Command
from agentfs.commands.captured_output import CapturedOutput
from agentfs.commands.environment import credentials
from agentfs.commands.git_settings import has_settings, shown_settings
from agentfs.commands.process import Process
from agentfs.commands.request import CommandRequest, Surroundings
from agentfs.commands.result_text import after_command, with_output
from agentfs.commands.sandbox import find_sandbox
from agentfs.commands.staged_process import StagedProcess
from agentfs.errors import AgentFSError, ConflictError, FileIOError, RefusedError, UnsupportedSystemError
from agentfs.fs import Root, syscalls
from agentfs.fs.context import file_clock
from agentfs.fs.effects import effects_of
from agentfs.fs.lock import lock_directories
from agentfs.fs.oserrors import read_only
from agentfs.fs.overlay import OverlayRoot
from agentfs.fs.path import is_in
from agentfs.fs.stage import Overlay, Stage, stage_places
from agentfs.fs.system import contents, listening_sockets, present
from agentfs.history.operations import begin_recording, end_recording
from agentfs.history.recordings.recording import OpenRecording
from agentfs.history.report import name_paths
from agentfs.results import RecordedResult, RunResult

_CLOCK_STEP = 0.0005  # seconds, less than one step of the file clock
_LONGER = 5  # times the timeout that the next call may have


def run(around: Surroundings, request: CommandRequest, background: BackgroundCommands) -> RunResult:
    """Run a command as the policy says."""
    checked = _checked(around, request, in_background=request.keep_running)
    with call_context.limited(around.limits.timeout), call_context.waited_for():
        if around.root.policy.run == "staged":
            return _run_staged(around, checked)
        process, captured, recording = _begin_recorded(around, checked)

        def begin_rest(name: str) -> Command:
            # It begins before the recording of the command ends, so that no change lies between them.
            later = _begin_recording(around, checked, "background")
            return _command(around, checked, process, captured, later, name)

        in_time, rest = False, None
        try:
            try:
                in_time = _wait(process, checked)
                if in_time and checked.keep_running and process.others():
                    rest = background.add(begin_rest, detach=False)
            finally:
                if rest is None:
                    process.end()
        finally:
            changes = _end_recording(around, recording)
        return _result(around, checked, captured, process, changes, in_time=in_time, rest=rest)


def start_in_background(
    around: Surroundings, request: CommandRequest, background: BackgroundCommands, *, detach: bool
) -> Command:
    """Start a recorded command in the background."""
    checked = _checked(around, request, in_background=True)

    def begin(name: str) -> Command:
        return _command(around, checked, *_begin_recorded(around, checked, "background"), name)

    with call_context.limited(around.limits.timeout), call_context.waited_for():
        return background.add(begin, detach=detach)


def _command(
    around: Surroundings,
    request: CommandRequest,
    process: Process,
    captured: CapturedOutput,
    recording: OpenRecording,
    name: str,
) -> Command:
    def finish() -> RunResult:
        changes = _end_recording(around, recording)
        result = _result(around, request, captured, process, changes, in_time=True)
        around.journal.flush()
        return result

    return Command(name, process, captured, finish)


def started(around: Surroundings, command: Command) -> RunResult:
    """Return the result of a command that goes on in the background."""
    changes = result_of(around, "")
    following = call("output", id=command.id)
    stop = call("stop", id=command.id)
    text = Advice(f"Started {command.id} in the background. Its output: ", following, "; to end it: ", stop)
    return RunResult(
        None, b"", b"", changes, 0.0, False, "recorded", id=command.id, text=text, next=following
    )


def _checked(around: Surroundings, request: CommandRequest, *, in_background: bool) -> CommandRequest:
    root = around.root
    checked = request.checked(around.limits)
    if root.policy.read_only:
        raise read_only()
    if root.policy.run is None:
        raise UnsupportedSystemError(
            "This workspace runs no commands.",
            hint='A program allows them with Policy(run="staged") or Policy(run="recorded").',
        )
    if root.policy.run == "recorded" and (request.preview or request.network):
        what = "previewed" if request.preview else "given or refused the network"
        raise UnsupportedSystemError(
            f"A recorded command cannot be {what}, because it runs in the workspace itself.",
            hint='Use Policy(run="staged").',
        )
    if root.policy.run == "staged" and in_background:
        raise UnsupportedSystemError(
            "A staged command cannot run in the background, because its changes are applied when it ends.",
            hint='Use Policy(run="recorded").',
        )
    if isinstance(root, OverlayRoot):
        raise RefusedError(
            "A transaction changes nothing on disk, so no command can run within it.",
            hint="Run the command outside the transaction.",
        )
    if root.usable_directories != ["."]:
        raise RefusedError(
            "A view of some directories cannot run a command, because a command sees the whole tree.",
            hint="Run the command on the workspace itself.",
        )
    return checked


def _begin_recorded(
    around: Surroundings, request: CommandRequest, kind: str = "run"
) -> tuple[Process, CapturedOutput, OpenRecording]:
    captured = CapturedOutput(around.limits.file_bytes)
    with around.root.open_directory(request.cwd) as directory:
        recording = _begin_recording(around, request, kind)
        try:
            process = Process(request.arguments, request, captured, cwd=directory.handle)
        except BaseException:
            _end_recording(around, recording)
            raise
    return process, captured, recording


def _begin_recording(around: Surroundings, request: CommandRequest, kind: str) -> OpenRecording:
    given = around.journal, around.root, around.limits
    return begin_recording(*given, request.label(kind), include_ignored=False)


def _end_recording(around: Surroundings, recording: OpenRecording) -> RecordedResult:
    return end_recording(around.journal, around.root, around.limits, recording, around.may_show)


def _wait(process: Process, request: CommandRequest) -> bool:
    """Wait for a command; return False if it has not ended by itself in time."""
    with call_context.uncounted():
        return process.wait(process.began + request.timeout, call_context.check)


def _run_staged(around: Surroundings, request: CommandRequest) -> RunResult:
    """Run a command on an overlay of the root, and apply its effects."""
    root, journal, limits = around.root.top, around.journal, around.limits
    with around.root.open_directory(request.cwd) as directory:
        cwd = os.path.join(root.path, directory.real_path)
    captured = CapturedOutput(limits.file_bytes)
    base = Base(time.time_ns(), journal.timeline.position)
    with staged_process(around, request, captured, cwd, began=base.time) as (process, overlays, hidden):
        in_time = _wait(process, request)
        process.end()
        if in_time and not process.was_started:
            reason = captured.stream("stderr").decode("utf-8", "backslashreplace").strip()
            raise FileIOError(f"The command could not be staged: {reason}", details={"reason": reason})
        if appeared := around.hidden_files.find(root) - hidden:
            raise ConflictError(
                f"Protected files appeared while the command ran: {name_paths(sorted(appeared))}. Its output"
                " is not shown, and nothing was applied.",
                hint="Run the command again.",
                details={"paths": sorted(appeared)},
            )
        label = request.label("run")
        if not in_time:
            changes = result_of(around, label)
        else:
            try:
                effects = effects_of(overlays, root, limits.snapshot_bytes)
                given = around, effects, base, label, hidden
                changes = call_context.run_to_end(partial(apply_effects, *given, preview=request.preview))
            except AgentFSError as error:
                after_command(error, captured, process.exit_status)
                raise
    return _result(around, request, captured, process, changes, in_time=in_time)


class Staged(NamedTuple):
    """A staged command that has begun.

    Attributes:
        process: The command.
        overlays: The overlays of the trees, by real path.
        hidden: The protected files that it does not see.
    """

    process: StagedProcess
    overlays: dict[str, Overlay]
    hidden: set[str]


@contextmanager
def staged_process(
    around: Surroundings,
    request: CommandRequest,
    captured: CapturedOutput,
    cwd: str,
    *,
    began: int = 0,
    files: Mapping[str, bytes] = {},
) -> Generator[Staged]:
    """Begin a staged command, and remove its stage after the block, which waits for it and ends it.

    Args:
        around: The workspace.
        request: The command.
        captured: Keeps its output.
        cwd: The directory in which it starts.
        began: A time of the file clock; the command starts later.
        files: Contents by real path that it sees in place of those of the tree.
    """
    root, size = around.root.top, around.limits.snapshot_bytes
    sandbox = find_sandbox(stage_places(root.path))
    hidden = around.hidden_files.find(root)
    with Stage(sandbox.place, root.path) as stage:
        outside = _hidden_outside(around)
        arguments = sandbox.arguments(stage, size=size, hidden=outside, network=request.network)
        shown, overlays = _trees_inside(stage, root)
        for path, content in files.items():
            top = max((each for each in overlays if is_in(path, each)), key=len)
            overlays[top].put(path[len(top) :].lstrip("/"), content)
        arguments += [*shown, *_arguments_inside(stage, root, hidden), "--chdir", cwd]
        process = StagedProcess([sandbox.program, *arguments], request, captured)
        try:
            process.limit(size)
            while file_clock() <= began:  # then every later change has a later time
                time.sleep(_CLOCK_STEP)
            process.begin()
            yield Staged(process, overlays, hidden)
        finally:
            process.end()


def _hidden_outside(around: Surroundings) -> list[str]:
    """Return the paths outside the root that a staged command sees as empty."""
    root = around.root.path
    own = present(lock_directories(os.geteuid()))
    found = [*credentials(around.root.policy.protect.read), *listening_sockets(), *around.private, *own]
    elsewhere = (f"{root}/", "/tmp/", "/run/")  # noqa: S108 - the last two are hidden already
    return [each for each in found if not f"{each}/".startswith(elsewhere)]


def _trees_inside(stage: Stage, root: Root) -> tuple[list[str], dict[str, Overlay]]:
    """Return the arguments that show the other trees at their paths, and the overlays of what may change.

    A single file is shown read-only, because no overlay holds one.
    """
    found: list[str] = []
    overlays = {"": stage.overlay}
    for tree in root.trees.others.values():
        shown = os.path.join(root.path, tree.path)
        if tree.is_read_only or tree.file:
            found += ["--ro-bind", tree.source, shown]
        else:
            overlay = overlays[tree.path] = stage.add_overlay(tree.source)
            found += ["--overlay-src", tree.source, "--overlay", overlay.upper, overlay.work, shown]
    return found, overlays


def _arguments_inside(stage: Stage, root: Root, hidden: set[str]) -> list[str]:
    """Return the arguments that hide files of the tree, and protect what is mounted in it."""
    found: list[str] = []
    for mount in syscalls.mount_table():
        if mount.point.startswith(f"{root.path}/"):
            found += ["--ro-bind", mount.point, mount.point]
    for path in sorted(hidden):
        full = os.path.join(root.path, path)
        on_disk = root.trees.path_on_disk(path)
        shown = stage.add_file(shown_settings(contents(on_disk))) if has_settings(path) else ""
        found += stage.as_empty(full, shown)
    return found


def _result(
    around: Surroundings,
    request: CommandRequest,
    captured: CapturedOutput,
    process: Process,
    changes: RecordedResult,
    *,
    in_time: bool,
    rest: Command | None = None,
) -> RunResult:
    """Return the result of a command that has ended, except for the rest of its processes."""
    confinement = around.root.policy.run or "staged"
    notes: list[str] = []
    following = None
    after = f" after {process.duration:.0f} s" if process.duration >= 1 else ""
    sentence = f"Exit status {process.exit_status}{after}"
    if not in_time:
        sentence = f"Stopped after {request.timeout:g} s, the timeout"
        if confinement == "staged":
            notes.append("A staged command that is stopped changes nothing.")
        longer = min(request.timeout * _LONGER, around.limits.run_timeout)
        if longer > request.timeout:
            cwd = {} if request.cwd == "." else {"cwd": request.cwd}
            following = call("run", command=request.command, timeout=int(longer), **cwd)
    if rest is not None:
        notes.append(f"Processes that it started run on as {rest.id}.")
        following = call("output", id=rest.id)
    if request.preview:
        notes.append("This is a preview: nothing was applied.")
    result = RunResult(
        process.exit_status if in_time else None,
        captured.stream("stdout"),
        captured.stream("stderr"),
        changes,
        process.duration,
        timed_out=not in_time,
        confinement=confinement,
        network=request.network,
        truncated=captured.truncated,
        id=None if rest is None else rest.id,
        notes=tuple(notes),
        next=following,
    )
    network = ", with network" if request.network else ""
    rights = ", with the rights of the user" if confinement == "recorded" else ""
    sentence = f"{sentence}, {confinement}{network}{rights}"
    return with_output(result, captured, sentence, around.outputs, around.root, around.limits)
