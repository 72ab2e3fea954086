"""Calls that a watched and a cold workspace answer alike."""

from contextlib import contextmanager
from dataclasses import fields, is_dataclass

import pytest

from agentfs import AgentFSError, Limits, Workspace
from agentfs.search import missing_paths, second_look
from tests import kit

LIMITS = Limits(watch_bytes=256 * 1024, file_bytes=32 * 1024)
CALLS = [
    ("grep", {"pattern": "needle"}),
    ("grep", {"pattern": "needle", "output_mode": "count", "ignore_case": True}),
    ("grep", {"pattern": "needle|first|two", "limit": 1}),
    ("grep", {"pattern": r"[a-z]+ (two|wide)", "output_mode": "files_with_matches", "limit": 1}),
    ("grep", {"pattern": "needs", "ignore_case": True, "hidden": True}),
    ("grep", {"pattern": r"\w+ (two|wide)", "include_ignored": True}),
    ("grep", {"pattern": r"^[a-z]+$", "output_mode": "files_with_matches", "limit": 2}),
    ("grep", {"pattern": "needle", "glob": "*.txt", "sort": "size"}),
    ("grep", {"pattern": "needle", "path": "a", "glob": ["!b", "*.py"]}),
    ("grep", {"pattern": "needle", "sort": "oldest", "limit": 3}),
    ("grep", {"pattern": "needle", "follow_symlinks": True}),
    ("grep", {"pattern": "needle", "encoding": "utf-8"}),
    ("grep", {"pattern": "needle", "max_filesize": 10, "type": "py"}),
    ("grep", {"pattern": "nothing of the kind"}),
    ("grep", {"pattern": "needle", "path": ["a/b", ".", "a"], "output_mode": "count"}),
    ("ls", {"path": ["a", "."], "depth": 0}),
    ("grep", {"pattern": "needle", "path": "linked", "output_mode": "count"}),
    ("glob", {"pattern": "*", "path": "linked"}),
    ("ls", {"path": "linked", "depth": 0}),
    ("glob", {"pattern": "*"}),
    ("glob", {"pattern": "**/*.txt", "sort": "size"}),
    ("glob", {"pattern": "a/**", "types": "fd", "include_ignored": True}),
    ("glob", {"pattern": "*.py", "limit": 1}),
    ("glob", {"pattern": "**/*.TXT"}),
    ("grep", {"pattern": "needle", "glob": "*.TXT"}),
    ("find", {"types": ["f", "d", "l"]}),
    ("find", {"types": "e", "hidden": True}),
    ("find", {"follow_symlinks": True, "size": "+1b"}),
    ("ls", {"depth": 0}),
    ("ls", {}),
    ("ls", {"path": "a", "include_ignored": True, "sort": "size"}),
]  # fmt: skip


def answer(workspace, name, arguments):
    workspace._read_tracker.forget()  # what was left out is said again; what is watched stays kept
    try:
        return plain(kit.method(workspace, name)(**arguments))
    except AgentFSError as error:
        return error.code, str(error)


def plain(result):
    if is_dataclass(result):
        return {
            field.name: plain(getattr(result, field.name))
            for field in fields(result)
            if field.name != "elapsed_ms"
        }
    if isinstance(result, (list, tuple)):
        return [plain(each) for each in result]
    return result if not isinstance(result, dict) else {key: plain(each) for key, each in result.items()}


@contextmanager
def unhurried():
    """Give the advice of searches that find nothing all the time that it takes on a busy machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(second_look, "SECONDS", 20.0)
        patch.setattr(missing_paths, "_SECONDS", 20.0)
        yield


def check_same(watched, root, calls=CALLS):
    with Workspace(root, limits=LIMITS) as cold, unhurried():
        for name, arguments in calls:
            before = answer(cold, name, arguments)
            found = answer(watched, name, arguments)
            assert found == before, (name, arguments, differing(found, before))


def differing(found, before):
    if not (isinstance(found, dict) and isinstance(before, dict)):
        return found, before
    values = [(key, found[key], before[key]) for key in found if found[key] != before[key]]
    return [[f"{each!r:.300}" for each in value] for value in values]
