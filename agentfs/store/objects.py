"""`Objects`: the objects below one prefix of a store. Every change has a condition on the present object."""

import os
import re
import secrets
import urllib.error
import urllib.request
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import timedelta
from importlib import import_module
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from agentfs import errors
from agentfs.base import call_context
from agentfs.base.lazy import futures
from agentfs.fs import quote
from agentfs.fs.lock import file_locks

META = ".agentfs/"  # objects below it are not files of the tree
TREE = f"{META}tree.json"  # modes, links and empty directories
BRANCHES = f"{META}branches/"
_AFTER_BRANCHES = f"{META}branches0"  # "0" follows "/"
# Metadata: the digests of the content and of the contents that it was made from, newest first.
_DIGESTS = "agentfsdigests"
_TOGETHER = 1000  # requests, and keys in one answer of S3
IN_ONE_REQUEST = 200 * 1024 * 1024  # bytes; obstore sends larger objects in parts, without a condition
_PIECE = 16 * 1024 * 1024  # bytes of a download, because obstore limits the time of each request
_REFUSED = re.compile("Expired|Token|AccessKey|Signature|Skewed|AccessDenied|Forbidden|Unauthorized")
_ANSWER = re.compile(r"status code: (\d+(?: [A-Z]\w+)*)|<Code>(\w+)</Code>")
_CONTINUES = "Call it again: it continues where it was."
_CHECKED = "checked: a change by others between the check and the {} is lost"
_LOCKED = "checked, under a lock that this user's workers on this machine share, and no other program"
Tag = dict[str, str]  # the version of an object, as obstore takes it: `e_tag`, and `version` if there is one
Listed = tuple[str, int]  # the ETag and the size of an object
_Item = TypeVar("_Item")
_Outcome = TypeVar("_Outcome")


class ConditionFailed(Exception):  # noqa: N818 - a signal within this package
    """The object in the store is not the one that the condition names."""


class Object(NamedTuple):
    """An object whose body is not read yet."""

    tag: Tag
    size: int
    digests: tuple[str, ...]
    pieces: Iterator[bytes]


def open_store(url_or_store: Any, options: dict[str, Any]) -> Any:
    """Return the store of obstore for a URL, or the given one."""
    try:
        stores = import_module("obstore.store")
        return stores.from_url(url_or_store, **options) if isinstance(url_or_store, str) else url_or_store
    except ImportError:
        raise errors.UnsupportedSystemError(
            "Object stores need the package obstore.", hint="Run: pip install obstore"
        ) from None
    except Exception as error:  # noqa: BLE001 - its errors have no common class
        raise errors.InvalidArgumentError(f"obstore refuses the URL or an option: {_line(error)}.") from None


class Objects:
    """The objects whose keys begin with a prefix. Thread-safe."""

    def __init__(self, store: Any, prefix: str, max_concurrency: int) -> None:
        self._api, self._store, self.prefix = import_module("obstore"), store, prefix
        self._width, self.identity = max_concurrency, f"{store!r} {prefix}"
        kind = type(store).__name__
        self.is_local, self._signs = kind == "LocalStore", kind in {"S3Store", "AzureStore"}
        self._lists_in_order = kind in {"S3Store", "GCSStore"}

    def below(self, prefix: str) -> "Objects":
        """Return the objects below a longer prefix."""
        return Objects(self._store, self.prefix + prefix, self._width)

    @property
    def guarantees(self) -> dict[str, str]:
        """The condition or check that keeps each kind of change from overwriting another one."""
        signed = "checked, and conditional where the store knows conditional deletes"
        return {
            "create": "conditional",
            "update": _LOCKED if self.is_local else "conditional",
            "update over 200 MiB": _LOCKED if self.is_local else _CHECKED.format("upload"),
            "delete": _LOCKED if self.is_local else signed if self._signs else _CHECKED.format("delete"),
        }

    def list(self) -> dict[str, Listed]:
        """Return the objects of the tree, and `TREE`, by path. Branches are skipped."""
        found: dict[str, Listed] = {}
        offset: str | None = None
        while True:
            for path, listed in self._listed(offset):
                if path.startswith(BRANCHES) and offset is None and self._lists_in_order:
                    offset = self.prefix + _AFTER_BRANCHES
                    break
                if path == TREE or not path.startswith(META):
                    found[path] = listed
            else:
                return found

    def _listed(self, offset: str | None) -> Iterator[tuple[str, Listed]]:
        prefix, skipped = self.prefix or None, len(self.prefix)
        with _typed_errors():
            for page in self._api.list(self._store, prefix, offset=offset, chunk_size=_TOGETHER):
                call_context.check()
                yield from ((each["path"][skipped:], (each["e_tag"] or "", each["size"])) for each in page)

    def head(self, path: str) -> Tag | None:
        """Return the version of an object, or None."""
        with suppress(errors.NotFoundError), _typed_errors(path):
            return _tag(self._api.head(self._store, self.prefix + path))
        return None

    def get(self, path: str) -> Object | None:
        """Return an object, or None."""
        with suppress(errors.NotFoundError), _typed_errors(path):
            found = self._api.get(self._store, self.prefix + path)
            digests = tuple(str(found.attributes.get(_DIGESTS, "")).split())
            return Object(_tag(found.meta), found.meta["size"], digests, self._pieces(path, found))
        return None

    def _pieces(self, path: str, found: Any) -> Iterator[bytes]:
        """Yield the body of an object."""
        size, e_tag = found.meta["size"], found.meta["e_tag"]
        try:
            with _typed_errors(path):
                if size <= _PIECE:
                    yield bytes(found.bytes())
                    return
                for start in range(0, size, _PIECE):
                    options = {"range": (start, min(start + _PIECE, size)), "if_match": e_tag}
                    yield bytes(self._api.get(self._store, self.prefix + path, options=options).bytes())
        except ConditionFailed:
            raise errors.FileIOError(
                f"The object {quote(path)} was replaced while it was downloaded.", hint=_CONTINUES
            ) from None

    def put(self, path: str, body: Any, size: int, expected: Tag | None, digests: Iterable[str] = ()) -> Tag:
        """Create an object, or replace the one with the version `expected`; or raise ConditionFailed."""
        settings: dict[str, Any] = {"use_multipart": size > IN_ONE_REQUEST}
        if digests and not self.is_local:
            settings["attributes"] = {_DIGESTS: " ".join(digests)}
        if size <= IN_ONE_REQUEST and not (expected and self.is_local):
            settings["mode"] = expected or "create"
        with self._locked(path), _typed_errors(path):
            if "mode" not in settings and self.head(path) != (expected or None):
                raise ConditionFailed
            return _tag(self._api.put(self._store, self.prefix + path, body, **settings))

    def delete(self, path: str, expected: Tag) -> None:
        """Delete the object with the version `expected`; raise ConditionFailed if it has another one."""
        with self._locked(path), _typed_errors(path):
            found, key = self.head(path), self.prefix + path
            if found not in (None, expected):
                raise ConditionFailed
            if found is not None and self._signs:  # obstore sends no condition with a delete
                url = self._api.sign(self._store, "DELETE", key, timedelta(minutes=5))
                _delete(url, expected["e_tag"])
            elif found is not None:
                self._api.delete(self._store, key)

    def copy_from(self, source: "Objects", path: str) -> None:
        """Copy an object within the store, without a condition, unless it is gone."""
        with suppress(errors.NotFoundError), _typed_errors(path):
            self._api.copy(self._store, source.prefix + path, self.prefix + path)

    def check_conditions(self) -> None:
        """Test the conditions on an object of its own; raise `unsupported` if the store ignores them."""
        path, stale = f"{META}probe-{secrets.token_hex(8)}", {"e_tag": f'"{0:032}"', "version": "1"}
        refusal = errors.UnsupportedSystemError(
            "The store ignores conditions, so workers would overwrite each other; nothing was pushed.",
            hint="Use a store with conditional writes, such as S3, or a newer version of this one.",
        )
        tag = self.put(path, b"1", 1, None)
        try:
            for expected in (None, stale):
                with suppress(ConditionFailed):
                    tag = self.put(path, b"1", 1, expected)
                    raise refusal
        finally:
            self.delete(path, tag)

    def each(
        self, work: Callable[[_Item], _Outcome], items: Iterable[_Item]
    ) -> Iterator[tuple[_Item, _Outcome]]:
        """Do the work for each item in threads; yield the outcomes in order."""
        rest = iter(items)
        with futures.ThreadPoolExecutor(self._width, "agentfs-store") as pool:
            while part := [*islice(rest, _TOGETHER)]:
                yield from zip(part, pool.map(work, part), strict=True)

    def _locked(self, path: str) -> AbstractContextManager[object]:
        """Lock an object of a local directory, whose changes have no conditions."""
        top = str(self._store.prefix) if self.is_local else ""
        return file_locks({os.path.join(top, self.prefix, path): path}, top) if top else nullcontext()


def _tag(found: Any) -> Tag:
    return {name: found[name] for name in ("e_tag", "version") if found[name]}


def _delete(url: str, e_tag: str) -> None:
    request = urllib.request.Request(url, method="DELETE", headers={"If-Match": e_tag})  # noqa: S310 - the store's
    try:
        urllib.request.urlopen(request, timeout=60).close()  # noqa: S310 - as above
    except urllib.error.HTTPError as error:
        with error:
            if error.code in {409, 412}:
                raise ConditionFailed from None
            if error.code != 404:
                raise OSError(f"status code: {error.code} {error.read(2000)!r}") from None


@contextmanager
def _typed_errors(path: str = "") -> Generator[None]:
    """Convert the errors of obstore in the block; raise ConditionFailed if a condition is not met."""
    try:
        yield
    except (errors.AgentFSError, ConditionFailed):
        raise
    except Exception as error:  # noqa: BLE001 - as above
        kind, text = type(error).__name__, str(error)
        if kind in {"AlreadyExistsError", "PreconditionError"}:
            raise ConditionFailed from None
        codes = [code for found in _ANSWER.findall(text) for code in found if code]
        answer, hint = " ".join(codes) or _line(error), _CONTINUES
        leaf: type[errors.AgentFSError] = errors.FileIOError
        if "NoSuchBucket" in text:
            hint = "Check the URL and the endpoint."
        elif isinstance(error, FileNotFoundError):
            leaf = errors.NotFoundError
        elif isinstance(error, NotImplementedError):
            leaf, hint = errors.UnsupportedSystemError, "Use a store with conditional writes."
        elif kind == "InvalidPathError" or "invalid path" in text:
            leaf, hint = (
                errors.InvalidPathError,
                "obstore cannot list this name: rename or delete the object.",
            )
        elif kind in {"PermissionDeniedError", "UnauthenticatedError"} or _REFUSED.search(answer):
            leaf, hint = errors.RefusedError, f"Check the credentials and this machine's clock. {hint}"
        raise leaf(
            f"The store failed: {answer}.", hint=hint, details={"path": path, "error": answer}
        ) from None


def _line(error: object) -> str:
    """Return the first line of an error, without the queries of URLs, which may hold a signature."""
    return re.sub(r"\?[^\s)]*", "", quote(str(error).partition("\n\n")[0]))
