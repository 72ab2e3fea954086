"""`agentfs call` and `agentfs schemas`."""

import shlex
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, cast

import agentfs
from agentfs import history
from agentfs.cli.command_options import CommandOptions
from agentfs.cli.output import FAILED, input_text, print_error, print_text
from agentfs.errors import InvalidArgumentError
from agentfs.text import to_json
from agentfs.tools.toolset import Toolset
from agentfs.workspace import Workspace

_NOTHING_FOUND = 1


def run_call(options: CommandOptions) -> int:
    """Run a tool with the arguments of a model, and print its answer."""
    with _opened(options) as workspace:
        for note in workspace.recovery_notes:
            print_error(f"agentfs: {note}")
        result = _tools(workspace, options.dialect).call(options.name, _arguments(options.words))
    if options.json:
        print_text(to_json(result.to_dict()))
    else:
        (print_text if result.success else print_error)(result.content)
    if not result.success:
        return FAILED
    given: Any = result.data
    data = cast("dict[str, Any]", given) if isinstance(given, dict) else dict[str, Any]()
    found = data.get("total_matches", data.get("total") if "files" in data else None)
    return _NOTHING_FOUND if found == 0 else 0


def show_schemas(options: CommandOptions) -> int:
    """Print the schemas of the tools."""
    with Workspace(options.root or ".") as workspace:
        tools = workspace.tools(dialect=options.dialect or "agentfs")
        print_text(to_json(tools.schemas(options.format, strict=options.strict), indent=2))
    return 0


def words_of(command: str) -> list[str]:
    """Return the words of the command that `--connect` names."""
    try:
        return shlex.split(command)
    except ValueError as error:  # such as "No closing quotation"
        raise InvalidArgumentError(f"--connect {command!r} is not a command: {error}.") from None


def _opened(options: CommandOptions) -> Workspace:
    root, state = options.root, options.state
    if options.connect is not None:
        return agentfs.connect(words_of(options.connect), root or ".", state=state)
    if root is None and state is not None:
        with suppress(InvalidArgumentError):  # a new directory belongs to no root yet
            root = history.state.root_of(state)
    return Workspace(root or ".", mounts=options.mounts, state=state)


def _tools(workspace: Workspace, dialect: str | None) -> Toolset:
    """Return all tools, so that an error may suggest any of them; or those of a dialect."""
    if dialect is None or dialect == "agentfs":
        return workspace.tools("all")
    return workspace.tools(dialect=dialect)


def _arguments(words: Sequence[str]) -> str | dict[str, str]:
    """Return the arguments of a tool: JSON, that of standard input, or `key=value` texts."""
    if len(words) == 1 and "=" not in words[0].partition("{")[0]:
        return input_text() if words[0] == "-" else words[0]
    given: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or name in given:
            problem = "appears twice" if equals else "is not NAME=VALUE"
            raise InvalidArgumentError(
                f"The argument {word!r} {problem}.", hint="Give the arguments as JSON, or as NAME=VALUE."
            )
        given[name] = value
    return given
