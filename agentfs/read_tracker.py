"""What a workspace has shown to its model: which versions of which files, and which lines of them.

Pure memory, no disk. Keys are real paths, so that a file known under two names is one file. A version is a
revision; lines shown in several reads of one version are united. Memory is bounded: the versions of the files
used longest ago are forgotten first, and the texts of versions before the versions themselves. What is
forgotten counts as never shown, which makes `write` ask for a read: the safe side.

The names of lines belong to the text of a version and are forgotten with it. Names given after that are made
with another salt, so that a name still remembered elsewhere never comes to mean another line.
"""

import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Lock

from agentfs.line_ranges import Hunk, NamedVersion, ReadRecord, carried_ranges, untouched_ranges, version_of
from agentfs.text import bodies_of, carried_ids, count_lines, fresh_ids

MAX_FILES = 4096
MAX_VERSIONS = 16
MAX_TEXT_BYTES = 32 * 1024 * 1024
MAX_ONE_TEXT_BYTES = MAX_TEXT_BYTES // 4
MAX_NAMED_LINES = 250_000
_ENTRY_BYTES = 400  # what one kept text takes beside itself


class ReadTracker:
    """The memory of one workspace; thread-safe and bounded.

    Keys are real paths (`OpenFile.real_path`, `Changed.real_path`).
    """

    def __init__(self) -> None:
        self._lock = Lock()
        # Both from the longest unused to the latest; the texts apart, because they are dropped earlier.
        self._files: OrderedDict[str, OrderedDict[str, ReadRecord]] = OrderedDict()
        self._texts: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._text_bytes = 0
        # The names of the lines of such texts, put together, and the versions of a file that have them.
        self._ids: dict[tuple[str, str], str] = {}
        self._named: dict[str, list[str]] = {}
        # The version of a file whose names a reader was given last, until the file is changed here.
        self._given: dict[str, str] = {}
        self._generation = 0
        self._told: OrderedDict[str, str] = OrderedDict()

    def record_read(
        self, real_path: str, revision: str, text: str | None, first: int, last: int, total: int
    ) -> None:
        """Remember that lines were shown.

        Args:
            real_path: The file.
            revision: Its version.
            text: The whole decoded text if at hand, with its line ends.
            first: The first line shown in full, from 1; 0 for an empty file.
            last: The last line shown in full; less than `first` when none was.
            total: Lines in the file; when not counted to the end, any number above `last`.
        """
        with self._lock:
            known = self._version(real_path, revision)
            if known is not None and known.whole:
                version = known
            else:
                before = known.ranges if known is not None else ()
                added = ((max(first, 1), min(last, total)),) if first <= last else ()
                version = version_of(revision, (*before, *added), total)
            self._keep(real_path, version, text)

    def record_write(self, real_path: str, revision: str, text: str | None) -> None:
        """Remember that this workspace wrote the file, which shows it whole.

        Args:
            real_path: The file.
            revision: Its version now.
            text: The text written, as the file has it (line ends kept, no byte order mark).
        """
        with self._lock:
            self._give(real_path, None)
            self._keep(real_path, ReadRecord(revision, (), 0, whole=True), text)

    def record_edit(
        self, real_path: str, before: str, after: str, text: str | None, *, hunks: Sequence[Hunk], total: int
    ) -> None:
        """Carry what was seen of one version over to the version that an edit made of it.

        An edit neither gives nor takes: a whole version stays whole, of a part the same lines stay seen
        wherever they stand now, and a file never shown stays so. Lines that replace others are seen where
        all of the old ones were.

        Args:
            real_path: The file.
            before: The version that was edited.
            after: The version that the edit made.
            text: The whole decoded text now.
            hunks: What was replaced, in order and apart.
            total: Lines in the file now.
        """
        with self._lock:
            self._give(real_path, None)
            known = self._version(real_path, before)
            if text is not None and (real_path, before) in self._ids:
                self._carry_ids(real_path, before, after, text, hunks)
            if known is None:
                return
            version = self._version(real_path, after)
            if version is None or not version.whole:
                # The version after may be known already: an edit can bring an earlier version back.
                ranges = version.ranges if version is not None else ()
                version = version_of(after, (*ranges, *carried_ranges(known.ranges, hunks, total)), total)
            if known.whole:
                version = version._replace(whole=True)
            self._keep(real_path, version, text)

    def record_told(self, real_path: str, revision: str, text: str, hunks: Sequence[Hunk]) -> None:
        """Remember that it was told how a file differs from the version shown last.

        Lines that are as they were stay seen wherever they stand now; the others are not.

        Args:
            real_path: The file.
            revision: The version that stands there now.
            text: Its whole text.
            hunks: What differs from the version shown last.
        """
        with self._lock:
            versions = self._files.get(real_path)
            if not versions or revision in versions:
                return
            last = next(reversed(versions.values()))
            total = count_lines(text)
            ranges = ((1, sys.maxsize),) if last.whole else last.ranges
            carried = untouched_ranges(ranges, hunks, total)
            self._keep(real_path, version_of(revision, carried, total)._replace(whole=False), text)

    def line_ids(self, real_path: str, revision: str, text: str, *, given: bool = False) -> tuple[str, ...]:
        """Name the lines of a version: those that are still there as they were named before.

        Args:
            real_path: The file.
            revision: Its version.
            text: Its whole text.
            given: Whether a reader of the file is given the names.

        Returns:
            A name for each line; none where the text is too large to be remembered.
        """
        with self._lock:
            key = (real_path, revision)
            if key not in self._ids:
                if _size_of(text) > MAX_ONE_TEXT_BYTES or text.count("\n") > MAX_NAMED_LINES:
                    return ()
                lines = bodies_of(text)
                salt, taken = self._salt(), self._taken(real_path)
                before = self._named_version(real_path, -1)
                ids = (
                    fresh_ids(lines, taken, salt)
                    if before is None
                    else carried_ids(before.lines, before.ids, lines, taken, salt)
                )
                self._keep_ids(key, text, ids)
            if given and key in self._ids:
                self._give(real_path, revision)
            return tuple(self._ids.get(key, "").split())

    def given(self, real_path: str) -> str | None:
        """Return the version whose names a reader was given last; None once the file was changed here."""
        with self._lock:
            return self._given.get(real_path)

    def named(self, real_path: str) -> list[NamedVersion]:
        """Return the versions of a file whose lines have been named, the latest last."""
        with self._lock:
            count = len(self._named.get(real_path, ()))
            versions = [self._named_version(real_path, index) for index in range(count)]
            return [version for version in versions if version is not None]

    def texts(self, real_path: str) -> list[ReadRecord]:
        """Return the versions of a file whose texts are still at hand, the latest first."""
        with self._lock:
            versions = self._files.get(real_path) or OrderedDict[str, ReadRecord]()
            found = [
                version._replace(text=self._texts.get((real_path, version.revision)))
                for version in versions.values()
            ]
            return [version for version in reversed(found) if version.text is not None]

    def others(self, real_path: str) -> list[tuple[str, str]]:
        """Return the latest text at hand of each other file, with its real path; the latest used first."""
        with self._lock:
            found: list[tuple[str, str]] = []
            for path in reversed(self._files):
                versions = self._files[path]
                text = self._texts.get((path, next(reversed(versions)))) if path != real_path else None
                if text is not None:
                    found.append((path, text))
            return found

    def record_return(self, real_path: str, revision: str) -> None:
        """Remember that an undo or a redo brought a version back: it counts as the one shown last.

        Args:
            real_path: The file.
            revision: Its version now.
        """
        with self._lock:
            self._give(real_path, None)
            known = self._version(real_path, revision)
            if known is not None:
                self._keep(real_path, known, self._texts.get((real_path, revision)))

    def record_move(self, real_path: str, to: str) -> None:
        """Let what was shown of a file hold for its new path.

        Args:
            real_path: The file.
            to: Where it is now.
        """
        with self._lock:
            versions = self._files.get(real_path)
            for revision, version in list(versions.items()) if versions else []:
                self._keep(to, version, self._texts.get((real_path, revision)))

    def seen(self, real_path: str, revision: str) -> bool:
        """Tell whether this version was shown from the first to the last line, or written here."""
        with self._lock:
            known = self._version(real_path, revision)
            return known is not None and known.whole

    def last(self, real_path: str) -> ReadRecord | None:
        """Return the version of the file that was shown or written last, with its text if still at hand."""
        with self._lock:
            versions = self._files.get(real_path)
            if not versions:
                return None
            version = next(reversed(versions.values()))
            return version._replace(text=self._texts.get((real_path, version.revision)))

    def knows(self, real_path: str) -> bool:
        """Tell whether anything is remembered of a file."""
        with self._lock:
            return real_path in self._files or real_path in self._named

    def insisted(self, real_path: str, page: str) -> bool:
        """Tell whether this page is asked for again right after its reader was told that he has it.

        Args:
            real_path: The file.
            page: The version and the lines.

        Returns:
            False the first time, True the second, and so on in turn.
        """
        with self._lock:
            if self._told.pop(real_path, None) == page:
                return True
            self._told[real_path] = page
            while len(self._told) > MAX_FILES:
                self._told.popitem(last=False)
            return False

    def fork(self, is_staged: Callable[[str], bool]) -> "ForkedReadTracker":
        """Return a copy for a transaction, which comes back here with `ForkedReadTracker.join`.

        Args:
            is_staged: Tells of a real path whether the transaction has changed it.
        """
        return ForkedReadTracker(self, is_staged)

    def forget(self) -> None:
        """Forget everything, as after the model's context was cut."""
        with self._lock:
            self._told.clear()
            self._files.clear()
            for key in list(self._texts):
                self._drop_text(key)

    def memory(self) -> dict[str, object]:
        """Return a copy of all that is remembered, by the names of attributes."""
        with self._lock:
            return {
                "_files": OrderedDict((path, versions.copy()) for path, versions in self._files.items()),
                "_texts": self._texts.copy(),
                "_text_bytes": self._text_bytes,
                "_ids": self._ids.copy(),
                "_named": {path: revisions.copy() for path, revisions in self._named.items()},
                "_given": self._given.copy(),
                "_generation": self._generation,
                "_told": self._told.copy(),
            }

    def take(
        self,
        versions: Iterable[tuple[str, ReadRecord]],
        ids: Mapping[tuple[str, str], tuple[str, str]],
        given: Mapping[str, str | None],
        generation: int,
    ) -> None:
        """Add what a copy has come to remember.

        Args:
            versions: Real paths and versions with their texts, in the order in which they were shown.
            ids: The text of a version and the names of its lines, put together.
            given: The version of a file whose names a reader was given last.
            generation: How often the copy, or what it was made of, has forgotten names.
        """
        with self._lock:
            self._generation = max(self._generation, generation)
            for path, version in versions:
                known = self._version(path, version.revision)
                ranges = known.ranges if known is not None else ()
                whole = version.whole or (known is not None and known.whole)
                united = version_of(version.revision, (*ranges, *version.ranges), version.total)
                self._keep(path, united._replace(whole=whole or united.whole), version.text)
            for key, (text, joined) in ids.items():
                if key not in self._ids:
                    self._keep_ids(key, text, joined.split())
                elif self._ids[key] != joined:  # named by another thread meanwhile: neither is valid
                    self._drop_text(key)
            for path, revision in given.items():
                self._give(path, revision if (path, revision) in self._ids else None)

    def _version(self, real_path: str, revision: str) -> ReadRecord | None:
        versions = self._files.get(real_path)
        return versions.get(revision) if versions is not None else None

    def _keep(self, real_path: str, version: ReadRecord, text: str | None) -> None:
        versions = self._files.setdefault(real_path, OrderedDict())
        versions[version.revision] = version
        versions.move_to_end(version.revision)
        self._files.move_to_end(real_path)
        if text is not None:
            self._keep_text((real_path, version.revision), text)
        while len(versions) > MAX_VERSIONS:
            oldest, _ = versions.popitem(last=False)
            self._drop_text((real_path, oldest))
        while len(self._files) > MAX_FILES:
            path, dropped = self._files.popitem(last=False)
            for revision in dropped:
                self._drop_text((path, revision))

    def _keep_text(self, key: tuple[str, str], text: str) -> None:
        size = _size_of(text)
        if size > MAX_ONE_TEXT_BYTES:
            self._drop_text(key)
            return
        if key in self._texts:
            self._texts.move_to_end(key)
            return
        self._texts[key] = text
        self._text_bytes += size
        self._make_room()

    def _drop_text(self, key: tuple[str, str]) -> None:
        text = self._texts.pop(key, None)
        if text is not None:
            self._text_bytes -= _size_of(text)
        ids = self._ids.pop(key, None)
        if ids is not None:
            self._text_bytes -= _size_of(ids)
            path, revision = key
            self._named[path].remove(revision)
            if self._given.get(path) == revision:
                del self._given[path]
            if not self._named[path]:
                del self._named[path]
            self._generation += 1

    def _give(self, real_path: str, revision: str | None) -> None:
        if revision is None:
            self._given.pop(real_path, None)
        else:
            self._given[real_path] = revision

    def _make_room(self) -> None:
        while self._text_bytes > MAX_TEXT_BYTES:
            self._drop_text(next(iter(self._texts)))

    def _keep_ids(self, key: tuple[str, str], text: str, ids: Sequence[str]) -> None:
        self._keep_text(key, text)
        if key not in self._texts:
            return
        path, revision = key
        joined = " ".join(ids)
        self._ids[key] = joined
        self._text_bytes += _size_of(joined)
        named = self._named.setdefault(path, [])
        named.append(revision)
        while len(named) > MAX_VERSIONS or (len(named) > 1 and self._names(path) > 2 * MAX_NAMED_LINES):
            self._drop_text((path, named[0]))
        self._make_room()

    def _names(self, path: str) -> int:
        return sum(self._ids[path, revision].count(" ") + 1 for revision in self._named[path])

    def _carry_ids(self, path: str, before: str, after: str, text: str, hunks: Sequence[Hunk]) -> None:
        """Name the lines that an edit left, from the lines that it replaced."""
        old = self._named_version(path, self._named[path].index(before))
        if old is None or (path, after) in self._ids:
            return
        if text.count("\n") > MAX_NAMED_LINES:
            return
        changes = [(hunk.old_start, hunk.old_end, hunk.new_start, hunk.new_end) for hunk in hunks]
        ids = carried_ids(old.lines, old.ids, bodies_of(text), self._taken(path), self._salt(), changes)
        self._keep_ids((path, after), text, ids)

    def _named_version(self, path: str, index: int) -> NamedVersion | None:
        named = self._named.get(path)
        if not named:
            return None
        key = (path, named[index])
        known = self._version(path, named[index])
        ranges = ((1, sys.maxsize),) if known is not None and known.whole else known.ranges if known else ()
        lines = tuple(bodies_of(self._texts[key]))
        return NamedVersion(named[index], lines, tuple(self._ids[key].split()), ranges)

    def _taken(self, path: str) -> set[str]:
        return {name for revision in self._named.get(path, ()) for name in self._ids[path, revision].split()}

    def _salt(self) -> str:
        return str(self._generation) if self._generation else ""


class ForkedReadTracker(ReadTracker):
    """What a transaction has shown: at first a copy of what its workspace has.

    Args:
        origin: What the workspace has shown.
        is_staged: Tells of a real path whether the transaction has changed it.
    """

    def __init__(self, origin: ReadTracker, is_staged: Callable[[str], bool]) -> None:
        super().__init__()
        self._origin = origin
        self._is_staged = is_staged
        self._touched: dict[str, None] = {}
        # The versions that were read as they are on disk.
        self._on_disk: set[tuple[str, str]] = set()
        self.__dict__.update(origin.memory())

    def record_read(
        self, real_path: str, revision: str, text: str | None, first: int, last: int, total: int
    ) -> None:
        """Remember that lines were shown."""
        super().record_read(real_path, revision, text, first, last, total)
        self._note_read(real_path, revision)

    def record_told(self, real_path: str, revision: str, text: str, hunks: Sequence[Hunk]) -> None:
        """Remember that it was told how a file differs from the version shown last."""
        super().record_told(real_path, revision, text, hunks)
        self._note_read(real_path, revision)

    def line_ids(self, real_path: str, revision: str, text: str, *, given: bool = False) -> tuple[str, ...]:
        """Name the lines of a version."""
        ids = super().line_ids(real_path, revision, text, given=given)
        self._note_read(real_path, revision)
        return ids

    def forget(self) -> None:
        """Forget everything, in the workspace too: the model's context was cut."""
        super().forget()
        self._touched.clear()
        self._on_disk.clear()
        self._origin.forget()

    def join(self, *, committed: bool) -> None:
        """Let the workspace know what the transaction has shown.

        Args:
            committed: Whether its changes were made; otherwise only what was read from the disk joins.
        """
        with self._lock:
            versions = [
                (path, version._replace(text=self._texts.get((path, version.revision))))
                for path in self._touched
                for version in (self._files.get(path) or OrderedDict[str, ReadRecord]()).values()
                if committed or (path, version.revision) in self._on_disk
            ]
            ids = {
                (path, revision): (self._texts[path, revision], self._ids[path, revision])
                for path in self._touched
                for revision in self._named.get(path, ())
                if committed or (path, revision) in self._on_disk
            }
            given = {
                path: self._given.get(path)
                for path in self._touched
                if committed or (path, self._given.get(path)) in self._on_disk
            }
        self._origin.take(versions, ids, given, self._generation)

    def _note_read(self, real_path: str, revision: str) -> None:
        if not self._is_staged(real_path):
            self._on_disk.add((real_path, revision))

    def _keep(self, real_path: str, version: ReadRecord, text: str | None) -> None:
        super()._keep(real_path, version, text)
        self._touched[real_path] = None

    def _keep_ids(self, key: tuple[str, str], text: str, ids: Sequence[str]) -> None:
        super()._keep_ids(key, text, ids)
        self._touched[key[0]] = None

    def _give(self, real_path: str, revision: str | None) -> None:
        super()._give(real_path, revision)
        self._touched[real_path] = None


def _size_of(text: str) -> int:
    return sys.getsizeof(text) + _ENTRY_BYTES
