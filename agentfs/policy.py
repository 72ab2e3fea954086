"""`Policy`: the permissions and preferences of a workspace; `Protect`: the protected names; `Mount`."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, cast, get_args, get_origin

from agentfs.errors import InvalidArgumentError
from agentfs.permissions import Mode, OnAsk, Rule, is_about_changes, mistake_in, parse_rule

Overwrite = Literal["seen", "always", "never"]
Symlinks = Literal["inside", "never"]
Matching = Literal["tolerant", "exact"]
Run = Literal["staged", "recorded"]

# Fields that a view may override. All others confine or protect.
VIEWED = frozenset({"overwrite", "match", "mode", "on_ask"})


@dataclass(frozen=True)
class Protect:
    """The names that are protected anywhere in the tree.

    A pattern is a name, or several joined by `/`. `*` matches any characters of one name, and a name `**` any
    number of names. A pattern covers a file or directory, and with a `/` at its end also everything below. A
    pattern that begins with `!` makes an exception; the last match decides. To protect more or fewer names:
    `Protect(read=[*Protect.READ, "*.secret", "!.npmrc"])`.

    Attributes:
        read: Names that are listed, but whose contents are neither shown nor changed. Their backups are
            covered too: `NAME~`, `#NAME#`, `NAME.bak`, `NAME.orig`, `NAME.lock`, `.NAME.swp`.
        write: Names whose contents are shown but never changed.
    """

    READ: ClassVar[tuple[str, ...]] = (
        *(".env", ".env.*", "*.env", ".envrc", "!.env*.example", "!.env*.sample", "!.env*.template"),
        *("!example.env", "!sample.env", "!template.env"),
        *("!*.example.env", "!*.sample.env", "!*.template.env"),
        *("*.pem", "!cacert.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.kdbx"),
        *("id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "!id_*.pub"),
        *(".ssh/", ".gnupg/", ".aws/", ".azure/", ".config/gcloud/", ".config/gh/", ".config/hub", ".s3cfg"),
        *(".kube/config", "kubeconfig", "*.kubeconfig", ".docker/config.json", ".dockercfg"),
        *(".git/**/config", ".git/**/credentials", "*.git/config", "*.git/modules/**/config"),
        *("*.git/**/config.worktree", ".git/remotes/*", ".git/branches/*", ".git/git-crypt/"),
        *(".git/annex/creds/", ".config/git/credentials", ".hg/hgrc*", ".hgrc", ".config/hg/hgrc"),
        *(".subversion/auth/", ".subversion/servers", ".jj/**/config", ".jj/**/*.toml", ".bzr/**/*.conf"),
        *(".bazaar/authentication.conf", ".config/breezy/authentication.conf", ".cvspass", "CVS/Root"),
        *(".netrc", "_netrc", ".npmrc", ".pypirc", ".git-credentials", ".pgpass", ".my.cnf", ".htpasswd"),
        *(".vault-token", ".cargo/credentials*", "*.tfstate*", "*.tfvars", "local.settings.json"),
        *("credentials.json", "service-account*.json", "application_default_credentials.json"),
        *(".*_history", ".zhistory", ".histfile", "fish_history", "ConsoleHost_history.txt", ".viminfo"),
        *("secrets.json", "secrets.yaml", "secrets.yml", "secrets.toml", "secrets.ini", "secrets.env"),
        *("secrets.cfg", "secrets.conf", "secrets.properties", "secrets.xml", "secrets.txt"),
    )
    WRITE: ClassVar[tuple[str, ...]] = (
        *(".git/", "*.git/hooks/", ".hg/", ".svn/", ".jj/", ".bzr/", ".config/git/", ".vscode/"),
        *("*.code-workspace", ".idea/", ".windsurf/", ".zed/"),
        *(".claude/", ".cursor/", ".gemini/", ".codex/", ".roo/", ".mcp.json", ".envrc", ".husky/"),
        *(".devcontainer/", ".gitconfig", ".profile", ".bashrc", ".bash_profile", ".vimrc"),
        *(".zshrc", ".zshenv", ".zprofile"),
    )

    read: Sequence[str] = READ
    write: Sequence[str] = WRITE

    def __post_init__(self) -> None:
        for each in fields(self):
            given = getattr(self, each.name)
            patterns = _listed(given)
            if patterns is None or not all(map(_names_something, patterns)):
                raise _wrong(f"Protect.{each.name}", "a list of name patterns", given)
            for pattern in map(str, patterns):
                if mistake := _mistake_in(pattern.removeprefix("!")):
                    raise InvalidArgumentError(
                        f"Protect.{each.name}: {pattern!r} does not match what it seems to: {mistake}."
                    )
            object.__setattr__(self, each.name, patterns)


def _mistake_in(pattern: str) -> str:
    absolute = "leave out the leading `/`; a pattern matches anywhere in the tree"
    return absolute if pattern.startswith("/") else mistake_in(pattern)


def _listed(value: object) -> tuple[object, ...] | None:
    """Return the items of a list or another collection; None for a text, a mapping or a single value."""
    if isinstance(value, (str, bytes, bytearray, Mapping)) or not isinstance(value, Iterable):
        return None
    return tuple(cast("Iterable[object]", value))


def _place(path: object) -> str:
    """Return a path as a text, or "" for anything else."""
    is_path = isinstance(path, str | os.PathLike)
    return str(os.fspath(cast("str | os.PathLike[str]", path))) if is_path else ""


def _wrong(field: str, wanted: str, value: object) -> InvalidArgumentError:
    return InvalidArgumentError(f"{field} must be {wanted}, not {value!r}.")


def _names_something(pattern: object) -> bool:
    names = set(pattern.removeprefix("!").split("/")) if isinstance(pattern, str) else set[str]()
    return bool(names - {"", "."}) and ".." not in names  # a canonical path never contains `..`


@dataclass(frozen=True)
class AfterChange:
    """A function that formats or checks the new text of each changed file that matches a glob.

    It is called before the text is written, while no lock is held, and not for a preview.

    Attributes:
        glob: The files, by name or by path, as `*.py` or `src/**`.
        function: Gets the path, relative to the root, and the new text. If it returns a text, this is written
            instead. If it returns a list of lines, they are findings: it is called with the text before the
            change too, and the lines that are new are added to the notes. None stands for no findings. If it
            raises an exception, the change is made without it, with a note.
    """

    glob: str
    function: Callable[[str, str], str | Sequence[str] | None]

    def __post_init__(self) -> None:
        if type(self.glob) is not str or not self.glob:
            raise _wrong("AfterChange.glob", "a glob", self.glob)
        if not callable(self.function):
            raise _wrong("AfterChange.function", "a function of a path and a text", self.function)


@dataclass(frozen=True)
class Policy:
    """The permissions and preferences of a workspace; the first value of each field is the default.

    Attributes:
        read_only: Refuse every change.
        overwrite: The files that `write` may replace: those whose current version this workspace has read
            ("seen"), "always" any, or "never" an existing one.
        match: "tolerant" finds old text that differs in white space or quotes, "exact" does not.
        symlinks: Follow links that lead "inside" the root, or "never" any.
        run: How commands run, if they may: "staged" on an overlay in namespaces of their own, with their
            changes judged before they are applied, or "recorded" in the root itself.
        run_paths: Absolute paths outside the root that staged commands see too, read-only.
        after_change: Functions that format or check a new text before an edit, a write or a replacement
            writes it.
        protect: The names whose contents are not shown, and those that are not changed.
        mode: "default"; "accept_edits" does not ask about what is created or edited; "plan" refuses every
            change; "bypass" allows what no rule of `deny` or `ask` covers.
        on_ask: A callback that decides about a change before it is made. Calls that only read are allowed
            without asking, unless a rule of `ask` covers them.
        allow: Rules for calls that are allowed without asking, such as `edit(src/**)` or `run(git status)`.
            With rules but no `on_ask`, all other changes are refused.
        deny: Rules for calls that are always refused.
        ask: Rules for calls that `on_ask` decides, even if `allow` covers them; without a callback they are
            refused. A search skips files that a rule asks about.
    """

    read_only: bool = False
    overwrite: Overwrite = "seen"
    match: Matching = "tolerant"
    symlinks: Symlinks = "inside"
    run: Run | None = None
    run_paths: Sequence[str | os.PathLike[str]] = ()
    after_change: Sequence[AfterChange] = ()
    protect: Protect = field(default_factory=Protect)
    mode: Mode = "default"
    on_ask: OnAsk | None = None
    allow: Sequence[str] = ()
    deny: Sequence[str] = ()
    ask: Sequence[str] = ()

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if each.type is Protect and not isinstance(value, Protect):
                raise _wrong(f"Policy.{each.name}", "a Protect", value)
            kinds = (each.type, *get_args(each.type))
            choices = [choice for kind in kinds if get_origin(kind) is Literal for choice in get_args(kind)]
            choices += [False, True] if each.type is bool else []
            is_none = value is None and type(None) in kinds
            if choices and not is_none and (value not in choices or type(value) is not type(choices[0])):
                wanted = f"one of {', '.join(map(repr, choices))}"
                raise _wrong(f"Policy.{each.name}", wanted, value)
        if not (self.on_ask is None or callable(self.on_ask)):
            raise _wrong("Policy.on_ask", "a callable or None", self.on_ask)
        after = _listed(self.after_change)
        if after is None or not all(isinstance(each, AfterChange) for each in after):
            raise _wrong("Policy.after_change", "a list of AfterChange", self.after_change)
        object.__setattr__(self, "after_change", after)
        given = _listed(self.run_paths)
        paths = [_place(each) for each in given or ()]
        if given is None or not all(map(os.path.isabs, paths)):
            raise _wrong("Policy.run_paths", "a list of absolute paths", self.run_paths)
        object.__setattr__(self, "run_paths", tuple(paths))
        for name in ("allow", "deny", "ask"):
            rules = _listed(getattr(self, name))
            if rules is None:
                raise _wrong(f"Policy.{name}", "a list of rules", getattr(self, name))
            object.__setattr__(self, name, rules)
        _ = self.allow_rules, self.deny_rules, self.ask_rules

    @cached_property
    def allow_rules(self) -> tuple[Rule, ...]:
        """The rules of `allow`, parsed."""
        return tuple(map(parse_rule, self.allow))

    @cached_property
    def deny_rules(self) -> tuple[Rule, ...]:
        """The rules of `deny`, parsed."""
        return tuple(map(parse_rule, self.deny))

    @cached_property
    def ask_rules(self) -> tuple[Rule, ...]:
        """The rules of `ask`, parsed."""
        return tuple(map(parse_rule, self.ask))

    @cached_property
    def change_rules(self) -> tuple[Rule, ...]:
        """The deny and ask rules about changes of some paths."""
        return tuple(filter(is_about_changes, (*self.deny_rules, *self.ask_rules)))

    @property
    def judges_ignored(self) -> bool:
        """True if one of these rules is about names in any directory, so in ignored ones too."""
        first = [(each.glob or "").partition("/") for each in self.change_rules]
        return any(not slash or set("*?[{") & {*name} for name, slash, _ in first)

    @cached_property
    def guards(self) -> bool:
        """True if a rule, the mode or a callback may refuse a call."""
        asks = self.mode != "bypass" and (self.on_ask is not None or bool(self.allow))
        return self.mode == "plan" or bool(self.deny or self.ask) or asks


@dataclass(frozen=True)
class Mount:
    """A directory outside the root that appears under a name directly below it.

    Attributes:
        source: The directory. A relative path starts in the working directory of the process.
        read_only: Refuse all changes in it.
    """

    source: str | os.PathLike[str]
    _: KW_ONLY
    read_only: bool = False

    @property
    def place(self) -> str:
        """The source as a text."""
        return str(os.fspath(self.source))

    def __post_init__(self) -> None:
        given: dict[str, Any] = vars(self)
        if not isinstance(given["source"], (str, os.PathLike)) or not os.fspath(given["source"]):
            raise InvalidArgumentError(f"Mount.source cannot be {given['source']!r}.")
        Policy(read_only=self.read_only)  # checks the value


def host_policy(policy: Policy) -> Policy:
    """Return a policy without mode, rules and callback, whose `write` needs no read before."""
    free: dict[str, Any] = {"mode": "default", "on_ask": None, "allow": (), "ask": (), "deny": ()}
    return replace(policy, read_only=False, overwrite="always", **free)
