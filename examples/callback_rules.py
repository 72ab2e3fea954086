"""Permissions by rules and a callback: what is always allowed, what never, and what a person decides.

The person is a function here. It reads the diff, and refuses a change that removes a test.
"""

import tempfile

from agentfs import Allow, Deny, PermissionRequest, Policy, Workspace

CALLS = [
    ("edit", {"path": "src/app.py", "old_string": "1", "new_string": "2"}),
    ("write", {"path": "poetry.lock", "content": ""}),
    ("edit", {"path": "tests/test_app.py", "old_string": "def test_old(): ...\n", "new_string": ""}),
    ("edit", {"path": "tests/test_app.py", "old_string": "test_new", "new_string": "test_newer"}),
    ("grep", {"pattern": "test_"}),
]


def decide(request: PermissionRequest) -> Allow | Deny:
    """Answer in place of a person who reads the diff."""
    removed = [line[1:] for line in request.diff.splitlines() if line.startswith("-def test_")]
    added = [line for line in request.diff.splitlines() if line.startswith("+def test_")]
    print(f"? {request.tool} {', '.join(request.paths)}: {len(removed)} removed, {len(added)} added")
    if len(removed) > len(added):
        return Deny(f"Keep {removed[0].partition('(')[0]}: fix the code instead.")
    return Allow()


def main() -> None:
    """Make the calls of a model."""
    policy = Policy(
        allow=["edit(src/**)"],  # without a question, as reading
        deny=["change(*.lock)"],  # never, whatever else allows it
        on_ask=decide,  # all other changes
    )
    with tempfile.TemporaryDirectory() as directory, Workspace(directory, policy=policy) as ws:
        # The rules are for the agent, not for the program.
        ws.host.write("src/app.py", "x = 1\n")
        ws.host.write("tests/test_app.py", "def test_old(): ...\ndef test_new(): ...\n")
        tools = ws.tools()
        for name, arguments in CALLS:
            result = tools.call(name, arguments)
            print(f"{name} {arguments.get('path', '')}: {result.short_result}")
        print(ws.host.undo().text)  # an Undo button asks nobody


if __name__ == "__main__":
    main()
