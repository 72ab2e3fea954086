"""The small programs of `examples`, run as a new user runs them."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
PRINTED = {
    "own_async_tool": [
        "The model sees read, edit, latest_release.",
        '2: {"package": "parser", "version": "2.1"}',
        "3 (failed): There is no stable release of unknown.",
        "+parser==2.1",
    ],
    "callback_rules": [
        "edit src/app.py: Edited src/app.py: 1 replacement",
        "write poetry.lock: The rule `change(*.lock)` denies this call.",
        "? edit tests/test_app.py: 1 removed, 0 added",
        "edit tests/test_app.py: Keep def test_old: fix the code instead.",
        "edit tests/test_app.py: Edited tests/test_app.py: 1 replacement",
        "grep : 2 matches in 1 file",
    ],
    "transaction_rollback": [
        "Taken back: main.py, line 2: '(' was never closed",
        "On disk: main.py",
        "+print(shapes.area(3, 4))",
        "On disk: main.py, shapes.py",
        "Undid 1 step.",
    ],
    "notebook": [
        "5|area = 3.14 * radius ** 2",
        "8|> 12.56",
        "+area = math.pi * radius ** 2",
        r"The file has 3 cells; the second is 'radius = 2\narea = math.pi * radius ** 2\n'.",
    ],
}


@pytest.mark.parametrize("name", PRINTED)
def test_an_example_prints_these_lines_in_order(name):
    command = [sys.executable, "-W", "error", str(EXAMPLES / f"{name}.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    lines = iter(done.stdout.splitlines())
    missing = [wanted for wanted in PRINTED[name] if wanted not in lines]  # each after the one before
    assert missing == []
