"""The site: built strictly, all its links lead somewhere, and a browser shows it as it should."""

import functools
import inspect
import pydoc
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from datetime import date
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import pytest

import agentfs
from scripts.browser import Browser, running
from scripts.build_site import build, navigation, served
from scripts.pages import blocks_of, commands_of, with_files
from tests.conftest import needs, part_or_all, program

pytestmark = pytest.mark.full  # the site is built

ROOT = Path(__file__).parents[2]
WINDOWS = [(1280, 900, "light"), (1280, 900, "dark"), (390, 844, "dark"), (390, 844, "light")]

FILES = list(navigation(tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["nav"]))

# Members of public classes that serve toolsets and the workspace.
NOT_FOR_USERS = {
    "bound_to", "place", "in_names", "places", "text", "allow_rules", "change_rules", "judges_ignored",
    "deny_rules", "ask_rules", "guards", "summary",
}  # fmt: skip
# What has no example, as it takes more than a block of code.
NO_EXAMPLE = {
    "DeadlineExceededError",  # a call of seconds
    "BusyError",  # another process
    "FileIOError",  # a disk that fails
    "UnsupportedSystemError", "DisconnectedError", "DeniedError",  # another system, connection or user
}  # fmt: skip


class Page(HTMLParser):
    """The links of a page, the files that it loads, and its anchors."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.ids = {"", "__skip"}
        self.links, self.loaded, self.pictures = (list[str]() for _ in range(3))
        self.in_article = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        self.in_article |= tag == "article"
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
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
    found = {}
    for file in sorted(site.rglob("index.html")):
        address = "/" + file.relative_to(site).as_posix().removesuffix("index.html")
        found[address] = Page(file.read_text(encoding="utf-8"))
    return found


def test_each_page_is_in_the_navigation_once():
    listed = sorted(FILES)
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
    modules["agentfs.tools.tool"] = ["RenderContext"]
    for module in ("agentfs.results", "agentfs.errors"):
        classes = inspect.getmembers(import_module(module), inspect.isclass)
        own = [name for name, cls in classes if cls.__module__ == module and name[0] != "_"]
        modules[module] = [name for name in own if name not in agentfs.__all__]
    for module, names in modules.items():
        for name in names:
            yield f"{module}.{name}"
            value = getattr(import_module(module), name)
            documented_elsewhere = inspect.isclass(value) and (issubclass(value, dict) or name == "connect")
            members = vars(value) if inspect.isclass(value) and not documented_elsewhere else {}
            for member, defined in members.items():
                computed = isinstance(defined, (property, functools.cached_property))
                if (inspect.isfunction(defined) or computed) and member[0] != "_":
                    yield f"{module}.{name}.{member}"


def test_each_public_name_is_in_the_reference_with_an_example_that_runs(site, pages):
    """tests/test_docs.py runs the examples; models get the docstrings too."""
    everything, wrong = (site / "llms-full.txt").read_text(encoding="utf-8"), []
    for name in public_names():
        own_name = name.rpartition(".")[2]
        if own_name in NOT_FOR_USERS:
            continue
        found = [address for address, page in pages.items() if name in page.ids]
        if not any(address.startswith("/reference/") for address in found):
            wrong.append(f"{name} is on no page")
        files = [ROOT / f"docs{address}index.md" for address in found]
        files += [ROOT / f"docs{address.removesuffix('/')}.md" for address in found]
        blocks = [block for file in files if file.exists() for block in blocks_of(file)]
        code = [block.content for block in blocks if block.language == "python"]
        if own_name not in NO_EXAMPLE and not any(re.search(rf"\b{own_name}\b", each) for each in code):
            wrong.append(f"{name} has no example")
        value = pydoc.locate(name)
        if (inspect.isclass(value) or inspect.isfunction(value)) and f"`{name}" not in everything:
            wrong.append(f"{name} has no docstring for models")
    assert wrong == [], "\n".join(wrong)


def test_models_get_a_list_of_the_pages_and_all_their_text(site):
    project = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]
    listed = (site / "llms.txt").read_text(encoding="utf-8")
    sections = dict(part.split("\n", 1) for part in listed.split("\n## ")[1:])
    assert list(sections) == [title for section in project["nav"] for title in section]
    everything = (site / "llms-full.txt").read_text(encoding="utf-8")
    assert re.search(r"^(:::|--8<--)", everything, re.MULTILINE) is None
    for section in project["nav"]:
        [(title, entries)] = section.items()
        linked = re.findall(r"^- \[(.+)\]\((.+?)\)(?:: (\w.*|`.*))?$", sections[title], re.MULTILINE)
        assert [name for _, name, _ in linked] == list(navigation(entries))
        for heading, name, _ in linked:
            page = (site / name).read_text(encoding="utf-8")
            assert page.startswith(f"# {heading}\n")
            assert page in everything
            source = with_files((ROOT / "docs" / name).read_text(encoding="utf-8"))
            kept = [line for line in source.splitlines() if not line.startswith((":::", "    "))]
            assert set(kept) <= set(page.splitlines())


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
    with served(site) as address:
        yield address


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with running(str(program("chromium")), tmp_path_factory.mktemp("chromium")) as opened:
        yield opened


# By how much a page is wider than the window in either scheme, its pictures that are not drawn, its scheme.
LOOK = """(async () => {
    await new Promise(seen => requestAnimationFrame(() => requestAnimationFrame(seen)));
    const pictures = [...document.querySelectorAll("article img")].filter(img => img.checkVisibility());
    pictures.forEach(img => img.loading = "eager");
    await Promise.all(pictures.map(img => img.decode().catch(() => null)));
    const root = document.documentElement, body = document.body, chosen = body.dataset.mdColorScheme;
    const wider = ["default", "slate"].map(scheme => {
        body.dataset.mdColorScheme = scheme;
        return Math.max(0, root.scrollWidth - root.clientWidth);
    });
    body.dataset.mdColorScheme = chosen;
    return {
        wider,
        missing: pictures.filter(img => !img.naturalWidth).map(img => img.src),
        scheme: chosen == "slate" ? "dark" : "light",
    };
})()"""


# The texts that the copy buttons of the examples put on the clipboard.
COPY = """(async () => {
    const copied = [];
    const blocks = "article .highlight:not(.doc-signature) ";
    for (const button of document.querySelectorAll(blocks + "button[data-md-type=copy]")) {
        if (!button.checkVisibility()) continue;
        await navigator.clipboard.writeText("");
        button.click();
        copied.push(await navigator.clipboard.readText());
    }
    return copied;
})()"""


def to_copy(page: Path) -> list[str]:
    """Return the texts to copy from a page: its code, and only the commands of a terminal session."""
    return [
        "\n".join(command for command, _ in commands_of(block)).replace("\n\n", "\n").rstrip()
        if block.language == "console"
        else block.content.rstrip()
        for block in blocks_of(page)
        if block.language != "text"
    ]


@needs("chromium")
@part_or_all(11)
def test_a_browser_shows_each_page_in_all_windows_and_copies_only_code(browser, server, pages, every):
    wrong: list[object] = []
    permissions = ["clipboardReadWrite", "clipboardSanitizedWrite"]
    browser.send("Browser.grantPermissions", origin=server, permissions=permissions)
    browser.send("Emulation.setFocusEmulationEnabled", enabled=True)
    files = {f"/{name}".removesuffix(".md").removesuffix("index").rstrip("/") + "/": name for name in FILES}
    for number, (address, page) in enumerate(list(pages.items())[::every]):
        browser.open(server + address)
        main = page.pictures or address.count("/") < 3  # the start page, and the first of each section
        windows = WINDOWS if main else WINDOWS[::2]  # both widths; LOOK tries both schemes
        for width, height, scheme in windows[:: (-1) ** number]:  # the last window is the next page's first
            browser.resize(width, height, scheme)
            seen = browser.run(LOOK)
            if seen != {"wider": [0, 0], "missing": [], "scheme": scheme}:
                wrong.append(f"{address} {width} {scheme}: {seen}")
        expected = to_copy(ROOT / "docs" / files[address]) if address in files else []
        if expected and (copied := browser.run(COPY)) != expected:
            wrong.append((address, copied, expected))
    assert (wrong, browser.complaints) == ([], [])
