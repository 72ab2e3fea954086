"""The results of a pull, a push and a status, with their texts."""

from collections.abc import Iterable, Mapping
from typing import TypeVar

from agentfs.fs import FileNode
from agentfs.history.report import name_paths
from agentfs.results import PullResult, PushResult, Result, StoreStatus
from agentfs.store.sync import CONFLICTS, Sync
from agentfs.store.remote import META
from agentfs.text import plural, with_text

_Result = TypeVar("_Result", bound=Result)
_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def pull_result(sync: Sync) -> PullResult:
    """Return the result of a pull that has ended."""
    paths = _paths(sync, sync.pulled), _paths(sync, sync.deleted), _paths(sync, sync.merged)
    result = PullResult(*paths, _paths(sync, sync.conflicts), _by_reason(sync))
    return _with_text(sync, result, f"Pulled {_amount(sync, sync.pulled)}", paths[1:])


def push_result(sync: Sync, pushed: set[str], deleted: set[str]) -> PushResult:
    """Return the result of a push that has ended."""
    paths = _paths(sync, pushed), _paths(sync, deleted), _paths(sync, sync.merged | sync.pulled)
    result = PushResult(*paths, _paths(sync, sync.conflicts), _by_reason(sync))
    return _with_text(sync, result, f"Pushed {_amount(sync, pushed)}", paths[1:])


def status_result(sync: Sync, to_pull: Iterable[str], to_push: Iterable[str]) -> StoreStatus:
    """Return the status of a cache."""
    pulls, pushes = _paths(sync, to_pull), _paths(sync, to_push)
    sync.conflicts.update(sync.recorded_conflicts)
    result = StoreStatus(pulls, pushes, _paths(sync, sync.conflicts), _by_reason(sync))
    named = [
        f"to {verb}: {name_paths(paths)}" for verb, paths in (("pull", pulls), ("push", pushes)) if paths
    ]
    return _with_text(
        sync, result, f"{plural(len(pulls), 'path')} to pull, {len(pushes)} to push", ((), ()), named
    )


def _with_text(
    sync: Sync, result: _Result, head: str, paths: Iterable[tuple[str, ...]], named: Iterable[str] = ()
) -> _Result:
    deleted, merged = paths
    head += f", deleted {len(deleted)}" if deleted else ""
    head += f", merged {len(merged)}" if merged else ""
    conflicts = _paths(sync, sync.conflicts)
    lines = [*named]
    if conflicts:
        lines.append(
            f"{plural(len(conflicts), 'conflict')}: {name_paths(conflicts)}. The texts of the store are below"
            f" {META}{CONFLICTS}; a conflict ends when both texts are equal."
        )
    lines += [f"left out ({reason}): {name_paths(paths)}" for reason, paths in _by_reason(sync).items()]
    return with_text(result, f"{head}.", below=lines)


def _paths(sync: Sync, paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(map(sync.root.display_path, paths)))


def _by_reason(sync: Sync) -> dict[str, tuple[str, ...]]:
    return {reason: _paths(sync, set(paths)) for reason, paths in sorted(sync.left_out.items())}


def _amount(sync: Sync, paths: set[str]) -> str:
    """Return how many paths there are, and how large their files."""
    size = sum(known.size for path in paths if (known := sync.known.get(path)) is not None)
    unit = next(((limit, name) for limit, name in _UNITS if size >= limit), None)
    shown = plural(size, "byte") if unit is None else f"{size / unit[0]:.1f} {unit[1]}"
    return f"{plural(len(paths), 'path')} ({shown})"
