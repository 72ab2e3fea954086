"""The state of a cache, in its directory `.agentfs`: what the store had, and what was being pushed."""

import json
import os
import zlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Self

from agentfs.base.lazy import shutil
from agentfs.errors import InvalidArgumentError
from agentfs.fs import DirectoryNode, FileNode, LinkNode, Node, quote
from agentfs.fs.own_directories import OwnDirectory
from agentfs.history.storage.database import Database
from agentfs.history.storage.state_directory import StateDirectory
from agentfs.limits import Limits
from agentfs.store.objects import META, Listed, Tag

LARGE = Limits().file_bytes  # files over it are neither decoded nor kept in memory
_LINK, _DIRECTORY = "-> ", "/"
# A kind is "known", "tried" (digests that were being pushed), or "value"; a key is a path, or a name.
_TABLE = """CREATE TABLE IF NOT EXISTS cache
    (kind TEXT, key TEXT, digest TEXT, row TEXT, PRIMARY KEY (kind, key)) WITHOUT ROWID"""
_PUT = "INSERT OR REPLACE INTO cache VALUES (?, ?, ?, ?)"
_PUT_TEXT = "INSERT OR IGNORE INTO contents VALUES (?, ?)"
_DELETE = "DELETE FROM cache WHERE kind = ? AND key = ?"
_DROP_TEXTS = "DELETE FROM contents WHERE lower(hex(digest)) NOT IN (SELECT digest FROM cache)"


class Known(NamedTuple):
    """A path as it was in the store when it was last pulled or pushed."""

    tag: Tag | None = None  # None for links and directories, which have no object
    size: int = 0
    digests: Sequence[str] = ()  # of the content, and of the contents that it was made from
    entry: str = ""  # in `TREE`
    mode: int = 0  # that the local file had then
    status: str = ""  # that the local file has with this content; "" if it must be read

    @property
    def listed(self) -> Listed | None:
        """The object as a listing has it; None if there is none."""
        return None if self.tag is None else (self.tag.get("e_tag", ""), self.size)

    @property
    def digest(self) -> str:
        """The digest of the content, or ""."""
        return self.digests[0] if self.digests else ""


def tree_entry(node: Node | None, default_mode: int) -> str:
    """Return the entry of a node in `TREE`; "" for a file with the default mode."""
    if isinstance(node, FileNode):
        return "" if node.mode == default_mode else f"{node.mode:o}"
    return "" if node is None else _LINK + node.target if isinstance(node, LinkNode) else _DIRECTORY


def entry_node(entry: str) -> Node | None:
    """Return the link or the empty directory of an entry; None for the mode of a file."""
    if entry.startswith(_LINK):
        return LinkNode(entry.removeprefix(_LINK))
    return DirectoryNode() if entry == _DIRECTORY else None


class CacheState:
    """The state of a cache, locked until it is closed."""

    def __init__(self, cache: str, identity: str) -> None:
        path = os.path.join(cache, META)
        self._directory = StateDirectory(path)
        try:
            self._database = Database(path, self._directory, "data")
            self._database.write([(_TABLE, ())])
            OwnDirectory(path).write(".gitignore", "*\n")  # recordings and searches leave the directory out
            shutil.rmtree(os.path.join(path, "parts"), ignore_errors=True)
            rows = {kind: dict[str, Any]() for kind in ("known", "tried", "value")}
            for kind, key, row in self._database.read("SELECT kind, key, row FROM cache")[0]:
                rows[kind][key] = json.loads(row)
            self.known = {path: Known(*row) for path, row in rows["known"].items()}
            self._tried: dict[str, list[str]] = rows["tried"]
            self._values = rows["value"]
            if (owner := self.value("identity", identity)) != identity:
                raise InvalidArgumentError(  # noqa: TRY301 - closed as after any error
                    f"The cache {quote(cache)} belongs to another store, {owner}.",
                    hint="Give each store and each branch a cache of its own.",
                    details={"parameter": "cache", "path": cache},
                )
            self.set("identity", identity)
        except BaseException:
            self._directory.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.defer([(_DROP_TEXTS, ())])
        self._database.flush()
        self._database.close()
        self._directory.close()

    def value(self, name: str, default: Any = None) -> Any:
        """Return a value."""
        return self._values.get(name, default)

    def set(self, name: str, value: Any) -> None:
        """Keep a value, from the next `save` on."""
        self._values[name] = value
        self._put("value", name, "", value)

    def note(self, path: str, known: Known | None) -> None:
        """Keep what is known of a path, from the next `save` on."""
        if known is not None:
            self.known[path] = known
            self._put("known", path, known.digest, known)
        elif self.known.pop(path, None):
            self._database.defer([(_DELETE, ("known", path))])

    def begin_push(self, path: str, digest: str, content: bytes) -> None:
        """Keep a content that will be pushed, so that a lost answer is recognised later, and save."""
        self._tried[path] = [digest, *self.tried(path)]
        self._put("tried", path, digest, self._tried[path])
        self.keep([(digest, content)])

    def end_push(self, path: str) -> None:
        """Forget what was being pushed to a path."""
        if self._tried.pop(path, None):
            self._database.defer([(_DELETE, ("tried", path))])

    def tried(self, path: str) -> Iterable[str]:
        """Return the digests of what was being pushed to a path."""
        return self._tried.get(path, ())

    def _put(self, kind: str, key: str, digest: str, value: Any) -> None:
        self._database.defer([(_PUT, (kind, key, digest, json.dumps(value)))])

    def keep(self, contents: Iterable[tuple[str, bytes]]) -> None:
        """Keep the contents of text files, which may be merged later, by digest, and save."""
        small = ((digest, data) for digest, data in contents if len(data) <= LARGE and b"\0" not in data)
        texts = [(bytes.fromhex(digest), zlib.compress(data, 1)) for digest, data in small]
        self._database.write((_PUT_TEXT, text) for text in texts)

    def save(self) -> None:
        """Write what was noted."""
        self._database.write(())

    def text(self, digest: str) -> bytes:
        r"""Return a content of the store; "\0", which is never merged, if it is not kept."""
        query = "SELECT data FROM contents WHERE digest = ?", (bytes.fromhex(digest),)
        found = self._database.read(query)[0]
        return zlib.decompress(found[0][0]) if found else b"\0"
