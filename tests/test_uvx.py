"""`uvx` runs the command from the wheel, without an installation. The dependencies come from the index."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentfs import connect

pytestmark = pytest.mark.network
ROOT = Path(__file__).parents[1]


@pytest.mark.full
def test_uvx_runs_the_command_that_has_the_name_of_the_distribution(tmp_path, request):
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    [wheel] = tmp_path.glob("*.whl")
    cache = request.config.cache.mkdir("uv")
    uvx = [sys.executable, "-m", "uv", "tool", "run", "--python", sys.executable, "--cache-dir", str(cache)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    list_it = [*uvx, "--from", str(wheel), "agentfs-workspace", "call", "ls"]
    done = subprocess.run(list_it, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[0] == wheel.name
    serve = ["env", "-u", "PYTHONPATH", *uvx, "--from", str(wheel), "agentfs", "serve"]
    with connect([*serve, "--root", str(tmp_path)], ".") as ws:  # as the remote command of ssh
        assert ws.root == str(tmp_path)
        assert ws.stat(wheel.name).size == wheel.stat().st_size
