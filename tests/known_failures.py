"""Tests that fail since the packages were rewritten, each with its cause: to be repaired, not moved.

An entry is the beginning of the name of a test. Take it out together with its repair.
"""

KNOWN_FAILURES: dict[str, str] = {}
