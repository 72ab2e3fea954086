"""`agentfs run`: a command under the rules of a workspace, with the exit status of the command."""

import shlex
import sys
from contextlib import suppress
from dataclasses import replace

from agentfs.cli.command_options import CommandOptions
from agentfs.cli.output import print_error, write_output
from agentfs.cli.policy_file import settings_of
from agentfs.errors import AgentFSError, InvalidArgumentError
from agentfs.limits import HARD_FILE_BYTES, Limits
from agentfs.workspace import Workspace

RUN_FAILED = 125  # as `timeout` and `env` end if they fail themselves
_TIMED_OUT = 124


def run_command(options: CommandOptions) -> int:
    """Run a command, and print its output and then its changes."""
    words = options.words
    try:
        if not words:
            raise InvalidArgumentError("There is no command.", hint="Write it after `--`: run -- make test.")
        command = words[0] if len(words) == 1 else shlex.join(words)
        settings = settings_of(options, Limits(file_bytes=HARD_FILE_BYTES))
        mode = options.mode or settings.policy.run or "staged"
        with Workspace(
            settings.root,
            mounts=settings.mounts,
            policy=replace(settings.policy, run=mode),
            limits=settings.limits,
            state=options.state,
        ) as workspace:
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
