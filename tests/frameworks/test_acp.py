"""The Agent Client Protocol: an agent that asks its user, and a client with a workspace, over a socket."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from acp import RequestError, schema

from agentfs import AsyncWorkspace, Limits, Policy, Workspace
from agentfs.frameworks.acp import Permissions, WorkspaceClient, tool_kind
from tests.commands.conftest import SECRET, running
from tests.frameworks.scenario import CAT, FIRST_EDIT, RUN, SECOND_EDIT, WRONG, check_answers, task
from tests.frameworks.scripted import User, turn


async def test_an_agent_with_our_tools_does_the_task_and_asks(tmp_path):
    with task(tmp_path) as base:
        user = User("allow_always", "allow_always", "allow_once")

        async def do(client):
            asking = Policy(run="staged", ask=["change", "run"], on_ask=Permissions(client, "s1", base.root))
            tools = base.view(policy=asking).tools(["edit", "run", "read"])

            async def call(name, **given):
                return (await tools.acall(name, given)).content

            async def edit(path, texts):
                return await call("edit", path=path, old_string=texts[0], new_string=texts[1])

            await edit("app.py", FIRST_EDIT)
            first = await call("run", command=RUN)
            await edit("app.py", SECOND_EDIT)
            second = await call("run", command=RUN)
            return first, second, await edit(".env", (SECRET, "x")), await call("run", command=CAT)

        check_answers(*await turn(user, do))
    assert user.choices == [], "the second edit and the second run were covered by a rule for the session"
    (_, edited, options), (_, ran, _), (_, cat, _) = user.asked
    assert (edited.kind, ran.kind, cat.kind) == ("edit", "execute", "execute")
    [change] = edited.content
    assert (change.path, change.old_text) == (f"{base.root}/app.py", WRONG)
    assert change.new_text == WRONG.replace(*FIRST_EDIT)
    assert [(each.path, each.line) for each in edited.locations] == [(f"{base.root}/app.py", 2)]
    assert [(each.kind, each.name) for each in options] == [
        ("allow_once", "Allow"), ("allow_always", "Allow edit in this session"),
        ("reject_once", "Reject"), ("reject_always", "Reject edit in this session"),
    ]  # fmt: skip
    assert RUN in ran.content[0].content.text


class Direct:
    """A connection that calls the client's methods itself."""

    def __init__(self, user):
        self.request_permission = user.request_permission


async def test_each_choice_and_the_rules_of_the_session(tmp_path):
    user = User("allow_once", "reject_once", None, "odd", "reject_always", "allow_always", "allow_always")
    permissions = Permissions(Direct(user), "s1", tmp_path)
    policy = Policy(run="recorded", ask=["change", "run"], on_ask=permissions)
    async with AsyncWorkspace(tmp_path, policy=policy) as ws:
        tools = ws.tools(["write", "delete", "run"])

        async def allowed(name, **given):
            result = await tools.acall(name, given)
            assert result.success or result.error["code"] == "refused"
            return result.success

        assert await allowed("write", path="a", content="a\n")
        assert [await allowed("write", path="b", content="b\n") for _ in range(4)] == [False] * 4
        assert not await allowed("write", path="b", content="b\n"), "nobody is asked again"
        assert permissions.rules == {"write": False}
        assert await allowed("delete", path="a")
        assert await allowed("run", command="true")
        assert await allowed("run", command="true")
        assert permissions.rules == {"write": False, "delete": True, "run(true)": True}
        user.choices.append("reject_once")
        assert not await allowed("run", command="false")
    deletion = user.asked[5][1]
    assert (deletion.kind, deletion.content[0].old_text, deletion.content[0].new_text) == (
        "delete",
        "a\n",
        "",
    )


@pytest.mark.parametrize(("effect", "method", "kind"), [
    ("read", "read", "read"), ("search", "grep", "search"), ("edit", "edit", "edit"),
    ("write", "write", "edit"),
    ("manage", "delete", "delete"), ("manage", "move", "move"), ("manage", "undo", "edit"),
    ("execute", "run", "execute"), ("none", "checkpoint", "other"), (None, "", "execute"),
])  # fmt: skip
def test_each_effect_has_a_kind(effect, method, kind):
    assert tool_kind(effect, method) == kind


@asynccontextmanager
async def serving(tmp_path, run="recorded", **options):
    with Workspace(tmp_path, policy=Policy(run=run), **options) as ws:
        yield WorkspaceClient(ws)


async def refused(call):
    with pytest.raises(RequestError) as raised:
        await call
    return raised.value.code, str(raised.value)


async def test_files(tmp_path):
    text = "".join(f"line {number} {'x' * 3000}\r\n" for number in range(3000))
    (tmp_path / "long.txt").write_bytes(text.encode())
    (tmp_path / ".env").write_text(SECRET)
    (tmp_path / "data").write_bytes(b"\0\1")
    async with serving(tmp_path) as client:
        assert (await client.read_text_file("s", f"{tmp_path}/long.txt")).content == text
        assert (await client.read_text_file("s", "long.txt", line=2, limit=1)).content == text.split("\n")[
            1
        ] + "\n"
        assert (await client.read_text_file("s", "long.txt", limit=0)).content == ""
        await client.write_text_file("s", f"{tmp_path}/new/a.txt", "new\n")
        await client.write_text_file("s", "long.txt", "short\r\n")
        assert (tmp_path / "new/a.txt").read_text() == "new\n"
        assert (tmp_path / "long.txt").read_bytes() == b"short\r\n"
        assert (await refused(client.read_text_file("s", "missing")))[0] == -32002
        for path in (".env", "../outside", "/etc/passwd", "new", "data"):
            code, said = await refused(client.read_text_file("s", path))
            assert code == -32602
            assert SECRET not in said
        assert (await refused(client.write_text_file("s", ".env", "x")))[0] == -32602
        assert (await refused(client.read_text_file("s", "long.txt", line=9)))[0] == -32602


async def test_a_terminal_shows_output_while_it_runs_and_cuts_the_beginning(tmp_path):
    async with serving(tmp_path) as client:
        given = {
            "args": ["-c", 'echo "$A: é"; sleep 600'],
            "env": [schema.EnvVariable(name="A", value="1 2")],
        }
        made = await client.create_terminal("s", "bash", **given, cwd=str(tmp_path), output_byte_limit=3)
        name = made.terminal_id
        for _ in range(200):
            shown = await client.terminal_output("s", name)
            if shown.output:
                break
            await asyncio.sleep(0.02)
        assert (shown.output, shown.truncated, shown.exit_status) == ("é\n", True, None)
        assert (await refused(client.terminal_output("another session", name)))[0] == -32002
        waiting = asyncio.ensure_future(client.wait_for_terminal_exit("s", name))
        await client.kill_terminal("s", name)
        ended = await waiting
        assert (ended.exit_code or 0, ended.signal) != (0, None)
        assert (await client.terminal_output("s", name)).output == "é\n", "the output stays"
        await client.release_terminal("s", name)
        assert (await refused(client.terminal_output("s", name)))[0] == -32002


@pytest.mark.parametrize("run", ["recorded", "staged"])
async def test_terminals_end(tmp_path, run):
    async with serving(tmp_path, run, limits=Limits(run_timeout=30)) as client:
        made = await client.create_terminal("s", "echo out; echo err >&2; exit 3")
        exited = await client.wait_for_terminal_exit("s", made.terminal_id)
        assert (exited.exit_code, exited.signal) == (3, None)
        shown = await client.terminal_output("s", made.terminal_id)
        assert sorted(shown.output.split()) == ["err", "out"]
        assert shown.exit_status.exit_code == 3
        long = await client.create_terminal("s", f"sleep 654.{run == 'staged':d}")
        await asyncio.sleep(0.3)
        await client.release_terminal("s", long.terminal_id)
        for _ in range(100):
            if not running(f"sleep 654.{run == 'staged':d}"):
                break
            await asyncio.sleep(0.05)
        assert not running(f"sleep 654.{run == 'staged':d}")


async def test_a_staged_command_whose_changes_are_refused_says_why(tmp_path):
    async with serving(tmp_path, "staged") as client:
        made = await client.create_terminal("s", "echo done; echo x > .env")
        exited = await client.wait_for_terminal_exit("s", made.terminal_id)
        assert exited.exit_code == 126
        assert "protected" in (await client.terminal_output("s", made.terminal_id)).output
        assert not (tmp_path / ".env").exists()
    async with serving(tmp_path, None) as client:
        made = await client.create_terminal("s", "ls")
        assert (await client.wait_for_terminal_exit("s", made.terminal_id)).exit_code == 126
