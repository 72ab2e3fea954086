"""What became of the changes of a session, by their keys, so that each is made once.

The store of the journal notes the key of a call in the transaction that notes its step, before anything is
changed, and with the outcome of the step whether it was made. Here the answer is added. A state
directory keeps the answers of the latest 100 changes, and what became of the latest 100,000.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from agentfs.errors import AgentFSError, DisconnectedError
from agentfs.history.database import Database
from agentfs.history.store import MADE, OUTCOMES_TABLE

_MAX_ANSWER = 1024 * 1024  # bytes; of a longer one only the outcome is kept


class Outcomes:
    """The outcomes in a database of a state directory."""

    def __init__(self, database: Database) -> None:
        self._database = database
        database.write([(OUTCOMES_TABLE, ())])

    def find(self, key: str) -> Mapping[str, Any] | None:
        """Return the answer to a change that was begun before; None where it may be made now."""
        (rows,) = self._database.read(("SELECT made, answer FROM outcomes WHERE key = ?", (key,)))
        if not rows:
            return None
        made, answer = rows[0]
        if answer is not None:
            found: Mapping[str, Any] = json.loads(answer)
            return found
        if made == MADE:
            raise DisconnectedError(
                "The change was made, and its result was lost with the connection.",
                hint="Read the files to see it.",
                details={"made": True},
            )
        raise not_known()

    def add_answer(self, key: str, answer: Mapping[str, Any]) -> None:
        """Note the answer to a call, if that has made a change."""
        data = json.dumps(answer, separators=(",", ":")).encode()
        if len(data) <= _MAX_ANSWER:
            with suppress(AgentFSError):  # then the outcome alone is known
                self._database.write([("UPDATE outcomes SET answer = ? WHERE key = ?", (data, key))])


def not_known() -> DisconnectedError:
    """Return the error for a change of which it is not known whether it was made."""
    return DisconnectedError(
        "The connection was lost during the change; how much of it was made is not known.",
        hint="Read the files to see it.",
        details={"made": None},
    )
