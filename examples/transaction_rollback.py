"""A turn as a transaction: nothing is on disk until a check has passed, and a failed check takes it all back.

The check compiles the changed files as the transaction sees them. A model breaks one, and repairs it in its
second turn.
"""

import tempfile
from typing import Any

from agentfs import Workspace

Call = tuple[str, dict[str, Any]]
SHAPES = "def area(width, height):\n    return width * height\n"


class CheckError(Exception):
    """Raised to leave the transaction without its changes."""


def turn_of(expression: str) -> list[Call]:
    """Return the calls of a turn that makes the program print an expression."""
    edited = f"import shapes\nprint({expression})"
    return [
        ("write", {"path": "shapes.py", "content": SHAPES}),
        ("edit", {"path": "main.py", "old_string": "print(3 * 4)", "new_string": edited}),
    ]


def play(ws: Workspace, turn: list[Call]) -> None:
    """Run the calls of a turn in a transaction, and keep them only if the changed files compile."""
    try:
        with ws.transaction() as staged:
            tools = staged.tools()
            for name, arguments in turn:
                tools.call(name, arguments)
            changes = staged.changes()
            for file in changes.files:
                try:
                    compile(staged.read(file.path).content, file.path, "exec")
                except SyntaxError as error:
                    raise CheckError(f"{file.path}, line {error.lineno}: {error.msg}") from error
    except CheckError as error:
        print(f"Taken back: {error}")
    else:
        print(changes.patch.decode())


def main() -> None:
    """Play a turn that fails and one that passes, and undo the latter."""
    with tempfile.TemporaryDirectory() as directory, Workspace(directory) as ws:
        ws.write("main.py", "print(3 * 4)\n")
        for expression in ("shapes.area(3, 4", "shapes.area(3, 4)"):
            play(ws, turn_of(expression))
            print(f"On disk: {', '.join(entry.path for entry in ws.ls().entries)}\n")
        print(ws.host.undo().text)  # the whole turn is one step


if __name__ == "__main__":
    main()
