"""`agentfs call`, `agentfs schemas` and `agentfs run`."""

import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

from agentfs import history
from agentfs.base.visible import to_json
from agentfs.cli.command_options import CommandOptions, named_values
from agentfs.cli.output import FAILED, input_text, print_error, print_text, write_output
from agentfs.cli.policy_file import opened, settings_of
from agentfs.errors import AgentFSError, InvalidArgumentError
from agentfs.limits import HARD_FILE_BYTES, Limits
from agentfs.workspace import Workspace

_NOTHING_FOUND = 1
_TIMED_OUT = 124
RUN_FAILED = 125  # as `timeout` and `env` end if they fail themselves


def run_call(options: CommandOptions) -> int:
    """Run a tool with the arguments of a model, and print its answer."""
    dialect = options.dialect or "agentfs"
    with _opened(options) as workspace:
        for note in workspace.recovery_notes:
            print_error(f"agentfs: {note}")
        tools = workspace.tools("all") if dialect == "agentfs" else workspace.tools(dialect=dialect)
        result = tools.call(options.name, _arguments(options.words))
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


def run_command(options: CommandOptions) -> int:
    """Run a command under the rules of a workspace; print its output and then its changes."""
    words = options.words
    try:
        if not words:
            raise InvalidArgumentError("There is no command.", hint="Write it after `--`: run -- make test.")
        settings = settings_of(options, Limits(file_bytes=HARD_FILE_BYTES))
        policy = replace(settings.policy, run=options.mode or settings.policy.run or "staged")
        with opened(settings._replace(policy=policy), options) as workspace:
            command = words[0] if len(words) == 1 else shlex.join(words)
            result = workspace.run(command, options.timeout, preview=options.preview)
    except AgentFSError as error:
        print_error(f"agentfs: {error}")
        return RUN_FAILED
    write_output(result.stdout)
    if sys.stderr is not None:  # pyright: ignore[reportUnnecessaryComparison] - None if it is closed
        with suppress(OSError):
            sys.stderr.buffer.write(result.stderr)
    if options.preview:
        write_output(result.changes.patch)
    for line in (*result.notes, *str(result.changes.text).splitlines()):
        print_error(f"agentfs: {line}")
    return _TIMED_OUT if result.exit_status is None else result.exit_status


def _opened(options: CommandOptions) -> Workspace:
    settings = settings_of(options, Limits())
    if options.root is None and options.state is not None and options.connect is None:
        with suppress(InvalidArgumentError):  # a new directory belongs to no root yet
            settings = settings._replace(root=history.state.root_of(options.state))
    return opened(settings, options)


def _arguments(words: Sequence[str]) -> str | dict[str, str]:
    """Return the arguments of a tool: JSON, that of standard input, or `key=value` texts."""
    if len(words) == 1 and "=" not in words[0].partition("{")[0]:
        return input_text() if words[0] == "-" else words[0]
    return named_values(words, "Give the arguments as JSON, or as NAME=VALUE.")
