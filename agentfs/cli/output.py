"""Output of the command line: coloured text and progress on a terminal, plain data to a pipe or file."""

import os
import re
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from agentfs.fs.path import parse_display_name
from agentfs.text import escape_controls, visible
from agentfs.visible import one_line

COLOR_CHOICES = ("auto", "always", "never")
PROGRESS_AFTER = 0.5  # seconds
_PROGRESS_EVERY = 0.1
_PROGRESS_WIDTH = 79
_BOLD, _DIM, _CYAN, _GREEN, _MAGENTA = "1", "2", "36", "32", "35"
_MATCH = "1;31"
_DIFF = {"+": _GREEN, "-": "31"}
_LS = {"di": "01;34", "ln": "01;36"}  # the defaults of `ls`
_LS_KEYS = {"directory": "di", "symlink": "ln"}
_NUMBERED = re.compile(r"( *\d+)((?: [0-9a-f]+)?([|:-]))(.*)")


class OutputError(Exception):
    """Standard output cannot be written. The cause is the system's error."""


def print_text(text: str, color: str = "never", paint: Callable[[str], str] | None = None) -> None:
    """Print on standard output, with the colours of `paint` if `color` or a terminal asks for them.

    On a terminal, and with colours, other control characters are escaped.
    """
    painted = paint is not None and _uses_color(color)
    if painted or sys.stdout.isatty():
        text = escape_controls(text)
    write_output(encoded((paint(text) if paint is not None and painted else text) + "\n"))


def encoded(text: str) -> bytes:
    """Encode a text for standard output; characters that the encoding lacks are escaped."""
    return text.encode(getattr(sys.stdout, "encoding", None) or "utf-8", "backslashreplace")


def write_output(data: bytes = b"") -> None:
    """Write to standard output and flush it; raise OutputError on failure."""
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


def wants_data(color: str) -> bool:
    """Return True if a program reads standard output: it is not a terminal, and colours are not forced."""
    return color != "always" and not sys.stdout.isatty()


def data_of(
    facts: Mapping[str, Any], output_mode: str, root: str, *, null: bool, context: bool = False
) -> bytes | None:
    """Return the data of a result for other programs, or None if it only has a text.

    Paths are one a line, or end in NUL with `null`. Matches are printed as by `rg -n -H --no-heading`, files
    as by `cat`. With `context`, `--` divides matches that are not adjacent.
    """
    end = b"\0" if null else b"\n"

    def name(path: str) -> bytes:
        return _file_name(path, root, one_a_line=not null)

    if "matches" in facts and "counts" in facts:
        counts: Mapping[str, Mapping[str, int]] = facts["counts"]
        if output_mode == "total":
            return b"%d\n" % facts["total_matches"]
        if output_mode == "files_with_matches" or (output_mode == "content" and not facts["matches"]):
            return b"".join(name(path) + end for path in counts)
        after = end if null else b":"
        if output_mode == "count":
            return b"".join(name(path) + after + b"%d\n" % each["lines"] for path, each in counts.items())
        return b"".join(_match_lines(facts["matches"], name, null=null, context=context))
    if "total" in facts and (entries := facts.get("entries", facts.get("files"))) is not None:
        return b"".join(name(entry["path"]) + end for entry in entries)
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
    matches: Sequence[Mapping[str, Any]], name: Callable[[str], bytes], *, null: bool, context: bool
) -> Iterator[bytes]:
    """Yield `path:line:text` for each matching line and `path-line-text` for the lines around it."""
    files: dict[str, dict[int, tuple[str, str]]] = {}
    for match in matches:
        rows = files.setdefault(match["path"], {})
        first, found = match["line"], match["text"].split("\n")
        for number, line in enumerate(match["before"], first - len(match["before"])):
            rows.setdefault(number, ("-", line))
        rows.update({number: (":", line) for number, line in enumerate(found, first)})
        for number, line in enumerate(match["after"], first + len(found)):
            rows.setdefault(number, ("-", line))
    context = context or any(mark == "-" for rows in files.values() for mark, _ in rows.values())
    previous: tuple[str, int] | None = None
    for path, rows in files.items():
        for number in sorted(rows):
            if context and previous is not None and previous != (path, number - 1):
                yield b"--\n"
            mark, line = rows[number]
            separator = b"\0" if null else mark.encode()
            yield name(path) + separator + encoded(f"{number}{mark}{line}\n")
            previous = path, number


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


def paint_result(text: str, data: Mapping[str, Any]) -> str:
    """Return the text of a tool's result with colours: of a search, a listing, or line numbers and diffs."""
    lines = text.split("\n")
    if "matches" in data and "counts" in data:
        painted = _search(lines, data["matches"], data["counts"])
    elif (entries := data.get("entries", data.get("files"))) is not None and "total" in data:
        painted = _listing(lines, entries)
    else:
        painted = _numbers_and_diffs(lines)
    return "\n".join(painted)


def paint_diff(text: str) -> str:
    """Return a patch with git's colours."""
    return "\n".join(_numbers_and_diffs(text.split("\n")))


def _uses_color(color: str) -> bool:
    if color != "auto":
        return color == "always"
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _colored(color: str, text: str) -> str:
    return f"\033[{color}m{text}\033[0m" if text else ""


def _numbers_and_diffs(lines: Iterable[str]) -> Iterator[str]:
    in_header = in_hunk = False
    for line in lines:
        in_header = line.startswith("diff --git ") or (in_header and not line.startswith("@@ "))
        in_hunk = not in_header and (in_hunk or line.startswith("@@ "))
        if in_header:
            yield _colored(_BOLD, line)
        elif line.startswith("@@ "):
            yield _colored(_CYAN, line)
        elif in_hunk and line[:1] in _DIFF:
            yield _colored(_DIFF[line[0]], line)
        elif not in_hunk and (numbered := _NUMBERED.fullmatch(line)):
            yield _colored(_GREEN, numbered[1]) + numbered[2] + numbered[4]
        else:
            yield _footer(line)


def _footer(line: str) -> str:
    return _colored(_DIM, line) if line.startswith("[") and line.endswith("]") else line


def _search(
    lines: Iterable[str], matches: Sequence[Mapping[str, Any]], paths: Iterable[str]
) -> Iterator[str]:
    """Color paths, line numbers and matches in the lines of a search."""
    rows, names = _rows(matches), iter(paths)
    row, path = next(rows, None), next(names, None)
    for line in lines:
        numbered = _NUMBERED.fullmatch(line) if matches else None
        number, mark, body = (numbered[1], numbered[2], numbered[4]) if numbered else ("", "", line)
        start = _place(line, path) if path is not None and not numbered else None
        if row is not None and start is None and visible(row[1]) == body and number.strip() in {"", row[0]}:
            yield _colored(_GREEN, number) + mark + _with_spans(body, row[1], row[2])
            row = next(rows, None)
        elif start is not None:
            yield line[: start[0]] + _colored(_MAGENTA, line[slice(*start)]) + line[start[1] :]
            path = next(names, None)
        elif not matches and line.endswith("/"):  # a directory above the names in it
            yield _colored(_MAGENTA, line)
        else:
            yield _colored(_GREEN, number) + mark + body if numbered else _footer(line)


def _rows(matches: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, str, list[tuple[int, int]]]]:
    """Yield the number, the text and the spans of each matching line."""
    for match in matches:
        at = 0
        for number, text in enumerate(match["text"].split("\n"), match["line"]):
            spans = [(max(a - at, 0), min(b - at, len(text))) for a, b in match["spans"]]
            yield str(number), text, [(a, b) for a, b in spans if a < b]
            at += len(text) + 1


def _with_spans(shown: str, text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Color the spans of a text as it is shown, with its hidden characters visible."""
    painted = plain = ""
    at = 0
    for start, end in [*spans, (len(text), len(text))]:
        between, found = visible(text[at:start]), visible(text[start:end])
        plain += between + found
        painted += between + _colored(_MATCH, found)
        at = end
    return painted if plain == shown else shown  # a span may divide an emoji


def _listing(lines: Iterable[str], entries: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Color the names of a listing by their kind, as `ls` does."""
    codes = dict(re.findall(r"(?:^|:)(di|ln)=([\d;]+)(?=:|$)", os.environ.get("LS_COLORS", "")))
    codes = {**_LS, **codes}
    remaining = iter(entries)
    entry = next(remaining, None)
    for line in lines:
        place = None if entry is None else _place(line, entry["path"])
        if entry is not None and place is not None:
            key = _LS_KEYS.get(entry["type"])
            name = line[slice(*place)]
            yield line[: place[0]] + (_colored(codes[key], name) if key else name) + line[place[1] :]
            entry = next(remaining, None)
        elif line.endswith("/"):  # a directory above the names in it
            yield _colored(codes["di"], line[:-1]) + "/"
        else:
            yield _footer(line)


def _place(line: str, path: str) -> tuple[int, int] | None:
    """Return the range of a line that shows a path, or the indented end of a path."""
    indent = len(line) - len(line.lstrip(" "))
    parts = path.split("/")
    below = [(indent, "/".join(parts[number:])) for number in range(len(parts))]
    for start, part in [(0, path), (0, f"./{path}"), *below]:
        end = start + len(name := one_line(part))
        if line.startswith(name, start) and line[end : end + 1] in {"", "/", ":", " "}:
            return start, end
    return None
