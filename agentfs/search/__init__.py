"""Search: ls, glob, find and grep, over the walk, ignore rules, globs and patterns."""

from agentfs.search.diagnose import suggest_files
from agentfs.search.find import find_files, glob_files, list_directory
from agentfs.search.grep import grep
from agentfs.search.options import FindOptions, GlobOptions, GrepOptions, ListOptions

__all__ = [
    "FindOptions",
    "GlobOptions",
    "GrepOptions",
    "ListOptions",
    "find_files",
    "glob_files",
    "grep",
    "list_directory",
    "suggest_files",
]
