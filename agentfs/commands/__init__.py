"""Shell commands whose changes are under the rules, limits and undo of a workspace.

A staged command runs on an overlay of the root, in namespaces of its own. When it ends, its effects become
one batch of changes. A recorded command runs in the root itself, inside a recording.
"""

from agentfs.base.lazy import lazy_submodules

__getattr__ = lazy_submodules(__name__)
