"""An agent of deepagents does the task; its backend meets bad input. `test_backends.py` runs this."""

import asyncio
import os
import time

import pytest
from deepagents import create_deep_agent
from deepagents.backends import CompositeBackend
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage

from agentfs import Policy, Workspace
from agentfs.frameworks.deepagents import Backend

SECRET = "hunter2"
FILES = {
    "app.py": "def add(a, b):\n    return a - b\n",
    "test_app.py": "from app import add\nassert add(2, 2) == 4, 'wrong'\nprint('passed')\n",
    ".env": f"KEY={SECRET}\n",
}


class Model(GenericFakeChatModel):
    def bind_tools(self, tools, **_):
        return self


@pytest.fixture
def tree(tmp_path):
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    return tmp_path


def contents(top):
    return {str(path.relative_to(top)): path.read_bytes() for path in top.rglob("*") if path.is_file()}


def told(backend, calls):
    """Run an agent whose model makes calls, one a turn; return what it was told."""
    turns = [
        AIMessage("", tool_calls=[{"name": name, "args": given, "id": str(number)}])
        for number, (name, given) in enumerate(calls)
    ]
    agent = create_deep_agent(Model(messages=iter([*turns, AIMessage("done")])), backend=backend)
    done = agent.invoke({"messages": [{"role": "user", "content": "go"}]})
    return [str(each.content) for each in done["messages"] if isinstance(each, ToolMessage)]


def test_it_fixes_the_program_sees_no_secret_and_is_undone(tree):
    before = contents(tree)
    backend = Backend(tree, run="staged")
    start = backend.workspace.host.checkpoint().name
    app, run = f"{tree}/app.py", ("execute", {"command": "python3 -B test_app.py"})
    _, _, failed, _, passed, refused, cat = told(backend, [
        ("read_file", {"file_path": app}),
        ("edit_file", {"file_path": app, "old_string": "a - b", "new_string": "a / b"}),
        run,
        ("edit_file", {"file_path": app, "old_string": "a / b", "new_string": "a + b"}),
        run,
        ("read_file", {"file_path": f"{tree}/.env"}),
        ("execute", {"command": "cat .env; echo ran"}),
    ])  # fmt: skip
    assert "AssertionError: wrong" in failed
    assert "passed" in passed
    assert "is protected" in refused
    assert "ran" in cat
    assert SECRET not in refused + cat
    assert (tree / "app.py").read_text() == FILES["app.py"].replace("-", "+")
    backend.workspace.host.rollback(start)
    assert contents(tree) == before


def test_an_evicted_result_stays_readable(tree):
    backend = Backend(tree, run="recorded")
    below = CompositeBackend(default=backend, routes={}, artifacts_root=str(tree))
    [evicted] = told(below, [("execute", {"command": "seq 100000"})])
    assert f"{tree}/large_tool_results/" in evicted
    [saved] = (tree / "large_tool_results").iterdir()
    assert backend.read(str(saved), 99_000, 10).file_data["content"].startswith("99001\n")


def test_what_a_search_left_out_is_in_the_log(tree, caplog):
    caplog.set_level("INFO", "agentfs.frameworks.deepagents")
    found = Backend(tree).grep("add")
    assert {each["path"] for each in found.matches} == {f"{tree}/app.py", f"{tree}/test_app.py"}
    assert not found.truncated
    assert "left out: 1 hidden" in caplog.text
    assert Backend(tree).grep("a", max_count=1).truncated


def test_the_model_is_told_of_files_that_could_not_be_searched(tree):
    above = os.open(tree, os.O_RDONLY)
    for _ in range(25):  # more than the longest path of the system
        os.mkdir("d" * 200, dir_fd=above)
        above, closed = os.open("d" * 200, os.O_RDONLY, dir_fd=above), above
        os.close(closed)
    os.close(above)
    backend = Backend(tree)
    [found] = told(backend, [("grep", {"pattern": "def add", "path": str(tree), "output_mode": "content"})])
    assert "1 too deep to name" in found
    assert "def add(a, b):" in found
    assert backend.glob("*.py").truncation_reason == "unreadable"


def test_relative_absolute_and_foreign_paths(tree):
    backend = Backend(tree)
    for path in ("app.py", f"{tree}/app.py"):
        assert backend.read(path).file_data["content"] == FILES["app.py"]
    for path in ("/etc/passwd", "../x", f"{tree}/../x"):
        assert "workspace" in backend.read(path).error
        assert "workspace" in backend.write(path, "x").error
        assert backend.download_files([path])[0].error in {"permission_denied", "invalid_path"}
    assert {each["path"] for each in backend.ls("/").entries} == {f"{tree}/{name}" for name in FILES}
    assert backend.download_files([f"{tree}/.env"])[0].error == "permission_denied"


def test_a_closed_backend_answers_with_errors_and_a_given_workspace_stays_open(tree):
    backend = Backend(tree)
    backend.close()
    app = f"{tree}/app.py"
    answers = [backend.read(app), backend.ls("/"), backend.write(app, ""), backend.grep("a")]
    answers += [backend.edit(app, "a", "b"), backend.delete(app), *backend.download_files([app])]
    for answer in answers:
        assert "closed" in answer.error
    assert backend.execute("ls").exit_code == 126
    with Workspace(tree, policy=Policy(run="recorded")) as ws:
        Backend(ws).close()
        assert ws.exists("app.py")


def test_two_agents_on_one_backend_lose_no_edit(tree):
    backend = Backend(tree)
    (tree / "n.txt").write_text("".join(f"{n}\n" for n in range(100, 140)))

    async def edit():
        return await asyncio.gather(
            *(backend.aedit(f"{tree}/n.txt", f"{n}\n", f"new {n}\n") for n in range(100, 140))
        )

    assert all(done.error is None for done in asyncio.run(edit()))
    assert (tree / "n.txt").read_text() == "".join(f"new {n}\n" for n in range(100, 140))


def test_a_cancelled_command_ends(tree):
    backend = Backend(tree)

    async def cancel():
        task = asyncio.ensure_future(backend.aexecute("echo $$ > pid; sleep 300"))
        for _ in range(100):
            await asyncio.sleep(0.05)
            if (tree / "pid").exists() and (tree / "pid").read_text():
                break
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    process = int((tree / "pid").read_text())
    for _ in range(100):
        if not os.path.exists(f"/proc/{process}"):
            break
        time.sleep(0.05)
    assert not os.path.exists(f"/proc/{process}")
