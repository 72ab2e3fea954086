"""Search: the walk, ignore rules, globs, and the methods that stand on them."""

from agentfs.search.elsewhere import say_elsewhere
from agentfs.search.finding import find_files, glob_files
from agentfs.search.grep import grep
from agentfs.search.line_naming import line_namer
from agentfs.search.listing import list_directory
from agentfs.search.request import Request

__all__ = ["Request", "find_files", "glob_files", "grep", "line_namer", "list_directory", "say_elsewhere"]
