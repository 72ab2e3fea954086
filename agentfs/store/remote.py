"""`Remote`: the objects below one prefix of a store. Every change has a condition on the present object."""

import os
import re
import secrets
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from importlib import import_module
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from agentfs.base import call_context
from agentfs.base.lazy import futures
from agentfs.errors import (
    AgentFSError,
    FileIOError,
    InvalidPathError,
    NotFoundError,
    RefusedError,
    UnsupportedSystemError,
)
from agentfs.fs import quote
from agentfs.fs.lock import file_locks

META = ".agentfs/"  # objects below it are not files of the tree
TREE = META + "tree.json"  # modes, links and empty directories
BRANCHES = META + "branches/"
_AFTER_BRANCHES = META + "branches0"  # "0" follows "/"
_DIGESTS = (
    "agentfsdigests"  # metadata: digests of the content and of those that it was made from, newest first
)
KEPT_DIGESTS = 16
_PAGE = 1000  # keys in one answer of S3
_RETRIES = 4  # of a signed request; obstore has its own
_IN_ONE_REQUEST = 200 * 1024 * 1024  # bytes; obstore sends larger ones in parts, without a condition
_CREDENTIALS = re.compile("Expired|Token|AccessKey|Signature|Credential|Skewed|AccessDenied")
_CODE = re.compile(r"<Code>(\w+)</Code>")
_STATUS = re.compile(r"status code: (\d+[ A-Za-z]*)")
_Item = TypeVar("_Item")
_Outcome = TypeVar("_Outcome")


class Changed(Exception):  # noqa: N818 - a signal within this package
    """The object in the store is not the one that the condition names."""


class Tag(NamedTuple):
    """The version of an object. Stores compare one or the other."""

    e_tag: str = ""
    version: str = ""


class Listed(NamedTuple):
    """An object in a listing."""

    e_tag: str
    size: int


class Object(NamedTuple):
    """An object whose body is not read yet."""

    tag: Tag
    size: int
    digests: tuple[str, ...]
    body: Any

    def pieces(self) -> Iterator[bytes]:
        """Yield the body, and raise `io` if it is shorter than announced."""
        length = 0
        for piece in self.body.stream():
            length += len(piece)
            yield bytes(piece)
        if length != self.size:
            raise FileIOError(
                f"The store sent {length} of {self.size} bytes; nothing was changed.", hint="Call it again."
            )


def open_store(url_or_store: Any, options: dict[str, Any]) -> Any:
    """Return the store of obstore for a URL, or the given one."""
    try:
        stores = import_module("obstore.store")
    except ImportError:
        raise UnsupportedSystemError(
            "Object stores need the package obstore.", hint="Run: pip install 'agentfs-workspace[store]'"
        ) from None
    with _typed_errors():
        return stores.from_url(url_or_store, **options) if isinstance(url_or_store, str) else url_or_store


class Remote:
    """The objects whose keys begin with a prefix. Thread-safe."""

    def __init__(self, store: Any, prefix: str, max_concurrency: int) -> None:
        self._api, self._store = import_module("obstore"), store
        self.prefix, self._max_concurrency = prefix, max_concurrency
        self._kind = type(store).__name__
        self._is_local = self._kind == "LocalStore"
        self.deletes_checked = self._kind not in {"S3Store", "AzureStore"}  # no conditional delete

    @property
    def identity(self) -> str:
        """The store and prefix, without credentials."""
        return f"{self._store!r} {self.prefix}"

    def below(self, prefix: str) -> "Remote":
        """Return the objects below a longer prefix."""
        return Remote(self._store, self.prefix + prefix, self._max_concurrency)

    @property
    def guarantees(self) -> dict[str, str]:
        """What keeps each kind of change from overwriting another one."""
        checked = "checked: a change by others between the check and the {} is lost"
        locked = "checked, under a lock that this user's workers on this machine share, and no other program"
        delete = checked.format("delete") if self.deletes_checked else "conditional"
        return {
            "create": "conditional",
            "update": locked if self._is_local else "conditional",
            "delete": locked if self._is_local else delete,
            "update of more than 200 MiB": locked if self._is_local else checked.format("upload"),
            "lost answers": "recognised by content"
            if self._is_local
            else "recognised by content and metadata",
        }

    def list(self) -> dict[str, Listed]:
        """Return the objects of the tree by path, and `TREE`. Branches are skipped."""
        found: dict[str, Listed] = {}
        offset: str | None = None
        while True:
            for path, listed in self._listed(offset):
                if path.startswith(BRANCHES) and offset is None and self._kind in {"S3Store", "GCSStore"}:
                    offset = self.prefix + _AFTER_BRANCHES  # these stores list in order
                    break
                if path == TREE or not path.startswith(META):
                    found[path] = listed
            else:
                return found

    def _listed(self, offset: str | None) -> Iterator[tuple[str, Listed]]:
        skipped = len(self.prefix)
        with _typed_errors():
            stream = self._api.list(self._store, self.prefix or None, offset=offset, chunk_size=_PAGE)
            for page in stream:
                call_context.check()
                for each in page:
                    yield each["path"][skipped:], Listed(each["e_tag"] or "", each["size"])

    def head(self, path: str) -> Tag | None:
        """Return the version of an object, or None."""
        try:
            with _typed_errors(path):
                found = self._api.head(self._store, self.prefix + path)
        except NotFoundError:
            return None
        return Tag(found["e_tag"] or "", found["version"] or "")

    def get(self, path: str) -> Object | None:
        """Return an object, or None."""
        try:
            with _typed_errors(path):
                found = self._api.get(self._store, self.prefix + path)
        except NotFoundError:
            return None
        digests = str(found.attributes.get(_DIGESTS, "")).split()
        tag = Tag(found.meta["e_tag"] or "", found.meta["version"] or "")
        return Object(tag, found.meta["size"], tuple(digests), found)

    def put(self, path: str, body: Any, size: int, expected: Tag | None, digests: Iterable[str] = ()) -> Tag:
        """Create an object, or replace the one that has the version `expected`; raise Changed otherwise."""
        key, settings = self.prefix + path, dict[str, Any]()
        if not self._is_local:
            settings["attributes"] = {_DIGESTS: " ".join(islice(digests, KEPT_DIGESTS))}
        one_request = size <= _IN_ONE_REQUEST
        if expected is None and one_request:
            settings["mode"] = "create"
        elif expected is not None and one_request and not self._is_local:
            settings["mode"] = {name: value for name, value in expected._asdict().items() if value}
        settings["use_multipart"] = not one_request
        with self._locked(path), _typed_errors(path):
            if "mode" not in settings and self.head(path) != expected:
                raise Changed
            made = self._api.put(self._store, key, body, **settings)
        return Tag(made["e_tag"] or "", made["version"] or "")

    def delete(self, path: str, expected: Tag) -> None:
        """Delete the object if it has the version `expected`; raise Changed if it has another one."""
        if not self.deletes_checked:
            self._delete_signed(path, expected)
            return
        with self._locked(path):
            found = self.head(path)
            if found is not None and found != expected:
                raise Changed
            if found is not None:
                with _typed_errors(path):
                    self._api.delete(self._store, self.prefix + path)

    def copy_from(self, source: "Remote", path: str) -> None:
        """Copy an object within the store, without a condition."""
        with _typed_errors(path):
            self._api.copy(self._store, source.prefix + path, self.prefix + path)

    def check_conditions(self) -> None:
        """Test the conditions on an object of its own. Raise `unsupported` if the store ignores them."""
        path, stale = f"{META}probe-{secrets.token_hex(8)}", Tag(f'"{0:032}"', "1")
        self.put(path, b"1", 1, None)
        try:
            for expected in (None, stale):
                try:
                    self.put(path, b"2", 1, expected)
                except Changed:
                    continue
                raise UnsupportedSystemError(
                    "The store ignores the conditions of writes, so workers would overwrite each other's"
                    " changes; nothing was pushed.",
                    hint="Use a store with conditional writes, such as S3, or a newer version of this one.",
                )
            if not self.deletes_checked:
                try:
                    self.delete(path, stale)
                    self.deletes_checked = True  # it was deleted in spite of the condition
                except Changed:
                    pass
                except AgentFSError:
                    self.deletes_checked = True
        finally:
            if (present := self.head(path)) is not None:
                self.delete(path, present)

    def each(
        self, work: Callable[[_Item], _Outcome], items: Iterable[_Item]
    ) -> Iterator[tuple[_Item, _Outcome]]:
        """Do the work for each item in threads; yield outcomes as they come.

        After an error, the work that has begun is finished and yielded first.
        """
        failed: BaseException | None = None
        rest, width = iter(items), self._max_concurrency
        with futures.ThreadPoolExecutor(width, "agentfs-store") as pool:
            pending: dict[Any, _Item] = {}
            try:
                while True:
                    if failed is None:
                        pending |= {
                            pool.submit(work, item): item for item in islice(rest, 2 * width - len(pending))
                        }
                    if not pending:
                        break
                    for done in futures.wait(pending, return_when=futures.FIRST_COMPLETED).done:
                        item = pending.pop(done)
                        if (error := done.exception()) is None:
                            yield item, done.result()
                        else:
                            failed = failed or error
            finally:
                for each in pending:
                    each.cancel()
        if failed is not None:
            raise failed

    def _locked(self, path: str) -> AbstractContextManager[object]:
        """Lock an object of a local directory, whose changes have no conditions."""
        if not self._is_local:
            return nullcontext()
        top = str(self._store.prefix)
        return file_locks({os.path.join(top, self.prefix, path): path}, top)

    def _delete_signed(self, path: str, expected: Tag) -> None:
        """Delete by a request of our own, because obstore sends no condition with a delete."""
        for attempt in range(_RETRIES):
            with _typed_errors(path):
                url = self._api.sign(self._store, "DELETE", self.prefix + path, timedelta(minutes=5))
            request = urllib.request.Request(url, method="DELETE", headers={"If-Match": expected.e_tag})  # noqa: S310 - the scheme is that of the store
            try:
                urllib.request.urlopen(request, timeout=60).close()  # noqa: S310 - as above
            except urllib.error.HTTPError as error:
                with error:
                    if error.code == 404:
                        return
                    if error.code in {409, 412}:
                        raise Changed from None
                    if error.code < 500 or attempt == _RETRIES - 1:
                        raise _error_of(f"status code: {error.code} {error.read(2000)!r}", path) from None
            except OSError as error:
                if attempt == _RETRIES - 1:
                    raise _error_of(str(error), path) from None
            else:
                return
            time.sleep(0.1 * 4**attempt)


@contextmanager
def _typed_errors(path: str = "") -> Generator[None]:
    """Convert the errors of obstore in the block; raise Changed if a condition is not met."""
    try:
        yield
    except (AgentFSError, Changed):
        raise
    except NotImplementedError:
        raise UnsupportedSystemError(
            "The store cannot do this: it has no writes, or none with a condition."
        ) from None
    except Exception as error:
        kind = type(error).__name__
        if kind in {"AlreadyExistsError", "PreconditionError"}:
            raise Changed from None
        if isinstance(error, FileNotFoundError) and "NoSuchBucket" not in str(error):
            raise NotFoundError(f"There is no object {quote(path)}.", details={"path": path}) from None
        if isinstance(error, ValueError) or kind == "InvalidPathError" or "illegal character" in str(error):
            raise InvalidPathError(
                f"The store or the tree has a name that obstore refuses: {_first_line(error)}",
                hint="Rename or delete this object; nothing was changed.",
            ) from None
        if not kind.endswith("Error") or not type(error).__module__.startswith(("obstore", "builtins")):
            raise
        refused = kind in {"PermissionDeniedError", "UnauthenticatedError"}
        raise _error_of(str(error), path, refused=refused) from None


def _error_of(text: str, path: str, *, refused: bool = False) -> AgentFSError:
    """Return the error for an answer of the store. URLs in it may be signed, so their queries are left out."""
    code, status = _CODE.search(text), _STATUS.search(text)
    answer = " ".join(found[1].strip() for found in (status, code) if found) or _first_line(text)
    details = {"path": path, "error": answer}
    if "NoSuchBucket" in text:
        return FileIOError(
            "The bucket does not exist.", hint="Check the URL and the endpoint.", details=details
        )
    if refused or (code is not None and _CREDENTIALS.search(code[1])):
        return RefusedError(
            f"The store refuses the request: {answer}.",
            hint="Renew the credentials, check their rights and this machine's clock, and call it again: it"
            " continues where it was.",
            details=details,
        )
    return FileIOError(
        f"The store failed: {answer}.", hint="Call it again: it continues where it was.", details=details
    )


def _first_line(error: object) -> str:
    return re.sub(r"\?[^\s)]*", "", quote(str(error).partition("\n\n")[0][:300]))
