"""`agentfs store`: pull and push a tree in an object store."""

from agentfs.cli.command_options import CommandOptions
from agentfs.cli.output import print_text, progress
from agentfs.results import PullResult, PushResult, StoreStatus
from agentfs.text import to_json

_CONFLICTS = 1


def run_store(options: CommandOptions) -> int:
    """Pull, push or compare, and print the result. The status is 1 if there are conflicts."""
    from agentfs.store import StoredTree  # noqa: PLC0415 - other commands do not need it

    tree = StoredTree(options.url, options.directory)
    with progress() as report:

        def show(done: int, total: int) -> None:
            report(f"{done} of {total} objects")

        result: PullResult | PushResult | StoreStatus
        if options.action == "status":
            result = tree.status()
        else:
            result = (tree.pull if options.action == "pull" else tree.push)(on_progress=show)
    print_text(to_json(result.to_dict()) if options.json else result.text)
    return _CONFLICTS if result.conflicts else 0
