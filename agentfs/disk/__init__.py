"""The disk: path rules, the confined walk, and changes that happen whole or not at all."""

from agentfs.disk.alike import twins_among
from agentfs.disk.changing import Changed, Current
from agentfs.disk.contents import Contents, size_of
from agentfs.disk.failures import link_note, typed
from agentfs.disk.opened import Directory, OpenFile
from agentfs.disk.paths import MAX_NAME_BYTES, MAX_PARTS, MAX_PATH_BYTES, quote, show_name
from agentfs.disk.protected import guard_of
from agentfs.disk.revisions import revision_of, revision_of_stat
from agentfs.disk.root import Root
from agentfs.disk.spool import Spool
from agentfs.disk.states import Change, DirectoryState, FileState, LinkState, Recorder, State, digest_of

__all__ = [
    "MAX_NAME_BYTES",
    "MAX_PARTS",
    "MAX_PATH_BYTES",
    "Change",
    "Changed",
    "Contents",
    "Current",
    "Directory",
    "DirectoryState",
    "FileState",
    "LinkState",
    "OpenFile",
    "Recorder",
    "Root",
    "Spool",
    "State",
    "digest_of",
    "guard_of",
    "link_note",
    "quote",
    "revision_of",
    "revision_of_stat",
    "show_name",
    "size_of",
    "twins_among",
    "typed",
]
