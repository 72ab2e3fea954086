"""The command line `agentfs`: tools, schemas, `mcp`, `serve`, `run`, `branch` and the history."""

import sys
from collections.abc import Sequence

from agentfs.cli.command_options import Subcommand, parse_command_line
from agentfs.cli.history_commands import show_diff, show_log, show_review
from agentfs.cli.output import FAILED, print_error, write_output
from agentfs.cli.tool_commands import RUN_FAILED, run_call, run_command, serve_mcp, serve_remote, show_schemas
from agentfs.errors import AgentFSError
from agentfs.fs import typed

__all__ = ["main"]

_INTERRUPTED = 130
_COMMANDS = {
    "call": Subcommand(
        run_call,
        "run one tool: agentfs call NAME JSON, or key=value ...",
        "NAME WORDS json dialect root mount state connect",
    ),
    "schemas": Subcommand(show_schemas, "print the tools' schemas as JSON", "format strict dialect root"),
    "mcp": Subcommand(
        serve_mcp,
        "serve the tools over MCP",
        """root mount read_only tools prefix no_watch policy deny ask allow protect http http_name token_env
        dialect state connect""",
    ),
    "serve": Subcommand(
        serve_remote,
        "serve a client of agentfs.connect on standard input and output, which can only narrow the options",
        "root! mount state read_only policy deny protect",
        from_environment=False,  # the command line of the client decides what is served
    ),
    "run": Subcommand(
        run_command,
        "run a command, staged on an overlay: agentfs run -- make test",
        "WORDS mode preview timeout root mount state policy deny allow",
        misused=RUN_FAILED,
    ),
    "branch": Subcommand(
        run_command,
        "run a command in a branch of the root, which is kept until it is discarded",
        "NAME WORDS merge discard preview timeout root state! policy deny allow",
        misused=RUN_FAILED,
    ),
    "log": Subcommand(show_log, "list the steps, the latest first", "limit json state! root"),
    "diff": Subcommand(
        show_diff, "print all changes as one patch for git apply", "since paths json state! root"
    ),
    "review": Subcommand(
        show_review,
        "print what changed, hunk by hunk, or carry out decisions",
        "since paths html apply json state! root",
    ),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: The arguments; by default those of the process.

    Returns:
        The exit status: 0 for success, 1 if a search found nothing, 2 if the command failed or was malformed.
    """
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison] - None if it is closed
        print_error("agentfs: Standard output is closed.")
        return FAILED
    try:
        try:
            command, options = parse_command_line(sys.argv[1:] if argv is None else argv, _COMMANDS)
            return command.run(options)
        except SystemExit as end:  # argparse has printed help or an error
            write_output()
            return end.code if isinstance(end.code, int) else FAILED
    except BrokenPipeError:  # the reader is gone, as after `| head`
        return 0
    except (AgentFSError, OSError) as error:
        print_error(f"agentfs: {typed(error, str(getattr(error, 'filename', '') or '.'))}")
        return FAILED
    except KeyboardInterrupt:
        return _INTERRUPTED
