"""What the file of a journal says: its records as values, and back. Pure."""

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from agentfs.fs import Change, FileNode, Node
from agentfs.fs.recovery_log import plain_of, state_of
from agentfs.journal import Step, Sum

# The kinds of records; CONTENT is 2.
HEADER, STEP, TRAVEL, DONE, VOID, PART, CHECKPOINT, TOGETHER, BASE = 1, 3, 4, 5, 6, 7, 8, 9, 10

# Returns what loads a content, by its hash.
Load = Callable[[str], Callable[[], bytes]]


class NotWrittenHereError(ValueError):
    """A record holds what no journal writes."""


def step_payload(step: Step) -> bytes:
    """Return the payload of STEP."""
    return _json({"time": step.time, "changes": _changes(step.changes)})


def part_payload(changes: tuple[Change, ...]) -> bytes:
    """Return the payload of PART: what was made of the step before it."""
    return _json([change.path for change in changes])


def travel_payload(start: int, end: int) -> bytes:
    """Return the payload of TRAVEL."""
    return _json([start, end])


def checkpoint_payload(name: str, place: int) -> bytes:
    """Return the payload of CHECKPOINT."""
    return _json([name, place])


def together_payload(place: int) -> bytes:
    """Return the payload of TOGETHER: the steps before a place were put together."""
    return _json(place)


def base_payload(total: Sum, first: int) -> bytes:
    """Return the payload of BASE: what the first steps come to, and how many they are."""
    return _json([first, total.lost, list(total.foreign), _changes(total.changes)])


def step_in(payload: bytes, load: Load) -> Step:
    """Return what a STEP says.

    Args:
        payload: Its payload.
        load: Returns what loads a content, by its hash.

    Raises:
        NotWrittenHereError: It says what no step does.
    """
    plain = _plain(payload)
    match plain:
        case {"time": int() | float() as time, "changes": [*changes]}:
            return Step(tuple(_change(change, load) for change in changes), float(time))
        case _:
            raise NotWrittenHereError


def part_in(payload: bytes, step: Step) -> Step:
    """Return what a PART leaves of a step."""
    match _plain(payload):
        case [*paths]:
            return Step(tuple(change for change in step.changes if change.path in paths), step.time)
        case _:
            raise NotWrittenHereError


def travel_in(payload: bytes) -> tuple[int, int]:
    """Return what a TRAVEL says: how many steps stood, and are to stand."""
    match _plain(payload):
        case [int() as start, int() as end]:
            return start, end
        case _:
            raise NotWrittenHereError


def checkpoint_in(payload: bytes) -> tuple[str, int]:
    """Return what a CHECKPOINT says: its name, and how many steps stand there."""
    match _plain(payload):
        case [str() as name, int() as place]:
            return name, place
        case _:
            raise NotWrittenHereError


def together_in(payload: bytes) -> int:
    """Return what a TOGETHER says: the place before which steps were put together."""
    match _plain(payload):
        case int() as place:
            return place
        case _:
            raise NotWrittenHereError


def base_in(payload: bytes, load: Load) -> tuple[Sum, int]:
    """Return what a BASE says: what its steps come to, and how many they are."""
    match _plain(payload):
        case [int() as first, int() as lost, [*foreign], [*changes]] if first > 0:
            if all(isinstance(path, str) for path in foreign):
                return Sum(tuple(_change(change, load) for change in changes), tuple(foreign), lost), first
        case _:
            pass
    raise NotWrittenHereError


def digests_of(changes: Iterable[Change]) -> set[str]:
    """Return the hashes of the contents that changes name."""
    states = [state for change in changes for state in (change.before, change.after)]
    return {state.digest for state in states if isinstance(state, FileNode)}


def _changes(changes: Iterable[Change]) -> list[Any]:
    return [[change.path, plain_of(change.before), plain_of(change.after)] for change in changes]


def _change(plain: Any, load: Load) -> Change:
    match plain:
        case [str() as path, before, after] if _is_inside(path):
            return Change(path, _state(before, load), _state(after, load))
        case _:
            raise NotWrittenHereError


def _state(plain: Any, load: Load) -> Node | None:
    if not _is_state(plain):
        raise NotWrittenHereError
    state = state_of(plain)
    return replace(state, load=load(state.digest)) if isinstance(state, FileNode) else state


def _is_state(plain: Any) -> bool:
    match plain:
        case None | ["link", str(), *_] | ["directory", int() | None, *_] | ["file", int(), str(), int(), *_]:
            return True
        case _:
            return False


def _is_inside(path: str) -> bool:
    return "\0" not in path and not {"", ".", ".."} & set(path.split("/"))


def _json(plain: Any) -> bytes:
    # Names that are not UTF-8 hold lone surrogates, which only the escapes of JSON carry.
    return json.dumps(plain, separators=(",", ":")).encode()


def _plain(payload: bytes) -> Any:
    try:
        return json.loads(payload)
    except (ValueError, RecursionError):
        raise NotWrittenHereError from None
