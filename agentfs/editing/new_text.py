"""Warnings about the new text of a file: a wrong name of its encoding, JSON, TOML or YAML that is broken."""

import json
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from agentfs.base.lazy import tomllib
from agentfs.base.visible import one_line
from agentfs.editing.draft import FileEdit
from agentfs.fs import quote
from agentfs.text.decoding import declared_encoding

_LANGUAGES = {"json": "JSON", "toml": "TOML", "yaml": "YAML", "yml": "YAML"}  # by the end of the name
_MOST_CHARACTERS = 100_000  # of a file that is parsed; YAML takes about a second then


def warnings_of(edit: FileEdit) -> list[str]:
    """Return warnings about what was right before an edit and is wrong after it."""
    return [] if edit.creates else [*_encoding_warning(edit), *_syntax_warning(edit)]


def _encoding_warning(edit: FileEdit) -> list[str]:
    """Return a warning if the new text names an encoding that the file does not have."""
    text, encoding = edit.after.source, edit.codec.encoding
    if edit.replaces_all or text.isascii():
        return []
    named = declared_encoding(text)
    if named in {None, encoding, declared_encoding(edit.before.source)}:
        return []
    kept = f"but is still in {encoding}; to convert it, write the whole file"
    return [f"warning: {quote(edit.current.path)} now names the encoding {named} {kept}"]


def _syntax_warning(edit: FileEdit) -> list[str]:
    """Return a warning if a data file could be parsed before, and cannot be parsed now."""
    language = _LANGUAGES.get(edit.current.path.lower().rpartition(".")[2])
    before, after = edit.before.source, edit.after.source
    if language is None or max(len(before), len(after)) > _MOST_CHARACTERS:
        return []
    problem = _problem(language, after)
    if not problem or _problem(language, before):
        return []
    return [f"warning: {quote(edit.current.path)} is no longer valid {language}: {problem}"]


def _problem(language: str, text: str) -> str:
    try:
        _parse(language, text)
    except RecursionError:
        return ""
    except Exception as error:  # noqa: BLE001 - each parser has its own class
        return one_line(str(error))
    return ""


def _parse(language: str, text: str) -> None:
    """Parse a text. YAML is parsed only if PyYAML is installed."""
    if language == "JSON":
        json.loads(text)
    elif language == "TOML":
        tomllib.loads(text)
    elif (found := find_spec("yaml")) and "-packages" in (found.origin or ""):  # not a module of the tree
        yaml: Any = import_module("yaml")
        try:
            for _ in yaml.parse(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
                pass
        except yaml.MarkedYAMLError as error:
            raise ValueError(f"{error.problem} in line {error.problem_mark.line + 1}") from None
