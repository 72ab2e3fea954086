"""What the pages say is true: their examples type-check and run, and README's two lines are what CI needs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
CODE_BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
EXAMPLES = [
    pytest.param(code, id=f"{page.relative_to(ROOT)}:{number}")
    for page in PAGES
    for number, code in enumerate(CODE_BLOCK.findall(page.read_text(encoding="utf-8")))
]


@pytest.mark.parametrize("code", EXAMPLES)
def test_example_runs(code, tmp_path):
    subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=tmp_path, check=True, timeout=60)


def test_examples_type_check(tmp_path):
    for number, example in enumerate(EXAMPLES):
        (tmp_path / f"example_{number}.py").write_text(str(example.values[0]), encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", str(tmp_path)]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


def test_links_between_pages_lead_somewhere():
    broken = []
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            if "://" not in target and not (page.parent / target).exists():
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert broken == []


@pytest.mark.parametrize("heading", ["Try it", "Test it"])
def test_readme_has_one_line_to_copy(heading):
    section = (
        (ROOT / "README.md").read_text(encoding="utf-8").partition(f"## {heading}\n")[2].partition("\n## ")[0]
    )
    blocks = re.findall(r"^```sh\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 1
    assert len(blocks[0].strip().splitlines()) == 1


def test_every_method_and_every_error_code_has_its_place_in_the_docs():
    from agentfs.errors import AgentFSError

    from_pages = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    for name in ("read", "write", "edit", "multi_edit", "ls", "glob", "grep"):
        assert re.search(rf"^# .*\b{name}\b", from_pages, re.MULTILINE)
    errors_page = (ROOT / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")
    todo = list(AgentFSError.__subclasses__())
    while todo:
        cls = todo.pop()
        todo += cls.__subclasses__()
        if cls.code:
            assert f"`{cls.code}`" in errors_page
