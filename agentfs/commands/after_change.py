"""The formatters and checks of `Policy.after_change`, run by the runner of `run`."""

import os
import shlex
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from agentfs.base import call_context
from agentfs.base.lazy import shutil
from agentfs.commands.captured_output import CapturedOutput
from agentfs.commands.environment import environment
from agentfs.commands.process import Process
from agentfs.commands.request import CommandRequest, Surroundings
from agentfs.commands.sandbox import find_sandbox
from agentfs.commands.stage import stage_places
from agentfs.commands.staged_process import staged_process
from agentfs.editing.finish import Filtered, Findings, Texts
from agentfs.errors import AgentFSError, FileIOError, UnsupportedSystemError
from agentfs.policy import AfterChange, Policy
from agentfs.text import cut_line, one_line
from agentfs.tree.globs import compile_globs

_OUTPUTS = 4  # times the limit of one file, for the outputs of all files of a call
_SHARE = 0.5  # of the time that is left, for one command
_ERROR_BYTES = 300  # of the error of a filter that a note quotes
_NAME_CHARS = 60
# For each file: its input is the next bytes of the standard input. It prints the exit status and the sizes of
# what was printed, and then that. A size over the limit means that more was left out.
_FILTER = """T=$(mktemp -d) || exit
f() {{
head -c "$1" >"$T/i"
{{ {command} <"$T/i" 2>"$T/a"; echo $? >"$T/s"; }} | head -c {limit} >"$T/o"
head -c {errors} "$T/a" >"$T/e"
echo $(cat "$T/s") $(wc -c <"$T/o") $(wc -c <"$T/e")
cat "$T/o" "$T/e"
}}
{calls}
rm -rf "$T"
"""


class _Ran(NamedTuple):
    """The outcome of one command; the exit status is None if it did not end in time."""

    exit_status: int | None
    stdout: bytes
    stderr: bytes = b""


class _Failed(NamedTuple):
    """The reason for which a formatter has no output for a text."""

    why: str


class AfterChangeRunner:
    """Runs what `Policy.after_change` of a workspace names; see `editing.finish.Finisher`."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._rules = around.root.policy.after_change

    def filtered(self, texts: Texts) -> Sequence[Filtered]:
        """Run the formatters on texts that are not written yet."""
        now, done = {**texts}, list[Filtered]()
        for rule in self._rules:
            chosen = _chosen(rule, now)
            if rule.kind != "filter" or not chosen:
                continue
            name, notes = name_of(rule), list[str]()
            changed: dict[str, str] = {}
            try:
                command = rule.command
                outputs = _returned(command, chosen) if callable(command) else self._printed(rule, chosen)
            except AgentFSError as error:
                outputs = {}
                notes.append(f"{name} could not run, so nothing was formatted: {error.message}")
            for path, output in outputs.items():
                if why := _refusal(output):
                    notes.append(f"{name} {one_line(why)}; {one_line(path)} is as it was edited")
                elif isinstance(output, str) and output != now[path]:
                    changed[path] = now[path] = output
            done.append(Filtered(name, changed, tuple(notes)))
        return done

    def _printed(self, rule: AfterChange, texts: Texts) -> dict[str, str | _Failed]:
        """Return what the command of a formatter prints for each text."""
        limit, inputs = self._around.limits.file_bytes, _encoded(texts)
        words = [each.replace("{path}", "\0") for each in rule.arguments]
        command = " ".join(shlex.quote(each).replace("\0", "'\"$2\"'") for each in words)
        calls = "\n".join(f"f {len(data)} {shlex.quote(_argument(path))}" for path, data in inputs.items())
        script = _FILTER.format(command=command, limit=limit + 1, errors=_ERROR_BYTES, calls=calls)
        ran = self._run(script, b"".join(inputs.values()), {}, _OUTPUTS * limit)
        made: dict[str, str | _Failed] = {}
        rest = ran.stdout
        for path in inputs:
            head, _, rest = rest.partition(b"\n")
            try:
                status, size, errors = map(int, head.split())
            except ValueError:
                made[path] = _Failed("did not end in time" if ran.exit_status is None else "could not run")
                break
            output, said, rest = rest[:size], rest[size : size + errors], rest[size + errors :]
            if size > limit:
                made[path] = _Failed(f"printed more than {limit} bytes")
            elif status:
                reason = said.decode("utf-8", "replace").strip()
                made[path] = _Failed(f"failed with exit status {status}: {reason}")
            else:
                try:
                    made[path] = output.decode("utf-8")
                except UnicodeDecodeError:
                    made[path] = _Failed("printed what is not UTF-8")
        return made

    def findings(self, texts: Texts) -> Sequence[Findings]:
        """Run the checks on files with these texts."""
        found: list[Findings] = []
        for rule in self._rules:
            chosen = _chosen(rule, texts)
            if rule.kind == "check" and chosen:
                lines, notes = self._checked(rule, chosen)
                found.append(Findings(name_of(rule), tuple(map(_shown, lines)), rule.lines, tuple(notes)))
        return found

    def _checked(self, rule: AfterChange, texts: Texts) -> tuple[list[str], list[str]]:
        name = name_of(rule)
        if callable(rule.command):
            lines: list[str] = []
            for path, text in texts.items():
                try:
                    lines += [*map(str, call_context.call_back(rule.command, path, text) or ())]
                except Exception as error:  # noqa: BLE001 - as above
                    return lines, [f"{name} raised {one_line(f'{type(error).__name__}: {error}')}"]
            return lines, []
        places = self._places(texts)
        words = [
            part.replace("{path}", _argument(places[path]))
            for part in rule.arguments
            for path in (texts if part == "{path}" else [next(iter(texts))])
        ]
        files = _encoded(texts)
        try:
            ran = self._run(shlex.join(words), b"", files, self._around.limits.file_bytes)
        except AgentFSError as error:
            return [], [f"{name} could not run: {error.message}"]
        if ran.exit_status is None:
            return [], [f"{name} did not end in time"]
        output = (ran.stdout + ran.stderr).decode("utf-8", "replace")
        for path, place in places.items():
            output = output.replace(place, path)
        printed = output.splitlines()
        located = [line for line in printed if any(path in line for path in texts)]
        return located if located or not ran.exit_status else printed, []

    def _places(self, paths: Iterable[str]) -> dict[str, str]:
        """Return the path of each file from where a check runs. Only a staged one sees the mounts."""
        if self._is_staged():
            return {path: path for path in paths}
        root = self._around.root
        return {path: os.path.relpath(root.trees.path_on_disk(path), root.path) for path in paths}

    def _run(self, command: str, stdin: bytes, files: Mapping[str, bytes], most: int) -> _Ran:
        """Run a command in the tree, staged if this can be; `files` are shown there with these contents."""
        left = call_context.deadline(self._around.limits.timeout) - time.monotonic()
        request = CommandRequest(command, max(left, 0.1) * _SHARE, ".", False, None, stdin, False)
        captured = CapturedOutput(most)
        root = self._around.root.top
        if self._is_staged():
            with staged_process(self._around, request, captured, root.path, files=files) as staged:
                process: Process = staged.process
                in_time = _wait(process, request)
                if in_time and not staged.process.was_started:
                    raise FileIOError("it could not be staged.")
        else:
            with root.open_directory(".") as directory:
                process = Process(request.arguments, request, captured, cwd=directory.handle)
                in_time = _wait(process, request)
        outputs = captured.stream("stdout"), captured.stream("stderr")
        return _Ran(process.exit_status if in_time else None, *outputs)

    def _is_staged(self) -> bool:
        root = self._around.root
        if root.policy.run == "recorded":
            return False
        try:
            find_sandbox(stage_places(root.path))
        except UnsupportedSystemError:
            return False
        return True


def missing_programs(policy: Policy) -> list[str]:
    """Return a warning for each program of `Policy.after_change` that is not installed."""
    path = environment(None)["PATH"]
    programs = dict.fromkeys(rule.arguments[0] for rule in policy.after_change if rule.arguments)
    return [
        f"Policy.after_change names the program {name!r}, which is not installed."
        for name in programs
        if os.path.dirname(name) == "" and shutil.which(name, path=path) is None
    ]


def name_of(rule: AfterChange) -> str:
    """Return the command of a formatter or check as a text, or the name of its function."""
    if callable(rule.command):
        return one_line(getattr(rule.command, "__name__", "a function"))
    return cut_line(one_line(" ".join(rule.arguments)), _NAME_CHARS)


def _wait(process: Process, request: CommandRequest) -> bool:
    """Wait for a command within the deadline of the call, and end it; return False if it took too long."""
    try:
        return process.wait(process.began + request.timeout, call_context.check)
    finally:
        process.end()


def _chosen(rule: AfterChange, texts: Texts) -> dict[str, str]:
    """Return the texts that a rule is about, unless its program is missing."""
    if rule.arguments and shutil.which(rule.arguments[0], path=environment(None)["PATH"]) is None:
        return {}
    matches = compile_globs([rule.glob])
    return {path: text for path, text in texts.items() if matches(path)}


def _argument(path: str) -> str:
    """Return a path that no program takes for an option."""
    return f"./{path}" if path.startswith("-") else path


def _returned(function: Callable[[str, str], Any], texts: Texts) -> dict[str, str | _Failed]:
    """Return what a function makes of each text."""
    made: dict[str, str | _Failed] = {}
    for path, text in texts.items():
        try:
            output = call_context.call_back(function, path, text)
        except Exception as error:  # noqa: BLE001 - the edit is worth more than its format
            output = _Failed(f"raised {type(error).__name__}: {error}")
        is_known = isinstance(output, str | _Failed)
        made[path] = output if is_known else _Failed(f"returned {type(output).__name__}, not a text")
    return made


def _refusal(output: str | _Failed) -> str:
    """Return why an output cannot be taken for the text of a file, or ""."""
    if isinstance(output, _Failed):
        return output.why
    return "printed nothing" if not output else "printed a NUL character" if "\0" in output else ""


def _shown(line: str) -> str:
    return cut_line(one_line(line), 400)


def _encoded(texts: Texts) -> dict[str, bytes]:
    """Return the texts as UTF-8, except those with a half of a character."""
    encoded = {path: text.encode("utf-8", "replace") for path, text in texts.items()}
    return {path: data for path, data in encoded.items() if data.decode("utf-8") == texts[path]}
