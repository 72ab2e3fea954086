"""The site: built strictly, all its links lead somewhere, and a browser shows it as it should."""

import functools
import inspect
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from datetime import date
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

import pytest

import agentfs
from scripts.browser import Browser, running, wait_for
from scripts.build_site import build, served
from scripts.pages import blocks_of
from tests.conftest import needs, program

ROOT = Path(__file__).parents[2]
WINDOWS = [(1280, 900, "light"), (1280, 900, "dark"), (390, 844, "dark"), (390, 844, "light")]

# Members of public classes that serve toolsets and the workspace.
NOT_FOR_USERS = {
    "in_names",
    "places",
    "text",
    "allow_rules",
    "deny_rules",
    "ask_rules",
    "guards",
    "permissions",
    "summary",
}
# What has no example, as it takes more than a block of code.
NO_EXAMPLE = {
    "DeadlineExceededError": "a call of seconds",
    "BusyError": "another process",
    "FileIOError": "a disk that fails",
    "UnsupportedSystemError": "another operating system",
    "DisconnectedError": "a connection that is lost",
}


class Page(HTMLParser):
    """The links of a page, the files that it loads, and its anchors."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.ids = {"", "__skip"}
        self.headings: set[str] = set()
        self.links: list[str] = []
        self.article_links: list[str] = []
        self.loaded: list[str] = []
        self.pictures: list[str] = []
        self.in_article = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        if re.fullmatch(r"h[1-6]", tag):
            self.headings.add(given.get("id", ""))
        self.in_article |= tag == "article"
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
            if self.in_article:
                self.article_links.append(given["href"])
        if tag == "img" and self.in_article:
            self.pictures.append(given["src"])
        if tag in {"img", "script", "iframe", "source", "video"} and given.get("src"):
            self.loaded.append(given["src"])
        if tag == "link" and given.get("rel") not in {"canonical", "alternate"}:
            self.loaded.append(given["href"])

    def handle_endtag(self, tag: str) -> None:
        self.in_article &= tag != "article"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as CI builds it, from a copy of its sources, so that nothing is left in the working tree."""
    return build(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, Page]:
    """Each page by its address, such as `/reference/cli/`."""
    found = {}
    for file in site.rglob("index.html"):
        address = "/" + file.relative_to(site).as_posix().removesuffix("index.html")
        found[address] = Page(file.read_text(encoding="utf-8"))
    return found


def navigation(entries: list[Any]) -> Iterator[str]:
    """Each page that the navigation of `zensical.toml` lists."""
    for entry in entries:
        if isinstance(entry, str):
            yield entry
        else:
            for below in entry.values():
                yield from navigation(below if isinstance(below, list) else [below])


def clicks(pages: dict[str, Page], limit: int) -> dict[str, int]:
    """Return how many clicks on links in the texts lead from the start page to each page, up to a limit."""
    found = {"/": 0}
    for number in range(1, limit + 1):
        for address in [address for address, away in found.items() if away == number - 1]:
            for link in pages[address].article_links:
                target = urlsplit(urljoin(address, link))
                if not target.netloc and target.path in pages:
                    found.setdefault(target.path, number)
    return found


def test_each_page_is_in_the_navigation_once():
    listed = sorted(navigation(tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["nav"]))
    docs = ROOT / "docs"
    assert listed == sorted(path.relative_to(docs).as_posix() for path in docs.rglob("*.md"))


def test_the_newest_release_of_the_changelog_is_the_version_of_the_package_and_has_a_date():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.findall(r"^## (\d\S+) - (.*)$", changelog, re.MULTILINE)[0]
    assert newest[0] == agentfs.__version__
    assert date.fromisoformat(newest[1])


def test_each_link_and_anchor_resolves(site, pages):
    broken = []
    for address, page in pages.items():
        for link in [*page.links, *page.loaded]:
            target = urlsplit(urljoin(address, link))
            if target.scheme in {"https", "http", "mailto"}:
                continue
            path = unquote(target.path)
            if path in pages:
                if unquote(target.fragment) not in pages[path].ids:
                    broken.append(f"{address}: {link} (no such anchor)")
            elif not (site / path.lstrip("/")).is_file():
                broken.append(f"{address}: {link}")
    assert broken == []


def test_ten_questions_are_each_answered_two_clicks_from_the_start_page(pages):
    text = (ROOT / "docs" / "questions.md").read_text(encoding="utf-8")
    questions = re.findall(r"^\*\*\d+\. ([^*]+\?)\*\*(.*?)(?=^\*\*|\Z)", text, re.MULTILINE | re.DOTALL)
    assert len(questions) == 10
    near = clicks(pages, 2)
    wrong = []
    for question, answer in questions:
        for link in re.findall(r"\]\(([^)]+)\)", answer) or ["no link"]:
            file, _, heading = link.partition("#")
            address = "/" + file.removesuffix(".md").removesuffix("index").rstrip("/") + "/"
            if address not in near or heading not in pages[address].headings:
                wrong.append(f"{question} {link}")
    assert wrong == []


def test_nothing_is_loaded_from_elsewhere(pages):
    loaded = {link for page in pages.values() for link in page.loaded}
    assert loaded
    assert {link for link in loaded if urlsplit(link).netloc} == set()


def public_names() -> Iterator[str]:
    """Each public name by its dotted path: of `agentfs`, and of the modules that the pages name."""
    modules = {"agentfs": agentfs.__all__, "agentfs.dialects": ["BUILT_IN", "find", "names", "register"]}
    modules["agentfs.dialects.toolkit"] = [
        *("Dialect", "Problem", "absolute_in", "as_json", "content_of", "left_out", "lines_of", "problem_of")
    ]
    modules["agentfs.tools.declaration"] = ["tool"]
    modules["agentfs.tools.spec"] = ["ToolSpec", "RenderContext"]
    for module in ("agentfs.results", "agentfs.errors"):
        classes = inspect.getmembers(import_module(module), inspect.isclass)
        own = [name for name, cls in classes if cls.__module__ == module and name[0] != "_"]
        modules[module] = [name for name in own if name not in agentfs.__all__]
    for module, names in modules.items():
        for name in names:
            yield f"{module}.{name}"
            value = getattr(import_module(module), name)
            members = vars(value) if inspect.isclass(value) and not issubclass(value, dict) else {}
            for member, defined in members.items():
                method = inspect.isfunction(defined) or isinstance(
                    defined, (property, functools.cached_property)
                )
                if method and member[0] != "_":
                    # A wrapper, as in `AsyncWorkspace`, is described where the method is.
                    wraps = inspect.isfunction(defined) and name == "AsyncWorkspace"
                    yield f"{module}.{inspect.unwrap(defined).__qualname__ if wraps else f'{name}.{member}'}"


def test_each_public_name_is_in_the_reference_with_an_example_that_runs(pages):
    """tests/test_docs.py runs the examples."""
    wrong = []
    for name in public_names():
        own_name = name.rpartition(".")[2]
        if own_name in NOT_FOR_USERS:
            continue
        found = [address for address, page in pages.items() if name in page.ids]
        if not any(address.startswith("/reference/") for address in found):
            wrong.append(f"{name} is on no page")
        files = [ROOT / f"docs{address}index.md" for address in found]
        files += [ROOT / f"docs{address.removesuffix('/')}.md" for address in found]
        code = [
            block.content
            for file in files
            if file.exists()
            for block in blocks_of(file)
            if block.language == "python"
        ]
        if own_name not in NO_EXAMPLE and not any(re.search(rf"\b{own_name}\b", each) for each in code):
            wrong.append(f"{name} has no example")
    assert wrong == []


def test_a_dead_link_a_dead_anchor_and_an_unknown_name_stop_the_build(tmp_path):
    start, _, rest = (ROOT / "zensical.toml").read_text().partition("nav = [")
    (tmp_path / "zensical.toml").write_text(start + rest.partition("\n]\n")[2])
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("[a](gone.md), [b](#gone), [c][agentfs.Gone]\n")
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (built.returncode, "3 issues found" in built.stdout + built.stderr) == (1, True)


@pytest.fixture(scope="module")
def server(site: Path) -> Iterator[str]:
    """The address at which the site is served on this machine."""
    with served(site) as address:
        yield address


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with running(str(program("chromium")), tmp_path_factory.mktemp("chromium")) as opened:
        yield opened


# What a page shows: by how much it is wider than the window, its pictures that are not drawn, and its scheme.
LOOK = """(async () => {
    await new Promise(seen => requestAnimationFrame(() => requestAnimationFrame(seen)));
    const pictures = [...document.querySelectorAll("article img")].filter(img => img.checkVisibility());
    pictures.forEach(img => img.loading = "eager");
    await Promise.all(pictures.map(img => img.decode().catch(() => null)));
    return {
        wider: Math.max(0, document.documentElement.scrollWidth - document.documentElement.clientWidth),
        missing: pictures.filter(img => !img.naturalWidth).map(img => img.src),
        scheme: document.body.dataset.mdColorScheme == "slate" ? "dark" : "light",
    };
})()"""


@needs("chromium")
def test_a_browser_shows_each_page_on_a_phone_and_the_main_ones_in_all_windows(browser, server, pages):
    wrong = []
    for address, page in pages.items():
        browser.open(server + address)
        main = page.pictures or address.count("/") < 3  # the start page, and the first of each section
        for width, height, scheme in WINDOWS if main else WINDOWS[-1:]:
            browser.resize(width, height, scheme)
            seen = browser.run(LOOK)
            if seen != {"wider": 0, "missing": [], "scheme": scheme}:
                wrong.append(f"{address} {width} {scheme}: {seen}")
    assert (wrong, browser.complaints) == ([], [])


@needs("chromium")
@pytest.mark.parametrize(("width", "height", "scheme"), WINDOWS, ids=str)
def test_search_finds_undo(browser, server, width, height, scheme):
    browser.resize(width, height, scheme)
    browser.open(server + "/")
    opener = ".md-search__button" if width > 1000 else ".md-header__button[for=__search]"
    browser.run(f"document.querySelector('{opener}').click()")
    shown = "[...document.body.children].map(each => each.shadowRoot).find(root => root)"
    wait_for(lambda: browser.run(f"!!{shown}?.querySelector('dialog[open] input')"))
    browser.run(f"{shown}.querySelector('input').focus()")
    browser.send("Input.insertText", text="undo")
    found = wait_for(lambda: browser.run(f"{shown}.querySelector('[role=option]')?.innerText"))
    assert "undo" in found.lower()
    assert browser.complaints == []
