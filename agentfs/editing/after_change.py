"""Run the functions of `Policy.after_change` on a new text before it is written, and parse data files.

No lock is held.
"""

import json
import re
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from itertools import groupby
from typing import Any, cast

from agentfs.base import call_context
from agentfs.base.advice import shortened
from agentfs.base.lazy import tomllib
from agentfs.base.visible import one_line
from agentfs.editing.draft import FileEdit
from agentfs.editing.rendering import diff_lines
from agentfs.errors import AgentFSError
from agentfs.fs import quote
from agentfs.history.log import LinesBy
from agentfs.limits import Limits
from agentfs.policy import AfterChange
from agentfs.text.diff import git_line_changes, line_count, unified_diff
from agentfs.text.display import cut_line, footer
from agentfs.tree.globs import compile_globs

_MOST_FINDINGS = 20
_FINDING_CHARS = 400
_NUMBER = re.compile(r"\d+")
_LANGUAGES = {"json": "JSON", "toml": "TOML", "yaml": "YAML", "yml": "YAML"}  # by the end of the name
_MOST_CHARACTERS = 100_000  # of a data file that is parsed; YAML takes about a second then
_Authors = list[tuple[str, str] | None]


def finish(
    rules: Sequence[AfterChange], edit: FileEdit, limits: Limits
) -> tuple[FileEdit, tuple[LinesBy, ...], Sequence[str], tuple[str, ...]]:
    """Run the functions in order, each on the text that the one before it has returned.

    A function that fails, or returns what the file cannot hold, leaves the edit as it is, with a note.

    Returns:
        The edit after all functions, the lines of each formatter, notes, and a diff of what they changed.
    """
    if not rules:
        return edit, (), (), ()
    path, text = edit.current.real_path, edit.after.source
    authors: _Authors = [None] * line_count(text)
    names, notes = list[str](), list[str]()
    for rule in (each for each in rules if compile_globs([each.glob])(path)):
        call_context.check()
        name = one_line(getattr(rule.function, "__name__", "a function"))
        try:
            returned = call_context.call_back(rule.function, path, text)
            if returned is None or isinstance(returned, list | tuple):
                notes += _new_findings(rule, name, edit, cast("Sequence[Any]", returned or ()))
            elif not isinstance(returned, str) or not returned or "\0" in returned:
                notes.append(f"{name} returned no usable text; the edit is as it was sent")
            elif returned != text:
                authors, text = _authors(authors, name, text, returned), returned
                names.append(name)
        except Exception as error:  # noqa: BLE001 - the edit is worth more than its format
            notes.append(f"{name} raised {one_line(f'{type(error).__name__}: {error}')}")
    if not names:
        return edit, (), notes, ()
    try:
        made = edit.with_text(text, limits)
    except AgentFSError as error:
        notes.append(f"what {', '.join(names)} made of it was not written: {error.message}")
        return edit, (), notes, ()
    diff = diff_lines(unified_diff(edit.after.source, text, edit.current.path))
    shown = (footer(f"then changed by {', '.join(names)}"), *diff)
    runs = ([*run] for _, run in groupby(enumerate(authors), lambda each: each[1]))
    by_others = (LinesBy(path, run[0][0], run[-1][0] + 1, run[0][1]) for run in runs if run[0][1])
    return made, tuple(by_others), notes, shown


def _authors(authors: _Authors, name: str, before: str, after: str) -> _Authors:
    """Return the author of each line after a formatter; None is the author of the call."""
    made: _Authors = []
    end = 0
    for start, old_end, new_start, new_end in git_line_changes(before, after):
        made += [*authors[end:start], *[("formatter", name)] * (new_end - new_start)]
        end = old_end
    return [*made, *authors[end:]]


def _new_findings(rule: AfterChange, name: str, edit: FileEdit, returned: Sequence[Any]) -> list[str]:
    """Return a note on the findings that the function does not return for the text before the edit.

    Two findings are the same if they differ only in numbers, such as those of their lines.
    """
    path, before = edit.current.real_path, edit.before.source
    known = call_context.call_back(rule.function, path, before) if returned and not edit.creates else ()
    left = Counter(_NUMBER.sub("", str(line)) for line in known or ())
    new: list[str] = []
    for line in map(str, returned):
        text = _NUMBER.sub("", line)
        left[text] -= 1
        if left[text] < 0:
            new.append(cut_line(one_line(line), _FINDING_CHARS))
    shown = shortened(new, _MOST_FINDINGS, "line")
    return ["\n".join([f"new findings of {name}:", *shown])] if new else []


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
