"""The text of every result keeps to `Limits.output_tokens`, and says what was cut and how to continue."""

import re

import pytest

from agentfs import Limits, Policy, Workspace
from agentfs.text.display import fits
from tests import kit


@pytest.fixture
def tree(tmp_path):
    for number in range(120):
        lines = "".join(f"value_{line} = {line * number}  # needle\n" for line in range(30))
        (tmp_path / f"module_{number:03}.py").write_text(lines)
    return tmp_path


CALLS = {
    "read": lambda ws: ws.read("module_007.py"),
    "ls": lambda ws: ws.ls(),
    "glob": lambda ws: ws.glob("*.py"),
    "find": kit.find,
    "grep": lambda ws: ws.grep("needle", context=3),
    "grep files": lambda ws: ws.grep("needle", output_mode="files_with_matches"),
    "grep counts": lambda ws: ws.grep("needle", output_mode="count"),
    "grep summary": lambda ws: ws.grep("needle", output_mode="summary"),
    "grep multiline": lambda ws: ws.grep("needle\nvalue", multiline=True),
    "edit": lambda ws: ws.edit("module_007.py", "needle", "pin", replace_all=True),
    "write": lambda ws: ws.write("module_008.py", "x\n" * 200),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("budget", [150, 400, 1500])
def test_no_text_is_over_the_budget(tree, name, budget):
    limits = Limits(output_tokens=budget)
    with Workspace(tree, limits=limits, policy=Policy(overwrite="always")) as ws:
        result = CALLS[name](ws)
    assert fits(result.text, limits), result.text


@pytest.mark.parametrize(("name", "arguments", "budget"), [
    ("ls", {}, 200), ("glob", {"pattern": "*.py"}, 200),
    *(("grep", {"pattern": "value_(3|17) ", "output_mode": mode}, budget)
      for mode in ("content", "files_with_matches", "count", "summary") for budget in (300, 1500)),
])  # fmt: skip
def test_the_pages_of_a_cut_answer_put_together_are_all_of_it(tree, name, arguments, budget):
    shown = []
    with Workspace(tree, limits=Limits(output_tokens=budget)) as ws:
        while arguments is not None:
            result = getattr(ws, name)(**arguments)
            shown += re.findall(r"^module_\d+\.py", result.text, re.MULTILINE)
            arguments = result.next and result.next["arguments"]
    every = [f"module_{number:03}.py" for number in range(120)]
    assert (sorted({*shown}) if name == "grep" else shown) == every


def test_a_search_is_cut_step_by_step(tree):
    shown = []
    for budget in (20_000, 5000, 2500, 1000, 150, 30):
        with Workspace(tree, limits=Limits(output_tokens=budget)) as ws:
            shown.append(ws.grep("value_9 ", context=3, limit=60))
    assert all(len(result.matches) == 60 for result in shown)
    assert all(result.next for result in shown)
    assert shown[-1].text.startswith("120 matching lines in 120 files") or "only counts" in shown[-1].text


def test_a_counter_of_ones_own_decides(tree):
    with Workspace(tree, limits=Limits(output_tokens=10, count_tokens=lambda text: text.count("\n"))) as ws:
        assert ws.read("module_007.py").text.count("\n") <= 10
