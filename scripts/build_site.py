"""Build the site in a directory of its own, serve it, and write README's picture of it.

PYTHONPATH=. python scripts/build_site.py  # docs/images/site.png
"""

import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from scripts.browser import running

ROOT = Path(__file__).parents[1]
SOURCES = ("docs", "agentfs", "examples", "CHANGELOG.md", "zensical.toml")


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
    return top / "site"


class _Handler(SimpleHTTPRequestHandler):
    def log_message(self, *_arguments: object) -> None:
        """Print nothing."""


@contextmanager
def served(site: Path) -> Generator[str]:
    """Serve a directory on this machine, and give the address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def main() -> None:
    """Write the picture of a page of the reference."""
    program = shutil.which("chromium")
    if program is None:
        raise SystemExit("chromium is not installed")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        top = Path(scratch)
        with served(build(top)) as address, running(program, top / "profile") as browser:
            browser.resize(1280, 800, "light")
            browser.open(f"{address}/reference/methods/read/")
            browser.screenshot(ROOT / "docs" / "images" / "site.png")


if __name__ == "__main__":
    main()
