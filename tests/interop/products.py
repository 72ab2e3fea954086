"""Try the file tools of agentfs and of other products: one program for each cell of the tables of features.

    python products.py NODE MCP_SERVER PACKAGES PRODUCT …

prints {product: {feature: verdict}} as JSON. A verdict is "yes", "no", or "–" if the product has no tool that
could. It runs where the frameworks are installed, and the other packages are in PACKAGES; test_frameworks.py
compares it with the pages. Three rows at the end are about what a package has, by the names of its classes.
"""

import asyncio
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

Calls = dict[str, Callable[..., Awaitable[str]]]
LONG = "".join(f"line {number} of a long file\n" for number in range(1, 9001))
FILES = {
    "plain.txt": b"one\ntwo\nthree\n",
    "ends.txt": b"one\r\ntwo\r\nthree\r\n",
    "latin.txt": b"caf\xe9\none\n",
    "run.sh": b"one\ntwo\n",
    "twice.txt": b"same\nother\nsame\n",
    "total.py": b"def total(items):\n    return sum(items)\n",
    "several.txt": b"one\ntwo\nthree\n",
    "unread.txt": b"precious\n",
    "shared.txt": b"mine\n",
    "undone.txt": b"one\n",
    ".env": b"TOKEN=123\n",
    "long.txt": LONG.encode(),
    "src/settings.py": b"DEBUG = True\n",
    "src/found.py": b"needle_1 = 1\n",
    ".gitignore": b"build/\n",
    "build/out.py": b"ignored_needle = 1\n",
}


# The products. Each yields its tools on a root, by purpose. A tool returns the text for the model.


@contextlib.asynccontextmanager
async def agentfs(root: Path) -> AsyncIterator[Calls]:
    from agentfs import Workspace

    with Workspace(root) as workspace:
        tools = workspace.tools("all")

        def tool(name: str, *parameters: str) -> Callable[..., Awaitable[str]]:
            async def call(*values: object) -> str:
                return (await tools.acall(name, dict(zip(parameters, values, strict=True)))).content

            return call

        async def edits(path: str, pairs: list[tuple[str, str]]) -> str:
            several = [{"old_string": old, "new_string": new} for old, new in pairs]
            return (await tools.acall("multi_edit", {"path": path, "edits": several})).content

        yield {
            "read": tool("read", "path"),
            "write": tool("write", "path", "content"),
            "edit": tool("edit", "path", "old_string", "new_string"),
            "edits": edits,
            "grep": tool("grep", "pattern"),
            "undo": tool("undo"),
        }


@contextlib.asynccontextmanager
async def langchain(root: Path) -> AsyncIterator[Calls]:
    from langchain_community.agent_toolkits.file_management.toolkit import FileManagementToolkit

    tools = {tool.name: tool for tool in FileManagementToolkit(root_dir=str(root)).get_tools()}

    async def read(path: str) -> str:
        return str(await tools["read_file"].ainvoke({"file_path": path}))

    async def write(path: str, text: str) -> str:
        return str(await tools["write_file"].ainvoke({"file_path": path, "text": text}))

    yield {"read": read, "write": write}


@contextlib.asynccontextmanager
async def deepagents(root: Path) -> AsyncIterator[Calls]:
    from deepagents.backends.filesystem import FilesystemBackend
    from deepagents.middleware.filesystem import FilesystemMiddleware
    from langchain.tools import ToolRuntime

    backend = FilesystemBackend(root_dir=root, virtual_mode=True)
    tools = {tool.name: tool for tool in FilesystemMiddleware(backend=backend).tools}
    runtime = ToolRuntime(
        state={}, context=None, config={}, stream_writer=print, tool_call_id="1", store=None
    )

    def tool(name: str, *parameters: str) -> Callable[..., Awaitable[str]]:
        async def call(*values: str) -> str:
            given = dict(zip(parameters, values, strict=True))
            if "file_path" in given:
                given["file_path"] = f"/{given['file_path']}"
            answer = await tools[name].coroutine(**given, runtime=runtime)
            return str(getattr(answer, "content", answer))

        return call

    async def grep(pattern: str) -> str:
        answer = await tools["grep"].coroutine(pattern=pattern, output_mode="content", runtime=runtime)
        return str(getattr(answer, "content", answer))

    yield {
        "read": tool("read_file", "file_path"),
        "write": tool("write_file", "file_path", "content"),
        "edit": tool("edit_file", "file_path", "old_string", "new_string"),
        "grep": grep,
    }


@contextlib.asynccontextmanager
async def mcp(root: Path) -> AsyncIterator[Calls]:
    """The MCP project's filesystem server, run by Node."""
    from mcp import Client, StdioServerParameters

    server = StdioServerParameters(command=sys.argv[1], args=[sys.argv[2], str(root)])
    async with Client(server) as client:

        async def call(name: str, **arguments: object) -> str:
            answer = await client.call_tool(name, arguments)
            return "\n".join(getattr(part, "text", "") for part in answer.content)

        async def edits(path: str, pairs: list[tuple[str, str]]) -> str:
            several = [{"oldText": old, "newText": new} for old, new in pairs]
            return await call("edit_file", path=path, edits=several)

        yield {
            "read": lambda path: call("read_text_file", path=path),
            "write": lambda path, text: call("write_file", path=path, content=text),
            "edit": lambda path, old, new: edits(path, [(old, new)]),
            "edits": edits,
        }


@contextlib.asynccontextmanager
async def anthropic(root: Path) -> AsyncIterator[Calls]:
    from anthropic.lib.tools.agent_toolset import AgentToolContext, beta_agent_toolset_20260401

    async with AgentToolContext(workdir=root) as context:
        tools = {tool.name: tool for tool in beta_agent_toolset_20260401(context)}

        async def call(name: str, **arguments: str) -> str:
            return str(await tools[name].call(arguments))

        yield {
            "read": lambda path: call("read", file_path=path),
            "write": lambda path, text: call("write", file_path=path, content=text),
            "edit": lambda path, old, new: call("edit", file_path=path, old_string=old, new_string=new),
            "grep": lambda pattern: call("grep", pattern=pattern),
        }


@contextlib.asynccontextmanager
async def openai(root: Path) -> AsyncIterator[Calls]:
    """The tools of the capability `Filesystem`: `apply_patch`, and `view_image`, which reads only images."""
    from agents.sandbox import Manifest
    from agents.sandbox.capabilities import Filesystem
    from agents.sandbox.sandboxes.unix_local import UnixLocalSandboxClient

    session = await UnixLocalSandboxClient().create(manifest=Manifest(root=str(root)))
    async with session:
        capability = Filesystem()
        capability.bind(session)
        [tool] = [tool for tool in capability.tools() if tool.name == "apply_patch"]

        async def patch(*lines: str) -> str:
            text = "\n".join(["*** Begin Patch", *lines, "*** End Patch", ""])
            return str(await tool.on_invoke_tool(None, text))

        def hunk(old: str, new: str) -> list[str]:
            return [
                "@@",
                *(f"-{line}" for line in old.splitlines()),
                *(f"+{line}" for line in new.splitlines()),
            ]

        async def edits(path: str, pairs: list[tuple[str, str]]) -> str:
            hunks = [line for old, new in pairs for line in hunk(old, new)]
            return await patch(f"*** Update File: {path}", *hunks)

        async def write(path: str, text: str) -> str:
            return await patch(f"*** Add File: {path}", *(f"+{line}" for line in text.splitlines()))

        yield {"write": write, "edit": lambda path, old, new: edits(path, [(old, new)]), "edits": edits}


@contextlib.asynccontextmanager
async def harness(root: Path) -> AsyncIterator[Calls]:
    """The capability `FileSystem` of pydantic-ai-harness, with its default tools on a local workspace."""
    from pydantic_ai.workspaces.local import LocalWorkspaceBackend
    from pydantic_ai_harness import FileSystem
    from pydantic_ai_harness.filesystem import Replacement

    backend = LocalWorkspaceBackend(root)
    toolset = FileSystem().get_toolset()

    def tool(name: str) -> Callable[..., Awaitable[str]]:
        async def call(*values: str) -> str:
            return str(await getattr(toolset, name)(*values, workspace=backend))

        return call

    async def edits(path: str, pairs: list[tuple[str, str]]) -> str:
        replacements = [Replacement(old_text=old, new_text=new) for old, new in pairs]
        scope = await toolset._scope(backend)
        return str(await toolset._edit_file(scope, None, path, replacements))

    shown: dict[str, str] = {}  # the hash of each file that was read, which the model passes when it writes

    async def read(path: str) -> str:
        said = str(await toolset.read_file(path, workspace=backend))
        if found := re.search(r"hash:(\w+)", said):
            shown[path] = found[1]
        return said

    async def write(path: str, text: str) -> str:
        return await toolset.write_file(path, text, expected_hash=shown.get(path), workspace=backend)

    yield {
        "read": read,
        "write": write,
        "edit": tool("edit_file"),
        "edits": edits,
        "grep": tool("search_files"),
    }


PRODUCTS = {
    "agentfs": agentfs,
    "LangChain": langchain,
    "deepagents": deepagents,
    "MCP server": mcp,
    "Anthropic": anthropic,
    "OpenAI": openai,
    "pydantic-ai-harness": harness,
}


# The features. A check gets the tools and the root; tools return the text of an error too. It returns True if
# the product has the feature, and None if the product has no tool that could.


async def edits_a_part(tools: Calls, root: Path) -> bool:
    if "edit" in tools:
        await tools["edit"]("plain.txt", "two", "zwei")
    return (root / "plain.txt").read_bytes() == b"one\nzwei\nthree\n"


async def keeps_line_ends(tools: Calls, root: Path) -> bool | None:
    if "edit" not in tools:
        return None
    await tools["edit"]("ends.txt", "two", "zwei")
    return (root / "ends.txt").read_bytes() == b"one\r\nzwei\r\nthree\r\n"


async def edits_latin_1(tools: Calls, root: Path) -> bool | None:
    if "edit" not in tools:
        return None
    await tools["edit"]("latin.txt", "one", "eins")
    return (root / "latin.txt").read_bytes() == b"caf\xe9\neins\n"


async def keeps_the_mode(tools: Calls, root: Path) -> bool | None:
    if "edit" not in tools:
        return None
    await tools["edit"]("run.sh", "two", "zwei")
    script = root / "run.sh"
    return (script.read_bytes(), script.stat().st_mode & 0o777) == (b"one\nzwei\n", 0o755)


async def refuses_an_ambiguous_edit(tools: Calls, root: Path) -> bool | None:
    if "edit" not in tools:
        return None
    await tools["edit"]("twice.txt", "same", "new")
    return (root / "twice.txt").read_bytes() == FILES["twice.txt"]


async def explains_a_miss(tools: Calls, root: Path) -> bool | None:
    if "edit" not in tools:
        return None
    said = await tools["edit"]("total.py", "    return summe(items)", "    return 0")
    return "return sum(items)" in said


async def edits_all_or_none(tools: Calls, root: Path) -> bool | None:
    if "edits" not in tools:
        return None if "edit" not in tools else False
    await tools["edits"]("several.txt", [("one", "eins"), ("absent", "x")])
    first = (root / "several.txt").read_bytes()
    await tools["edits"]("several.txt", [("one", "eins"), ("three", "drei")])
    return (first, (root / "several.txt").read_bytes()) == (FILES["several.txt"], b"eins\ntwo\ndrei\n")


async def keeps_an_unread_file(tools: Calls, root: Path) -> bool:
    await tools["write"]("unread.txt", "new\n")
    return (root / "unread.txt").read_bytes() == FILES["unread.txt"]


async def keeps_a_change_of_another_program(tools: Calls, root: Path) -> bool:
    if "read" in tools:
        await tools["read"]("shared.txt")
    (root / "shared.txt").write_bytes(b"theirs\n")
    await tools["write"]("shared.txt", "mine, changed\n")
    return (root / "shared.txt").read_bytes() == b"theirs\n"


async def undoes(tools: Calls, root: Path) -> bool:
    if "undo" not in tools:
        return False
    await tools["edit"]("undone.txt", "one", "two")
    changed = (root / "undone.txt").read_bytes()
    await tools["undo"]()
    return (changed, (root / "undone.txt").read_bytes()) == (b"two\n", b"one\n")


async def stays_below_the_root(tools: Calls, root: Path) -> bool:
    secret = root.parent / "secret.txt"
    said = await tools["read"]("link.txt") if "read" in tools else ""
    if "edit" in tools:
        said += await tools["edit"]("link.txt", "outside", "changed")
    said += await tools["write"]("link.txt", "changed\n")
    return "outside the root" not in said and secret.read_text() == "outside the root\n"


async def hides_secrets(tools: Calls, root: Path) -> bool | None:
    return "TOKEN" not in await tools["read"](".env") if "read" in tools else None


async def reads_by_pages(tools: Calls, root: Path) -> bool | None:
    if "read" not in tools:
        return None
    said = await tools["read"]("long.txt")
    first, *_, last = said.splitlines()
    return len(said) < len(LONG) / 2 and "offset" in first + last


async def names_the_right_path(tools: Calls, root: Path) -> bool | None:
    return "settings.py" in await tools["read"]("src/setings.py") if "read" in tools else None


async def searches_by_regex(tools: Calls, root: Path) -> bool:
    return "grep" in tools and "found.py" in await tools["grep"](r"needle_\d =")


async def says_what_was_left_out(tools: Calls, root: Path) -> bool | None:
    """Return True if the answer has the line of an ignored file, or says that a file was ignored."""
    if "grep" not in tools:
        return None
    said = await tools["grep"]("ignored_needle")
    return "out.py" in said or re.search(r"\d ignored", said) is not None


FEATURES: dict[str, Callable[[Calls, Path], Awaitable[bool | None]]] = {
    "edits a part of a file": edits_a_part,
    "an edit keeps `\\r\\n`": keeps_line_ends,
    "an edit keeps Latin-1": edits_latin_1,
    "an edit keeps the file's mode": keeps_the_mode,
    "refuses an ambiguous edit": refuses_an_ambiguous_edit,
    "a failed edit shows the nearest text": explains_a_miss,
    "several edits in one call, all or none": edits_all_or_none,
    "does not overwrite an unread file": keeps_an_unread_file,
    "does not overwrite another program's change": keeps_a_change_of_another_program,
    "undo": undoes,
    "a link does not lead out of the root": stays_below_the_root,
    "hides the contents of `.env`": hides_secrets,
    "a long file comes in pages that name the next": reads_by_pages,
    "a misspelt path names the right one": names_the_right_path,
    "searches contents by regular expression": searches_by_regex,
    "a search says what it ignored": says_what_was_left_out,
}

# What a package comes with: a class of it has such a name.
PACKAGES = {
    "agentfs": "agentfs",
    "LangChain": "langchain_community",
    "deepagents": "deepagents",
    "MCP server": "",
    "Anthropic": "anthropic",
    "OpenAI": "agents",
    "pydantic-ai-harness": "pydantic_ai_harness",
}
CLASSES = {
    "has a client of a hosted sandbox": r"(E2B|Daytona|Modal|Runloop|LangSmith)\w*(Sandbox|Tool)\w*",
    "keeps files in memory, without a disk": r"(StateBackend|InMemory\w*(Backend|FileSystem|Workspace))",
    "searches by meaning": r"\w*(Embeddings|FileSearchTool|SmartSearch|SemanticSearch)",
    "asks a language server": r"\w*(LanguageServer|LSP|Lsp[A-Z])\w*",
}
WINDOWS = "edits a file on Windows"
ROWS = [*FEATURES, *CLASSES, WINDOWS]


def comes_with(product: str, name: str) -> bool:
    """Return True if a class of the product has this name."""
    if product == "MCP server":
        folder, declared = Path(sys.argv[2]).parent, r"^(export )?class "
    else:
        [place] = __import__(PACKAGES[product]).__path__[:1]
        folder, declared = Path(place), "^class "
    pattern = re.compile(rf"{declared}{name}\b", re.MULTILINE)
    sources = [*folder.rglob("*.py"), *folder.rglob("*.js")]
    return any(pattern.search(source.read_text(encoding="utf-8", errors="replace")) for source in sources)


NOT_ON_WINDOWS = (
    *("O_NOFOLLOW", "O_DIRECTORY", "O_NONBLOCK", "O_NOCTTY", "O_PATH", "O_CLOEXEC", "pread", "preadv"),
    *("fchmod", "fchown", "geteuid", "getuid", "fstatvfs", "listxattr"),
)


async def without_posix(product: str, root: Path) -> bool:
    """Return True if the product edits a file where Python lacks what it lacks on Windows."""
    (root / "plain.txt").write_bytes(FILES["plain.txt"])
    for name in ("fcntl", "pwd", "resource", "termios"):
        sys.modules[name] = None  # type: ignore[assignment]
    async with PRODUCTS[product](root):
        pass  # imports what it needs, with the platform of this machine
    for name in NOT_ON_WINDOWS:
        if hasattr(os, name):
            delattr(os, name)
    sys.platform = "win32"
    async with PRODUCTS[product](root) as calls:
        if "edit" not in calls:
            await calls["write"]("plain.txt", "one\nzwei\nthree\n")
            return "zwei" in (root / "plain.txt").read_text()
        return await edits_a_part({name: told(call) for name, call in calls.items()}, root)


def edits_on_windows(product: str) -> bool:
    """Return True if the product edits a file on an imitation of Windows, in a process of its own.

    The MCP server is not in Python: True if it has code for the drive letters of Windows.
    """
    if product == "MCP server":
        sources = Path(sys.argv[2]).parent.rglob("*.js")
        return any("[A-Za-z]:" in source.read_text(encoding="utf-8") for source in sources)
    command = [sys.executable, os.path.abspath(__file__), *sys.argv[1:4], "--windows", product]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    return done.stdout.strip() == "True"


def told(call: Callable[..., Awaitable[str]]) -> Callable[..., Awaitable[str]]:
    """Return a tool whose failure is the text of its error, which a model is told."""

    async def telling(*values: Any) -> str:
        try:
            return await call(*values)
        except Exception as error:  # noqa: BLE001 - each product has errors of its own
            return str(error)

    return telling


async def verdicts(product: str) -> dict[str, str]:
    """Return the verdict of each feature."""
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory) / "root"
        for name, content in FILES.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(content)
        (root / "run.sh").chmod(0o755)
        (root / ".git").mkdir()  # else rg does not obey .gitignore
        (root.parent / "secret.txt").write_text("outside the root\n")
        (root / "link.txt").symlink_to("../secret.txt")
        found = {}
        async with PRODUCTS[product](root) as calls:
            tools = {name: told(call) for name, call in calls.items()}
            for feature, check in FEATURES.items():
                verdict = await check(tools, root)
                found[feature] = {True: "yes", False: "no", None: "–"}[verdict]
    for feature, name in CLASSES.items():
        found[feature] = "yes" if comes_with(product, name) else "no"
    found[WINDOWS] = "yes" if edits_on_windows(product) else "no"
    return found


if __name__ == "__main__":
    sys.path.append(sys.argv[3])
    if "--windows" in sys.argv:
        with tempfile.TemporaryDirectory() as made:
            print(asyncio.run(without_posix(sys.argv[-1], Path(made))))
        sys.exit()
    print(json.dumps({product: asyncio.run(verdicts(product)) for product in sys.argv[4:]}))
