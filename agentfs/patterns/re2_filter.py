"""RE2, where `agentfs[speed]` is installed: a filter for the files of a pattern without a literal."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from agentfs.patterns.compile import Pattern
from agentfs.patterns.rust_syntax import rust_syntax

_MOST_MEMORY = 64 * 1024 * 1024


def re2_filter(pattern: Pattern) -> Callable[[bytes], Any] | None:
    r"""Make a test whether ASCII text without `\r` may have a match.

    Args:
        pattern: What is searched for.

    Returns:
        The test, or None where RE2 is not installed or could understand the pattern otherwise.
    """
    if pattern.multiline or pattern.plan.needles:
        return None
    asked = rust_syntax(pattern.written, ignore_case=pattern.ignore_case)
    if asked is None:
        return None
    try:
        re2 = import_module("re2")
    except ImportError:
        return None
    options: Any = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = _MOST_MEMORY
    options.log_errors = False
    try:
        search: Callable[[bytes], Any] = re2.compile(asked.encode(), options=options).search
    except re2.error:
        return None
    return search
