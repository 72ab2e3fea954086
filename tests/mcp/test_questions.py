"""The user is asked about calls that ask rules cover, in both ways that the protocol has."""

import asyncio
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from mcp import Client, MCPError, types
from mcp.server.mcpserver import MCPServer

from agentfs import Policy, Toolset, Workspace
from agentfs.frameworks import ask
from agentfs.mcp import questions, sdk_tools
from tests.kit import put
from tests.mcp.servers import client, process_client, told

EDIT = {"path": "a.txt", "old_string": "two", "new_string": "2"}
MODES = pytest.mark.parametrize("mode", ["legacy", "auto"])


class User:
    """A user who gives the answers in order, or none in time, and the questions that were asked."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    async def __call__(self, context, params):
        self.asked.append(params.message)
        answer = self.answers.pop(0)
        if answer == "never":
            await asyncio.sleep(3600)
        if callable(answer):
            answer = answer()
        return answer if isinstance(answer, types.ErrorData) else types.ElicitResult(action=answer)


@pytest.mark.parametrize(("mode", "answer", "said"), [
    *((mode, answer, said) for mode in ("legacy", "auto") for answer, said in (
        ("decline", "The user did not allow this call."),
        ("cancel", "The user closed the question without an answer."), (None, "this client cannot ask"),
        (None, "change the rules of the server, or use a client that can ask"))),
    ("legacy", "never", "did not answer within 0.3 seconds"),
    ("legacy", types.ErrorData(code=-32603, message="no window"), "could not ask the user"),
])  # fmt: skip
async def test_a_call_that_the_user_does_not_accept_is_refused(tree, monkeypatch, mode, answer, said):
    options = {} if answer is None else {"elicitation_callback": User(answer)}
    if answer == "never":
        monkeypatch.setattr(questions, "ANSWER_SECONDS", 0.3)
    async with client(tree, "--ask", "change", mode=mode, **options) as connected:
        refused = await connected.call_tool("edit", EDIT)
    assert refused.is_error
    assert said in told(refused)
    assert "Do not try again" in told(refused)
    assert (tree / "a.txt").read_text() == "one\ntwo\nthree\n"


@MODES
@pytest.mark.parametrize("where", ["here", "process", "another machine"])
async def test_a_user_who_accepts_allows_the_change_that_was_shown(tree, mode, where):
    user = User("accept", "decline")
    serve = ("--connect", f"{shlex.quote(sys.executable)} -m agentfs serve --root {tree}")
    options = ("--ask", "change", *(serve if where == "another machine" else ()))
    opened = process_client if where == "process" else client
    async with opened(tree, *options, mode=mode, elicitation_callback=user) as connected:
        assert not (await connected.call_tool("read", {"path": "a.txt"})).is_error
        assert not (await connected.call_tool("edit", EDIT)).is_error
        assert (await connected.call_tool("delete", {"path": "a.txt"})).is_error
    assert (tree / "a.txt").read_text() == "one\n2\nthree\n"
    assert user.asked[0].startswith("edit wants to change a.txt. Allow it?")
    assert "\n-two\n+2\n" in user.asked[0]
    assert user.asked[1].startswith("delete wants to delete a.txt. Allow it?")


@pytest.mark.parametrize(("rule", "changed"), [("run", "files that it finds"), ("change", "a.txt")])
@MODES
async def test_the_question_about_a_command_names_what_it_changes(tree, mode, rule, changed):
    user = User("accept")
    with Workspace(tree, policy=Policy(run="staged", ask=[rule], on_ask=ask)) as ws:
        server = MCPServer("files", tools=sdk_tools(ws.tools("run")))
        async with Client(server, mode=mode, elicitation_callback=user) as connected:
            done = await connected.call_tool("run", {"command": "echo new > a.txt"})
    assert not done.is_error, told(done)
    assert user.asked[0].startswith(f"run wants to run a command that changes {changed}. Allow it?")
    assert ("echo new" if rule == "run" else "\n-one\n-two\n-three\n+new") in user.asked[0]
    assert (tree / "a.txt").read_text() == "new\n"


@MODES
async def test_each_question_of_a_call_is_asked_once(tree, mode):
    user = User("accept", "accept")
    with Workspace(tree, policy=Policy(ask=["note", "change"], on_ask=ask)) as ws:

        def note(content: str) -> None:
            """Write a note."""
            ws.write("note.txt", content)

        server = MCPServer("files", tools=sdk_tools(Toolset([ws.read, note])))
        async with Client(server, mode=mode, elicitation_callback=user) as connected:
            done = await connected.call_tool("note", {"content": "new"})
    assert not done.is_error, told(done)
    assert ["note.txt" in each for each in user.asked] == [False, True]
    assert (tree / "note.txt").read_text() == "new"


@MODES
async def test_questions_at_once_get_their_own_answers(tree, mode):
    put(tree, [f"{number}.txt" for number in range(20)], "old\n")
    asked = []

    async def odd_numbers(context, params):
        asked.append(params.message)
        number = int(params.message.split("change ")[1].split(".txt")[0])
        await asyncio.sleep(0.01 * (number % 3))
        return types.ElicitResult(action="accept" if number % 2 else "decline")

    async with client(tree, "--ask", "change", mode=mode, elicitation_callback=odd_numbers) as connected:
        await asyncio.gather(*(
            connected.call_tool("edit", {"path": f"{number}.txt", "old_string": "old", "new_string": "new"})
            for number in range(20)
        ))  # fmt: skip
    changed = [number for number in range(20) if (tree / f"{number}.txt").read_text() == "new\n"]
    assert changed == list(range(1, 20, 2))
    assert len(asked) == 20


@pytest.mark.parametrize("own", [False, True])
@MODES
async def test_a_file_that_changes_while_the_user_is_asked_is_not_changed(tree, mode, own):
    """Attack: the user allows one change, and another one would be made; also in a server of one's own."""

    def meanwhile():
        (tree / "a.txt").write_text("zero\ntwo\n")
        return "accept"

    user = User(meanwhile, "decline")
    settings = {"mode": mode, "elicitation_callback": user}
    with Workspace(tree, policy=Policy(allow=["read"], on_ask=ask)) as ws:
        server = MCPServer("files", tools=sdk_tools(ws.tools()))
        opened = Client(server, **settings) if own else client(tree, "--ask", "change", **settings)
        async with opened as connected:
            refused = await connected.call_tool("edit", EDIT)
    assert refused.is_error
    if mode == "legacy":  # the call waits for the answer
        assert "have changed since the call was allowed" in told(refused)
    else:  # the call is repeated, and its question is another one
        assert [" zero\n" in message for message in user.asked] == [False, True]
    assert (tree / "a.txt").read_text() == "zero\ntwo\n"


async def test_a_forged_or_foreign_state_is_refused(tree):
    """Attack: a client answers a question that it was not asked, or that was about another call."""
    accepted = {"permission": types.ElicitResult(action="accept")}
    other = {**EDIT, "new_string": "other"}
    async with client(tree, "--ask", "change", elicitation_callback=User()) as connected:

        async def edit(arguments, **again):
            return await connected.session.call_tool("edit", arguments, allow_input_required=True, **again)

        first = await edit(EDIT)
        [question] = first.input_requests.values()
        assert "\n+2\n" in question.params.message
        for arguments, state in (
            (EDIT, '{"allowed": [], "asked": "x"}'),
            (EDIT, first.request_state[:-4] + "AAAA"),
            (other, first.request_state),
        ):
            with pytest.raises(MCPError, match="requestState"):
                await edit(arguments, input_responses=accepted, request_state=state)
        again = await edit(EDIT, input_responses=accepted)
        assert isinstance(again, types.InputRequiredResult), "an answer without the state is no answer"
        assert (tree / "a.txt").read_text() == "one\ntwo\nthree\n"
        done = await edit(EDIT, input_responses=accepted, request_state=first.request_state)
        assert not done.is_error
    assert (tree / "a.txt").read_text() == "one\n2\nthree\n"


async def test_a_change_that_the_question_does_not_show_is_asked_about_again(tree):
    """Attack: another program changes the end of a long diff while the user looks at its beginning."""
    lines = [f"old {number:090}\n" for number in range(800)]
    (tree / "long.txt").write_text("".join(lines))

    def meanwhile():
        (tree / "long.txt").write_text("".join([*lines, "old and more\n"]))
        return "accept"

    user = User(meanwhile, "decline")
    async with client(tree, "--ask", "change", elicitation_callback=user) as connected:
        edit = {"path": "long.txt", "old_string": "old", "new_string": "new", "replace_all": True}
        assert (await connected.call_tool("edit", edit)).is_error
    assert len(user.asked) == 2
    assert all(len(message) < 50_000 and "characters not shown]" in message for message in user.asked)
    assert "more" not in user.asked[1].partition("not shown]")[2]
    assert (tree / "long.txt").read_text().count("old") == 801


@MODES
async def test_a_question_without_a_diff_shows_the_arguments(tree, mode):
    """The arguments of `multi_edit` are not JSON, and the paths of `replace` may be many."""
    put(tree, [f"{number}.txt" for number in range(50)], "old\n")
    change = {"old_string": "old", "new_string": "new"}
    user = User("decline", "decline", "accept", "accept", "decline")
    options = ("--ask", "read(a.txt)", "--ask", "change")
    async with client(tree, *options, mode=mode, elicitation_callback=user) as connected:
        edits = [{"old_string": "none", "new_string": "x"}]
        assert (await connected.call_tool("multi_edit", {"path": "a.txt", "edits": edits})).is_error
        assert (await connected.call_tool("replace", change)).is_error
        for number in (0, 1):
            await connected.call_tool("edit", {"path": f"{number}.txt", **change})
        assert (await connected.call_tool("undo", {"steps": 2})).is_error
    assert "old_string='none'" in user.asked[0]
    assert " and 30 more files. Allow it?" in user.asked[1]
    assert user.asked[4].startswith("undo wants to take back 1.txt, 0.txt. Allow it?\n\n")
    assert user.asked[4].count("\n-new\n+old") == 2


@pytest.mark.parametrize(("tool", "arguments", "said"), [
    ("ls", {"depth": 0}, "ls wants to use the root directory. Allow it?\n\ndepth=0"),
    ("ls", {"limit": 1, "offset": 0}, "ls wants to use the root directory. Allow it?\n\nlimit=1"),
    ("grep", {"pattern": "x", "context": 0}, "the root directory. Allow it?\n\npattern='x'\ncontext=0"),
    ("delete", {"path": "sub", "recursive": True}, "delete sub, sub/c.txt. Allow it?\n\n--- a/sub"),
    ("delete", {"path": "a.txt"}, "delete wants to delete a.txt. Allow it?\n\n--- a/a.txt"),
    ("move", {"path": "a.txt", "to": "b.txt"}, "move wants to move a.txt, b.txt. Allow it?\n\ndiff --git"),
])  # fmt: skip
async def test_a_question_says_what_the_call_does(tree, tool, arguments, said):
    """`depth=0` was dropped, the root was called `..`, and `delete`, `move` and `undo` were all "change"."""
    os.symlink("sub", tree / "around")
    user = User("decline")
    options = ("--ask", "*", "--tools", "ls,grep,delete,move,undo,redo,rollback,checkpoint")
    async with client(tree, *options, elicitation_callback=user) as connected:
        assert not (await connected.call_tool("checkpoint", {"name": "x\x1b"})).is_error
        assert (await connected.call_tool(tool, arguments)).is_error
    assert said in user.asked[0]
    assert "=None" not in user.asked[0]


async def test_control_characters_in_a_question_are_visible(tree):
    user = User("decline", "decline")
    async with client(tree, "--ask", "*", elicitation_callback=user) as connected:
        await connected.call_tool("write", {"path": "a\x1b[2Kb.txt", "content": "x\x1b[2K\u202ey\n"})
        await connected.call_tool("grep", {"pattern": "\x1b[2K"})
    for message in user.asked:
        assert "\x1b" not in message
        assert "\u202e" not in message


@pytest.mark.full
def test_the_example_of_a_policy_file_asks_about_two_calls():
    command = [sys.executable, str(Path(__file__).parents[2] / "examples" / "mcp_policy.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line for line in lines if line[:2] in ("? ", "> ")] == [
        "? edit wants to change README.md. Allow it?", "> yes",
        "? delete wants to delete src/app.py. Allow it?", "> no",
    ]  # fmt: skip
    assert [line for line in lines if re.match(r"[a-z]+ \S+: ", line)] == [
        'read notes.private: "notes.private" is protected: its contents are neither shown nor changed.',
        "edit uv.lock: The rule `change(*.lock)` denies this call.",
        "edit src/app.py: Edited line 1.",
        "edit README.md: Edited line 1.",
        "delete src/app.py: The user did not allow this call.",
    ]
