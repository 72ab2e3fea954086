"""The policy, limits and names of a workspace, from a TOML file and from options."""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, NamedTuple

import agentfs
from agentfs.cli.command_options import CommandOptions, mount_of
from agentfs.errors import InvalidArgumentError, RefusedError
from agentfs.fs import quote
from agentfs.fs.settings_file import places_inside, read_settings
from agentfs.limits import Limits
from agentfs.policy import Mount, Policy, Protect
from agentfs.workspace import Workspace

_FUNCTIONS = {"on_ask", "after_change", "count_tokens"}  # cannot be written in a file
_TABLES, _TEXTS = ("protect", "limits", "mounts"), ("root", "dialect", "prefix")
_RULES = ("deny", "ask", "allow")
_KINDS = {dict: "table", str: "string"}


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
            for anything that is not a setting; `refused` if the workspace has the file, or a link on the way
            to it, because a model could change it.
    """
    found = _settings({}, ".", limits) if options.policy is None else read_policy_file(options.policy, limits)
    own, protect = found.policy, found.policy.protect
    rules: dict[str, Any] = {name: [*getattr(own, name), *getattr(options, name)] for name in _RULES}
    policy = replace(
        own,
        **rules,
        protect=replace(protect, read=[*protect.read, *options.protect]),
        read_only=options.read_only or own.read_only,
    )
    given = {name: getattr(options, name) for name in _TEXTS if getattr(options, name) is not None}
    found = found._replace(policy=policy, mounts={**found.mounts, **dict(options.mount)}, **given)
    if options.policy is not None and options.connect is None and not policy.read_only:
        for top in (found.root, *(mount.source for mount in found.mounts.values())):
            for place in places_inside(top, options.policy):
                file = quote(options.policy)
                wrong = f"The policy file {file} is in the workspace, where a model could use it."
                raise RefusedError(wrong, hint=f"Move {quote(place)} elsewhere.", details={"path": place})
    return found


def opened(settings: Settings, options: CommandOptions, *, watch: bool = False) -> Workspace:
    """Open the workspace of the settings, here or at the remote side that the options name."""
    policy, limits, state = settings.policy, settings.limits, options.state
    if options.connect is not None:
        return agentfs.connect(options.connect, settings.root, policy=policy, limits=limits, state=state)
    return Workspace(
        settings.root, policy=policy, limits=limits, state=state, mounts=settings.mounts, watch=watch
    )


def read_policy_file(path: str, limits: Limits) -> Settings:
    """Read a policy file. The names under `protect` are added to the default ones."""
    try:
        return _settings(tomllib.loads(read_settings(path).decode()), path, limits)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{quote(path)}: {error.message}", hint=error.hint) from None
    except ValueError as error:  # not UTF-8
        raise InvalidArgumentError(f"{quote(path)} is not TOML: {str(error).rstrip('.')}.") from None


def _settings(given: dict[str, Any], path: str, limits: Limits) -> Settings:
    protect, own_limits, mounts = (_typed(name, given.pop(name, {}), dict) for name in _TABLES)
    root, dialect, prefix = (_typed(name, given.pop(name, ""), str) for name in _TEXTS)
    above = os.path.dirname(os.path.realpath(path))  # where relative paths start
    _with(Protect(), protect)
    names = {name: (*getattr(Protect, name.upper()), *more) for name, more in protect.items()}
    return Settings(
        root=os.path.join(above, root) if root else ".",
        policy=replace(_with(Policy(), given, *_TABLES, *_TEXTS), protect=Protect(**names)),
        limits=_with(limits, own_limits),
        mounts={name: mount_of(os.path.join(above, _typed(name, mounts[name], str))) for name in mounts},
        dialect=dialect or "agentfs",
        prefix=prefix,
    )


def _typed(name: str, value: Any, kind: Any) -> Any:
    if not isinstance(value, kind):
        raise InvalidArgumentError(f"`{name}` must be a {_KINDS[kind]}, not {value!r}.")
    return value


def _with(data: Any, given: Mapping[str, Any], *others: str) -> Any:
    """Return data with the settings of a table; `others` are further names that the error gives."""
    names = dict.fromkeys([*others, *(each.name for each in fields(data) if each.name not in _FUNCTIONS)])
    if unknown := given.keys() - names:
        wrong = f"`{min(unknown)}` is not a setting."
        raise InvalidArgumentError(wrong, hint=f"The settings are {', '.join(names)}.")
    return replace(data, **given)
