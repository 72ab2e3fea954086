"""Run the code blocks of README and docs, and write what they print into the pages.

    python scripts/pages.py [PAGE …]        # by default all

The blocks of a page are run in order in one directory, those of the tutorial's pages in one for all of them:

- `python` runs in a process of its own, as in `python -W error -c`. If the page's next block is a `text`
  block, that is what it prints.
- With `title="NAME"` a block of any language is a file, which is written there.
- In `console` each line that begins with `$ ` is a command, and one that begins with `> ` continues it. The
  lines that follow are what it prints; if there are none, that is not compared, and it must succeed.
- `sh` are commands whose output is not shown; `json` and `toml` are parsed.
- `py` needs packages that are not installed for the tests of the pages: tests/interop runs it.

A line `…` in an output matches any lines, and `--8<-- "FILE"` includes a file, as in the site. To insert an
output write `?` in its place and run this script.
"""

import argparse
import difflib
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from scripts.forked_python import ForkedPython

ROOT = Path(__file__).parents[1]
TUTORIAL = ROOT / "docs" / "tutorial"
FENCE = re.compile(
    r'^(?P<indent> *)```(?P<language>[\w-]*)(?: title="(?P<title>[^"]+)")?[^\n]*\n'
    r"(?P<content>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
SNIPPET = re.compile(r'^--8<-- "(.+)"\n', re.MULTILINE)
LANGUAGES = {"python", "py", "console", "sh", "json", "toml", "yaml", "text", "diff"}
ANY_LINES = "…"
VARYING = re.compile(r"\d+\.\d+ ?m?s\b( \(\d+:\d\d:\d\d\))?|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")  # times
AGENTFS = "import sys; from agentfs.cli import main; sys.exit(main({}))"  # a command without the shell
PUNCTUATION = re.compile(r"[();<>|&]+")  # of the shell, as in `shlex`

# Commands that are not run, by how they begin, and why.
NOT_RUN = {
    "OPENAI_API_KEY=": "asks a provider; tests/interop/test_frameworks.py runs it against a stand-in",
    "pip install": "fetches packages over the network",
    "claude mcp add": "needs Claude Code",
    "codex mcp add": "needs Codex",
    "uvx --from": "fetches packages over the network; tests/test_uvx.py runs the wheel",
    "python3 -m venv": "fetches packages over the network; README's lines are run by .ci/run",
}
# Pages whose `py` blocks are not run, and why.
NO_PROGRAMS = {
    "docs/how-to/deepagents.md": "asks a provider; tests/interop/test_backends.py runs such an agent",
    "docs/how-to/pydantic-ai.md": "asks a provider; tests/interop/test_backends.py runs such an agent",
    "docs/how-to/recording.md": "needs a container",
}


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: Path
    line: int
    language: str
    title: str | None
    content: str
    start: int  # of the content in the text of the page
    end: int
    indent: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


class BlockError(Exception):
    """A block cannot be run, or fails."""


def blocks_of(page: Path) -> list[Block]:
    """Return the fenced blocks of a page."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            page,
            text.count("\n", 0, found.start()) + 1,
            found["language"],
            found["title"],
            with_files(re.sub(f"(?m)^{found['indent']}", "", found["content"])),
            *found.span("content"),
            found["indent"],
        )
        for found in FENCE.finditer(text)
    ]


def with_files(text: str) -> str:
    """Return a text with each file that it includes."""
    return SNIPPET.sub(lambda line: (ROOT / line[1]).read_text(encoding="utf-8"), text)


def sessions() -> list[list[Path]]:
    """Return the pages, those whose blocks share a directory together."""
    tutorial = sorted(TUTORIAL.glob("*.md"), key=lambda page: (page.stem != "index", page.stem))
    others = [page for page in sorted((ROOT / "docs").rglob("*.md")) if page not in tutorial]
    return [each for each in ([ROOT / "README.md"], tutorial, *([page] for page in others)) if each]


def with_outputs(pages: Sequence[Path], directory: Path, python: ForkedPython) -> dict[Path, str]:
    """Run the blocks of pages, and return the pages' texts with what they printed.

    Raises:
        BlockError: If a block fails, or is in no known language.
    """
    (directory / "home").mkdir()
    (directory / "work").mkdir()
    environment = _environment(directory / "home")
    return {page: _with_outputs_of(page, directory / "work", environment, python) for page in pages}


def _with_outputs_of(page: Path, directory: Path, environment: dict[str, str], python: ForkedPython) -> str:
    text = page.read_text(encoding="utf-8")
    printed: str | None = None  # by the block before, if it was `python`
    replaced: list[tuple[Block, str]] = []
    for block in blocks_of(page):
        before, printed = printed, None
        if block.language not in LANGUAGES:
            raise BlockError(f"{block}: {block.language!r} is none of {sorted(LANGUAGES)}.")
        if block.title:
            target = directory / block.title
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.content, encoding="utf-8")
        elif block.language == "python":
            printed = _printed(block, python.run(block.content, directory, environment))
        elif block.language == "text" and before is not None:
            replaced.append((block, shown_or_printed(block.content, before)))
        elif block.language == "console":
            replaced.append((block, "".join(_console(block, directory, environment, python))))
        elif block.language == "sh" and not _excepted(block.content):
            _printed(block, _run(["bash", "-ec", block.content], directory, environment))
        if block.language in {"json", "toml"}:
            _parse(block)
    for block, content in reversed(replaced):
        text = text[: block.start] + textwrap.indent(content, block.indent) + text[block.end :]
    return text


def commands_of(block: Block) -> list[tuple[str, str]]:
    """Return the commands of a `console` block, each with what is shown as its output."""
    found: list[tuple[str, str]] = []
    for line in block.content.splitlines(keepends=True):
        if line.startswith("$ "):
            found.append((line[2:], ""))
        elif not found:
            raise BlockError(f"{block}: a console block begins with a command, after `$ `.")
        elif line.startswith("> ") and not found[-1][1]:
            found[-1] = (found[-1][0] + line[2:], "")
        else:
            found[-1] = (found[-1][0], found[-1][1] + line)
    return found


def _console(
    block: Block, directory: Path, environment: dict[str, str], python: ForkedPython
) -> Iterator[str]:
    for command, shown in commands_of(block):
        yield "$ " + command.replace("\n", "\n> ").removesuffix("> ")
        if _excepted(command):
            yield shown
            continue
        lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        name, *arguments = lexer
        if name == "agentfs" and not any(PUNCTUATION.fullmatch(each) for each in arguments):
            done = python.run(AGENTFS.format(arguments), directory, environment)
        else:
            done = _run(["bash", "-c", command], directory, environment)
        if shown:
            yield shown_or_printed(shown, done.stdout)  # maybe a failure
        else:
            _printed(block, done)


def _excepted(command: str) -> bool:
    return command.startswith(tuple(NOT_RUN))


def _run(
    command: list[str], directory: Path, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - the pages' own commands
        command, cwd=directory, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, check=False, timeout=300,
    )  # fmt: skip


def _printed(block: Block, done: subprocess.CompletedProcess[str]) -> str:
    if done.returncode:
        raise BlockError(f"{block}: status {done.returncode} of {done.args}\n{done.stdout}")
    return done.stdout


def _parse(block: Block) -> None:
    try:
        _ = json.loads(block.content) if block.language == "json" else tomllib.loads(block.content)
    except ValueError as error:
        raise BlockError(f"{block}: {error}") from error


def _environment(home: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("LANG", "PYTHONPATH") if name in os.environ}
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)])
    # The plugins of the developer's pytest print and configure what a reader's does not.
    return {**kept, "HOME": str(home), "PATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def shown_or_printed(shown: str, printed: str) -> str:
    """Return what a page shows, if it is what was printed, else what was printed."""
    parts = [re.escape(_without_varying(part)) for part in re.split(rf"(?m)^{ANY_LINES}\n", shown)]
    if printed and not printed.endswith("\n"):
        printed += "\n"
    return shown if re.fullmatch("(?s:.*)".join(parts), _without_varying(printed)) else printed


def _without_varying(text: str) -> str:
    return VARYING.sub("0", text)


def main() -> int:
    """Write the outputs, and print what changed."""
    parser = argparse.ArgumentParser(description="Write the outputs of code blocks into the pages.")
    parser.add_argument("pages", metavar="PAGE", nargs="*", type=Path, help="by default all")
    chosen = [page.resolve() for page in parser.parse_args().pages]
    with closing(ForkedPython()) as python:
        written = [_write(pages, python) for pages in sessions() if not chosen or {*chosen} & {*pages}]
    return 0 if all(written) else 1


def _write(pages: Sequence[Path], python: ForkedPython) -> bool:
    """Write the outputs of pages; return False if a block fails."""
    with tempfile.TemporaryDirectory() as directory:
        try:
            found = with_outputs(pages, Path(directory), python)
        except BlockError as error:
            print(error, file=sys.stderr)
            return False
    for page, text in found.items():
        before = page.read_text(encoding="utf-8").splitlines(keepends=True)
        page.write_text(text, encoding="utf-8")
        sys.stdout.writelines(difflib.unified_diff(before, text.splitlines(keepends=True), str(page)))
    return True


if __name__ == "__main__":
    sys.exit(main())
