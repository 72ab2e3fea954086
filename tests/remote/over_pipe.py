"""`connect` to a server in threads of this process, over two pipes."""

import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import pytest

import agentfs
from agentfs.remote.client import RemoteWorkspace, connect
from agentfs.remote.server import Server
from agentfs.remote.wire import ProtocolError

# Tests that are skipped with --connect, by the reason: both sides are in one process there.
_LOCAL = {
    "it forks or kills the process that has both sides": {
        "test_a_forked_process_has_events_of_its_own", "test_a_kill_before_a_call_leaves_all_old_or_all_new",
        "test_a_process_forked_during_a_search_does_not_wait_for_its_end",
    },
    "it interrupts or traces the thread of the call, and the change is made in another one": {
        "test_a_change_interrupted_after_some_calls_is_whole_and_leaves_nothing",
        "test_an_interrupt_waits_for_the_end_of_the_change",
        "test_the_handlers_of_several_signals_run_after_the_change_even_if_each_raises",
    },
    "its faults hit the connection and the server too": {
        "test_a_change_with_a_failing_call_is_made_or_not_made", "test_a_file_system_without_locks",
        "test_a_root_that_cannot_be_opened_fails_with_a_typed_error",
        "test_a_read_with_a_failing_call_raises_a_typed_error_or_says_what_it_left_out",
    },
    "it counts memory, threads, descriptors or bytes of state, which the other side has too": {
        "test_a_cancelled_search_ends_soon", "test_a_workspace_that_nobody_closed_leaves_no_descriptor_open",
        "test_a_workspace_that_cannot_be_opened_leaves_no_descriptor_open",
        "test_delete_does_not_list_all_of_a_large_directory",
        "test_a_change_with_few_descriptors_is_made_or_not_made_and_leaves_no_second_name",
        "test_one_that_is_dropped_without_being_closed_holds_nothing",
        "test_the_memory_of_a_call_is_bounded[the changes of many files]",
    },
    "a subclass with tools of its own is not at the remote side": {
        "test_a_method_of_a_subclass_is_an_eighth_default_tool",
        "test_the_rules_hold_for_a_tool_of_a_subclass",
    },
}  # fmt: skip


class SkipLocal:
    """The plugin of pytest that skips them."""

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        reasons = {name: reason for reason, names in _LOCAL.items() for name in names}
        for item in items:
            if reason := reasons.get(item.name) or reasons.get(item.name.partition("[")[0]):
                item.add_marker(pytest.mark.skip(reason=reason))


class PipeServer:
    """A server in a thread of this process, and this side of two pipes to it."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        incoming, outgoing = os.pipe()
        output, self._outgoing = os.pipe()
        self._server = Server(self._outgoing, **options)
        self.streams = os.fdopen(output, "rb"), os.fdopen(outgoing, "wb", buffering=0)
        self._thread = threading.Thread(target=self._serve, args=(incoming,), daemon=True)
        self._thread.start()

    def _serve(self, incoming: int) -> None:
        with os.fdopen(incoming, "rb") as reader:
            try:
                with suppress(ProtocolError):  # an incomplete message
                    self._server.run(reader)
            finally:
                self._server.end()
                os.close(self._outgoing)


def open_pipe(**options: Any) -> Callable[[], tuple[Any, Any]]:
    """Return a function for `connect`, which starts a server with options of its command line."""
    return lambda: PipeServer({"root": "/", **options}).streams


class ConnectedWorkspace(RemoteWorkspace):
    """In place of `Workspace` in a run with --connect: opening one connects to a server on the same root."""

    def __new__(
        cls, root: Any, *, mounts: Any = None, state: Any = None, watch: Any = None, **options: Any
    ) -> Any:
        path = os.path.abspath(root) if isinstance(root, str | os.PathLike) else root
        above, name = os.path.split(os.path.abspath(state)) if state else (None, None)
        served = {"mounts": mounts or {}, "state": above}
        return connect(open_pipe(**served), path, state=name, **options)


def connect_all() -> None:
    """Let the tests that are collected from now on have remote workspaces."""
    agentfs.Workspace = ConnectedWorkspace  # type: ignore[misc] # it is what --connect is for

    def missing(self: RemoteWorkspace, name: str) -> Any:
        if name.startswith("_") and not name.startswith("__"):
            pytest.skip("it reaches inside of the workspace")
        raise AttributeError(name)

    RemoteWorkspace.__getattr__ = missing  # type: ignore[attr-defined] # as above
