"""The five tool sets: agentfs, pydantic-ai-harness, deepagents, Anthropic's editor, and a shell alone.

Each takes the directory of a task and gives schemas in OpenAI's format, a function that makes a call, and,
for the scripted model, the calls that mean its steps. The tools of another package load when they are used.
"""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentfs import Workspace

Call = tuple[str, dict[str, Any]]
_SECONDS = 60
_MOST_OUTPUT = 20_000


@dataclass(frozen=True)
class Tools:
    schemas: list[dict[str, Any]]
    call: Callable[
        [str, dict[str, Any]], tuple[str, bool]
    ]  # the text for the model, and whether it succeeded
    is_edit: Callable[[str, dict[str, Any]], bool] | None  # None if nobody can tell, as of a shell
    script: Mapping[str, Callable[..., Call]]
    note: str = ""  # what a model must know of its paths


def run(command: list[str], tree: Path, *, sandboxed: bool) -> tuple[str, bool]:
    """Run a command in a tree, without the environment of this process, which has keys.

    In the sandbox it can write only the tree, and has no network.
    """
    if sandboxed:
        bwrap = shutil.which("bwrap")
        if bwrap is None:
            raise SystemExit(
                "bwrap is not installed. Install bubblewrap, or pass --no-sandbox in a container."
            )
        box = f"{bwrap} --ro-bind / / --dev /dev --proc /proc --tmpfs /tmp --unshare-all --new-session"
        box += " --die-with-parent"
        python = ["--ro-bind", sys.prefix, sys.prefix]  # maybe in the hidden /tmp
        command = [*box.split(), *python, "--bind", str(tree), str(tree), "--chdir", str(tree), *command]
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(tree),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    try:
        done = subprocess.run(
            command, cwd=tree, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"stopped after {_SECONDS} seconds", False
    text = done.stdout.decode("utf-8", "replace")
    return f"{text[:_MOST_OUTPUT]}\n[exit status {done.returncode}]", done.returncode == 0


def run_tests(tree: Path, *, sandboxed: bool) -> tuple[str, bool]:
    return run([sys.executable, "-m", "unittest", "-q"], tree, sandboxed=sandboxed)


def _function(name: str, description: str, **parameters: str) -> dict[str, Any]:
    properties = {each: {"type": "string", "description": text} for each, text in parameters.items()}
    schema = {
        "type": "object",
        "properties": properties,
        "required": [*parameters],
        "additionalProperties": False,
    }
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


def _one_of(*names: str) -> Callable[[str, dict[str, Any]], bool]:
    return lambda name, _: name in names


@contextmanager
def agentfs(tree: Path, *, sandboxed: bool) -> Iterator[Tools]:  # noqa: ARG001 - only a shell runs commands
    names = ["read", "write", "edit", "multi_edit", "ls", "glob", "grep", "replace", "undo"]
    with Workspace(tree) as ws:
        tools = ws.tools(names)

        def call(name: str, arguments: dict[str, Any]) -> tuple[str, bool]:
            result = tools.call(name, arguments)
            return result.content, result.success

        script = {
            "read": lambda path: ("read", {"path": path}),
            "edit": lambda path, old, new: ("edit", {"path": path, "old_string": old, "new_string": new}),
            "undo": lambda *_: ("undo", {}),
        }
        yield Tools(
            tools.schemas("openai"),
            call,
            _one_of("write", "edit", "multi_edit", "replace"),
            script,
            tools.instructions(),
        )


@contextmanager
def anthropic_editor(tree: Path, *, sandboxed: bool) -> Iterator[Tools]:  # noqa: ARG001 - only a shell runs commands
    """Anthropic's contract, as agentfs's dialect of it serves it."""
    name = "str_replace_based_edit_tool"
    with Workspace(tree) as ws:
        tools = ws.tools(dialect="text-editor")

        def call(name: str, arguments: dict[str, Any]) -> tuple[str, bool]:
            result = tools.call(name, arguments)
            return result.content, result.success

        def edit(path: str, old: str, new: str) -> Call:
            return name, {"command": "str_replace", "path": path, "old_str": old, "new_str": new}

        def is_edit(_: str, arguments: dict[str, Any]) -> bool:
            return arguments.get("command") != "view"

        view = {"read": lambda path: (name, {"command": "view", "path": path})}
        yield Tools(tools.schemas("openai"), call, is_edit, {**view, "edit": edit, "undo": edit})


@contextmanager
def deepagents(tree: Path, *, sandboxed: bool) -> Iterator[Tools]:  # noqa: ARG001 - only a shell runs commands
    from deepagents.backends.filesystem import FilesystemBackend  # noqa: PLC0415 - a peer
    from deepagents.middleware.filesystem import FilesystemMiddleware  # noqa: PLC0415 - as above
    from langchain.tools import ToolRuntime  # noqa: PLC0415 - as above
    from langchain_core.utils.function_calling import convert_to_openai_tool  # noqa: PLC0415 - as above

    made = FilesystemMiddleware(backend=FilesystemBackend(root_dir=tree, virtual_mode=True)).tools
    tools = {tool.name: tool for tool in made if tool.name != "execute"}  # its backend runs no commands
    runtime = ToolRuntime(
        state={}, context=None, config={}, stream_writer=print, tool_call_id="1", store=None
    )

    def call(name: str, arguments: dict[str, Any]) -> tuple[str, bool]:
        answer = tools[name].func(**arguments, runtime=runtime)
        return str(getattr(answer, "content", answer)), getattr(answer, "status", "success") == "success"

    def edit(path: str, old: str, new: str) -> Call:
        return "edit_file", {"file_path": f"/{path}", "old_string": old, "new_string": new}

    script = {"read": lambda path: ("read_file", {"file_path": f"/{path}"}), "edit": edit, "undo": edit}
    schemas = [convert_to_openai_tool(tool) for tool in tools.values()]
    is_edit = _one_of("edit_file", "write_file", "delete")
    yield Tools(schemas, call, is_edit, script, "Paths of files begin with /, which is the directory.")


@contextmanager
def pydantic_ai_harness(tree: Path, *, sandboxed: bool) -> Iterator[Tools]:  # noqa: ARG001 - as above
    """Its tools work only in a run of an agent, so each call is a run whose model makes this call."""
    from pydantic_ai import Agent  # noqa: PLC0415 - a peer
    from pydantic_ai.capabilities import LocalWorkspace  # noqa: PLC0415 - as above
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart  # noqa: PLC0415 - as above
    from pydantic_ai.models.function import FunctionModel  # noqa: PLC0415 - as above
    from pydantic_ai_harness import FileSystem  # noqa: PLC0415 - as above

    definitions: list[Any] = []
    pending: list[Call] = []

    def answer(_: Any, info: Any) -> Any:
        definitions[:] = info.function_tools
        return ModelResponse(parts=[ToolCallPart(*pending.pop()) if pending else TextPart("done")])

    agent = Agent(FunctionModel(answer), capabilities=[LocalWorkspace(tree), FileSystem(root_dir=tree)])
    agent.run_sync("Name the tools.")

    def call(name: str, arguments: dict[str, Any]) -> tuple[str, bool]:
        pending.append((name, arguments))
        parts = [part for message in agent.run_sync("Call it.").all_messages() for part in message.parts]
        [part] = [part for part in parts if part.part_kind in {"tool-return", "retry-prompt"}]
        return str(part.content), getattr(part, "outcome", "retry") == "success"

    def edit(path: str, old: str, new: str) -> Call:
        return "edit_file", {"path": path, "old_text": old, "new_text": new}

    schemas = [
        {
            "type": "function",
            "function": {
                "name": each.name,
                "description": each.description or "",
                "parameters": each.parameters_json_schema,
            },
        }
        for each in definitions
    ]
    script = {"read": lambda path: ("read_file", {"path": path}), "edit": edit, "undo": edit}
    yield Tools(schemas, call, _one_of("edit_file", "write_file", "create_directory"), script)


@contextmanager
def shell(tree: Path, *, sandboxed: bool) -> Iterator[Tools]:
    def call(_: str, arguments: dict[str, Any]) -> tuple[str, bool]:
        return run(["bash", "-c", str(arguments["command"])], tree, sandboxed=sandboxed)

    def edit(path: str, old: str, new: str) -> Call:
        code = (
            f"import pathlib as p; f = p.Path({path!r}); b = f.read_bytes(); "
            f"o, n = {old.encode()!r}, {new.encode()!r}; "
            "assert b.count(o) == 1, 'not found once'; f.write_bytes(b.replace(o, n))"
        )
        return "bash", {"command": f"python3 -c {shlex.quote(code)}"}

    script = {
        "read": lambda path: ("bash", {"command": f"cat {shlex.quote(path)}"}),
        "edit": edit,
        "undo": edit,
    }
    schema = _function("bash", "Run a command line with bash in the directory.", command="The command line.")
    yield Tools([schema], call, None, script)


SETS = {
    "agentfs": agentfs,
    "pydantic-ai-harness": pydantic_ai_harness,
    "deepagents": deepagents,
    "anthropic-editor": anthropic_editor,
    "shell": shell,
}
TESTS = _function("run_tests", "Run the tests of the project, and return what they print.")
