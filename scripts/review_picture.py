"""Write the pictures of the page on which a person reviews what an agent did, in both schemes.

PYTHONPATH=. python scripts/review_picture.py  # docs/images/review-light.png and review-dark.png, by chromium
"""

import math
import shutil
import tempfile
from pathlib import Path

from agentfs import Workspace
from scripts.browser import running

IMAGES = Path(__file__).parents[1] / "docs" / "images"
SCHEMES = ("light", "dark")
WIDTH = 800
FILES = {
    "cart.py": "def total(items):\n    return sum(items)\n\n\ndef empty(items):\n    return items == []\n",
    "settings.toml": 'name = "shop"\nport = 80\n',
}
EDITS = (
    ("cart.py", "return sum(items)", "return round(sum(items), 2)"),
    ("cart.py", "return items == []", "return not items"),
    ("settings.toml", "port = 80", "port = 8080"),
)
BOTTOM = "document.getElementById('files').lastElementChild.getBoundingClientRect().bottom"
CLICK = "[...document.querySelectorAll('button')].filter(each => each.textContent == {label!r})[{at}].click()"


def page() -> str:
    """Return the page of a review of the edits."""
    with tempfile.TemporaryDirectory() as root:
        for name, text in FILES.items():
            (Path(root) / name).write_text(text)
        with Workspace(root) as ws:
            for edit in EDITS:
                ws.edit(*edit)
            return ws.host.review().to_html()


def main() -> None:
    """Open the page, decide about two hunks, and write what the window shows."""
    program = shutil.which("chromium")
    if program is None:
        raise SystemExit("chromium is not installed")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        file = Path(scratch) / "review.html"
        file.write_text(page())
        with running(program, Path(scratch) / "profile") as browser:
            browser.resize(WIDTH, 600, SCHEMES[0])
            browser.open(file.as_uri())
            browser.run(CLICK.format(label="Accept", at=0))
            browser.run(CLICK.format(label="Take back", at=1))
            height = math.ceil(browser.run(BOTTOM)) + 12
            for scheme in SCHEMES:
                browser.resize(WIDTH, height, scheme)
                browser.screenshot(IMAGES / f"review-{scheme}.png")


if __name__ == "__main__":
    main()
