"""The only place that decides whether a call is allowed, asked about or refused. Pure."""

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

from agentfs.errors import AccessError, AgentFSError, InvalidArgumentError
from agentfs.fs import quote
from agentfs.fs.protect import fold_letters
from agentfs.permission import command_lines
from agentfs.permissions import GROUPS, Action, Effect, Rule, check_path_rule, parse_rule
from agentfs.policy import Policy
from agentfs.tree.globs import compile_globs, expand

# The effect of a tool, or what happens to a path. A "command" is one whose changes are judged when it ends.
Judged: TypeAlias = Effect | Action | Literal["command"]

# The actions that a call with each effect may take. A group covers the call if it contains one of them.
_ACTIONS: dict[str, frozenset[str]] = {
    "write": GROUPS["change"],
    "command": frozenset({"read", "execute"}),
    "execute": GROUPS["*"],
} | {action: frozenset({action}) for action in ("read", "create", "edit", "delete")}
_WILDCARD = re.compile(r"[\[\]{}]")


class Subject(NamedTuple):
    """The paths or the text of a call, which rules are matched with.

    Attributes:
        paths: The paths of the call, in every spelling, relative to the root.
        command: The command line, if the call runs one.
        text: The text of the parameter that the tool has declared for rules.
        ignores_case: True if the file system may not tell capitals and small letters apart.
    """

    paths: tuple[str, ...] = ()
    command: str | None = None
    text: str | None = None
    ignores_case: bool = True


class Decision(NamedTuple):
    """The decision about a call, with the rule that made it, if one did."""

    outcome: Literal["allow", "ask", "refuse"]
    rule: Rule | None = None


def decide(policy: Policy, names: Collection[str], effect: Judged, subject: Subject) -> Decision:
    """Decide about a call: deny rules, plan mode, ask rules, other modes, allow rules, and then the default.

    Args:
        policy: The policy.
        names: The names of the tool, by which rules may name it.
        effect: The effect of the tool, or what happens to the paths.
        subject: What the call is about.
    """
    if effect == "none":
        return Decision("allow")
    for rule in policy.deny_rules:
        if is_caught(rule, names, effect, subject):
            return Decision("refuse", rule)
    if effect != "read" and (policy.read_only or policy.mode == "plan"):
        return Decision("refuse")
    for rule in policy.ask_rules:
        if is_caught(rule, names, effect, subject):
            return Decision("ask", rule)
    accepts = policy.mode == "accept_edits" and effect in ("create", "edit", "write")
    if accepts or policy.mode == "bypass" or _is_allowed(policy.allow_rules, names, effect, subject):
        return Decision("allow")
    unasked = effect == "read" or (policy.on_ask is None and not policy.allow)
    return Decision("allow" if unasked else "ask")


def is_caught(rule: Rule, names: Collection[str], effect: Judged, subject: Subject) -> bool:
    """Return True if a deny or ask rule is about a call: one path, command or possible action is enough."""
    if rule.name in GROUPS:
        is_about = not GROUPS[rule.name].isdisjoint(_ACTIONS[effect])
        return is_about and (rule.glob is None or covers_path(rule, subject))
    if rule.name not in names or rule.subject is None:
        return rule.name in names
    if subject.command is not None:
        return command_lines.catches(rule.subject, subject.command)
    if subject.text is not None:
        return command_lines.matches_glob(rule.subject, subject.text)
    return covers_path(rule, subject)


def _is_allowed(rules: Sequence[Rule], names: Collection[str], effect: Judged, subject: Subject) -> bool:
    """Return True if allow rules cover a call: one rule all paths, or together all commands of a line."""
    # The effect of a tool of the program's own says "write", whatever it does to files.
    actions = GROUPS["write"] if effect == "write" else _ACTIONS[effect]
    about = [
        rule
        for rule in rules
        if (actions <= GROUPS[rule.name] if rule.name in GROUPS else rule.name in names)
    ]
    if any(rule.subject is None for rule in about):
        return True
    own = [rule.subject or "" for rule in about if rule.name not in GROUPS]
    if subject.command is not None:
        return command_lines.allows(own, subject.command)
    if subject.text is not None:
        return any(command_lines.matches_glob(each, subject.text) for each in own)
    return bool(subject.paths) and any(
        all(matches_path(rule.glob or "", path) for path in subject.paths) for rule in about
    )


def covers_path(rule: Rule, subject: Subject) -> bool:
    """Return True if a rule covers one of the paths, in any spelling that the file system accepts."""
    glob = rule.glob or ""
    return any(
        matches_path(glob, path)
        or matches_path(unicodedata.normalize("NFC", glob), unicodedata.normalize("NFC", path))
        or (subject.ignores_case and matches_path(fold_letters(glob), fold_letters(path)))
        for path in subject.paths
    )


def matches_path(glob: str, path: str) -> bool:
    """Return True if a glob matches a path or a directory above it."""
    return any(map(_compiled(glob), path_and_parents(path)))


def path_and_parents(path: str) -> Iterable[str]:
    """Return the directories above a path, from the top, and the path."""
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]


@lru_cache(maxsize=256)  # for the globs of rules only, not for those that models send
def _compiled(glob: str) -> Callable[[str], bool]:
    literal = _WILDCARD.sub(r"\\\g<0>", glob)  # `app/[id]` is also the directory with this name
    return compile_globs([glob] if literal == glob else [glob, literal])


def check_rule(rule: Rule) -> None:
    """Raise `invalid_argument` for a rule about paths that can match nothing: a bad or an outer glob."""
    check_path_rule(rule)
    if rule.glob is None:
        return
    try:
        alternatives = expand(rule.glob)
        compile_globs([rule.glob])
    except AgentFSError as error:
        raise InvalidArgumentError(
            f"The rule `{rule.text}` has a wrong glob. {error.message}",
            hint="" if isinstance(error, AccessError) else error.hint,  # the hint is for a search
        ) from None
    if rule.glob.startswith("/"):
        raise InvalidArgumentError(
            f"The rule `{rule.text}` begins with `/`.",
            hint=f"Rules are about paths relative to the root: write `{rule.name}(./src/**)` for its `src`.",
            details={"rule": rule.text},
        )
    for each in alternatives:
        alternative = parse_rule(f"{rule.name}({each})")
        check_path_rule(alternative)
        if alternative.glob != each or each[0] == "/":
            raise InvalidArgumentError(
                f"The rule `{rule.text}` has {quote(each)} in its braces, not a plain relative path.",
                hint="Write a rule for each path.",
            )
