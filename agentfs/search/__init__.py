"""Search: ls, glob, find and grep, over the walk, ignore rules, globs and patterns."""

from agentfs.search.find import find_files, list_directory
from agentfs.search.grep import grep
from agentfs.search.missing import explain_missing
from agentfs.search.options import FindOptions, GlobOptions, GrepOptions, ListOptions, has_wildcard, is_glob

__all__ = [
    "FindOptions",
    "GlobOptions",
    "GrepOptions",
    "ListOptions",
    "explain_missing",
    "find_files",
    "grep",
    "has_wildcard",
    "is_glob",
    "list_directory",
]
