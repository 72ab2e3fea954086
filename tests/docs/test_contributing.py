"""Pages keep within their words; CONTRIBUTING's map names each module; each law has its test."""

import re

from scripts.pages import TUTORIAL, blocks_of, commands_of, sessions
from scripts.words import ROOT, parts, words_of

PACKAGE = ROOT / "agentfs"
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
MAP, BEHAVIOURS = re.findall(r"((?:^\|.*\n)+)", PAGE.partition("## The map")[2], re.MULTILINE)[:2]


# Words of README, of all pages and of CONTRIBUTING, outside code blocks.
README, PAGES, CONTRIBUTING = 600, 30_000, 1_200


def test_readme_and_all_pages_keep_within_their_words():
    counted = dict(parts())
    assert counted["README"].total <= README
    assert counted["all"].total <= PAGES
    assert words_of(ROOT / "CONTRIBUTING.md").total <= CONTRIBUTING


def paths(table: str, column: int) -> list[str]:
    rows = [line.strip("|").split("|") for line in table.splitlines()[2:]]
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row[column])]


def test_the_map_names_each_module_and_package_and_behaviours_in_modules_that_exist():
    modules = {
        path.name for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    named = [name.rstrip("/") for name in paths(MAP, 0)]
    assert sorted(named) == sorted(modules - {"__init__.py", "__main__.py"})
    behaviours = paths(BEHAVIOURS, 1)
    assert len(behaviours) >= 10
    assert [name for name in behaviours if not (PACKAGE / name).exists()] == []


def test_each_file_that_the_page_names_exists():
    """The page named three tests that had gone."""
    named = re.findall(r"\b(?:tests|scripts|benchmarks|docs|agentfs)/[\w/]+\.\w+", PAGE)
    assert len(named) > 20
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_each_law_has_its_test():
    laws = (ROOT / "tests" / "README.md").read_text(encoding="utf-8")
    for line in re.findall(r"^\|.*", laws, re.MULTILINE):
        for file, test in re.findall(r"`([\w/]+\.py)`(?:: `(\w+)`)?", line.rpartition(" | ")[2]):
            source = (ROOT / "tests" / file).read_text(encoding="utf-8")
            assert f"def {test}" in source, f"{file}: {test}"


def test_each_test_that_the_pages_of_attacks_name_exists():
    """Each published fault of another tool, in `faults/others.md`, has one."""
    files = [*(ROOT / "tests").rglob("test_*.py")]
    tests = {*re.findall(r"def (test_\w+)\(", "\n".join(path.read_text(encoding="utf-8") for path in files))}
    faults = (ROOT / "tests/faults/others.md").read_text(encoding="utf-8")
    pages = [ROOT / "docs" / name for name in ("explanation/security.md", "internals/campaigns.md")]
    text = "\n".join([faults, *(page.read_text(encoding="utf-8") for page in pages)])
    named = {*re.findall(r"`(test_\w+)`", text)}
    assert len(named) > 30
    assert named - tests == set()
    assert [name for name in re.findall(r"tests/[\w/]+\.py", text) if not (ROOT / name).exists()] == []
    rows = re.findall(r"^\|.*\|$", faults, re.MULTILINE)[2:]
    assert len(rows) > 20
    assert [row for row in rows if "`test_" not in row] == []


def test_no_command_of_the_tutorial_leaves_the_shell_elsewhere():
    """A page said `cd shop && …`, after which all later files and commands were in the wrong directory."""
    pages = next(pages for pages in sessions() if pages[0].parent == TUTORIAL)
    blocks = [block for page in pages for block in blocks_of(page) if not block.title]
    assert {block.language for block in blocks} == {"console"}, "a reader does not know where to type others"
    commands = [command for block in blocks for command, _ in commands_of(block)]
    assert len(commands) > 12
    assert [each for each in commands if re.search(r"(^|[;&|]\s*)(cd|pushd) ", each)] == []
