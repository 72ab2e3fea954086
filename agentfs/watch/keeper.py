"""The thread that keeps more of a watched tree between calls."""

import threading
import time
from collections.abc import Callable

from agentfs.base import call_context
from agentfs.base.forks import stop_before_forks
from agentfs.base.lazy import logging
from agentfs.errors import AgentFSError

_SEARCH_SECONDS = 1.0  # the time of one search; a call stops it earlier
_REST_SECONDS = 0.05  # the least time from a call or a search to the next search


class Keeper:
    """Repeats a search between calls until it has kept the tree.

    A call stops the search at once. The thread rests as long as it has worked, so it takes at most half of
    one core. It ends when nothing is left to keep.
    """

    def __init__(self, search: Callable[[], bool]) -> None:
        """Prepare the thread.

        Args:
            search: Searches the tree within the deadline of its call; returns True if nothing is left.
        """
        self._search = search
        self._execution: call_context.Execution | None = None
        self._thread: threading.Thread | None = None
        self._stopped = threading.Event()
        stop_before_forks(self)

    def start(self) -> None:
        """Start the thread, unless it runs. Called by one thread at a time."""
        if self._thread is not None and self._thread.is_alive():
            return
        self._stopped = threading.Event()
        # A process does not wait for a daemon thread when it exits.
        self._thread = threading.Thread(
            target=self._run, args=(self._stopped,), name="agentfs-keeper", daemon=True
        )
        try:
            self._thread.start()
        except RuntimeError:  # subinterpreters have no daemon threads, or the system has no thread left
            self._thread = None

    def interrupt(self) -> None:
        """End the search under way, because a call begins; the thread continues after a rest."""
        execution = self._execution
        if execution is not None and execution is not call_context.current.get():
            execution.abandon()

    def stop(self) -> None:
        """End the thread, and wait for its end."""
        thread, self._thread = self._thread, None
        self._stopped.set()
        if thread is not None and thread is not threading.current_thread():
            while thread.is_alive():  # a search may begin after an interruption
                self.interrupt()
                thread.join(_REST_SECONDS)

    def _run(self, stopped: threading.Event) -> None:
        rest = _REST_SECONDS
        while not stopped.wait(rest):
            began = time.monotonic()
            execution = self._execution = call_context.Execution(None)
            call_context.current.set(execution)
            try:
                with call_context.limited(_SEARCH_SECONDS):
                    if self._search():
                        return
            except (AgentFSError, call_context.Cancelled):
                pass
            except Exception:  # noqa: BLE001 - nobody waits for the search
                logging.getLogger("agentfs").exception("A search between calls failed; calls keep the tree.")
                return
            rest = max(time.monotonic() - began, _REST_SECONDS)
