"""The settings of a git repository that can neither run code nor hold a credential.

A command may not change the configuration or the hooks of a repository: both run code later, outside. A
repository that a command makes anew may have what `git init` and `git clone` write.
"""

import re
from collections.abc import Callable, Sequence

from agentfs.fs import Change, DirectoryNode, FileNode
from agentfs.fs.protect import fold

# Harmless keys, by section. A section of `[remote "origin"]` has its first word here.
_KEYS = {
    "core": {"repositoryformatversion", "filemode", "bare", "logallrefupdates", "ignorecase"}
    | {"precomposeunicode", "symlinks"},
    "extensions": {"objectformat", "refstorage", "compatobjectformat"},
    "remote": {"url", "fetch", "tagopt"},
    "branch": {"remote", "merge", "rebase"},
    "submodule": {"active", "url"},
}
_SHOWN = _KEYS | {"user": {"name", "email"}, "init": {"defaultbranch"}}
_SECTION = re.compile(rb'\[([a-z]+)(?: "[^"\\\n]*")?\]', re.IGNORECASE)
_SETTING = re.compile(rb"\s*([a-z][a-z0-9-]*)\s*=\s*([^\\\n]*)", re.IGNORECASE)
_USER = re.compile(rb"(?<=://)[^/@\s]*@")
_RUNS_CODE = {"hooks", "config", "config.worktree", "commondir"}
_WITHOUT_SETTINGS = {"refs", "logs", "objects", "info", "lfs"}


def shown_settings(config: bytes) -> bytes:
    """Return the lines of a configuration that a command may see, without credentials in addresses."""
    return _USER.sub(b"", b"".join(line + b"\n" for line, is_plain in _lines(config, _SHOWN) if is_plain))


def _is_plain(config: bytes) -> bool:
    """Return True if a configuration has only what `git init` and `git clone` write."""
    return (
        b"::" not in config and not _USER.search(config) and all(plain for _, plain in _lines(config, _KEYS))
    )


def _lines(config: bytes, allowed: dict[str, set[str]]) -> list[tuple[bytes, bool]]:
    """Return each line that is not empty, and True if it is harmless."""
    found: list[tuple[bytes, bool]] = []
    keys: set[str] = set()
    for line in filter(None, config.replace(b"\r\n", b"\n").split(b"\n")):
        section, setting = _SECTION.fullmatch(line), _SETTING.fullmatch(line)
        if section is not None:
            keys = allowed.get(section[1].decode().lower(), set())
        named = setting is not None and setting[1].decode().lower() in keys
        found.append((line, named or (section is not None and bool(keys))))
    return found


def has_settings(path: str) -> bool:
    """Return True if a path may be a configuration that `shown_settings` can show."""
    above, _, name = path.rpartition("/")
    return fold(name) == "config" and ".git" in map(fold, above.split("/"))


def permitted(changes: Sequence[Change], covers: Callable[[str], bool]) -> set[str]:
    """Return the paths in repositories that a command may change, although `covers` protects them.

    The configuration and the hooks of a repository are among them only if the command has made it.
    """
    protected = [each for each in changes if covers(each.path)]
    made = {each.path for each in protected if each.before is None and isinstance(each.after, DirectoryNode)}
    return {each.path for each in protected if _may_change(each, made)}


def _may_change(change: Change, made: set[str]) -> bool:
    parts = change.path.split("/")
    folded = [*map(fold, parts)]
    if ".git" not in folded:
        return False
    at = folded.index(".git")
    directory, inside = "/".join(parts[: at + 1]), folded[at + 1 :]
    if not inside:  # the directory itself: it may be made, and its mode may change
        return isinstance(change.after, DirectoryNode)
    first = 2 if inside[0] in ("modules", "worktrees") else 0
    if _RUNS_CODE.isdisjoint(inside) or (inside[first:] and inside[first] in _WITHOUT_SETTINGS):
        return True
    if inside[0] == "worktrees" and inside[2:] == ["commondir"] and isinstance(change.after, FileNode):
        return change.after.load() == b"../..\n"
    if directory not in made:
        return False
    if isinstance(change.after, DirectoryNode):
        return True
    if not isinstance(change.after, FileNode):
        return False
    is_sample = parts[-1].endswith(".sample")
    return is_sample or (folded[-1] == "config" and _is_plain(change.after.load()))
