"""Commands in the background: each recorded as a step of its own until it ends or is stopped."""

import re
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING

from agentfs.base.advice import Advice, Joined, call, plural
from agentfs.base.forks import watch_forks
from agentfs.commands.result_text import output_text
from agentfs.errors import BusyError, NotFoundError
from agentfs.fs import quote
from agentfs.results import CommandOutput, RunResult
from agentfs.text.display import continuation, footer

if TYPE_CHECKING:  # each workspace has a record of commands, and few run any
    from agentfs.commands.process import Process

_MOST_COMMANDS = 64
_POLL_SECONDS = 0.05  # between two looks at `stop`
_MOST_BYTES = 30_000  # the most output in one answer
# The first bytes of a character in UTF-8 whose other bytes are missing.
_CUT = re.compile(rb"(?:[\xc2-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf4][\x80-\xbf]{0,2})\Z")


class Command:
    """A command in the background.

    Attributes:
        id: The id, which `output` and `stop` of the workspace take.
    """

    def __init__(self, name: str, process: "Process", finish: Callable[[], RunResult]) -> None:
        """Wait for a process in a thread, and then call `finish` there; `name` becomes the id."""
        self.id, self._process, self._finish = name, process, finish
        self._stop = threading.Event()
        self._outcome = Future[RunResult]()
        threading.Thread(target=self._run, name=f"agentfs-{name}", daemon=True).start()

    def _run(self) -> None:
        try:
            while not (self._stop.is_set() or self._process.wait(_POLL_SECONDS)):
                pass
            self._process.end()
            self._outcome.set_result(self._finish())
        except BaseException as error:  # noqa: BLE001 - raised by `stop`
            self._outcome.set_exception(error)

    @property
    def running(self) -> bool:
        """True until the command has ended and its changes are recorded."""
        return not self._outcome.done()

    def stop(self) -> RunResult:
        """End the command and all its processes, and return its result."""
        self._stop.set()
        return self._outcome.result()

    def output(self, offset: int = 0) -> CommandOutput:
        """Return what the command has written from an offset on.

        Args:
            offset: The bytes of both streams to skip.
        """
        running, status, captured = self.running, self._process.exit_status, self._process.captured
        start, data = captured.read(max(offset, 0))
        shown = data[:_MOST_BYTES]
        if len(shown) < len(data):
            shown = shown[: shown.rfind(b"\n") + 1] or shown
        if running or len(shown) < len(data):
            shown = _CUT.sub(b"", shown)
        end, left_out = start + len(shown), start - max(offset, 0)
        state = "is running" if running else f"has ended with exit status {status}"
        following = call("output", id=self.id, offset=end) if running or end < captured.total else None
        gap = footer(f"{plural(left_out, 'byte')} left out") if left_out else ""
        body = output_text(shown).removesuffix("\n")
        text = Joined("\n", f"The command {self.id} {state}; its output from byte {offset}:", gap, body)
        more = footer(continuation(following))
        return CommandOutput(self.id, end, running, status, text=Joined("\n", text, more), next=following)


class BackgroundCommands:
    """The commands of one workspace that run in the background. They end with it."""

    def __init__(self) -> None:
        self._commands: dict[str, Command] = {}
        self._count = 0
        self._lock = threading.Lock()
        self.close = weakref.finalize(self, _end, self._commands)
        watch_forks(self)

    def after_fork(self) -> None:
        """Forget the commands, which belong to the parent."""
        self._lock = threading.Lock()
        self._commands.clear()

    def add(self, make: Callable[[str], Command]) -> str:
        """Start a command under a new id, and return the id."""
        with self._lock:
            ended = [name for name, each in self._commands.items() if not each.running]
            if len(self._commands) - len(ended) >= _MOST_COMMANDS:
                raise BusyError(
                    f"{plural(_MOST_COMMANDS, 'command')} are running already.",
                    hint=Advice("Call ", call("stop", id=next(iter(self._commands))), " to end one."),
                )
            for name in ended[: max(len(self._commands) - _MOST_COMMANDS + 1, 0)]:
                del self._commands[name]
            self._count += 1
            name = f"c{self._count}"
            self._commands[name] = make(name)
            return name

    def find(self, name: str) -> Command:
        """Return the command of an id; raises `not_found`."""
        found = self._commands.get(name)
        if found is None:
            known = ", ".join(map(quote, self._commands)) or "none"
            raise NotFoundError(
                f"There is no command {quote(name)}.",
                hint=f"The commands in the background are: {known}.",
                details={"commands": [*self._commands]},
            )
        return found


def _end(commands: dict[str, Command]) -> None:
    """End all commands."""
    for command in [each for each in commands.values() if each.running]:
        command.stop()
