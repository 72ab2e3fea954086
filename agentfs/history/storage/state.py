"""Opening of a state directory, and recovery after a process died during a change."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from agentfs.errors import AgentFSError, InvalidArgumentError
from agentfs.fs import Change, DirectoryNode, Root, quote
from agentfs.fs.node import reverse
from agentfs.history.journal import MAX_FILE_BYTES, Journal, RecoveryState, node_reader
from agentfs.history.report import changed_meanwhile, name_paths
from agentfs.history.storage.contents import Contents
from agentfs.history.storage.database import Database, put_meta
from agentfs.history.storage.read_history import PersistentReadTracker
from agentfs.history.storage.state_directory import FILE, StateDirectory
from agentfs.history.storage.step_log import Ledger, Loaded, StepLog
from agentfs.limits import Limits
from agentfs.policy import Durability
from agentfs.text import plural

_MOVE_ROOT = "UPDATE meta SET value = '{}' WHERE key = 'root'"


MakeLedger = Callable[..., Ledger]  # called with a database, and `unfinished` if a change is under way


class State(NamedTuple):
    """A state directory in use."""

    journal: Journal
    read_tracker: PersistentReadTracker
    messages: tuple[str, ...]  # notes on repairs
    database: Database
    directory: StateDirectory

    def close(self) -> None:
        """Write unwritten records, and unlock the directory."""
        self.read_tracker.close()
        self.journal.close()
        self.directory.close()


def open_state(
    path: str | os.PathLike[str],
    root: Root,
    durability: Durability,
    limits: Limits,
    make_ledger: MakeLedger | None = None,
) -> State:
    """Open a state directory, or begin one."""
    directory = StateDirectory(path, [tree.source for tree in root.trees])
    database: Database | None = None
    try:
        database = Database(directory.path, directory, durability)
        _check_root(database, root.path, new=True)
        log = StepLog(Contents(database))
        loaded = log.load()
        if make_ledger is not None:
            unfinished = loaded.begun is not None or loaded.rewind is not None
            log.ledger = make_ledger(database, unfinished=unfinished)
        messages, made = _recover(loaded, log, root)
        database.flush()
        tracker = PersistentReadTracker(database)
        if tracker.damage:
            messages += (f"the read history was damaged and has been deleted: {tracker.damage}",)
        log.contents.drop_unneeded()
        database.flush()
        with suppress(AgentFSError):  # the file only stays too large
            database.truncate_log()
        database.opened()
        journal = Journal(log, node_reader(root), loaded.timeline, loaded.accepted)
        messages += _end_recordings(journal, log, root, limits, made)
        return State(journal, tracker, messages, database, directory)
    except BaseException:
        if database is not None:
            database.close()
        directory.close()
        raise


def read_journal(path: str | os.PathLike[str], root: str | None = None) -> Journal:
    """Return the journal of a state directory for reading, even while a workspace uses the directory.

    A change that is under way is not included. If `root` is given, the directory must belong to that tree.
    """
    database = _existing(path)
    if root is not None:
        _check_root(database, os.path.realpath(root))
    log = StepLog(Contents(database))
    loaded = log.load()
    return Journal(log, timeline=loaded.timeline, accepted=loaded.accepted)


def root_of(path: str | os.PathLike[str]) -> str:
    """Return the tree that a state directory belongs to; raises as `read_journal`."""
    database = _existing(path)
    try:
        return _root(database) or ""
    finally:
        database.close()


def _existing(path: str | os.PathLike[str]) -> Database:
    directory = os.path.realpath(path)
    if not os.path.isfile(os.path.join(directory, FILE)):
        raise InvalidArgumentError(
            f"{quote(directory)} is not a state directory of agentfs.",
            hint="Name the directory in which a workspace keeps its state.",
            details={"parameter": "state", "path": directory},
        )
    return Database(directory, None, "fast")


def _root(database: Database) -> str | None:
    (rows,) = database.read("SELECT value FROM meta WHERE key = 'root'")
    try:
        return str(json.loads(rows[0][0])) if rows else None
    except (ValueError, TypeError):
        raise database.damaged("the root is damaged") from None


def _check_root(database: Database, root: str, *, new: bool = False) -> None:
    known = _root(database)
    if known is None and new:
        database.write([put_meta("root", root), put_meta("position", 0)])
    elif known != root:
        file, value = os.path.join(database.path, FILE), json.dumps(root).replace("'", "''")
        raise InvalidArgumentError(
            f"The state directory {quote(database.path)} belongs to another workspace, {quote(str(known))}.",
            hint=f"Give {quote(root)} a state directory of its own; if that tree was moved here, set its new"
            f" path by SQLite in {quote(file)}: {_MOVE_ROOT.format(value)}",
            details={"parameter": "state", "path": database.path, "root": known},
        )


def _recover(loaded: Loaded, log: StepLog, root: Root) -> tuple[tuple[str, ...], tuple[Change, ...]]:
    """Finish the step, undo or redo that was under way when a process died.

    The tree shows which changes were made. Return messages and these changes.
    """
    timeline, step, rewind = loaded.timeline, loaded.begun, loaded.rewind
    position = timeline.position
    if step is not None:
        state = RecoveryState(step.changes, node_reader(root))
        made = step._replace(changes=state.made) if state.made else None
        log.finish_step(made, position, whole=state.whole)
        if made is not None:
            timeline.add(made)
        with suppress(AgentFSError):  # in a read-only workspace they stay
            remove = reverse(state.stray)
            root.apply(
                remove, max_bytes=MAX_FILE_BYTES, conflict=partial(changed_meanwhile, root=root), undoing=True
            )
        return tuple(_messages(state, rewinding=False)), state.made
    if rewind is None:
        return (), ()
    state = RecoveryState(rewind.changes, node_reader(root))
    if state.complete:
        timeline.reorder(rewind.order)
    log.finish_rewind(rewind if state.complete else None, whole=state.whole)
    return tuple(_messages(state, rewinding=True)), state.made


def _end_recordings(
    journal: Journal, log: StepLog, root: Root, limits: Limits, made: tuple[Change, ...]
) -> tuple[str, ...]:
    """End the recordings that were open when a process died; return messages.

    `made` are changes of the workspace that the recordings have not observed.
    """
    messages: list[str] = []
    journal.recordings.restore(log, root, limits)
    journal.recordings.observe(made)
    for opened, step in journal.end_late_recordings():
        found = "nothing that can be undone" if step is None else plural(len(step.changes), "path")
        messages.append(
            f"recording {quote(opened.label)} was open when a process died; recorded until now: {found}"
        )
    return tuple(messages)


def _messages(state: RecoveryState, *, rewinding: bool) -> Iterator[str]:
    what = "undoing or redoing" if rewinding else "a change of"
    everything = (*state.made, *state.unmade, *state.conflicting)
    paths = _names(tuple(change for change in everything if not _is_directory(change)) or everything)
    if state.complete:
        yield f"{what} {paths} was complete when a process died, and is now in the journal"
    elif not state.made and not state.conflicting:
        yield f"{what} {paths} was under way when a process died, and was not made"
    else:
        yield f"{what} {paths} was under way when a process died"
        if state.made:
            recorded = "is not in the journal" if rewinding else "is in the journal"
            yield f"the change of {_names(state.made)} was made, and {recorded}"
        if state.unmade:
            yield f"the change of {_names(state.unmade)} was not made"
        if state.conflicting:
            yield f"{_names(state.conflicting)} has neither its old content nor the new one: look at it"


def _names(changes: tuple[Change, ...]) -> str:
    return name_paths(sorted(change.path for change in changes))


def _is_directory(change: Change) -> bool:
    return isinstance(change.before or change.after, DirectoryNode)
