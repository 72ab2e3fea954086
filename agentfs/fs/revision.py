"""Revisions: short names for the exact content of a file."""

import os


def revision_of(data: bytes) -> str:
    """Return the revision of a content: 12 hex digits of its hash."""
    from hashlib import blake2b  # noqa: PLC0415 - it loads OpenSSL, which an import of agentfs should not

    return blake2b(data, digest_size=6).hexdigest()


def revision_of_stat(found: os.stat_result) -> str:
    """Return the revision of a file too large to hash, made from what the system says of it."""
    facts = f"{found.st_dev}:{found.st_ino}:{found.st_size}:{found.st_mtime_ns}:{found.st_ctime_ns}"
    return "~" + revision_of(facts.encode())
