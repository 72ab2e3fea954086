"""The benchmark of models with the tools of other products; tests/test_models_benchmark.py has ours."""

import subprocess
from pathlib import Path

import pytest

pytestmark = [pytest.mark.network, pytest.mark.full]
ROOT = Path(__file__).parents[2]
SOLVE_ONE_OF_EACH = """
import sys
sys.path.insert(0, sys.argv[1])
import run
for task in {task.kind: task for task in run.tasks()}.values():
    print(task.kind, run.attempt(task, sys.argv[2], None, sandboxed=False).solved)
"""


@pytest.mark.parametrize("name", ["deepagents", "pydantic-ai-harness"])
def test_a_script_solves_a_task_of_each_kind_with_the_tools_of_a_peer(python_of, stand_ins, tmp_path, name):
    command = [python_of("backends.txt"), "-c", SOLVE_ONE_OF_EACH, ROOT / "benchmarks" / "models", name]
    done = subprocess.run(command, cwd=tmp_path, env=stand_ins, capture_output=True, text=True, check=False)
    kinds = ("edit", "rename", "fix", "find", "undo")
    assert done.stdout == "".join(f"{kind} True\n" for kind in kinds), done.stderr
