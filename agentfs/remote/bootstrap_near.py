"""The local half of the bootstrap: start the server at a remote side that has only Python.

The remote command is `python3 -I -S -q -i`. It needs no quoting, so it works with and without a shell on the
way. The interpreter reads one line, which has the source of the remote half and runs it. That half asks for
the package only if it is not installed.
"""

import bz2
import contextlib
import hashlib
import json
import re
from base64 import b85encode
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, cast

from agentfs.errors import DisconnectedError, UnsupportedSystemError
from agentfs.remote.transport import Stream
from agentfs.text import one_line

_PACKAGES = ("agentfs", "bracex", "pathspec", "wcmatch")
# Modules that the server does not import.
_LEFT_OUT = (
    "agentfs/async_workspace.py",
    "agentfs/__main__.py",
    "agentfs/cli/",
    "agentfs/concurrency/event_loops.py",
    "agentfs/concurrency/runner.py",
    "agentfs/dialects/",
    "agentfs/frameworks/",
    "agentfs/habits/",
    "agentfs/mcp/",
    "agentfs/otel.py",
    "agentfs/providers/",
    "agentfs/remote/bootstrap_",
    "agentfs/remote/client.py",
    "agentfs/remote/connection.py",
    "agentfs/store/",
    "agentfs/tools/approval.py",
    "agentfs/tools/binding.py",
    "agentfs/tools/functions.py",
    "agentfs/tools/gate.py",
    "agentfs/tools/result.py",
    "agentfs/tools/toolset.py",
    "wcmatch/pathlib.py",
    "wcmatch/wcmatch.py",
)
# Both are removed; their lines stay, for the line numbers of tracebacks.
_COMMENT = re.compile(r"^[ \t]*#.*$", re.MULTILINE)
_DOCSTRING = re.compile(r'(?<=:\n)([ \t]+)r?"""(?:[^"\\]|\\.|"(?!""))*"""(?=\n)', re.DOTALL)
_OLDEST = (3, 11)
_MARK = b"agentfs-install "
_MOST_NOISE = 100  # lines that a login script may print first
# One line that any Python 3 can run; one that is too old reports its version and ends. The line has no bare
# expression, because the interpreter would print its value.
_LINE = """\
import sys; old = sys.version_info < {oldest}; \
_ = old and sys.stdout.write('{mark}{{"old": "%d.%d"}}\\n' % sys.version_info[:2]); \
exec("raise SystemExit" if old else {source!a})
"""


def command(python: str = "python3") -> list[str]:
    """Return the command to run at the remote side, without its prefix such as `ssh host`."""
    return [python, "-I", "-S", "-q", "-i"]


def start_server(stream: Stream, read_line: Callable[[], bytes], options: Mapping[str, Any]) -> None:
    """Start the server over a stream whose remote side runs `command`.

    Args:
        stream: The stream; closing it ends a remote side that does not answer.
        read_line: Reads a line of the stream, of bounded length.
        options: The fields of the server's `Options`, ready for JSON.

    Raises:
        UnsupportedSystemError: Something other than Python runs there, it is too old, or it cannot store the
            package.
        DisconnectedError: The stream has ended.
    """
    digest, sent = _package()
    source = files("agentfs.remote").joinpath("bootstrap_far.py").read_text(encoding="utf-8")
    source += f"\nstart({digest!a}, {json.dumps(options)!a})\n"
    line = _LINE.format(oldest=_OLDEST, mark=_MARK.decode(), source=source).encode()
    with contextlib.suppress(BrokenPipeError):  # reading then finds the end of the stream
        stream.write(line)
    answer = _answer(read_line, line)
    if "need" in answer:
        stream.write(sent)
        answer = _answer(read_line, line)
    if "old" in answer:
        raise UnsupportedSystemError(
            f"The remote side has Python {one_line(str(answer['old'])[:20])}; "
            f"agentfs needs {'.'.join(map(str, _OLDEST))} or newer.",
            hint="Pass a newer one as `python`.",
        )
    if "ready" not in answer:
        reason = one_line(str(answer.get("error"))[:500])
        raise UnsupportedSystemError(f"The package cannot be installed at the remote side: {reason}.")


def _answer(read_line: Callable[[], bytes], sent: bytes) -> dict[str, Any]:
    """Return the next answer of the remote side; skip what a login script may have printed."""
    for _ in range(_MOST_NOISE):
        line = read_line()
        if not line:
            raise DisconnectedError(
                "The remote side ended before it answered.",
                hint="It must have Python. If `command=` in authorized_keys fixes its command to "
                "`agentfs serve`, pass push=False.",
                details={"made": False},
            )
        if sent[:40] in line or (line.startswith(b"{") and b'"id"' in line):
            break  # an echo, or the answer of a JSON-RPC server
        _, mark, text = line.partition(_MARK)  # the script's last line may have no line feed
        if mark:
            try:
                answer = json.loads(text)
            except (ValueError, RecursionError):
                break
            if isinstance(answer, dict):
                return cast("dict[str, Any]", answer)
    raise UnsupportedSystemError(
        "The remote side does not run the requested Python: its command is fixed (as by `command=` in "
        "authorized_keys), or the stream is a terminal.",
        hint="If the fixed command is `agentfs serve`, pass push=False. Do not request a terminal (no `-t`).",
    )


def pack(texts: dict[str, str]) -> tuple[str, bytes]:
    """Return the digest of a package and the package: the text of each file by its path, as JSON."""
    document = json.dumps(texts, sort_keys=True).encode()
    return hashlib.sha256(document).hexdigest(), document


def package_line(document: bytes) -> bytes:
    """Return the line that transfers a package."""
    return b85encode(bz2.compress(document)) + b"\n"


@cache
def _package() -> tuple[str, bytes]:
    """Return the digest of the package and the line that transfers it."""
    digest, document = pack(dict(_texts()))
    return digest, package_line(document)


def _texts() -> Iterator[tuple[str, str]]:
    entries: list[tuple[str, Traversable]] = [(each, files(each)) for each in _PACKAGES]
    for path, entry in entries:  # the loop itself appends to the list
        if path.endswith(".py"):
            text = _COMMENT.sub("", entry.read_bytes().decode())
            yield path, _DOCSTRING.sub(lambda found: found[1] + '""' + "\n" * found[0].count("\n"), text)
        elif entry.is_dir():
            below = ((f"{path}/{each.name}", each) for each in entry.iterdir())
            entries += (each for each in below if not f"{each[0]}/".startswith(_LEFT_OUT))
