"""`benchmarks/ratios.py` records ratios, and says later that one is worse; every benchmark can be started."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import needs

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "ratios.py"


@pytest.mark.full
@pytest.mark.parametrize("script", sorted(each.name for each in SCRIPT.parent.glob("*.py")))
def test_every_benchmark_finds_what_it_imports(script):
    """`watch.py` imported a function that another one had lost."""
    code = f"import sys; sys.path.insert(0, {str(SCRIPT.parent)!r}); import {script.removesuffix('.py')}"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.full
@needs("rg")
def test_a_ratio_that_is_worse_than_the_recorded_one_is_a_failure(tmp_path):
    (tmp_path / "tree").mkdir()
    for number in range(20):
        (tmp_path / "tree" / f"{number or 'ast'}.py").write_text("self.fromisocalendar()\n")
    results = tmp_path / "ratios.json"

    def run(*more):
        options = ["--tree", tmp_path / "tree", "--rounds", "1", "--results", results, *more]
        ran = subprocess.run([sys.executable, SCRIPT, *options], capture_output=True, text=True, check=False)
        return ran.returncode, ran.stdout.count("WORSE"), ran.stderr

    assert run("--record") == (0, 0, "")
    recorded = json.loads(results.read_text())
    assert {"commit", "date", "machine"} < recorded.keys()
    first, *others = recorded["ratios"]
    better = {**dict.fromkeys(others, 1e9), first: 1e-9}
    results.write_text(json.dumps(recorded | {"ratios": better}))
    assert run() == (1, 1, "")
    results.write_text(json.dumps(recorded | {"ratios": better | {first: 1e9}}))
    assert run() == (0, 0, "")
