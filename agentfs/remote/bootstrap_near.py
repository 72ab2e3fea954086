"""The near half of the bootstrap: run the server at a far side that has nothing but Python.

The far command is `python3 -I -S -q -i`. No shell changes these words, so they are right for ssh, where a
shell splits them, and for what passes arguments on as they are. The interpreter then reads one line, the
source of the far half with a call of it. The package is sent through the stream, once.
"""

import contextlib
import hashlib
import json
import zlib
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
# What serves models, the near side or other programs, and what the three libraries have besides.
_LEFT_OUT = (
    "agentfs/__main__.py",
    "agentfs/cli.py",
    "agentfs/dialects/",
    "agentfs/mcp/",
    "agentfs/providers/",
    "agentfs/remote/bootstrap_",
    "agentfs/remote/client.py",
    "agentfs/remote/connection.py",
    "agentfs/remote/link.py",
    "agentfs/terminal.py",
    "agentfs/tools/aliases.py",
    "agentfs/tools/arguments.py",
    "agentfs/tools/result.py",
    "agentfs/tools/run.py",
    "agentfs/tools/spec.py",
    "agentfs/tools/toolset.py",
    "bracex/__main__.py",
    "wcmatch/fnmatch.py",
    "wcmatch/pathlib.py",
    "wcmatch/wcmatch.py",
)
_OLDEST = (3, 11)
_MARK = b"agentfs-install "
_MOST_NOISE = 100  # lines that a login script may print first
# One line for any Python 3; one that is too old says so and ends. There is no bare expression in it, because
# the interpreter would print its value.
_LINE = """\
import sys; old = sys.version_info < {oldest}; \
_ = old and sys.stdout.write('{mark}{{"old": "%d.%d"}}\\n' % sys.version_info[:2]); \
exec("raise SystemExit" if old else {source!a})
"""


def command(python: str = "python3") -> list[str]:
    """Return what the far side must run, to be put after the words that lead there, such as `ssh host`."""
    return [python, "-I", "-S", "-q", "-i"]


def start(stream: Stream, read_line: Callable[[], bytes], options: Mapping[str, Any]) -> None:
    """Start the server over a stream whose far side runs `command`; what comes next is the server's.

    Args:
        stream: The stream; closing it ends a far side that does not answer.
        read_line: Reads a line of the stream, of bounded length.
        options: Those of the server (`Options`), ready for JSON.

    Raises:
        UnsupportedSystemError: What runs there is no Python, or too old, or cannot store the package.
        DisconnectedError: The stream has ended.
    """
    digest, sent = _package()
    source = files("agentfs.remote").joinpath("bootstrap_far.py").read_text(encoding="utf-8")
    source += f"\nstart({digest!a}, {json.dumps(options)!a})\n"
    line = _LINE.format(oldest=_OLDEST, mark=_MARK.decode(), source=source).encode()
    with contextlib.suppress(BrokenPipeError):  # it has ended: reading says so
        stream.write(line)
    answer = _answer(read_line, line)
    if "need" in answer:
        stream.write(sent)
        answer = _answer(read_line, line)
    if "old" in answer:
        raise UnsupportedSystemError(
            f"The far side has Python {one_line(str(answer['old'])[:20])}; "
            f"agentfs needs {'.'.join(map(str, _OLDEST))} or newer.",
            hint="Name a newer one with `python`.",
        )
    if "ready" not in answer:
        reason = one_line(str(answer.get("error"))[:500])
        raise UnsupportedSystemError(f"The package cannot be installed at the far side: {reason}.")


def _answer(read_line: Callable[[], bytes], sent: bytes) -> dict[str, Any]:
    """Return the next answer of the far side, after what a login script may have printed."""
    for _ in range(_MOST_NOISE):
        line = read_line()
        if not line:
            raise DisconnectedError(
                "The far side ended before it answered.",
                hint="It must have Python. Where `command=` in authorized_keys fixes its command to "
                "`agentfs serve`, pass push=False.",
                details={"made": False},
            )
        if sent[:40] in line or (line.startswith(b"{") and b'"id"' in line):
            break  # an echo, or the answer of a server of JSON-RPC
        _, mark, text = line.partition(_MARK)  # the script may have printed no line feed
        if mark:
            try:
                answer = json.loads(text)
            except (ValueError, RecursionError):
                break
            if isinstance(answer, dict):
                return cast("dict[str, Any]", answer)
    raise UnsupportedSystemError(
        "The far side does not run the Python that it was asked for: its command is fixed (as by `command=` "
        "in authorized_keys), or the stream is a terminal's.",
        hint="Where the fixed command is `agentfs serve`, pass push=False; for a terminal, leave it out "
        "(no `-t`).",
    )


def pack(texts: dict[str, str]) -> tuple[str, bytes]:
    """Return the digest of a package, and its document: the text of each file by its path."""
    document = json.dumps(texts, sort_keys=True).encode()
    return hashlib.sha256(document).hexdigest(), document


def package_line(document: bytes) -> bytes:
    """Return the line that sends a package."""
    return b85encode(zlib.compress(document, 9)) + b"\n"


@cache
def _package() -> tuple[str, bytes]:
    """Return the digest of the package, and the line that sends it."""
    digest, document = pack(dict(_texts()))
    return digest, package_line(document)


def _texts() -> Iterator[tuple[str, str]]:
    entries: list[tuple[str, Traversable]] = [(each, files(each)) for each in _PACKAGES]
    for path, entry in entries:  # which grow meanwhile
        if path.endswith(".py"):
            yield path, entry.read_bytes().decode()
        elif entry.is_dir():
            below = ((f"{path}/{each.name}", each) for each in entry.iterdir())
            entries += (each for each in below if not f"{each[0]}/".startswith(_LEFT_OUT))
