"""The policy, limits and names of a workspace, from a TOML file and from options."""

import os
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, NamedTuple

import agentfs
from agentfs.cli.command_options import CommandOptions, mount_of
from agentfs.errors import InvalidArgumentError, RefusedError
from agentfs.fs import quote
from agentfs.fs.settings_file import places_inside, read_settings
from agentfs.limits import Limits
from agentfs.policy import Mount, Policy, Protect
from agentfs.text.nearest import nearest
from agentfs.workspace import Workspace

# Functions cannot be written in a file.
_POLICY = [each.name for each in fields(Policy) if each.name not in ("on_ask", "after_change", "protect")]
_LIMITS = [each.name for each in fields(Limits) if each.name != "count_tokens"]
_PROTECT = [each.name for each in fields(Protect)]
_TABLES = ["protect", "limits", "mounts"]
_TEXTS = ["root", "dialect", "prefix"]
_KEYS = [*dict.fromkeys(["deny", "ask", "allow", *_TABLES, *_TEXTS, *_POLICY])]


class Settings(NamedTuple):
    """The settings of a workspace and its tools."""

    root: str
    policy: Policy
    limits: Limits
    mounts: Mapping[str, Mount]
    dialect: str
    prefix: str


def settings_of(options: CommandOptions, limits: Limits) -> Settings:
    """Return the settings of the policy file, with those of the options, which add rules.

    Raises:
        AgentFSError: `io` if the file cannot be read; `invalid_argument`, with the key and the valid names,
            for anything that is not a setting; `refused` if the workspace has the file, because a model could
            change it.
    """
    found = Settings(".", Policy(), limits, {}, "agentfs", "")
    if options.policy is not None:
        found = read_policy_file(options.policy, limits)
    policy = replace(
        found.policy,
        deny=[*found.policy.deny, *options.deny],
        ask=[*found.policy.ask, *options.ask],
        allow=[*found.policy.allow, *options.allow],
        protect=replace(found.policy.protect, read=[*found.policy.protect.read, *options.protect]),
        read_only=options.read_only or found.policy.read_only,
    )
    found = found._replace(
        root=options.root or found.root,
        policy=policy,
        mounts={**found.mounts, **options.mounts},
        dialect=options.dialect or found.dialect,
        prefix=found.prefix if options.prefix is None else options.prefix,
    )
    if options.policy is not None and options.connect is None and not policy.read_only:
        check_outside("policy file", options.policy, found)
    return found


def check_outside(what: str, path: str, settings: Settings) -> None:
    """Raise `refused` if a file, or a link that leads to it, is in a workspace."""
    for top in (settings.root, *(mount.source for mount in settings.mounts.values())):
        for place in places_inside(top, path):
            raise RefusedError(
                f"The {what} {quote(path)} is in the workspace, where a model could use it.",
                hint=f"Move {quote(place)} elsewhere.",
                details={"path": place},
            )


def opened(settings: Settings, options: CommandOptions, *, watch: bool = False) -> Workspace:
    """Open the workspace of the settings, here or at the remote side that the options name."""
    policy, limits, state = settings.policy, settings.limits, options.state
    if options.connect is not None:
        command = options.remote_command
        return agentfs.connect(command, settings.root, policy=policy, limits=limits, state=state)
    return Workspace(
        settings.root, policy=policy, limits=limits, state=state, mounts=settings.mounts, watch=watch
    )


def read_policy_file(path: str, limits: Limits) -> Settings:
    """Read a policy file. The names under `protect` are added to the default ones."""
    try:
        given = tomllib.loads(read_settings(path).decode())
    except ValueError as error:  # not TOML, or not UTF-8
        if isinstance(error, InvalidArgumentError):
            raise
        raise InvalidArgumentError(f"{quote(path)} is not TOML: {str(error).rstrip('.')}.") from None
    _check_names(path, "", given, _KEYS)
    protect, own_limits, mounts = (_typed(path, given, key, {}) for key in _TABLES)
    root, dialect, prefix = (_typed(path, given, key, "") for key in _TEXTS)
    above = os.path.dirname(os.path.realpath(path))  # where relative paths start
    places = {name: os.path.join(above, _typed(path, mounts, name, "")) for name in mounts}
    names = _checked(path, "protect.", protect, _PROTECT, Protect)
    own = {key: given[key] for key in _POLICY if key in given}
    return Settings(
        root=os.path.join(above, root) if root else ".",
        policy=Policy(
            protect=Protect(**{key: (*getattr(Protect, key.upper()), *more) for key, more in names.items()}),
            **_checked(path, "", own, _POLICY, Policy),
        ),
        limits=replace(limits, **_checked(path, "limits.", own_limits, _LIMITS, Limits)),
        mounts={name: mount_of(source) for name, source in places.items()},
        dialect=dialect or "agentfs",
        prefix=prefix,
    )


def _typed(path: str, given: Mapping[str, Any], key: str, default: Any) -> Any:
    value = given.get(key, default)
    if type(value) is not type(default):
        kind = "string" if default == "" else "table"
        raise _wrong(path, key, f"must be a {kind}, not {value!r}.")
    return value


def _checked(
    path: str, table: str, given: Mapping[str, Any], known: Sequence[str], make: Callable[..., object]
) -> Mapping[str, Any]:
    """Return the settings of a table; `make` raises an error for a value that is wrong."""
    _check_names(path, table, given, known)
    for key, value in given.items():
        try:
            make(**{key: value})
        except InvalidArgumentError as error:
            raise _wrong(path, table + key, f"is wrong. {error.message}", error.hint) from None
    return given


def _check_names(path: str, table: str, given: Iterable[str], known: Sequence[str]) -> None:
    for key in given:
        if key not in known:
            near = nearest(key, known)
            did_you_mean = f" Did you mean `{near}`?" if near else ""
            hint = f"The settings are {', '.join(known)}."
            raise _wrong(path, table + key, f"is not a setting.{did_you_mean}", hint)


def _wrong(path: str, key: str, problem: str, hint: str = "") -> InvalidArgumentError:
    return InvalidArgumentError(f"{quote(path)}: `{key}` {problem}", hint=hint)
