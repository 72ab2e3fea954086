"""`run`: a command from its start to its result, staged, recorded, or recorded in the background."""

import os
import re
import time
from collections.abc import Sequence
from dataclasses import replace

from agentfs.base import call_context
from agentfs.base.advice import Advice, call, plural
from agentfs.commands.apply_effects import apply_merged, merge_effects, result_of
from agentfs.commands.background import BackgroundCommands, Command
from agentfs.commands.effects import Effects, effects_of
from agentfs.commands.masks import read_masks
from agentfs.commands.process import POLL_SECONDS, Process
from agentfs.commands.request import CommandRequest, Surroundings
from agentfs.commands.result_text import after_command, with_output
from agentfs.commands.staged_process import StagedProcess, staged_process
from agentfs.errors import AgentFSError, ConflictError, FileIOError, UnsupportedSystemError
from agentfs.fs import Root
from agentfs.history.log import Step
from agentfs.history.recording import begin_recording, check_whole, end_recording
from agentfs.history.report import name_paths
from agentfs.results import RecordedResult, RunResult

_ATTEMPTS = 4  # to make a sandbox
_NETWORK = re.compile(
    rb"[Cc]ould not resolve host|name resolution|Network is unreachable|EAI_AGAIN|ENOTFOUND|getaddrinfo"
)
# How the kernel differs in a sandbox: a part of the message of a program, and the note for the answer.
_OF_KERNEL = {
    rb"cross-device link|EXDEV": "A directory cannot be renamed in one step here (EXDEV); `mv` copies it.",
    rb"hardlink different from source": "A file that gets a hard link is copied here: use --no-hardlinks.",
    rb"too large for defined data|ch(grp|own):.*Invalid argument": "A user has one group here (EOVERFLOW).",
}
_OTHERS = "What other programs changed meanwhile is among its changes, also for undo."
_WAYS = (
    'A program chooses with Policy(run=…): "staged" runs a command on a copy, whose changes are applied when'
    ' it ends, "recorded" in the workspace itself.'
)


def run(around: Surroundings, request: CommandRequest) -> RunResult:
    """Run a command as the policy says."""
    checked = _checked(around, request, in_background=False)
    with call_context.limited(around.limits.timeout), call_context.waited_for():
        if checked.is_staged:
            return _run_staged(around, checked)
        command = _Recorded(around, checked, "run")
        try:
            _wait(command.process, checked)
        finally:
            result = command.end()
        return result


def start_in_background(
    around: Surroundings, request: CommandRequest, background: BackgroundCommands
) -> RunResult:
    """Start a recorded command in the background, and return its id."""
    checked = _checked(around, request, in_background=True)

    def begin(name: str) -> Command:
        command = _Recorded(around, checked, "background")
        return Command(name, command.process, command.end)

    with call_context.limited(around.limits.timeout), call_context.waited_for():
        name = background.add(begin)
    following, stop = call("output", id=name), call("stop", id=name)
    text = Advice(f"Started {name} in the background. Its output: ", following, "; to end it: ", stop)
    given = None, b"", b"", result_of(around, Step(()), Effects()), 0.0
    return RunResult(*given, timed_out=False, confinement="recorded", id=name, text=text, next=following)


def _checked(around: Surroundings, request: CommandRequest, *, in_background: bool) -> CommandRequest:
    way = around.root.policy.run
    checked = replace(request, is_staged=way == "staged").checked(around.limits)
    check_whole(around.root)
    problems = {
        "This workspace runs no commands": way is None,
        "A recorded command cannot be previewed": way == "recorded" and request.preview,
        "A recorded command is not given or refused the network": way == "recorded" and request.network,
        "A staged command cannot run in the background": way == "staged" and in_background,
    }
    for problem, holds in problems.items():
        if holds:
            raise UnsupportedSystemError(f"{problem}.", hint=_WAYS)
    return checked


class _Recorded:
    """A command that has begun in the tree, inside a recording."""

    def __init__(self, around: Surroundings, request: CommandRequest, kind: str) -> None:
        self._around, self._request = around, request
        given = around.journal, around.root, around.limits
        with around.root.open_directory(request.cwd) as directory:
            more, ignored = request.label(kind), around.root.policy.judges_ignored
            self._recording = begin_recording(*given, more, include_ignored=ignored)
            try:
                self.process = Process(request.arguments, request, around.limits, cwd=directory.handle)
            except BaseException:
                end_recording(self._recording, around.may_show)
                raise

    def end(self) -> RunResult:
        """End what is left of the command, and its recording."""
        in_time = self.process.exit_status is not None
        try:
            self.process.end()
        finally:
            changes = end_recording(self._recording, self._around.may_show)
        self._around.journal.flush()
        return _result(self._around, self._request, self.process, changes, in_time=in_time)


def _wait(process: Process, request: CommandRequest) -> bool:
    """Wait for a command; return False if it has not ended by itself in time."""
    until = process.began + request.timeout
    with call_context.uncounted():
        while time.monotonic() < until and not process.wait(POLL_SECONDS):
            call_context.check()
    return process.exit_status is not None


def _run_staged(around: Surroundings, request: CommandRequest, attempts: int = _ATTEMPTS) -> RunResult:
    """Run a command on an overlay of the root, and apply its effects."""
    around = around.in_repository()
    with around.root.open_directory(request.cwd) as directory:
        cwd = os.path.normpath(os.path.join(around.root.path, directory.real_path))
    with staged_process(around, request, cwd) as process:
        in_time = _wait(process, request)
        process.end()
        if process.was_started or not in_time:
            changes = _take_effects(around, request, process, in_time=in_time)
            notes = _notes_on(around.root, process)
            return _result(around, request, process, changes, notes, in_time=in_time)
    if attempts > 1:  # a path outside may just have gone
        return _run_staged(around, request, attempts - 1)
    reason = process.captured.stream("stderr").decode("utf-8", "backslashreplace").strip()
    raise FileIOError(f"The command could not be staged: {reason}", details={"reason": reason})


def _notes_on(root: Root, process: StagedProcess) -> list[str]:
    """Return notes on protected files that a command has read, and on files outside that are gone with it."""
    gone = process.stage.gone_files().items()
    notes = [f"{plural(count, 'file')} in {path}: gone with the command" for path, count in gone]
    if read := read_masks(root, process.stage, process.masks):
        named = name_paths([*map(root.display_path, read)])
        notes.insert(0, f"protected, so the command saw no content: {named}")
    return notes


def _take_effects(
    around: Surroundings, request: CommandRequest, process: StagedProcess, *, in_time: bool
) -> RecordedResult:
    """Apply what a command has changed in its overlay, unless it was stopped."""
    root, label = around.root.top, request.label("run")
    if appeared := sorted(around.look_for_hidden_files().hidden - process.seen.hidden):
        raise ConflictError(
            f"Protected files appeared while the command ran: {name_paths(appeared)}. Its output"
            " is not shown, and nothing was applied.",
            hint="Run the command again.",
            details={"paths": appeared},
        )
    if not in_time:
        return result_of(around, Step((), label=label), Effects())

    try:
        with call_context.uncounted(), call_context.limited(around.limits.apply_timeout, apart=True):
            effects = effects_of(process.stage, process.masks, root, around.limits.snapshot_bytes)
            changes = merge_effects(around, effects, process.since, {}, once=True).changes
            given = around, changes, effects, process.masks, label
            result = call_context.run_to_end(lambda: apply_merged(*given, preview=request.preview))
            if (call := call_context.current.get()) is not None:
                call.is_done = True
            return result
    except AgentFSError as error:
        after_command(error, process.captured, process.exit_status)
        raise


def _result(
    around: Surroundings,
    request: CommandRequest,
    process: Process,
    changes: RecordedResult,
    notes: Sequence[str] = (),
    *,
    in_time: bool,
) -> RunResult:
    """Return the result of a command that has ended."""
    captured, is_staged = process.captured, request.is_staged
    written = captured.stream("stderr") + captured.stream("stdout")
    left, is_long = process.left_over, process.duration >= 1
    is_offline = is_staged and not request.network
    told = {
        "A staged command has no network, unless the program allows it.": is_offline
        and _NETWORK.search(written),
        **{note: is_staged and re.search(message, written) for message, note in _OF_KERNEL.items()},
        f"{plural(left, 'process', 'processes')} in the background: ended with the command": left,
        _OTHERS: is_long and not is_staged and changes.files,
        "A staged command that is stopped changes nothing.": is_staged and not in_time,
        "A server does not end by itself: start it with `&`, and use it in the same command.": not in_time,
        "This is a preview: nothing was applied.": request.preview,
    }
    following = None
    longer = min(5 * request.timeout, around.limits.run_timeout)
    if not in_time and longer > request.timeout:
        cwd = {} if request.cwd == "." else {"cwd": request.cwd}
        way = {"timeout": int(longer)} if is_staged else {"background": True}
        following = call("run", command=request.command, **way, **cwd)
    result = RunResult(
        process.exit_status if in_time else None,
        captured.stream("stdout"),
        captured.stream("stderr"),
        changes,
        process.duration,
        timed_out=not in_time,
        confinement="staged" if is_staged else "recorded",
        network=request.network,
        truncated=captured.truncated,
        notes=(*notes, *(note for note, holds in told.items() if holds)),
        next=following,
    )
    seconds = f" after {process.duration:.0f} s" if is_long else ""
    sentence = f"Exit status {process.exit_status}{seconds}"
    if not in_time:
        sentence = f"Stopped after {request.timeout:g} s, the timeout"
    network = ", with network" if request.network else ""
    sentence += f", staged{network}" if is_staged else ", recorded, with the rights of the user"
    return with_output(result, captured, sentence, around.outputs, around.root, around.limits)
