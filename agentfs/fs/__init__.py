"""Access to the disk, confined to one root: paths, reading, protected names and atomic changes."""
# pyright: reportUnusedImport=false
# The names are for the other packages.

from agentfs.fs.apply import directories_above
from agentfs.fs.directory import Directory, DirEntry
from agentfs.fs.file import OpenFile, incremental_decoder, join_returns, text_pieces
from agentfs.fs.node import (
    Change,
    Changed,
    Current,
    DirectoryNode,
    FileNode,
    LinkNode,
    MovedNode,
    MovedTree,
    Node,
    collapsed,
    entry_type,
    expanded,
    revision_of,
    revision_of_stat,
)
from agentfs.fs.oserrors import typed
from agentfs.fs.path import MAX_NAME_BYTES, MAX_PARTS, MAX_PATH_BYTES, display_name, is_temporary_name, quote
from agentfs.fs.read_buffer import BINARY, KeptText, ReadBuffer
from agentfs.fs.root import Root
