"""`CommandRequest`: a command as it was asked for, checked; `Surroundings`: what of a workspace it needs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from agentfs.base import call_context
from agentfs.base.advice import Advice, ParameterName, plural
from agentfs.base.visible import one_line
from agentfs.commands.environment import can_be_passed, environment
from agentfs.commands.hidden_files import HiddenFiles
from agentfs.errors import InvalidArgumentError, must_be
from agentfs.fs import Root
from agentfs.fs.settings_file import system_program
from agentfs.history import Journal
from agentfs.history.recording import MAX_LABEL
from agentfs.history.report import MayShow
from agentfs.limits import LARGEST, Limits
from agentfs.shown.outputs import OutputStore
from agentfs.text.display import cut_line, cut_mark

DEFAULT_SECONDS = 120.0  # the timeout of `Workspace.run`
_MOST_BYTES = 100_000  # of a command; the system passes at most 128 KiB


class Surroundings(NamedTuple):
    """The parts of a workspace that a command needs."""

    root: Root
    journal: Journal
    limits: Limits
    outputs: OutputStore
    hidden_files: HiddenFiles
    private: Sequence[str]  # directories that a staged command does not see
    may_show: MayShow


@dataclass(frozen=True)
class CommandRequest:
    """The arguments of `run`."""

    command: str
    timeout: float
    cwd: str
    network: bool
    env: Mapping[str, str] | None
    stdin: bytes | None
    preview: bool = False
    is_staged: bool = False

    def checked(self, limits: Limits) -> "CommandRequest":
        """Return the request with the timeout that is granted; raise `invalid_argument` for a wrong value."""
        size = len(self.command.encode("utf-8", "surrogatepass"))
        if not self.command.strip():
            raise _wrong_command("is empty")
        if "\0" in self.command:
            raise _wrong_command("contains a NUL character")
        if not can_be_passed(self.command):
            raise _wrong_command("contains half of a character, which UTF-8 cannot carry")
        if size > _MOST_BYTES:
            hint = "Write a script to a file, and run that."
            raise _wrong_command(f"has {plural(size, 'byte')}, over {_MOST_BYTES}", hint, limit=_MOST_BYTES)
        if not 0 < self.timeout < LARGEST:
            raise must_be("timeout", "a finite number above 0", self.timeout, "Give the seconds to wait.")
        granted = replace(self, timeout=call_context.granted(self.timeout, limits.run_timeout))
        _ = granted.environment  # raises an error for a wrong one
        return granted

    def label(self, kind: str) -> str:
        """Return the label of the step with its changes, which begins with its kind."""
        return cut_line(one_line(f"{kind}: {self.command.strip()}"), MAX_LABEL - len(cut_mark(10**9)))

    @cached_property
    def environment(self) -> dict[str, str]:
        """The environment of the command."""
        return environment(self.env, is_staged=self.is_staged)

    @property
    def arguments(self) -> list[str]:
        """The shell with the command."""
        return [system_program("bash") or "/bin/sh", "-c", self.command]


def _wrong_command(problem: str, hint: str = "", **details: int) -> InvalidArgumentError:
    message = Advice(ParameterName("command", quoted=True), f" {problem}.")
    return InvalidArgumentError(message, hint=hint, details={"parameter": "command", **details})
