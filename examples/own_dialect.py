"""A dialect of your own in one file: three tools of another contract over a workspace, with JSON answers.

The contract here is a small one: `cat`, `find` and `put`, whose answers are `{"ok": true, …}`, and whose
failures are `{"ok": false, "why": …}`. A `cat` shows 200 lines unless it is asked for others, and `put`
replaces a file without asking whether it was read.
"""

import tempfile

from agentfs import ToolResult, Workspace
from agentfs.dialects import register
from agentfs.dialects.toolkit import Dialect, NextCall, RenderContext, ToolSpec, as_json, problem_of
from agentfs.results import GlobResult, ReadResult, WriteResult


def specs(workspace: Workspace) -> list[ToolSpec]:
    """Make the three tools; each stands on methods of the workspace."""

    def read(file: str, first: int = 1, last: int | None = None) -> ReadResult:
        """Show lines of a file.

        Args:
            file: The file.
            first: The first line, from 1.
            last: The last line.
        """
        return workspace.read(file, first, None if last is None else max(last - first + 1, 1))

    return [
        ToolSpec(read, name="cat"),
        ToolSpec(
            workspace.glob,
            name="find",
            parameters={"pattern": "name"},
            hide=("offset", "include_ignored"),
            map_next_call=find_instead,
        ),
        ToolSpec(workspace.write, name="put", parameters={"path": "file", "content": "text"}),
    ]


def find_instead(call: NextCall) -> dict[str, object] | None:
    """Return what an error advises to call, where it would be `ls`: this contract has no such tool."""
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
    Dialect("own", specs, limits={"read_lines": 200}, policy={"overwrite": "always"}, render=render)
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
