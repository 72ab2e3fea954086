"""Search: ls, glob, find and grep, over the walk, ignore rules, globs and patterns."""

from typing import TYPE_CHECKING

from agentfs.lazy import lazy_names

if TYPE_CHECKING:
    from agentfs.search.diagnose import explain_missing
    from agentfs.search.find import find_files, list_directory
    from agentfs.search.grep import grep_files
    from agentfs.search.options import (
        FindOptions,
        GlobOptions,
        GrepOptions,
        ListOptions,
        has_wildcard,
        is_glob,
        texts,
    )

__all__ = [
    "FindOptions",
    "GlobOptions",
    "GrepOptions",
    "ListOptions",
    "explain_missing",
    "find_files",
    "grep_files",
    "has_wildcard",
    "is_glob",
    "list_directory",
    "texts",
]

_OPTIONS = ["FindOptions", "GlobOptions", "GrepOptions", "ListOptions", "has_wildcard", "is_glob", "texts"]
__getattr__ = lazy_names(
    __name__,
    {
        "agentfs.search.find": ["find_files", "list_directory"],
        "agentfs.search.grep": ["grep_files"],
        "agentfs.search.diagnose": ["explain_missing"],
        "agentfs.search.options": _OPTIONS,
    },
)
