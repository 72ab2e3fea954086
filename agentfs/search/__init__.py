"""Search: the walk, ignore rules, globs, and the methods that stand on them."""

from agentfs.search.find import find_files, glob_files
from agentfs.search.grep import grep
from agentfs.search.line_ids import line_id_source
from agentfs.search.ls import list_directory
from agentfs.search.request import Request
from agentfs.search.suggestions import add_suggestions

__all__ = [
    "Request",
    "add_suggestions",
    "find_files",
    "glob_files",
    "grep",
    "line_id_source",
    "list_directory",
]
