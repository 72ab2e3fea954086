"""A dialect of your own in one file: three tools of another contract over a workspace, with JSON answers.

The contract here is a small one: `cat`, `find` and `put`, whose answers are `{"ok": true, …}`, and whose
failures are `{"ok": false, "why": …}`. A `cat` shows 200 lines unless it is asked for others, and `put`
replaces a file without asking whether it was read.
"""

import tempfile

from agentfs import ToolResult, Workspace
from agentfs.dialects import register
from agentfs.dialects.toolkit import Dialect, NextCall, RenderContext, Tool, as_json, problem_of
from agentfs.results import GlobResult, ReadResult, WriteResult


def make(workspace: Workspace) -> list[Tool]:
    """Make the three tools; each stands on a method of the workspace."""

    def cat(file: str, first: int = 1, last: int | None = None) -> ReadResult:
        """Show lines of a file.

        Args:
            file: The file.
            first: The first line, from 1.
            last: The last line.
        """
        return workspace.read(file, first, None if last is None else max(last - first + 1, 1))

    def find(name: str, path: str = ".", limit: int | None = None) -> GlobResult:
        """Find files by name.

        Args:
            name: A glob, such as `*.py`.
            path: The directory to search.
            limit: Most files to return.
        """
        return workspace.glob(name, path, limit)

    def put(file: str, text: str) -> WriteResult:
        """Write a file.

        Args:
            file: The file.
            text: Its full text.
        """
        return workspace.write(file, text)

    # `methods` and `renames` translate the calls that errors and footers advise.
    return [
        Tool(function=cat, effect="read", methods={"read": {}}, renames={"path": "file", "offset": "first"}),
        Tool(
            function=find,
            effect="read",
            methods={"glob": {}},
            renames={"pattern": "name"},
            follow=find_instead,
        ),
        Tool(
            function=put, effect="write", methods={"write": {}}, renames={"path": "file", "content": "text"}
        ),
    ]


def find_instead(call: NextCall) -> dict[str, object] | None:
    """Return the arguments of `find` for an advised `ls`, because this contract has no such tool."""
    if call["name"] != "ls":
        return None
    return {"name": "*", **call["arguments"]}


def render(context: RenderContext, _: Workspace) -> ToolResult:
    """Make the answer of this contract from the workspace's own."""
    if problem := problem_of(context):
        return as_json(context, {"ok": False, "why": problem.message, "hint": problem.hint})
    shown: dict[str, object] = {}
    match context.outcome:
        case ReadResult() as read:
            shown = {"text": read.content, "lines": [read.start_line, read.end_line, read.total_lines]}
        case GlobResult() as found:
            # What was left out is said beside what was found: nothing found is not nothing looked at.
            shown = {"files": [entry.path for entry in found.files], "left_out": found.skipped.total}
        case WriteResult() as written:
            shown = {"file": written.path, "bytes": written.bytes_written}
        case _:
            pass
    return as_json(context, {"ok": True, **shown})


OWN = register(
    Dialect("own", make, limits={"read_lines": 200}, policy={"overwrite": "always"}, render=render)
)


def main() -> None:
    """Call the tools once."""
    with tempfile.TemporaryDirectory() as directory, Workspace(directory) as ws:
        tools = ws.tools(dialect="own")
        for name, arguments in (
            ("put", {"file": "notes/a.txt", "text": "one\ntwo\nthree\n"}),
            ("find", {"name": "*.txt"}),
            ("cat", {"file": "notes/a.txt", "first": 2}),
            ("cat", {"file": "notes/b.txt"}),
        ):
            print(f"{name} {arguments}\n  {tools.call(name, arguments).content}")


if __name__ == "__main__":
    main()
