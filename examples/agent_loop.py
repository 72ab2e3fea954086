"""A whole agent loop in the shape of OpenAI's chat completions.

    python examples/agent_loop.py                     # this repository, a scripted stand-in for the model
    python examples/agent_loop.py --repository DIR    # another repository
    OPENAI_API_KEY=... python examples/agent_loop.py --task "Add a changelog entry"

The model has a shell too, which can do what you can. With `run="staged"` and the extra `run`, a command can
change only the copy.

Without the `openai` package and a key, a scripted model plays its part, so that the loop runs offline. Either
way the loop is the same: it works on a copy, prints the transcript, and ends with the diff of what it did.
"""

import argparse
import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agentfs import Policy, Toolset, Workspace

Message = dict[str, Any]
Model = Callable[[list[Message], list[Any]], Message]

SYSTEM = "You change a repository with the tools given. Look before you edit. Say when you are done."
TASK = "Find out what this repository is, then add a heading, a note and a file that says who was here."


def run_loop(model: Model, tools: Toolset, task: str, *, most_turns: int = 40) -> list[Message]:
    """Let the model call tools until it answers in words; this is all that a loop needs."""
    schemas = tools.schemas("openai")
    messages: list[Message] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": task}]
    for _ in range(most_turns):
        reply = model(messages, schemas)
        messages.append(reply)
        show(reply)
        if not reply.get("tool_calls"):
            return messages
        # One for each call, and a message with images if there are any.
        answers: list[Any] = [*tools.answer(reply["tool_calls"])]
        messages += answers
        for answer in answers:
            show(answer)
    return messages


def show(message: Message) -> None:
    """Print one message of the transcript."""
    for call in message.get("tool_calls") or ():
        print(f"\n>>> {call['function']['name']} {call['function']['arguments']}")
    if message.get("content"):
        print(message["content"])


def openai_model(name: str) -> Model:
    """Return a model that is asked through the `openai` package."""
    # Imported by name, because the package is optional: type checkers do not have it.
    client: Any = importlib.import_module("openai").OpenAI()

    def model(messages: list[Message], schemas: list[Any]) -> Message:
        completion = client.chat.completions.create(model=name, messages=messages, tools=schemas)
        reply: Message = completion.choices[0].message.model_dump(exclude_none=True)
        return reply

    return model


class ScriptedModel:
    """A stand-in that plays a model's part: each step looks at the last answers and makes one call.

    It makes one mistake on purpose, an edit with text that is not in the file, and mends it with what the
    error's text says.
    """

    def __init__(self) -> None:
        self._steps = iter(
            [
                self._list,
                self._glob,
                self._grep,
                self._read,
                self._edit_wrongly,
                self._edit_as_the_error_says,
                self._multi_edit,
                self._write,
                self._run,
            ]
        )
        self._calls = 0
        self._path = ""
        self._line = ""

    def __call__(self, messages: list[Message], schemas: list[Any]) -> Message:
        """Return the next message of the script."""
        offered = {schema["function"]["name"] for schema in schemas}
        step = next(self._steps, None)
        if step is None or (step == self._run and "run" not in offered):
            return {"role": "assistant", "content": "Done: a heading, a note and a new file."}
        name, arguments = step(str(messages[-1]["content"]))
        if name not in offered:
            raise LookupError(f"the loop does not offer {name}")
        self._calls += 1
        function = {"name": name, "arguments": json.dumps(arguments)}
        call = {"id": f"call_{self._calls}", "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [call]}

    def _list(self, _: str) -> tuple[str, dict[str, Any]]:
        return "ls", {"depth": 1}

    def _glob(self, _: str) -> tuple[str, dict[str, Any]]:
        return "glob", {"pattern": "{README*,*.md,*.rst,*.py}", "limit": 20}

    def _grep(self, answer: str) -> tuple[str, dict[str, Any]]:
        paths = [line for line in answer.splitlines() if line and not line.startswith("[")]
        self._path = next((path for path in paths if "README" in path), paths[0])
        return "grep", {"pattern": r"\w", "path": self._path, "limit": "3"}

    def _read(self, _: str) -> tuple[str, dict[str, Any]]:
        return "read", {"path": self._path, "limit": 20}

    def _edit_wrongly(self, answer: str) -> tuple[str, dict[str, Any]]:
        lines = [line.partition("|")[2] for line in answer.splitlines() if "|" in line]
        self._line = max(lines, key=len)  # the longest is the least likely to be there twice
        wrong = f"{self._line}?"
        return "edit", {"path": self._path, "old_string": wrong, "new_string": "An agent was here."}

    def _edit_as_the_error_says(self, answer: str) -> tuple[str, dict[str, Any]]:
        # The error shows the lines nearest to the text that was not found: enough to mend the mistake.
        if self._line not in answer:
            raise LookupError(f"the error does not show what is there instead: {answer}")
        new = f"{self._line}\n\nAn agent was here."
        return "edit", {"path": self._path, "old_string": self._line, "new_string": new}

    def _multi_edit(self, _: str) -> tuple[str, dict[str, Any]]:
        edits = [
            {"old_string": "An agent was here.", "new_string": "An agent was here first."},
            {"old_string": "here first.", "new_string": "here, and looked around first."},
        ]
        return "multi_edit", {"path": self._path, "edits": edits}

    def _write(self, _: str) -> tuple[str, dict[str, Any]]:
        return "write", {"path": "AGENT_NOTES.md", "content": "# Notes\n\nWritten by an agent loop.\n"}

    def _run(self, _: str) -> tuple[str, dict[str, Any]]:
        return "run", {"command": "date -u +%Y >> AGENT_NOTES.md && wc -l AGENT_NOTES.md"}


def copy_of(repository: Path, target: Path) -> None:
    """Copy a repository without what it ignores, and commit it there as the state to compare with."""
    with Workspace(repository) as workspace:
        names = [entry.path for entry in workspace.glob("**", hidden=True, limit=100_000).files]
    for name in names:
        if (repository / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(repository / name, target / name)
    git(target, "init", "-q")
    git(target, "add", "-A")
    identity = ("-c", "user.name=agent", "-c", "user.email=agent@example.invalid")
    git(target, *identity, "commit", "-q", "--no-gpg-sign", "-m", "before")


def git(directory: Path, *arguments: str) -> str:
    """Run git in a directory and return what it prints."""
    command = ["git", "-C", str(directory), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603 - as above


def choose_model(name: str) -> Model:
    """Return the real model when there is a key and the package, else the scripted one."""
    if os.environ.get("OPENAI_API_KEY"):
        try:
            return openai_model(name)
        except ImportError:
            print("(the openai package is not installed: the scripted model plays)", file=sys.stderr)
    return ScriptedModel()


def main() -> int:
    """Run the loop on a copy of a repository and print what it changed."""
    parser = argparse.ArgumentParser(description="An agent loop over agentfs.")
    parser.add_argument("--repository", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--task", default=TASK)
    parser.add_argument("--model", default="gpt-4.1-mini")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        target = Path(directory) / "repository"
        target.mkdir()
        copy_of(arguments.repository.resolve(), target)
        with Workspace(target, policy=Policy(run="recorded")) as workspace:
            tools = workspace.tools([*workspace.tools().names, "run"])
            run_loop(choose_model(arguments.model), tools, arguments.task)
        git(target, "add", "-A")
        print("\n=== the change, as git sees it ===")
        print(git(target, "diff", "--cached"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
