"""Progress of a call, sent to the client that has requested it."""

import asyncio
from collections.abc import Callable
from typing import Any

from agentfs.base.advice import plural


def progress_reporter(context: Any) -> Callable[[int], None]:
    """Return a callback that sends progress from a call's thread; the SDK drops progress nobody requested."""
    loop = asyncio.get_running_loop()

    def report(entries: int) -> None:
        message = context.session.report_progress(entries, None, plural(entries, "entry", "entries"))
        asyncio.run_coroutine_threadsafe(message, loop)

    return report
