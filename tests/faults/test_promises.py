"""Every test that docs/security.md names is there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_each_test_that_the_security_page_names_exists():
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    written = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    named = set(re.findall(r"`(test_\w+)`", page))
    assert len(named) > 10
    assert {name for name in named if f"def {name}(" not in written} == set()
    files = set(re.findall(r"tests/[\w/]+\.py", page))
    assert {name for name in files if not (ROOT / name).exists()} == set()
