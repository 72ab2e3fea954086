"""Count the calls that one local edit and one grep make within the package, and how often the module changes.

    python benchmarks/call_trace.py [CHECKOUT]

Each call is traced the second time it is made, so that imports and first-use work are left out. A change of
module is a call or a return that leads from one module of the package to another.
"""

import argparse
import importlib
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType


class Trace:
    """The calls and returns of a block, by module of the package."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.entered: Counter[str] = Counter()
        self.changes = 0
        self._module = ""
        self._stack: list[str] = []

    def run(self, function: Callable[[], object]) -> None:
        self._stack = []
        sys.setprofile(self._event)
        try:
            function()
        finally:
            sys.setprofile(None)

    def _event(self, frame: FrameType, event: str, _argument: object) -> None:
        name = frame.f_globals.get("__name__", "")
        if event == "call":
            self._stack.append(name)
            if name.startswith("agentfs"):
                self.calls[name] += 1
                self._enter(name)
        elif event == "return" and self._stack:
            self._stack.pop()
            caller = next((each for each in reversed(self._stack) if each.startswith("agentfs")), "")
            if caller:
                self._enter(caller)

    def _enter(self, module: str) -> None:
        if module != self._module:
            self.changes += bool(self._module)
            self.entered[module] += 1
            self._module = module


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", nargs="?", default=Path(__file__).parents[1], type=Path)
    parser.add_argument("--modules", action="store_true", help="list the modules, most entered first")
    arguments = parser.parse_args()
    sys.path.insert(0, str(arguments.checkout))
    workspace_class = importlib.import_module("agentfs").Workspace
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        for name in ("a.py", "b.py"):
            (root / name).write_text("one = 1\ntwo = 2\nneedle = 3\n")
        with workspace_class(root) as workspace:
            workspace.edit("a.py", "one = 1", "one = 2")
            workspace.grep("needle")
            calls = {
                "edit": lambda: workspace.edit("a.py", "two = 2", "two = 3"),
                "grep": lambda: workspace.grep("needle"),
            }
            for name, call in calls.items():
                trace = Trace()
                trace.run(call)
                print(
                    f"{name}: {trace.calls.total()} calls in {len(trace.calls)} modules, "
                    f"{trace.changes} changes of module"
                )
                if arguments.modules:
                    for module, count in trace.entered.most_common():
                        print(f"    {module:40} entered {count:3}, {trace.calls[module]:3} calls")


if __name__ == "__main__":
    main()
