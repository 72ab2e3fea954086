"""`PolicyFile`: the policy, limits and names of a workspace, read from a TOML file."""

import os
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self, cast

from agentfs.enforcement.guard import check_rules
from agentfs.errors import InvalidArgumentError, RefusedError
from agentfs.fs import quote
from agentfs.fs.protect import name_matcher
from agentfs.fs.settings_file import places_inside, read_settings
from agentfs.limits import Limits
from agentfs.policy import Mount, Policy, Protect
from agentfs.text.nearest import nearest
from agentfs.workspace import Workspace

# Settings that only a program can make are left out.
_POLICY = [each.name for each in fields(Policy) if each.name not in ("on_ask", "protect")]
_LIMITS = [each.name for each in fields(Limits) if each.name != "count_tokens"]
_MOUNT = [each.name for each in fields(Mount)]
_PROTECT = [each.name for each in fields(Protect)]
_KEYS = [
    *dict.fromkeys(
        ["deny", "ask", "allow", "protect", "limits", "roots", "mounts", "dialect", "prefix", *_POLICY]
    )
]


@dataclass(frozen=True)
class PolicyFile:
    """The settings in a policy file.

    Attributes:
        path: The file.
        policy: Its rules and preferences; the names under `protect` are added to the default ones.
        limits: Its limits.
        root: The directory under `roots`, absolute; None if the file names none.
        dialect: The dialect of the tools; None if the file names none.
        prefix: The prefix of the tools' names; None if the file has none.
        mounts: The mounts by path. A relative source starts at the file's directory.
    """

    path: str
    policy: Policy
    limits: Limits
    root: str | None = None
    dialect: str | None = None
    prefix: str | None = None
    mounts: Mapping[str, Mount] = field(default_factory=dict[str, Mount])

    @classmethod
    def read(cls, path: str | os.PathLike[str], *, limits: Limits | None = None) -> Self:
        """Read a policy file.

        Args:
            path: The file.
            limits: The limits that the file may change; by default `Limits()`.

        Returns:
            Its settings.

        Raises:
            AgentFSError: `io` if it cannot be read; `invalid_argument`, with the key and the valid names, for
                anything that is not a setting.
        """
        name = os.fspath(path)
        table = _Table(name, "", _load(name))
        table.check_names(_KEYS)
        protect = _protect(table)
        return cls(
            path=name,
            policy=Policy(protect=protect, **table.settings(_POLICY, _checked_policy)),
            limits=replace(limits or Limits(), **table.below("limits", _LIMITS).settings(_LIMITS, Limits)),
            root=_root(table),
            dialect=table.text("dialect"),
            prefix=table.text("prefix"),
            mounts=_mounts(table),
        )

    def check_outside(self, root: str | os.PathLike[str]) -> None:
        """Make sure that no tool can change the file.

        Args:
            root: The directory of the workspace.

        Raises:
            RefusedError: The file, or a link that leads to it, is in the directory, and no name of
                `Policy.protect` covers it (`refused`).
            FileIOError: The file cannot be read any more (`io`).
        """
        writable = [each.source for each in self.mounts.values() if not each.read_only]
        for place in (root, *writable):
            self._check_outside(place)

    def _check_outside(self, root: str | os.PathLike[str]) -> None:
        protect = self.policy.protect
        covers = [name_matcher(tuple(protect.read), backups=True).covers]
        covers.append(name_matcher(tuple(protect.write)).covers)
        for place in places_inside(root, self.path):
            if not self.policy.read_only and not any(test(place) for test in covers):
                raise RefusedError(
                    f"The policy file {quote(self.path)} is in the workspace, so a model could change it.",
                    hint=f"Move {quote(place)} elsewhere, or add this name to `protect.write`.",
                    details={"path": place},
                )


class _Table:
    """A table of the file; errors name the file and the key."""

    def __init__(self, file: str, name: str, values: Mapping[str, Any]) -> None:
        self.file = file
        self.values = values
        self._name = name

    def error(self, key: str, problem: str, hint: str = "") -> InvalidArgumentError:
        """Return the error for the value of a key."""
        key = f"{self._name}.{key}" if self._name else key
        return InvalidArgumentError(f"{quote(self.file)}: `{key}` {problem}", hint=hint)

    def check_names(self, known: Sequence[str]) -> None:
        """Raise `invalid_argument` for a key that is not a setting."""
        for key in self.values:
            if key not in known:
                near = nearest(key, known)
                did_you_mean = f" Did you mean `{near}`?" if near else ""
                raise self.error(
                    key, f"is not a setting.{did_you_mean}", f"The settings are {', '.join(known)}."
                )

    def below(self, key: str, known: Sequence[str] | None) -> "_Table":
        """Return the table of a key; None allows any name in it."""
        values = self.values.get(key, {})
        if not isinstance(values, dict):
            raise self.error(
                key,
                f"must be a table, not {values!r}.",
                f"Its settings are {', '.join(known)}." if known else "",
            )
        table = _Table(self.file, key, cast("dict[str, Any]", values))
        if known is not None:
            table.check_names(known)
        return table

    def settings(self, keys: Iterable[str], make: Callable[..., object]) -> dict[str, Any]:
        """Return the values of keys; `make` is called with each alone and raises an error if it is wrong."""
        given = {key: self.values[key] for key in keys if key in self.values}
        for key, value in given.items():
            try:
                make(**{key: value})
            except InvalidArgumentError as error:
                raise self.error(key, f"is wrong. {error.message}", error.hint) from None
        return given

    def text(self, key: str) -> str | None:
        """Return the text of a key, or None."""
        value = self.values.get(key)
        if value is not None and not isinstance(value, str):
            raise self.error(key, f"must be a string, not {value!r}.")
        return value


def _load(path: str) -> dict[str, Any]:
    data = read_settings(path)
    try:
        return tomllib.loads(data.decode())
    except ValueError as error:  # not TOML, or not UTF-8
        raise InvalidArgumentError(f"{quote(path)} is not TOML: {str(error).rstrip('.')}.") from None


def _checked_policy(**settings: Any) -> None:
    check_rules(Workspace, Policy(**settings))


def _protect(table: _Table) -> Protect:
    """Return the protected names of a table, in addition to the default ones."""
    protected = table.below("protect", _PROTECT).settings(_PROTECT, Protect)
    return Protect(**{key: (*getattr(Protect, key.upper()), *added) for key, added in protected.items()})


def _mounts(table: _Table) -> dict[str, Mount]:
    """Return the mounts under `mounts`: for each path a source, or a table with a source and settings."""
    given = table.below("mounts", None)
    above = os.path.dirname(os.path.realpath(table.file))
    found: dict[str, Mount] = {}
    for path, value in given.values.items():
        one = _Table(
            table.file,
            f"mounts.{path}",
            cast("dict[str, Any]", value) if isinstance(value, dict) else {"source": value},
        )
        one.check_names(_MOUNT)
        source = one.text("source")
        if source is None:
            raise one.error("source", "is missing.", "Name the directory or file to mount.")
        found[path] = Mount(os.path.join(above, source), **one.settings(["read_only"], _checked_mount))
    return found


def _checked_mount(**settings: Any) -> None:
    Mount("", **settings)


def _root(table: _Table) -> str | None:
    """Return the directory under `roots`; a relative one starts at the file's directory."""
    roots: Any = table.values.get("roots", [])
    directories = cast("list[object]", roots) if isinstance(roots, list) else [roots]
    if not all(isinstance(each, str) for each in directories) or roots is not directories:
        raise table.error("roots", f"must be a list with a directory, not {roots!r}.")
    if len(directories) > 1:
        raise table.error("roots", "must have one directory.", "Start one server for each directory.")
    above = os.path.dirname(os.path.realpath(table.file))
    return os.path.join(above, str(directories[0])) if directories else None
