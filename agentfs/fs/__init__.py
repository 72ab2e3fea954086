"""The disk: path rules, the confined walk, and changes that happen whole or not at all."""

from agentfs.fs.file import Directory, OpenFile
from agentfs.fs.node import Change, DirectoryNode, FileNode, LinkNode, Node, Recorder, digest_of
from agentfs.fs.oserrors import link_note, typed
from agentfs.fs.path import MAX_NAME_BYTES, MAX_PARTS, MAX_PATH_BYTES, display_name, quote
from agentfs.fs.protect import name_matcher
from agentfs.fs.read_buffer import ReadBuffer, size_of
from agentfs.fs.replace import Changed, Current
from agentfs.fs.revision import revision_of, revision_of_stat
from agentfs.fs.root import Root
from agentfs.fs.tempstore import Spool
from agentfs.fs.unicode_duplicates import unicode_duplicates_among

__all__ = [
    "MAX_NAME_BYTES",
    "MAX_PARTS",
    "MAX_PATH_BYTES",
    "Change",
    "Changed",
    "Current",
    "Directory",
    "DirectoryNode",
    "FileNode",
    "LinkNode",
    "Node",
    "OpenFile",
    "ReadBuffer",
    "Recorder",
    "Root",
    "Spool",
    "digest_of",
    "display_name",
    "link_note",
    "name_matcher",
    "quote",
    "revision_of",
    "revision_of_stat",
    "size_of",
    "typed",
    "unicode_duplicates_among",
]
