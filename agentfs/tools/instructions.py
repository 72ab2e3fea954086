"""A short paragraph for the system prompt: how the tools that are offered work together. Pure."""

from collections.abc import Sequence

from agentfs.tools.spec import Tool

# A sentence is said where the tools it names, by the names of their methods, are offered.
_SENTENCES = (
    ((), "Paths are relative to the workspace root and use `/`."),
    (("grep",), "Search contents with {grep} before you read."),
    (("glob",), "Find files by name with {glob}."),
    (("read", "write"), "{write} replaces only a file that {read} has shown you to its end."),
    (
        ("edit",),
        "For a change to a part of a file use {edit}, with enough of the old text to be the only one.",
    ),
    (("multi_edit",), "Several changes to one file go into one {multi_edit}."),
    ((), "What an answer leaves out it names in square brackets, with the call that gets it."),
    ((), "An error says what is there instead: correct the call rather than repeat it."),
)


def instructions_for(tools: Sequence[Tool]) -> str:
    """Return the paragraph for some tools.

    Args:
        tools: The tools that are offered.
    """
    names = {getattr(tool.spec.target, "__name__", ""): f"`{tool.name}`" for tool in tools}
    said = [text.format(**names) for needed, text in _SENTENCES if all(name in names for name in needed)]
    return " ".join(said)
