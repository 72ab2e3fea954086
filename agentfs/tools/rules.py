"""The rules of a policy against the subject of a call, and the question to the user."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from agentfs.base import call_context
from agentfs.errors import RefusedError
from agentfs.fs.protect import fold_letters
from agentfs.permissions import DO_NOT_RETRY, Allow, Deny, OnAsk, PermissionRequest, Rule
from agentfs.tools import command_line
from agentfs.tree.globs import compile_globs

NOT_ASKED = "The user could not be asked, so this call is refused."  # the callback has raised


class Subject(NamedTuple):
    """The paths, the command line or the text of a call, which rules are matched with.

    Attributes:
        paths: The paths of the call, in every spelling, relative to the root.
        command: The command line, if the call runs one.
        text: The text of the parameter that the tool has declared for rules.
    """

    paths: tuple[str, ...] = ()
    command: str | None = None
    text: str | None = None


def rule_catches(rule: Rule, subject: Subject, ignores_case: bool) -> bool:
    """Return True if a deny or ask rule about a tool covers a call: one path or command is enough."""
    if rule.subject is None:
        return True
    if subject.command is not None:
        return command_line.catches(rule.subject, subject.command)
    if subject.text is not None:
        return _matches_text(rule.subject, subject.text)
    return first_covering([rule], subject.paths, ignores_case) is not None


def rules_allow(rules: Sequence[Rule], subject: Subject) -> bool:
    """Return True if allow rules about a tool cover a call: one rule all paths, or together all commands."""
    if any(rule.subject is None for rule in rules):
        return True
    subjects = [rule.subject or "" for rule in rules]
    if subject.command is not None:
        return command_line.allows(subjects, subject.command)
    if subject.text is not None:
        return any(_matches_text(each, subject.text) for each in subjects)
    return bool(subject.paths) and any(
        all(matches_path(rule.glob or "", path) for path in subject.paths) for rule in rules
    )


def first_covering(rules: Sequence[Rule], paths: Sequence[str], ignores_case: bool) -> Rule | None:
    """Return the first rule that covers one of the paths, in any spelling that the file system accepts."""
    for rule in rules:
        glob = rule.glob or ""
        for path in paths if glob else ():
            if (
                matches_path(glob, path)
                or matches_path(unicodedata.normalize("NFC", glob), unicodedata.normalize("NFC", path))
                or (matches_path(fold_letters(glob), fold_letters(path)) and ignores_case)
            ):
                return rule
    return None


def matches_path(glob: str, path: str) -> bool:
    """Return True if a glob matches a path or a directory above it."""
    return any(map(_compiled(glob), path_and_parents(path)))


def path_and_parents(path: str) -> Iterable[str]:
    """Return the directories above a path, from the top, and the path."""
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]


@lru_cache(maxsize=256)  # for the globs of rules only, not for those that models send
def _compiled(glob: str) -> Callable[[str], bool]:
    return compile_globs([glob])


def _matches_text(pattern: str, text: str) -> bool:
    """Return True if a pattern matches a whole text; only `*` has a meaning in it: any characters."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text, re.DOTALL) is not None


def not_permitted(reason: str, tool: str, paths: Sequence[str], hint: str = DO_NOT_RETRY) -> RefusedError:
    """Return the error for a call without permission."""
    return RefusedError(f"{reason.rstrip('.')}.", hint=hint, details={"method": tool, "paths": list(paths)})


def ask_user(asker: OnAsk, request: PermissionRequest, paths: Sequence[str] = ()) -> Allow:
    """Return the permission that a callback gives; raise `refused` if it gives none, or fails."""
    try:
        answer = call_context.call_back(asker, request)
    except Exception as error:
        raise not_permitted(NOT_ASKED, request.method, paths) from error
    if answer is True:
        return Allow()
    if isinstance(answer, Allow):
        return answer
    reason = answer.reason if isinstance(answer, Deny) else ""
    raise not_permitted(reason or "The user did not allow this call.", request.method, paths)
