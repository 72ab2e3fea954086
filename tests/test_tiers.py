"""The first tier is quick: a costly test without a mark fails, and laws have a small form in it."""

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import strategies as st

from tests.conftest import law

CONFTEST = """
import runpy
hooks = runpy.run_path({path!r})
globals().update((name, hook) for name, hook in hooks.items() if name.startswith("pytest_"))
"""

COSTS = """
import subprocess, sys, time
import pytest

BURN = "import time\\nwhile time.process_time() < 2.4: pass"

def burn():
    exec(BURN.replace("2.4", str(time.process_time() + 2.4)))

@pytest.fixture(scope="module")
def shared():
    burn()

def test_waits_and_is_the_first_with_a_shared_fixture(shared):
    time.sleep(2.4)

def test_burns():
    burn()

def test_waits_for_a_child_that_burns():
    subprocess.run([sys.executable, "-c", BURN], check=True)

@pytest.mark.full
def test_of_the_second_tier():
    burn()

@pytest.mark.long
def test_campaign():
    burn()

def test_after_them():
    pass
"""


@pytest.mark.full
def test_a_costly_test_without_a_mark_fails(tmp_path):
    (tmp_path / "test_costs.py").write_text(COSTS)
    (tmp_path / "conftest.py").write_text(CONFTEST.format(path=str(Path(__file__).parent / "conftest.py")))
    report = tmp_path / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    cases = ET.parse(report).iter("testcase")
    problems = {
        case.get("name"): [child.tag for child in case if child.tag != "properties"] for case in cases
    }
    assert problems == {
        "test_waits_and_is_the_first_with_a_shared_fixture": [],
        "test_burns": ["error"],
        "test_waits_for_a_child_that_burns": ["error"],
        "test_of_the_second_tier": [],
        "test_campaign": [],
        "test_after_them": [],
    }, done.stdout + done.stderr
    assert done.stdout.count("but a test of the first tier may use 1.0 s") == 2


def test_a_law_has_as_many_examples_as_its_tier(tmp_path):
    seen = []

    @law(3, 5, st.integers())
    def check(directory, number):
        assert directory == tmp_path
        seen.append(number)

    (sizes,) = check.pytestmark
    few, many = sizes.args[1]
    assert few == 3
    assert many == pytest.param(5, marks=pytest.mark.full)
    check(directory=tmp_path, examples=3)
    assert len(seen) == 3
    check(directory=tmp_path, examples=5)
    assert len(seen) == 8
