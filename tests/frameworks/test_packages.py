"""The packages of the frameworks: imported by their adapters only, and newer ones with a warning."""

import importlib
import subprocess
import sys
import types
import warnings
from pathlib import Path

import pytest

from agentfs import frameworks

INTEROP = Path(__file__).parents[1] / "interop"
PACKAGES = (
    "agents", "anthropic", "anyio", "asyncio", "deepagents", "langchain_core", "openai", "pydantic",
    "pydantic_ai", "trio",
)  # fmt: skip


def test_import_agentfs_imports_none_of_them():
    program = (
        "import sys, tempfile, agentfs, agentfs.frameworks\n"
        "ws = agentfs.Workspace(tempfile.mkdtemp())\n"
        "ws.tools(dialect='memory').schemas('anthropic', native=True)\n"
        "ws.tools('all').schemas()\n"
        "ws.tools().call('ls')\n"
        f"print(sorted({{*{PACKAGES!r}}} & sys.modules.keys()))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(("installed", "warned"), [
    ("0.24.9", False), ("0.23.0", False), ("0.25.0", True), ("1.0.0rc1", True),
])  # fmt: skip
def test_a_package_newer_than_the_tested_ones_is_a_warning(monkeypatch, installed, warned):
    monkeypatch.setattr(frameworks, "version", lambda _: installed)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with frameworks.needs("openai-agents", "0.20", tested="0.24"):
            pass
    assert [installed in str(each.message) for each in seen] == [True] * warned


MODULES = {
    "deepagents": ("deepagents.backends.protocol", "deepagents"),
    "langchain": ("langchain_core.tools", "langchain"),
    "openai_agents": ("agents", "openai-agents"), "pydantic_ai": ("pydantic_ai", "pydantic-ai-slim"),
}  # fmt: skip


def importing(monkeypatch, name):
    monkeypatch.delitem(sys.modules, f"agentfs.frameworks.{name}", raising=False)
    monkeypatch.delitem(sys.modules, "agentfs.frameworks.pydantic_ai_workspace", raising=False)
    monkeypatch.delitem(vars(frameworks), name, raising=False)
    return importlib.import_module(f"agentfs.frameworks.{name}")


@pytest.mark.parametrize("name", MODULES)
def test_regression_a_missing_or_too_old_package_is_an_error_with_the_least_version(monkeypatch, name):
    """It ended in `ImportError: cannot import name …`."""
    module, package = MODULES[name]
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, module, None)
        needed = rf"needs {package} [\d.]+ or newer; .* pip install '{package}>="
        with pytest.raises(ImportError, match=needed):
            importing(monkeypatch, name)
    for each in [loaded for loaded in sys.modules if loaded.split(".")[0] == module.split(".")[0]]:
        monkeypatch.delitem(sys.modules, each)
    monkeypatch.setitem(sys.modules, module, types.ModuleType(module))  # without any name
    monkeypatch.setattr(frameworks, "version", lambda _: "0.1")
    with pytest.raises(ImportError, match=rf"needs {package} [\d.]+ or newer; installed: 0.1\."):
        importing(monkeypatch, name)


@pytest.mark.parametrize("listed", sorted(INTEROP.glob("*.txt")), ids=lambda path: path.stem)
def test_each_package_of_an_environment_is_pinned_with_hashes(listed):
    lines = [line for line in listed.read_text().splitlines() if not line.startswith("#")]
    entries = "\n".join(lines).replace("\\\n", "").splitlines()
    assert len(entries) > 20
    assert [each for each in entries if "==" not in each or "--hash=sha256:" not in each] == []
