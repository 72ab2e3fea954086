"""An agent of pydantic-ai-harness does the task on a staged backend; `test_backends.py` runs this."""

from pathlib import Path

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai_harness.filesystem import FileSystem
from pydantic_ai_harness.shell import Shell

from agentfs import AgentFSError
from agentfs.frameworks.pydantic_ai import WorkspaceBackend

FILES = {
    "app.py": "def add(a, b):\n    return a - b\n",
    "test_app.py": "from app import add\nassert add(2, 2) == 4, 'wrong'\nprint('passed')\n",
    ".env": "KEY=hunter2\n",
}
RUN = ("run_command", {"command": "python3 -B test_app.py"})
CALLS = [
    ("read_file", {"path": "app.py"}),
    ("edit_file", {"path": "app.py", "old_text": "a - b", "new_text": "a / b"}),
    RUN,
    ("edit_file", {"path": "app.py", "old_text": "a / b", "new_text": "a + b"}),
    RUN,
    ("read_file", {"path": ".env"}),
    ("run_command", {"command": "cat .env"}),
]


@pytest.fixture
def anyio_backend():
    return "asyncio"


def tree(top: Path) -> dict[str, bytes]:
    return {str(path.relative_to(top)): path.read_bytes() for path in top.rglob("*") if path.is_file()}


@pytest.mark.anyio
async def test_it_fixes_the_program_sees_no_secret_and_is_undone(tmp_path):
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    before, told = tree(tmp_path), []

    async def model(messages, _):
        turn = sum(isinstance(each, ModelResponse) for each in messages)
        told.append(str([getattr(part, "content", "") for part in messages[-1].parts]))
        return ModelResponse([ToolCallPart(*CALLS[turn])] if turn < len(CALLS) else [TextPart("done")])

    backend = WorkspaceBackend(tmp_path, run="staged")
    agent = Agent(FunctionModel(model), capabilities=[FileSystem(), Shell()])
    await agent.run("go", workspace=backend)
    _, _, _, failed, _, passed, refused, cat = told
    assert "AssertionError: wrong" in failed
    assert "passed" in passed
    assert "Permission denied" in refused
    assert "no output" in cat
    assert not any("hunter2" in each for each in told)
    assert (tmp_path / "app.py").read_text() == FILES["app.py"].replace("-", "+")
    backend.workspace.host.undo(2)
    with pytest.raises(AgentFSError, match="nothing to undo"):
        backend.workspace.host.undo()
    assert tree(tmp_path) == before
