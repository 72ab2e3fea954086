"""Opening of a state directory, and of the journal in it."""

import os
from collections.abc import Generator
from contextlib import ExitStack, closing, contextmanager
from typing import Any

from agentfs import history
from agentfs.errors import InvalidArgumentError
from agentfs.fs import Root, quote
from agentfs.history.database import Contents, Database, from_stored, put_meta
from agentfs.history.journal import Journal
from agentfs.history.log import Step
from agentfs.history.report import name_paths
from agentfs.history.rows import node_from_json, step_from_json
from agentfs.history.state_directory import FILE, StateDirectory
from agentfs.limits import Limits

# The exceptions of reading a JSON value that has another form.
_WRONG_FORM = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


def open_history(path: str | os.PathLike[str] | None, root: Root, limits: Limits) -> Journal:
    """Return the journal of a root: a new one, or that of a state directory, which stays locked.

    The root gets notes on what was under way when a process died.
    """
    if path is None:
        root.recorder = journal = Journal(root, most_bytes=limits.snapshot_bytes)
        return journal
    with ExitStack() as opened:
        directory = opened.enter_context(closing(StateDirectory(path, [tree.source for tree in root.trees])))
        database = opened.enter_context(closing(Database(directory.path, directory)))
        _check_root(database, root.path, new=True)
        root.recorder = journal = Journal(root, Contents(database), limits.snapshot_bytes)
        begun, recording, seen = _load(journal)
        root.recovery_notes += _settle_begun(journal, begun)
        if recording is not None:
            recordings = history.recording.recordings_of(journal)
            with _of_right_form(database, "the open recording"):  # it observes the settled step too
                recordings.restore(recording, seen, root, limits)
            root.recovery_notes += (recordings.end_restored(),)
        database.flush()
        database.is_opening = False  # no error names the directory from now on
        opened.pop_all()
    journal.directory = directory
    return journal


def read_journal(path: str | os.PathLike[str], root: str | None = None) -> Journal:
    """Return the journal of a state directory for reading, even while a workspace uses the directory.

    A change that is under way is not included. If `root` is given, the directory must belong to that tree.
    """
    database = _existing(path)
    if root is not None:
        _check_root(database, os.path.realpath(root))
    journal = Journal(contents=Contents(database))
    _load(journal)
    return journal


def root_of(path: str | os.PathLike[str]) -> str:
    """Return the tree that a state directory belongs to; raises as `read_journal`."""
    with closing(_existing(path)) as database:
        return _root(database) or ""


def _existing(path: str | os.PathLike[str]) -> Database:
    directory = os.path.realpath(path)
    if not os.path.isfile(os.path.join(directory, FILE)):
        raise InvalidArgumentError(
            f"{quote(directory)} is not a state directory of agentfs.",
            hint="Name the directory in which a workspace keeps its state.",
            details={"parameter": "state", "path": directory},
        )
    return Database(directory)


def _root(database: Database) -> str | None:
    (rows,) = database.read("SELECT value FROM meta WHERE key = 'root'")
    with _of_right_form(database, "the root"):
        return str(from_stored(rows[0][0])) if rows else None


def _check_root(database: Database, root: str, *, new: bool = False) -> None:
    known = _root(database)
    if known is None and new:
        database.write([put_meta("root", root)])
    elif known != root:
        raise InvalidArgumentError(
            f"The state directory {quote(database.path)} belongs to another workspace, {quote(str(known))}.",
            hint=f"Give {quote(root)} a state directory of its own.",
            details={"parameter": "state", "path": database.path, "root": known},
        )


def _load(journal: Journal) -> tuple[Step | None, Any, Any]:
    """Fill a journal from its database.

    Return the step that was begun and not ended, and the open recording and its tree as JSON values.
    """
    contents, log, database = journal.contents, journal.log, journal.contents.database
    meta_rows, step_rows = database.read(
        "SELECT key, value FROM meta WHERE key != 'seen' OR EXISTS"
        " (SELECT 1 FROM meta WHERE key = 'recordings')",
        "SELECT number, begun, payload FROM steps ORDER BY number",
    )
    begun: Step | None = None
    with _of_right_form(database, "a checkpoint or an accepted base"):
        meta = {str(key): from_stored(value) for key, value in meta_rows}
        log.dropped = int(meta.get("dropped", 0))
        last = log.dropped + len(step_rows)
        log.checkpoints = {str(name): int(at) for name, at in meta.get("checkpoints", {}).items()}
        if not all(log.dropped <= at <= last for at in log.checkpoints.values()):
            raise ValueError(log.checkpoints)
        accepted = meta.get("accepted", {}).items()
        journal.accepted.update({str(path): node_from_json(node, contents) for path, node in accepted})
        journal.encodings.update(meta.get("encodings", {}))
    for number, is_begun, payload in step_rows:
        with _of_right_form(database, f"step {number}"):
            step = step_from_json(from_stored(payload), contents)
            toggled = [each.number for each in step.toggles or ()]
            if begun or number != log.position + 1 or not all(0 < each < number for each in toggled):
                raise ValueError(number)
            if is_begun:
                begun = step
            else:
                log.add(step)
    return begun, meta.get("recordings"), meta.get("seen")


@contextmanager
def _of_right_form(database: Database, what: str) -> Generator[None]:
    """Convert the errors of Python for values of a wrong form to the error for a damaged database."""
    try:
        yield
    except _WRONG_FORM:
        raise database.damaged(f"{what} is damaged, or missing") from None


def _settle_begun(journal: Journal, begun: Step | None) -> tuple[str, ...]:
    """End the step that was under way when a process died, with the changes that the tree shows as made."""
    if begun is None:
        return ()
    made = journal.made(begun)
    journal.replace_begun(made)
    done = f"the change of {name_paths(_paths(made))} was made, and undo takes it back"
    done = done if made.changes else "it was not made"
    return (f"a change of {name_paths(_paths(begun))} was under way when a process died; {done}",)


def _paths(step: Step) -> list[str]:
    """Return the paths of files, or of directories if there are no files."""
    files = [each.path for each in step.changes if not each.of_directory]
    return sorted(files or [each.path for each in step.changes])
