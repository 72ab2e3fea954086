"""What outlives the process of a workspace: its journal and what was shown, in a directory outside."""

from agentfs.state.opening import Opened, open_state, read_journal, root_of

__all__ = ["Opened", "open_state", "read_journal", "root_of"]
