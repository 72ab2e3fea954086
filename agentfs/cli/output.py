"""Input and output of the command line: text for a terminal, data for programs, progress of long calls."""

import os
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import repeat
from typing import Any

from agentfs.base.visible import one_line
from agentfs.cli.command_options import CommandOptions
from agentfs.errors import EncodingError, FileIOError, InvalidArgumentError
from agentfs.fs.path import parse_display_name
from agentfs.text import escape_controls

FAILED = 2  # the exit status of a command that failed
PROGRESS_AFTER = 0.5  # seconds
_PROGRESS_EVERY = 0.1
_PROGRESS_WIDTH = 79
_MOST_INPUT = 256 * 1024 * 1024


class OutputError(Exception):
    """Standard output cannot be written. The cause is the system's error."""


def print_text(text: str) -> None:
    """Print a line or lines on standard output. On a terminal, control characters are escaped."""
    write_output(f"{escape_controls(text) if sys.stdout.isatty() else text}\n")


def write_output(data: bytes | str = b"") -> None:
    """Write to standard output and flush it; raise OutputError on failure."""
    data = encoded(data) if isinstance(data, str) else data
    try:
        sys.stdout.flush()
        if (
            buffer := getattr(sys.stdout, "buffer", None)
        ) is None:  # a program has replaced it by a text stream
            sys.stdout.write(data.decode(getattr(sys.stdout, "encoding", None) or "utf-8"))
        else:
            buffer.write(data)
            buffer.flush()
    except OSError as error:
        raise OutputError from error


def encoded(text: str) -> bytes:
    """Encode a text for standard output; characters that the encoding lacks are escaped."""
    return text.encode(getattr(sys.stdout, "encoding", None) or "utf-8", "backslashreplace")


def input_bytes() -> bytes:
    """Return what standard input has up to its end."""
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison] - None if it is closed
        raise InvalidArgumentError("Standard input is closed.")
    try:
        data = sys.stdin.buffer.read(_MOST_INPUT + 1)
    except OSError as error:
        raise FileIOError(f"Standard input cannot be read: {error.strerror}.") from None
    if len(data) > _MOST_INPUT:
        raise InvalidArgumentError(
            f"Standard input has more than {_MOST_INPUT} bytes.", hint="Write it to a file."
        )
    return data


def input_text() -> str:
    """Return the text of standard input, with its line ends."""
    try:
        return input_bytes().decode(sys.stdin.encoding)
    except UnicodeDecodeError as error:
        raise EncodingError(
            f"Standard input is not text in {error.encoding}: byte {error.object[error.start]:#04x}."
        ) from None


def wants_data(color: str) -> bool:
    """Return True if a program reads standard output: it is not a terminal, and colours are not forced."""
    return color != "always" and not sys.stdout.isatty()


def data_of(
    facts: Mapping[str, Any], output_mode: str, root: str, options: CommandOptions, *, context: bool = False
) -> bytes | None:
    """Return the data of a result for other programs, or None if it only has a text.

    Paths are one a line, or end in NUL with `--null`. Matches are printed as by `rg -n -H --no-heading`,
    files as by `cat`. With `context`, `--` divides matches that are not adjacent.
    """
    null = options.null
    end = b"\0" if null else b"\n"

    def name(path: str) -> bytes:
        return _file_name(path, root, one_a_line=not null)

    if "matches" in facts and "counts" in facts:
        counts: Mapping[str, Mapping[str, int]] = facts["counts"]
        if output_mode == "total":
            return b"%d\n" % facts["total_matches"]
        if output_mode == "files_with_matches" or (output_mode == "content" and not facts["matches"]):
            return b"".join(name(path) + end for path in counts)
        after, counted = end if null else b":", "matches" if options.only_matching else "lines"
        if output_mode == "count":
            return b"".join(name(path) + after + b"%d\n" % each[counted] for path, each in counts.items())
        return b"".join(_match_lines(facts["matches"], name, options, context=context))
    if "total" in facts and (entries := facts.get("entries", facts.get("files"))) is not None:
        before = map(encoded, _long(entries)) if options.long else repeat(b"")
        return b"".join(
            first + name(entry["path"]) + end for first, entry in zip(before, entries, strict=False)
        )
    files = facts["files"] if "left" in facts and "failed" in facts else [facts]
    if all(file.get("kind") == "text" and not file["line_ids"] for file in files):
        return b"".join(encoded(file["content"]) for file in files)
    return None


def records_of(facts: Mapping[str, Any], output_mode: str) -> list[Mapping[str, Any]]:
    """Return the entries of a listing, or the matches or counts of a search, each for a line of JSON."""
    if "counts" not in facts:
        return list(facts.get("entries", facts.get("files", ())))
    if output_mode == "total":
        return [{name: facts[name] for name in ("total_matches", "total_lines", "total_files")}]
    if facts["matches"]:
        return list(facts["matches"])
    return [{"path": path, **count} for path, count in facts["counts"].items()]


def _match_lines(
    matches: Sequence[Mapping[str, Any]],
    name: Callable[[str], bytes],
    options: CommandOptions,
    *,
    context: bool,
) -> Iterator[bytes]:
    """Yield `path:line:text` for each matching line and `path-line-text` for the lines around it.

    With `-o`, the text is a matched part of the line, and a line is repeated for each.
    """
    files: dict[str, dict[int, tuple[str, list[str]]]] = {}
    for match in matches:
        rows = files.setdefault(match["path"], {})
        first, found = match["line"], match["text"].split("\n")
        for number, line in enumerate(match["before"], first - len(match["before"])):
            rows.setdefault(number, ("-", [line]))
        if options.only_matching and match["spans"]:
            for number, part in _matched_parts(match):
                earlier = rows.get(number, ("-", []))
                rows[number] = (":", [*(earlier[1] if earlier[0] == ":" else ()), part])
        else:
            rows.update({number: (":", [line]) for number, line in enumerate(found, first)})
        for number, line in enumerate(match["after"], first + len(found)):
            rows.setdefault(number, ("-", [line]))
    context = context or any(mark == "-" for rows in files.values() for mark, _ in rows.values())
    previous: tuple[str, int] | None = None
    for path, rows in files.items():
        for number in sorted(rows):
            if context and previous is not None and previous != (path, number - 1):
                yield b"--\n"
            mark, lines = rows[number]
            start = name(path) + (b"\0" if options.null else mark.encode())
            yield b"".join(start + encoded(f"{number}{mark}{line}\n") for line in lines)
            previous = path, number


def _matched_parts(match: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    """Yield the number and the matched part of each line of each match."""
    text = match["text"]
    for first, end in match["spans"]:
        yield from enumerate(text[first:end].split("\n"), match["line"] + text.count("\n", 0, first))


def _long(entries: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the type, size and time of each entry, in columns, as `ls -l` prints them."""
    sizes = ["-" if entry["size"] is None else str(entry["size"]) for entry in entries]
    width = max(map(len, sizes), default=0)
    for entry, size in zip(entries, sizes, strict=True):
        kind = "-" if entry["type"] == "file" else entry["type"][0]
        moment = entry["mtime"] and time.strftime("%Y-%m-%d %H:%M", time.localtime(entry["mtime"]))
        yield f"{kind} {size:>{width}} {moment or '':16} "


def _file_name(path: str, root: str, *, one_a_line: bool) -> bytes:
    """Return the bytes of a displayed path. With `one_a_line` a name with a line feed stays escaped."""
    real = parse_display_name(path)
    if real != path and os.path.lexists(os.path.join(root, path)):  # the name itself looks like an escape
        real = path
    return encoded(one_line(path)) if one_a_line and "\n" in real else os.fsencode(real)


def print_error(text: str) -> None:
    """Print on standard error, unless it is closed."""
    if sys.stderr is None:  # pyright: ignore[reportUnnecessaryComparison] - None if it is closed
        return
    try:
        print(escape_controls(text) if sys.stderr.isatty() else text, file=sys.stderr, flush=True)
    except OSError:
        sys.stderr = None  # or Python fails again at exit and changes the exit status


@contextmanager
def progress() -> Generator[Callable[[str], None]]:
    """Yield a function that sets the progress text, shown on standard error with the elapsed seconds.

    It is shown only on a terminal, and only if the block takes longer than half a second.
    """
    latest = "working"

    def report(text: str) -> None:
        nonlocal latest
        latest = text

    stream = sys.stderr
    if stream is None or not stream.isatty() or os.environ.get("TERM") == "dumb":  # pyright: ignore[reportUnnecessaryComparison] - as above
        yield report
        return
    ended, began = threading.Event(), time.monotonic()

    def show() -> None:
        delay = PROGRESS_AFTER
        with suppress(OSError):
            while not ended.wait(delay):
                text = escape_controls(f"{latest}, {time.monotonic() - began:.0f} s")[:_PROGRESS_WIDTH]
                print(f"\r{text}\033[K", end="", file=stream, flush=True)
                delay = _PROGRESS_EVERY
            if delay == _PROGRESS_EVERY:
                print("\r\033[K", end="", file=stream, flush=True)

    thread = threading.Thread(target=show, name="agentfs-progress", daemon=True)
    thread.start()
    try:
        yield report
    finally:
        ended.set()
        thread.join()
