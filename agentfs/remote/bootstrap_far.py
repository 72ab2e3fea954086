"""The remote half of the bootstrap: install the package, then run its server in place of this process.

The local half sends the source of this module to a bare `python3 -I -S`, so it cannot import agentfs.
"""

import base64
import bz2
import contextlib
import hashlib
import json
import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import NoReturn

# Modules are imported from the checked text, so no file or bytecode that others could change is read later.
_START = """\
import hashlib, importlib.machinery, json, os, sys
path, digest, options = sys.argv[1:]
with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
    document = file.read()
if hashlib.sha256(document).hexdigest() != digest:
    sys.exit("the package was changed")
texts = json.loads(document)
class Importer:
    def find_spec(self, name, path=None, target=None):
        module = name.replace(".", "/")
        for at in (module + "/__init__.py", module + ".py"):
            if at in texts:
                package = at.endswith("/__init__.py")
                return importlib.machinery.ModuleSpec(name, self, origin=at, is_package=package)
    def create_module(self, spec):
        return None
    def exec_module(self, module):
        origin = module.__spec__.origin
        exec(compile(texts[origin], origin, "exec", dont_inherit=True), module.__dict__)
sys.meta_path.insert(0, Importer())
from agentfs.remote.server import Options, serve
sys.exit(serve(Options(**json.loads(options))))
"""
_CACHE = "agentfs-packages"
_TEMPORARY = ".installing-"
_DAY = 24 * 3600.0


def start(digest: str, options: str) -> NoReturn:
    """Run the server of the package with this digest; ask for the package if it is not installed.

    Args:
        digest: The SHA-256 digest of the package.
        options: The options of the server, as a JSON object.
    """
    umask = os.umask(0o077)
    try:
        path = _installed(digest)
        os.umask(umask)
        _say(ready=sys.version.split()[0])
        os.execv(  # noqa: S606 - the interpreter that runs this
            sys.executable, [sys.executable, "-I", "-S", "-X", "utf8", "-c", _START, path, digest, options]
        )
    except (OSError, ValueError) as error:
        _say(error=f"{type(error).__name__}: {error}")
    sys.exit(1)


def _installed(digest: str) -> str:
    """Return the path of the package, in the first directory with room for it."""
    document = b""
    failure = OSError("no private directory (mode 0700) can be created in ~/.cache, /tmp or /dev/shm")
    for cache in _cache_directories():
        path = os.path.join(cache, digest)
        if _digest_of(path) == digest:
            with contextlib.suppress(OSError):
                os.utime(path)
            return path
        if not document:
            _say(need=digest)
            document = bz2.decompress(base64.b85decode(sys.stdin.buffer.readline().strip()))
            if hashlib.sha256(document).hexdigest() != digest:
                raise ValueError("the package did not arrive complete")
        try:
            _install(cache, path, document)
        except OSError as error:
            failure = error
        else:
            return path
    raise failure


def _say(**facts: str) -> None:
    os.write(1, f"agentfs-install {json.dumps(facts)}\n".encode())


def _cache_directories() -> Iterator[str]:
    """Yield directories for packages that belong to this user and that no other user can open."""
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


def _digest_of(path: str) -> str:
    """Return the digest of a package, or "" if others could change it."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ""
    try:
        found = os.fstat(fd)
        closed = stat.S_ISREG(found.st_mode) and not stat.S_IMODE(found.st_mode) & 0o022
        if not closed or found.st_uid != os.geteuid():
            return ""
        with open(fd, "rb", closefd=False) as file:
            return hashlib.sha256(file.read()).hexdigest()
    finally:
        os.close(fd)


def _install(cache: str, path: str, document: bytes) -> None:
    temporary = tempfile.mkdtemp(prefix=_TEMPORARY, dir=cache)
    try:
        package = os.path.join(temporary, "package")
        with open(package, "xb") as file:
            file.write(document)
        if os.path.isdir(path) and not os.path.islink(path):  # a file cannot replace a directory
            os.rename(path, os.path.join(temporary, "damaged"))
        os.rename(package, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        for entry in os.scandir(cache):  # remove leftovers of killed installations
            with contextlib.suppress(OSError):
                if entry.name.startswith(_TEMPORARY) and entry.stat().st_mtime < time.time() - _DAY:
                    shutil.rmtree(entry.path)
