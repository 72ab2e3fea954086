"""`Objects`: the objects of a store. Every change has a condition on the present object."""

import json
import os
import re
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from importlib import import_module
from typing import Any

from agentfs import errors
from agentfs.base import call_context
from agentfs.fs import quote
from agentfs.fs.lock import file_locks, lock_keys

LARGEST_OBJECT = 64 * 1024 * 1024  # bytes of an object; one request sends or fetches it
# Replaces an object that is about to be deleted, since a delete has no condition and this has one.
_DELETED = b"\0This object of agentfs is being deleted.\n"
_STALE = json.dumps({"e_tag": f'"{0:032}"', "version": "1"})  # a version that no object has
_ANSWER = re.compile(r"(?<=status code: )\d+(?: [A-Z]\w+)*|(?<=<Code>)\w+")
_REFUSED = "^Unauthenticated|Expired|Token|AccessKey|Signature|Skewed|Denied|Unauthorized|Forbidden"
_AGAIN = "Call it again: it continues where it was."
# Our errors, and the next step, by a pattern of the store's kind of error and its answer. 20: below a file.
_ERRORS = {
    r"^(NotFound|FileNotFound)(?!.*NoSuchBucket)|os error 20\b": (errors.NotFoundError, ""),
    "^NotImplemented|^NotSupported": (errors.UnsupportedSystemError, "Use a store with conditional writes."),
    "^InvalidPath|invalid path": (errors.InvalidPathError, "obstore cannot list it: rename or delete it."),
    _REFUSED: (errors.RefusedError, f"Check the credentials and this machine's clock. {_AGAIN}"),
    "": (errors.FileIOError, f"Check the URL and the network. {_AGAIN}"),
}


class ConditionFailed(Exception):  # noqa: N818 - a signal within this package
    """The object in the store is not the one that the condition names."""


class Objects:
    """The objects of one store. Thread-safe."""

    def __init__(self, url_or_store: Any, options: dict[str, Any]) -> None:
        try:
            self._api, stores = import_module("obstore"), import_module("obstore.store")
        except ImportError:
            wrong = "Object stores need the package obstore."
            raise errors.UnsupportedSystemError(wrong, hint="Run: pip install obstore") from None
        self._store = url_or_store
        if isinstance(url_or_store, str):
            if url_or_store.startswith("file:"):  # an empty directory would be in the way of a file
                options = {"automatic_cleanup": True, **options}
            try:
                self._store = stores.from_url(url_or_store, **options)
            except Exception as error:  # noqa: BLE001 - its errors have no common class
                message = f"obstore refuses the URL or an option: {_line(error)}."
                raise errors.InvalidArgumentError(message) from None
        self._directory = str(self._store.prefix) if type(self._store).__name__ == "LocalStore" else ""

    def list(self) -> Iterator[tuple[str, str, int]]:
        """Yield the path, the version and the size of each object."""
        with _typed_errors():
            for page in self._api.list(self._store, chunk_size=1000):
                yield from ((each["path"], _tag(each), each["size"]) for each in page)

    def get(self, path: str) -> tuple[str, bytes | None]:
        """Return the version and the content of an object.

        The version is "" if there is no object; the content is None then, and if it is being deleted.
        """
        with suppress(errors.NotFoundError), _typed_errors(path):
            found = self._api.get(self._store, path)
            if found.meta["size"] > LARGEST_OBJECT:
                raise errors.TooLargeError(f"The object {quote(path)} has more than {LARGEST_OBJECT} bytes.")
            data = bytes(found.bytes())
            return _tag(found.meta), None if data == _DELETED else data
        return "", None

    def put(self, path: str, data: bytes, expected: str) -> str:
        """Create an object, or replace the one with the version `expected`; return the new version.

        Raises:
            ConditionFailed: It exists, or has another version.
        """
        mode = json.loads(expected) if expected else "create"
        with self._locked(path), _typed_errors(path):
            if self._directory and expected:  # obstore has no conditions on files
                if self.get(path)[0] != expected:
                    raise ConditionFailed
                mode = "overwrite"
            return _tag(self._api.put(self._store, path, data, mode=mode, use_multipart=False))

    def delete(self, path: str, expected: str) -> None:
        """Delete the object with the version `expected`; raise ConditionFailed if it has another one."""
        self.put(path, _DELETED, expected)
        with suppress(errors.NotFoundError), _typed_errors(path):
            self._api.delete(self._store, path)

    def check_conditions(self, path: str) -> str:
        """Create an object unless it exists, test that conditions on it count, and return its version.

        Raises:
            AgentFSError: `unsupported` if the store ignores conditions.
        """
        with suppress(ConditionFailed):
            self.put(path, os.urandom(16).hex().encode(), "")
        tag, data = self.get(path)
        for expected in ("", _STALE):
            with suppress(ConditionFailed):
                self.put(path, data or b"", expected)
                raise errors.UnsupportedSystemError(
                    "The store ignores conditions, so that workers overwrite each other. Nothing was pushed.",
                    hint="Use a store with conditional writes, such as S3, or a newer version of this one.",
                )
        return tag

    def _locked(self, path: str) -> AbstractContextManager[object]:
        """Lock an object of a local directory, whose changes have no conditions."""
        top = self._directory
        return file_locks(lock_keys([os.path.join(top, path)]), top, path) if top else nullcontext()


def _tag(meta: Any) -> str:
    """Return a version: the ETag, and the store's own version if it has one, as JSON."""
    found = {name: meta[name] for name in ("e_tag", "version") if meta[name]}
    return json.dumps(found) if found else ""


@contextmanager
def _typed_errors(path: str = "") -> Generator[None]:
    """Convert the errors of obstore in the block; raise ConditionFailed if a condition is not met."""
    call_context.check()
    try:
        yield
    except (errors.AgentFSError, ConditionFailed):
        raise
    except Exception as error:  # noqa: BLE001 - its errors have no common class
        kind, text = type(error).__name__, str(error)
        if kind in {"AlreadyExistsError", "PreconditionError"}:
            raise ConditionFailed from None
        answer = " ".join(_ANSWER.findall(text)) or _line(error)
        leaf, hint = next(each for pattern, each in _ERRORS.items() if re.search(pattern, f"{kind} {answer}"))
        raise leaf(f"The store failed: {answer}.", hint=hint, details={"path": path}) from None


def _line(error: object) -> str:
    """Return the first line of an error, without the queries of URLs, which may hold a signature."""
    return re.sub(r"\?[^\s)]*", "", quote(str(error).partition("\n\n")[0]))
