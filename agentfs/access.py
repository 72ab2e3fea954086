"""What the rules of a policy say of the files that one call really opens or changes."""

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import cache

from agentfs.errors import RefusedError
from agentfs.fs import quote
from agentfs.permissions import GROUPS, Action, Rule

# Methods that name no file and may change any, in any way: each file is judged as for every kind of change.
JUDGED_BY_FILE = frozenset({"undo", "redo", "rollback"})


class Access:
    """The verdict on each file of one call, reached on its real path inside the confined opening.

    The gate judges the paths that a call names, before it acts. Links may be swapped after that, and a search
    or a glob opens files that no argument names; so the opening asks again, with the path of the file itself.

    Args:
        method: The method of the workspace.
        act: What it does.
        deny: The rules that deny.
        granted: What was allowed, as a test of a real path; None where nothing limits the call.
        folds: Tells whether the file system takes other spellings of a real path for the same file.
    """

    def __init__(
        self,
        method: str,
        act: Action,
        deny: Sequence[Rule],
        *,
        granted: Callable[[str], bool] | None,
        folds: Callable[[str], bool],
    ) -> None:
        # A place that may not be read is closed to every method; a rule without a place is about a method.
        placed = [rule for rule in deny if rule.glob is not None]
        self._read = [rule for rule in placed if rule.names(method, act) or rule.names("read", "read")]
        acts = GROUPS["change"] if method in JUDGED_BY_FILE else ()
        self._change = [
            *self._read,
            *(rule for rule in placed if any(act in GROUPS.get(rule.name, ()) for act in acts)),
        ]
        self._method = method
        self._granted = granted
        self._folds = folds

    def denies_reading(self, real_path: str) -> bool:
        """Tell whether a rule keeps the content of a file from this call.

        Args:
            real_path: Its path from the root on, links resolved.
        """
        return _denying(self._read, real_path, self._folds) is not None

    def check_read(self, real_path: str) -> None:
        """Refuse to show a file.

        Args:
            real_path: Its path from the root on, links resolved.

        Raises:
            RefusedError: `refused`: a rule denies it, or it is not among what was allowed.
        """
        self._check(real_path, self._read)

    def check_change(self, real_path: str) -> None:
        """Refuse to change a file.

        Args:
            real_path: Its path from the root on, links resolved.

        Raises:
            RefusedError: `refused`: a rule denies it, or it is not among what was allowed.
        """
        self._check(real_path, self._change)

    def _check(self, real_path: str, rules: Sequence[Rule]) -> None:
        rule = _denying(rules, real_path, self._folds)
        if rule is not None:
            raise refusal(
                f"The rule `{rule.text}` does not allow {self._method} here.", self._method, [real_path]
            )
        if self._granted is not None and not self._granted(real_path):
            raise refusal(
                f"{quote(real_path)} is not among the files that {self._method} was allowed to use.",
                self._method,
                [real_path],
            )


def refusal(reason: str, method: str, paths: Sequence[str], hint: str = "") -> RefusedError:
    """Return the error for a call that is not allowed.

    Args:
        reason: Why, as a sentence.
        method: The method.
        paths: Where it would have acted.
        hint: What to do instead; by default not to try again.
    """
    hint = hint or "Do not try it again, nor another way; tell the user, or go on without it."
    return RefusedError(f"{reason.rstrip('.')}.", hint=hint, details={"method": method, "paths": list(paths)})


def covered(rule: Rule, path: str) -> bool:
    """Tell whether a rule is about a path, or about a directory above it.

    Args:
        rule: The rule.
        path: The path, relative to the root.
    """
    return rule.glob is None or _within(rule.glob, path)


def denied(rule: Rule, path: str, folds: Callable[[str], bool]) -> bool:
    """Tell whether a rule that denies is about a path, under any spelling the file system takes for it.

    Args:
        rule: The rule.
        path: The path, relative to the root.
        folds: Tells whether the file system takes other spellings of a path for the same file.
    """
    if covered(rule, path):
        return True
    return rule.glob is not None and _within(_folded(rule.glob), _folded(path)) and folds(path)


def below(paths: Iterable[str]) -> Callable[[str], bool]:
    """Return a test whether a real path is one of some paths, lies below one, or matches one as a glob.

    Args:
        paths: Paths relative to the root, or globs.
    """
    known = frozenset(paths)
    globs = [path for path in known if any(mark in path for mark in "*?[{")]

    def granted(real_path: str) -> bool:
        parts = real_path.split("/")
        above = ("/".join(parts[:count]) for count in range(1, len(parts) + 1))
        return (
            "." in known or any(path in known for path in above) or any(_within(g, real_path) for g in globs)
        )

    return granted


def _denying(rules: Sequence[Rule], path: str, folds: Callable[[str], bool]) -> Rule | None:
    return next((rule for rule in rules if denied(rule, path, folds)), None)


def _within(glob: str, path: str) -> bool:
    matches = _compiled(glob)
    parts = path.split("/")
    return any(matches("/".join(parts[:count])) for count in range(1, len(parts) + 1))


@cache
def _compiled(glob: str) -> Callable[[str], bool]:
    from agentfs.tree.globs import compile_globs  # noqa: PLC0415 - loaded when a rule first needs it

    return compile_globs([glob])


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
