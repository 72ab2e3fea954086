"""Build the site, with its pages as Markdown for models.

`PYTHONPATH=. python scripts/build_site.py DIRECTORY` writes the site.

Beside its pages the site has their Markdown, with docstrings and included files in place. `llms.txt` lists
these files, and `llms-full.txt` has all of them in one.
"""

import functools
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import tomllib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import griffe

from scripts.pages import with_files

ROOT = Path(__file__).parents[1]
SOURCES = ("docs", "agentfs", "examples", "CHANGELOG.md", "zensical.toml")
DIRECTIVE = re.compile(r"^::: (\S+)\n((?: +\S.*\n)*)", re.MULTILINE)  # its options follow, indented
MEMBERS = re.compile(r"members: (?:\[(.*)\]|false)")
CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")


def build(top: Path) -> Path:
    """Build the site strictly from a copy of its sources in a directory, and return where it is."""
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, top / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, top)
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    built = subprocess.run(command, cwd=top, capture_output=True, text=True, check=False)  # noqa: S603 - our own command
    if built.returncode:
        raise SystemExit(built.stdout + built.stderr)
    write_for_models(top / "site")
    return top / "site"


def navigation(entries: list[Any]) -> Iterator[str]:
    """Yield each page below some entries of `nav` in `zensical.toml`."""
    for entry in entries:
        if isinstance(entry, str):
            yield entry
        else:
            for below in entry.values():
                yield from navigation(below if isinstance(below, list) else [below])


def write_for_models(site: Path) -> None:
    """Write the Markdown of the pages, `llms.txt` and `llms-full.txt`, as https://llmstxt.org describes."""
    project = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]
    index = [f"# {project['site_name']}\n\n> {project['site_description']}\n"]
    texts: list[str] = []
    for section in project["nav"]:
        [(title, entries)] = section.items()
        index.append(f"\n## {title}\n\n")
        for name in navigation(entries):
            texts.append(markdown(ROOT / "docs" / name))
            (site / name).write_text(texts[-1], encoding="utf-8")
            heading, summary = summary_of(texts[-1])
            index.append(f"- [{heading}]({name}){summary and ': '}{summary}\n")
    (site / "llms.txt").write_text("".join(index), encoding="utf-8")
    (site / "llms-full.txt").write_text("\n".join(texts), encoding="utf-8")


def markdown(page: Path) -> str:
    """Return a page with its included files and docstrings in place."""
    return DIRECTIVE.sub(
        lambda found: described(found[1], found[2]), with_files(page.read_text(encoding="utf-8"))
    )


def described(name: str, options: str) -> str:
    """Return the signature and docstring of a public name, and of its members."""
    value = target(_package()[name.removeprefix("agentfs.")])
    parts = [entry(name, value)]
    if value.is_class:
        given = MEMBERS.search(options)
        own = [member for member in value.members if not member.startswith("_")]
        shown = own if given is None else (given[1] or "").replace(",", " ").split()
        parts += [entry(f"{name}.{member}", target(value[member])) for member in shown]
    return "\n".join(filter(None, parts))


def entry(name: str, value: griffe.Object) -> str:
    """Return the signature and docstring of one name, and "" if it has no docstring."""
    if value.docstring is None:
        return ""
    called = isinstance(value, griffe.Class | griffe.Function)
    signature = value.signature().removeprefix(value.name) if called else ""
    return f"### `{name}{signature}`\n\n{value.docstring.value}\n"


def target(value: griffe.Object | griffe.Alias) -> griffe.Object:
    """Return the object that a name means where it is imported."""
    return value.final_target if isinstance(value, griffe.Alias) else value


@functools.cache
def _package() -> griffe.Module | griffe.Alias:
    """Return what mkdocstrings also reads: the sources, since some modules import a framework."""
    return griffe.load("agentfs", search_paths=[str(ROOT)])


def summary_of(text: str) -> tuple[str, str]:
    """Return the heading of a page and its first sentence."""
    heading, *paragraphs = CODE.sub("", text).removeprefix("# ").split("\n\n")
    prose = next((each for each in paragraphs if each.strip() and each[0] not in "|-#!"), "")
    return heading, re.split(r"(?<=\.) ", " ".join(LINK.sub(r"\1", prose).split()))[0]


class _Handler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # one connection for all that a browser loads

    def end_headers(self) -> None:
        """Let the browser keep what each page loads."""
        self.send_header("Cache-Control", "max-age=3600")
        super().end_headers()

    def log_message(self, *_arguments: object) -> None:
        """Print nothing."""


@contextmanager
def served(site: Path) -> Generator[str]:
    """Serve a directory on this machine, and give the address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Handler, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def main() -> None:
    """Build the site into a directory."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        shutil.copytree(build(Path(scratch)), sys.argv[1], dirs_exist_ok=True)


if __name__ == "__main__":
    main()
