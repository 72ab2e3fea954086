"""Warn about JSON, TOML or YAML that an edit breaks."""

import json
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from agentfs.base.lazy import tomllib
from agentfs.base.visible import one_line
from agentfs.editing.draft import FileEdit
from agentfs.fs import quote

_LANGUAGES = {"json": "JSON", "toml": "TOML", "yaml": "YAML", "yml": "YAML"}  # by the end of the name
_MOST_CHARACTERS = 100_000  # of a file that is parsed; YAML takes about a second then


def warnings_of(edit: FileEdit) -> list[str]:
    """Return a warning if a data file could be parsed before an edit, and cannot be parsed after it."""
    language = _LANGUAGES.get(edit.current.path.lower().rpartition(".")[2])
    before, after = edit.before.source, edit.after.source
    if edit.creates or language is None or max(len(before), len(after)) > _MOST_CHARACTERS:
        return []
    problem = _problem(language, after)
    if not problem or _problem(language, before):
        return []
    return [f"warning: {quote(edit.current.path)} is no longer valid {language}: {problem}"]


def _problem(language: str, text: str) -> str:
    """Return why a text cannot be parsed, or "". YAML is parsed only if PyYAML is installed."""
    try:
        if language == "JSON":
            json.loads(text)
        elif language == "TOML":
            tomllib.loads(text)
        elif (found := find_spec("yaml")) and "-packages" in (found.origin or ""):  # not a module of the tree
            yaml: Any = import_module("yaml")
            for _ in yaml.parse(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
                pass
    except RecursionError:
        return ""
    except Exception as error:  # noqa: BLE001 - each parser has its own class
        mark: Any = getattr(error, "problem_mark", None)  # of YAML, whose text has several lines
        return one_line(f"{vars(error)['problem']} in line {mark.line + 1}" if mark else str(error))
    return ""
