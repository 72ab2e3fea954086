"""A workspace where the files are: both sides of `agentfs.connect`, over any stream of bytes."""
