"""Install the package at the far side and replace this process by its server.

The near side sends the source of this module to a bare `python3 -I -S`, so it imports nothing of agentfs.
"""

import base64
import contextlib
import hashlib
import json
import os
import shutil
import stat
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from typing import NoReturn

_START = """\
import sys, json
sys.path.insert(0, sys.argv[1])
from agentfs.remote.server import Options, serve
sys.exit(serve(Options(**json.loads(sys.argv[2]))))
"""
_CACHE = "agentfs-packages"
_TEMPORARY = ".installing-"
_DAY = 24 * 3600.0


def pack(texts: dict[str, str]) -> tuple[str, bytes]:
    """Return the digest of a package, by its files' names and texts, and the document that it is of."""
    document = json.dumps(texts, sort_keys=True).encode()
    return hashlib.sha256(document).hexdigest(), document


def start(digest: str, options: str) -> NoReturn:
    """Run the server of the package with a digest, which is asked for where it is not installed.

    Args:
        digest: That of the package.
        options: Those of the server, as a JSON object.
    """
    umask = os.umask(0o077)
    try:
        directory = _installed(digest)
        os.umask(umask)
        _say(ready=sys.version.split()[0])
        os.execv(  # noqa: S606 - Python itself, by the path that it names
            sys.executable, [sys.executable, "-I", "-S", "-X", "utf8", "-c", _START, directory, options]
        )
    except (OSError, ValueError, zlib.error) as error:
        _say(error=f"{type(error).__name__}: {error}")
    sys.exit(1)


def _installed(digest: str) -> str:
    """Return the directory of the package with a digest, in the first place that has room for it."""
    document = b""
    failure = OSError("~/.cache, /tmp and /dev/shm take no directory of mode 0700 of this user")
    for cache in _cache_directories():
        directory = os.path.join(cache, digest)
        if _digest_of(directory) == digest:
            with contextlib.suppress(OSError):
                os.utime(directory)
            return directory
        if not document:
            _say(need=digest)
            document = zlib.decompress(base64.b85decode(sys.stdin.buffer.readline().strip()))
        try:
            _install(cache, directory, document)
        except OSError as error:
            failure = error
        else:
            if _digest_of(directory) != digest:
                raise ValueError("the package did not arrive whole")
            return directory
    raise failure


def _say(**facts: str) -> None:
    os.write(1, f"agentfs-install {json.dumps(facts)}\n".encode())


def _cache_directories() -> Iterator[str]:
    """Yield directories for installed packages that are this user's and closed to all others."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    tried = [os.path.join(home, _CACHE)] if os.path.isabs(home) else []
    tried += [os.path.join(each, f"{_CACHE}-{os.geteuid()}") for each in ("/tmp", "/dev/shm")]  # noqa: S108 - its owner and mode are checked
    for path in tried:
        with contextlib.suppress(OSError):
            os.makedirs(path, mode=0o700, exist_ok=True)
            found = os.lstat(path)
            closed = stat.S_ISDIR(found.st_mode) and not stat.S_IMODE(found.st_mode) & 0o077
            if closed and found.st_uid == os.geteuid() and os.access(path, os.W_OK):
                yield path


def _digest_of(directory: str) -> str:
    """Return the digest of an installed package; "" for none, or one that has what the digest leaves out."""
    texts: dict[str, str] = {}
    try:
        for path in _files(directory):
            with open(path, encoding="utf-8", newline="") as file:
                texts[os.path.relpath(path, directory)] = file.read()
    except (OSError, ValueError):
        return ""
    return pack(texts)[0]


def _files(directory: str) -> Iterator[str]:
    """Yield the files below a directory but Python's compiled ones; OSError for a link."""
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_symlink():
                raise OSError("a symbolic link")
            if entry.is_dir():
                if entry.name != "__pycache__":
                    yield from _files(entry.path)
            else:
                yield entry.path


def _install(cache: str, directory: str, document: bytes) -> None:
    temporary = tempfile.mkdtemp(prefix=_TEMPORARY, dir=cache)
    try:
        package = os.path.join(temporary, "package")
        for name, text in json.loads(document).items():
            path = os.path.join(package, name)
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            with open(path, "x", encoding="utf-8", newline="") as file:
                file.write(text)
        with contextlib.suppress(FileNotFoundError):  # one that is damaged
            os.rename(directory, os.path.join(temporary, "damaged"))
        with contextlib.suppress(OSError):  # another process has installed it meanwhile, as the caller sees
            os.rename(package, directory)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        for entry in os.scandir(cache):  # what killed installations have left
            with contextlib.suppress(OSError):
                if entry.name.startswith(_TEMPORARY) and entry.stat().st_mtime < time.time() - _DAY:
                    shutil.rmtree(entry.path)
