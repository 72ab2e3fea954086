"""Imports an adapter as if its framework were newer than the tested versions, in a process of its own."""

import json
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PROGRAM = """
import asyncio, json, sys, warnings
from agentfs import Workspace, frameworks
frameworks.version = lambda _: "99.0"
name, use, root = sys.argv[1:]
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    for _ in range(2):
        module = getattr(frameworks, name)
warned = [each for each in seen if "99.0 is installed" in str(each.message)]
with Workspace(root) as ws:
    print(json.dumps([len(warned), eval(use)], default=repr))
"""


def imported_with_newer_package(python: str, root: Path, name: str, use: str) -> list[Any]:
    """Return the number of warnings, and the value of the expression `use`, which gets `module` and `ws`."""
    command = [python, "-c", PROGRAM, name, use, root]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, timeout=120)
    found: list[Any] = json.loads(done.stdout)
    return found
