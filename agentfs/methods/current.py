"""Whether what a result shows still stands."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from agentfs.errors import AccessError, AgentFSError, InvalidArgumentError
from agentfs.methods.held import Held
from agentfs.results import (
    EditResult,
    GlobResult,
    GrepResult,
    ListResult,
    ReadManyResult,
    ReadResult,
    Result,
    WriteResult,
)

_H = TypeVar("_H", bound=Held)
_P = ParamSpec("_P")
_R = TypeVar("_R", bound=Result)
# What may differ though the tree is the same.
_INCIDENTAL = ("elapsed_ms", "engine")


def repeatable(method: Callable[Concatenate[_H, _P], _R]) -> Callable[Concatenate[_H, _P], _R]:
    """Return a method whose results remember how to be made again.

    Args:
        method: A method of a workspace that changes nothing.
    """
    name = method.__name__

    @wraps(method)
    def remembering(self: _H, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        return replace(method(self, *args, **kwargs), made_by=(name, args, kwargs))

    return remembering


class Current(Held):
    """What a program may ask about results that it keeps."""

    def is_current(self, result: Result) -> bool:
        """Tell whether what a result shows still stands.

        Of a file that was read or written its content is compared; a search and a listing are made again, by
        the limits of this workspace, and compared. So the answer is never old itself, and for a search it
        takes as long as the search.

        Args:
            result: What read, read_many, ls, glob, find, grep, or a method that writes or edits returned.

        Returns:
            Whether the same call would show the same. What cannot be reached any more is not current.

        Raises:
            AgentFSError: `invalid_argument` for another result, `refused` where the call is not allowed now.
        """
        match result:
            case ReadManyResult():
                return all(self.is_current(file) for file in result.files)
            case ReadResult(kind="directory") | ListResult() | GlobResult() | GrepResult():
                return self._would_be(result)
            case ReadResult() | WriteResult() | EditResult():
                return self._has_revision(result.path, result.revision)
            case _:
                raise InvalidArgumentError(
                    f"Whether a {type(result).__name__} is current cannot be told.",
                    hint="Pass the result of a read, a listing, a search or an edit.",
                )

    def _would_be(self, result: Result) -> bool:
        if result.made_by is None:
            return False
        name, args, kwargs = result.made_by
        try:
            again = getattr(self, name)(*args, **kwargs)
        except AccessError:
            raise
        except AgentFSError:
            return False
        return _facts(again) == _facts(result)

    def _has_revision(self, path: str, revision: str) -> bool:
        from agentfs.fs import revision_of, revision_of_stat

        kept = self._outputs.get(path)
        if kept is not None:
            return not kept.path or self._has_revision(kept.path, revision)
        try:
            with self._root.open_file(path) as file:
                if revision.startswith("~"):
                    return revision_of_stat(file.stat) == revision
                data = file.read(self.limits.file_bytes + 1)
                return len(data) <= self.limits.file_bytes and revision_of(data) == revision
        except AgentFSError:
            return False


def _facts(result: Result) -> Mapping[str, Any]:
    facts = {name: value for name, value in result.to_dict().items() if name not in _INCIDENTAL}
    # What a read shows of a directory stands in its text alone.
    return {**facts, "text": result.text} if isinstance(result, ReadResult) else facts
