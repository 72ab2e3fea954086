"""The quick starts of docs/how-to/providers.md, with each provider's package and a stand-in of its API."""

import os
import re
import subprocess

import pytest

from tests.interop.stand_in import serve
from tests.interop.test_frameworks import ROOT, python_of

pytestmark = pytest.mark.network
__all__ = ["python_of"]  # a fixture

PAGE = (ROOT / "docs" / "how-to" / "providers.md").read_text(encoding="utf-8")
QUICK_STARTS = re.findall(r"^```py\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
NAMES = ["openai", "anthropic", "gemini", "framework", "mcp"]


@pytest.mark.parametrize(("name", "code"), list(zip(NAMES, QUICK_STARTS, strict=True)), ids=NAMES)
def test_a_quick_start_runs(name, code, python_of, tmp_path):
    (tmp_path / "marker.txt").write_text("x")
    command = tmp_path / "bin" / "agentfs"
    command.parent.mkdir()
    python = python_of("frameworks.txt")
    command.write_text(f"#!/bin/sh\nPYTHONPATH='{ROOT}' exec {python} -m agentfs \"$@\"\n")
    command.chmod(0o755)
    server = serve()
    address = f"http://127.0.0.1:{server.server_address[1]}"
    environment = {
        **os.environ, "PYTHONPATH": str(ROOT), "OPENAI_API_KEY": "none", "ANTHROPIC_API_KEY": "none",
        "GEMINI_API_KEY": "none", "OPENAI_BASE_URL": f"{address}/v1", "ANTHROPIC_BASE_URL": address,
        "GOOGLE_GEMINI_BASE_URL": address, "NO_PROXY": "127.0.0.1",
        "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}",
    }  # fmt: skip
    try:
        done = subprocess.run(
            [python, "-c", code], cwd=tmp_path, env=environment,
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
    finally:
        server.shutdown()
        server.server_close()
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("It holds:"), done.stdout
    assert "marker.txt" in done.stdout
