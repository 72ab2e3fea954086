"""What `tree-sitter-analyzer` calls the methods that its tools stand for, and their parameters. Pure."""

from collections.abc import Mapping
from typing import Any

from agentfs.messages import Names, NextCall, Retry

_BOTH: Mapping[str, str] = {"path": "roots", "max_depth": "depth", "full_path": "full_path_match"}
_OF_GREP: Mapping[str, str] = {
    **_BOTH,
    "pattern": "query",
    "glob": "include_globs",
    "before": "context_before",
    "after": "context_after",
}


class Parameters(Names):
    """The parameters of a method as this dialect has them.

    Args:
        renames: For a parameter of the method, that of the dialect.
    """

    def __init__(self, renames: Mapping[str, str]) -> None:
        self._renames = renames

    def parameter(self, name: str) -> str | None:
        """Return the name of a parameter."""
        return self._renames.get(name, name)

    def retry(self, retry: Retry) -> Retry | None:
        """Return other arguments of the method as those of the dialect."""
        arguments: dict[str, Any] = {}
        for name, value in retry.arguments.items():
            if name == "include_ignored":
                arguments |= {"hidden": value, "no_ignore": value}
            else:
                arguments[self._renames.get(name, name)] = value
        if retry.without == ("fixed_strings",):
            arguments |= {"regex": True, "fixed_strings": False}
        return Retry(arguments) if retry.without in ((), ("fixed_strings",)) else None


FINDING, SEARCHING = Parameters(_BOTH), Parameters(_OF_GREP)


def stands_for(tool: str) -> dict[str, Any]:
    """Return what an offer says of the methods that a tool stands for.

    Args:
        tool: The tool.
    """
    if tool == "search_content":
        return {"methods": {"grep": {}}, "renames": _OF_GREP, "follow": _search, "vary": _searching}
    if tool == "list_files":
        methods: Mapping[str, Mapping[str, str]] = {"ls": {}, "glob": {}, "find": {}}
        return {"methods": methods, "renames": _BOTH, "follow": _list, "vary": _finding}
    return {"methods": {}, "renames": {**_OF_GREP, **_BOTH, "pattern": "pattern"}, "vary": _finding}


def _searching(retry: Retry, _: Mapping[str, Any]) -> Retry | None:
    return SEARCHING.retry(retry)


def _finding(retry: Retry, _: Mapping[str, Any]) -> Retry | None:
    return FINDING.retry(retry)


def _list(call: NextCall) -> Mapping[str, Any] | None:
    if call["name"] != "ls" or call["arguments"].keys() != {"path"}:
        return None
    return {"roots": [call["arguments"]["path"]], "depth": 1}


def _search(call: NextCall) -> Mapping[str, Any] | None:
    if call["name"] != "read" or call["arguments"].keys() != {"path"}:
        return None
    return {"files": [call["arguments"]["path"]], "query": "^"}
