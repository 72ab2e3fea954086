"""Methods that only dialects call, as functions of a workspace, and what most tests need.

The environments of the frameworks import this module, so it does not need pytest.
"""

import inspect
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from os import fspath

from agentfs import AgentFSError
from agentfs.dialects import toolkit
from agentfs.dialects.toolkit import GlobOptions, GrepOptions, SpliceOptions
from agentfs.search.options import texts

insert, keep = toolkit.insert, toolkit.keep


def find(
    ws, path=".", pattern=None, glob=None, types=None, limit=None, offset=0, include_ignored=False, **options
):
    """Find entries as `fd` does: `pattern` is a regular expression, and a link is not a file."""
    given = {"regex": pattern, "types": types, "links_as_files": False, **options}
    options = GlobOptions(glob or None, texts(path), limit, offset, include_ignored, **given)
    return toolkit.glob(ws, options)


def grep(ws, pattern, path=".", glob=None, type=None, output_mode="content", **options):  # noqa: A002 - as grep
    """Search as `rg` does."""
    return toolkit.grep(ws, GrepOptions(pattern, texts(path), glob, type, output_mode, **options))


def splice(ws, path, spans):
    """Replace ranges of characters."""
    return toolkit.edit(ws, SpliceOptions(fspath(path), spans))


def method(ws, name):
    """Return a method, or the function for the searches of dialects that has its name."""
    return partial({"find": find, "grep": grep}[name], ws) if name in {"find", "grep"} else getattr(ws, name)


def code(event):
    """Return the code of the error that an event reports, "cancelled" for a cancelled call, or ""."""
    if error := getattr(event.outcome, "error", None):
        return error["code"]
    stopped = isinstance(event.exception, BaseException) and not isinstance(event.exception, Exception)
    return "cancelled" if stopped else getattr(event.exception, "code", "")


def put(top, files, text="x\n"):
    """Write files with their directories, given as names or with their contents; return the top."""
    for name in files:
        content = files[name] if isinstance(files, dict) else text
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return top


def error_of(function, *given, **named):
    """Return the error that a call raises."""
    try:
        result = function(*given, **named)
    except AgentFSError as error:
        return error
    raise AssertionError(f"no error, but {result!r}")


def code_of(function, *given, **named):
    """Return the code of the error that a call raises."""
    return error_of(function, *given, **named).code


def refused(act, code=None):
    """Return the error of a call that must fail, and check its code if one is given."""
    error = error_of(act)
    assert code in {None, error.code}, error
    return error


def described(function):
    """Give a function the text that a tool needs: a sentence, and one for each parameter."""
    names = [name for name in inspect.signature(function).parameters if name not in {"self", "ctx"}]
    function.__doc__ = "Work.\n\nArgs:\n" + "".join(f"    {name}: Some {name}.\n" for name in names)
    return function


def wait_for(happens, seconds=60.0):
    """Wait until a function returns something true, and return that."""
    end = time.monotonic() + seconds
    while not (found := happens()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)
    return found


@contextmanager
def in_threads(*acts):
    """Call functions in threads of their own beside the block, and raise what they raise."""
    with ThreadPoolExecutor(len(acts)) as threads:
        started = [threads.submit(act) for act in acts]
        yield
        for each in started:
            each.result()


MEMORY = """
import os, re, resource, sys
from agentfs import Workspace
def most():
    if os.path.exists("/proc/self/status"):  # where `ru_maxrss` begins with what the parent process has taken
        return int(re.search("VmHWM:[^0-9]*([0-9]+)", open("/proc/self/status").read())[1]) >> 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> (20 if sys.platform == "darwin" else 10)
with Workspace(sys.argv[1]) as ws:
    ws.ls(include_ignored=True), ws.glob("*.x", include_ignored=True), ws.grep("warm")
    before = most()
    try:
        exec(sys.argv[2])
    except MemoryError:
        before = -(10**6)
    print(most() - before)
"""


def memory_of(root, call):
    """Return by how many MiB a call of `ws` raises the most memory of a process of its own."""
    command = [sys.executable, "-c", MEMORY, str(root), call]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")[0])


def in_a_fork(act):
    """Return what a function returns in a forked copy of the process, or its error, as text."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            said = str(act())
        except BaseException as error:  # noqa: BLE001 - told to the parent
            said = f"{type(error).__name__}: {error}"
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    with open(reading, encoding="utf-8") as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return said
