"""The command line: `agentfs call` runs one tool, `agentfs schemas` prints what a provider is given."""

import argparse
import json
import sys
from collections.abc import Sequence

from agentfs.errors import AgentFSError
from agentfs.schema import FORMATS
from agentfs.workspace import Workspace


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: The arguments; by default those of the process.

    Returns:
        The exit status: 0 for success, 1 for a tool that failed, 2 for a wrong command line.
    """
    arguments = _parser().parse_args(argv)
    try:
        with Workspace(arguments.root) as workspace:
            status: int = arguments.run(workspace, arguments)
            sys.stdout.flush()
    except AgentFSError as error:
        print(f"agentfs: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader has gone, as `| head` does; Python would complain again when it flushes at exit.
        sys.stdout = None
        return 1
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="agentfs", description="File tools for LLM agent loops.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    call = commands.add_parser("call", help="run one tool and print what a model would be shown")
    call.add_argument("name", metavar="NAME", help="the tool: read, write, edit, multi_edit, ls, glob, grep")
    call.add_argument(
        "arguments", metavar="JSON", help="its arguments as a JSON object; - reads standard input"
    )
    call.add_argument("--json", action="store_true", help="print the whole result as JSON")
    call.set_defaults(run=_call)

    schemas = commands.add_parser("schemas", help="print the tools' schemas as JSON")
    schemas.add_argument("--format", default="openai", choices=FORMATS, help="the provider (default: openai)")
    schemas.add_argument("--strict", action="store_true", help="schemas for the provider's strict mode")
    schemas.set_defaults(run=_schemas)

    for command in (call, schemas):
        command.add_argument("--root", default=".", metavar="DIR", help="the workspace (default: here)")
    return parser


def _call(workspace: Workspace, arguments: argparse.Namespace) -> int:
    text = sys.stdin.read() if arguments.arguments == "-" else arguments.arguments
    result = workspace.tools().call(arguments.name, text)
    if arguments.json:
        print(json.dumps(result.to_dict(), ensure_ascii=False))
    else:
        print(result.content, file=sys.stdout if result.success else sys.stderr)
    return 0 if result.success else 1


def _schemas(workspace: Workspace, arguments: argparse.Namespace) -> int:
    schemas = workspace.tools().schemas(arguments.format, strict=arguments.strict)
    print(json.dumps(schemas, indent=2, ensure_ascii=False))
    return 0
