"""The state of a cache, in its directory `.agentfs`: what the store had, and what was being pushed."""

import json
import os
import zlib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Self

from agentfs.base.lazy import shutil
from agentfs.errors import InvalidArgumentError
from agentfs.fs import DirectoryNode, FileNode, LinkNode, Node, quote
from agentfs.fs.own_directories import OwnDirectory
from agentfs.history.storage.database import Database
from agentfs.history.storage.state_directory import StateDirectory
from agentfs.limits import Limits
from agentfs.store.remote import META, Tag

LARGE = Limits().file_bytes  # files over it are neither decoded nor kept in memory
_LINK, _DIRECTORY = "-> ", "/"
# Keys are paths; "/NAME" for a value; and "PATH//DIGEST" for a content that was being pushed.
_TABLE = "CREATE TABLE IF NOT EXISTS store (key TEXT PRIMARY KEY, digest TEXT, row TEXT) WITHOUT ROWID"
_PUT = "INSERT OR REPLACE INTO store VALUES (?, ?, ?)"
_DROP_TEXTS = "DELETE FROM contents WHERE lower(hex(digest)) NOT IN (SELECT digest FROM store)"


class Known(NamedTuple):
    """A path as it was in the store when it was last pulled or pushed."""

    tag: Tag = {}  # empty for links and directories, which are no objects
    size: int = 0
    digests: tuple[str, ...] = ()  # of the content, and of the contents that it was made from
    entry: str = ""  # in `TREE`
    mode: int = 0  # that the local file had then
    status: str = ""  # that the local file has with this content; "" if it must be read

    @property
    def digest(self) -> str:
        """The digest of the content, or ""."""
        return self.digests[0] if self.digests else ""


def entry_of(node: Node | None, default_mode: int) -> str:
    """Return the entry of a node in `TREE`; "" for a file with the default mode."""
    if isinstance(node, FileNode):
        return "" if node.mode == default_mode else f"{node.mode:o}"
    return "" if node is None else _LINK + node.target if isinstance(node, LinkNode) else _DIRECTORY


def node_of(entry: str) -> Node | None:
    """Return the link or the empty directory of an entry; None for the mode of a file."""
    if entry.startswith(_LINK):
        return LinkNode(entry.removeprefix(_LINK))
    return DirectoryNode() if entry == _DIRECTORY else None


class CacheState:
    """The state of a cache, locked until it is closed."""

    def __init__(self, cache: str, identity: str) -> None:
        path = os.path.join(cache, META)
        self._directory = StateDirectory(path, None)
        try:
            self._database = Database(path, self._directory, "data")
            self._database.write([(_TABLE, ())])
            OwnDirectory(path).write(".gitignore", "*\n")  # recordings and searches leave the directory out
            shutil.rmtree(os.path.join(path, "parts"), ignore_errors=True)
            self._rows = dict(self._database.read("SELECT key, row FROM store")[0])
            if (owner := self.value("identity", identity)) != identity:
                raise InvalidArgumentError(  # noqa: TRY301 - closed as after any error
                    f"The cache {quote(cache)} belongs to another store, {owner}.",
                    hint="Give each store and each branch a cache of its own.",
                    details={"parameter": "cache", "path": cache},
                )
            self._put([("/identity", "", json.dumps(identity))])
        except BaseException:
            self._directory.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()
        self._directory.close()

    def value(self, name: str, default: Any = None) -> Any:
        """Return a value."""
        row = self._rows.get(f"/{name}")
        return default if row is None else json.loads(row)

    def known(self) -> dict[str, Known]:
        """Return what is known of the store, by path."""
        rows = (
            (key, json.loads(row)) for key, row in self._rows.items() if "//" not in key and key[0] != "/"
        )
        return {path: Known(*row[:2], tuple(row[2]), *row[3:]) for path, row in rows}

    def attempts(self, path: str, digests: Iterable[str]) -> set[str]:
        """Return those contents that were being pushed to a path."""
        return {digest for digest in digests if f"{path}//{digest}" in self._rows}

    def text(self, digest: str) -> bytes:
        r"""Return a content of the store; "\0", which is never merged, if it is not kept."""
        query = "SELECT data FROM contents WHERE digest = ?", (bytes.fromhex(digest),)
        found = self._database.read(query)[0]
        return zlib.decompress(found[0][0]) if found else b"\0"

    def keep(self, nodes: Mapping[str, FileNode], *, pushing: bool = False) -> None:
        """Keep contents that may be merged later: of text files, by path."""
        texts = ((node.digest, node.load()) for node in nodes.values() if node.size <= LARGE)
        texts = (
            (bytes.fromhex(digest), zlib.compress(data, 1)) for digest, data in texts if b"\0" not in data
        )
        self._database.write(("INSERT OR IGNORE INTO contents VALUES (?, ?)", text) for text in texts)
        if pushing:
            self._put((f"{path}//{node.digest}", node.digest, "") for path, node in nodes.items())

    def save(self, rows: Mapping[str, Known | None], acknowledged: set[str], **values: Any) -> None:
        """Write what is known of some paths, and values; drop what was being pushed to acknowledged paths."""
        dropped = [key for key in self._rows if "//" in key and key.partition("//")[0] in acknowledged]
        dropped += [path for path, known in rows.items() if known is None]
        self._database.write(("DELETE FROM store WHERE key = ?", (key,)) for key in dropped)
        for key in dropped:
            self._rows.pop(key, None)
        self._put(
            (path, known.digest, json.dumps(known)) for path, known in rows.items() if known is not None
        )
        self._put((f"/{name}", "", json.dumps(value)) for name, value in values.items())
        self._database.write([(_DROP_TEXTS, ())] if rows else ())

    def _put(self, rows: Iterable[tuple[str, str, str]]) -> None:
        rows = [*rows]
        self._database.write((_PUT, row) for row in rows)
        self._rows.update((key, row) for key, _, row in rows)
