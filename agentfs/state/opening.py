"""Opening a state directory: what it is, whose it is, and where a process that died left it."""

import json
import os
from typing import Any, NamedTuple, cast

from agentfs.errors import FileIOError, InvalidArgumentError
from agentfs.fs import Root, quote
from agentfs.fs.log_file import LogFile
from agentfs.fs.state_directory import StateDirectory, read_small
from agentfs.journal import Journal, looking
from agentfs.state import entries
from agentfs.state.compaction import needed_bytes, rewritten
from agentfs.state.contents import KeptContents
from agentfs.state.ledger import KeptLedger
from agentfs.state.memory import MEMORY_HEADER, KeptShown
from agentfs.state.records import HEAD_BYTES, Damage, record
from agentfs.state.recovery import settled
from agentfs.state.replay import HEADER, replayed

VERSION = 1
FORMAT, JOURNAL, SHOWN = "format", "journal", "shown"
_MAGIC = "agentfs state"
_SLACK = 1024 * 1024
_ATTEMPTS = 3


class Opened(NamedTuple):
    """A state directory in use.

    Attributes:
        journal: The journal.
        shown: What was shown.
        told: What was found and put right, in words.
        directory: The directory.
    """

    journal: Journal
    shown: KeptShown
    told: tuple[str, ...]
    directory: StateDirectory

    def close(self) -> None:
        """Write down what is left to be, and let others use the directory."""
        self.journal.close()
        self.shown.close()
        self.directory.close()


def open_state(path: str | os.PathLike[str], root: Root) -> Opened:
    """Open a state directory, or begin one.

    Args:
        path: The directory.
        root: The tree.

    Returns:
        What it holds.

    Raises:
        InvalidArgumentError: invalid_argument: it is not outside of the tree, is another program's, another
            tree's, or that of a newer version.
        RefusedError: refused: it is another user's, or others may write in it.
        BusyError: busy: another workspace uses it.
        FileIOError: io: it is damaged, or the disk fails.
    """
    directory = StateDirectory(path, root, format_name=FORMAT, names=[JOURNAL, SHOWN])
    try:
        _check_format(directory, root)
        log = directory.open_log(JOURNAL)
        shown = directory.open_log(SHOWN)
        journal, told = _journal(directory, log, root)
        try:
            memory = KeptShown(shown)
        except Damage as damage:
            raise _damaged(directory.path, SHOWN, damage) from None
        return Opened(journal, memory, told, directory)
    except BaseException:
        directory.close()
        raise


def read_journal(path: str | os.PathLike[str], root: str | None = None) -> Journal:
    """Return the journal of a state directory to look at, also while a workspace uses it.

    What is under way at this moment is not in it.

    Args:
        path: The directory.
        root: The tree that it is to belong to; None for whichever it does.

    Raises:
        InvalidArgumentError: invalid_argument: it is no state directory, that of a newer version, or another
            tree's.
        FileIOError: io: it is damaged, or the disk fails.
    """
    directory, there = os.path.realpath(path), root_of(path)
    if root is not None:
        _check_root(directory, there, os.path.realpath(root))
    for attempt in range(_ATTEMPTS):
        log = LogFile(os.path.join(directory, JOURNAL))
        try:
            return _looked_at(log)
        except Damage as damage:
            log.close()
            if attempt + 1 == _ATTEMPTS:
                raise _damaged(directory, JOURNAL, damage) from None
            # It may be that an addition was taken back while it was read.
    raise AssertionError


def _looked_at(log: LogFile) -> Journal:
    contents = KeptContents(log)
    said = replayed(log, contents.content)
    contents.know(said.places)
    return Journal(contents, timeline=said.line)


def root_of(path: str | os.PathLike[str]) -> str:
    """Return the tree that a state directory belongs to.

    Args:
        path: The directory.

    Raises:
        InvalidArgumentError: invalid_argument: it is no state directory, or that of a newer version.
        FileIOError: io.
    """
    place = os.path.realpath(path)
    content = read_small(os.path.join(place, FORMAT))
    if content is None:
        raise InvalidArgumentError(
            f"{quote(place)} is no state directory of agentfs.",
            hint="Give the directory that was given as state=.",
            details={"parameter": "state", "path": place},
        )
    return _root_in(content, place)


def _check_format(directory: StateDirectory, root: Root) -> None:
    """Check whose directory it is; make it this tree's if it is nobody's."""
    content = directory.read(FORMAT)
    if content is None:
        if directory.has(JOURNAL) and directory.open_log(JOURNAL).size > HEAD_BYTES + len(HEADER):
            raise _damaged(directory.path, FORMAT, Damage(0, "it is missing"))
        for name, header in ((JOURNAL, HEADER), (SHOWN, MEMORY_HEADER)):
            directory.write(name, [record(entries.HEADER, header)])
        plain = {"format": _MAGIC, "version": VERSION, "root": root.path}
        directory.write(FORMAT, [json.dumps(plain).encode() + b"\n"])
        return
    there = _root_in(content, directory.path)
    _check_root(directory.path, there, root.path)
    if not directory.has(JOURNAL):
        raise _damaged(directory.path, JOURNAL, Damage(0, "it is missing"))


def _check_root(directory: str, there: str, root: str) -> None:
    if there != root:
        raise InvalidArgumentError(
            f"The state directory {quote(directory)} belongs to another workspace, {quote(there)}.",
            hint=f"Give {quote(root)} a state directory of its own; if that tree was moved here, write its"
            f' new path as "root" into {quote(os.path.join(directory, FORMAT))}.',
            details={"parameter": "state", "path": directory, "root": there},
        )


def _root_in(content: bytes, path: str) -> str:
    details = {"parameter": "state", "path": path}
    try:
        plain: Any = json.loads(content)
    except (ValueError, RecursionError):
        plain = None
    said = cast("dict[str, Any]", plain) if isinstance(plain, dict) else {}
    version, root = said.get("version"), said.get("root")
    if said.get("format") != _MAGIC or not isinstance(version, int) or not isinstance(root, str):
        raise InvalidArgumentError(
            f"{quote(path)} is no state directory of agentfs: its file {quote(FORMAT)} says something else.",
            hint="Give an empty directory, or one that is not there yet.",
            details=details,
        )
    if version != VERSION:
        raise InvalidArgumentError(
            f"The state directory {quote(path)} has version {version} of the format, and this agentfs knows"
            f" version {VERSION}.",
            hint="Use the agentfs that wrote it, or give a new directory.",
            details={**details, "version": version},
        )
    return root


def _journal(directory: StateDirectory, log: LogFile, root: Root) -> tuple[Journal, tuple[str, ...]]:
    contents = KeptContents(log)
    try:
        said = replayed(log, contents.content)
        if said.end < log.size:
            log.cut(said.end)
        if log.size > _SLACK and log.size > 2 * needed_bytes(said) + _SLACK:
            log.replace(rewritten(log, said))
            said = replayed(log, contents.content)
    except Damage as damage:
        raise _damaged(directory.path, JOURNAL, damage) from None
    contents.know(said.places)
    ledger = KeptLedger(log, looking(root))
    told = settled(said, ledger, root)
    return Journal(contents, ledger, said.line), told


def _damaged(directory: str, name: str, damage: Damage) -> FileIOError:
    file = os.path.join(directory, name)
    hint = "Move the directory away and begin a new one: the files of the workspace are untouched by it."
    if name == SHOWN:
        hint = f"Remove {quote(file)}: what was shown is forgotten then, and the journal stays."
    elif name == JOURNAL and damage.place:
        hint += f" To keep the steps before the damage: truncate -s {damage.place} {quote(file)}"
    return FileIOError(
        f"The state directory {quote(directory)} is damaged: in {quote(name)}, at byte {damage.place},"
        f" {damage.what}.",
        hint=hint,
        details={"path": directory, "file": name, "place": damage.place},
    )
