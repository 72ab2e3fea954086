"""The settings of a git repository that can neither run code nor hold a credential.

A command may not change the configuration or the hooks of a repository: both run code later, outside. A
repository that a command makes anew may have what `git init` and `git clone` write.
"""

import re
import zlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from agentfs.base import call_context
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
# The object ids of an empty file.
_EMPTY = (
    b"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
    b"473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813",
)
_LOOSE_OBJECT = re.compile(r"[0-9a-f]{2}/[0-9a-f]{38,62}")


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


def kept_as_empty(changes: Iterable[Change], hidden: Iterable[str]) -> set[str]:
    """Return the hidden files that a command, which sees them as empty, has added to an index or a commit.

    An index has the id of a file before its flags and path; a tree has it after the name.
    """
    found: set[str] = set()
    names = {path.rpartition("/")[2]: path for path in hidden}
    ids = b"|".join(re.escape(bytes.fromhex(each.decode())) for each in _EMPTY)
    either = b"|".join(re.escape(name.encode("utf-8", "surrogateescape")) for name in names)
    in_index = re.compile(rb"(?s)(?:%b).{2}(?:.{2})?(?:[^\0]+/)?(%b)\0" % (ids, either))
    in_tree = re.compile(rb"(?s)\d{5,6} (%b)\0(?:%b)" % (either, ids))
    for change in changes if names else ():
        call_context.check()
        if not isinstance(change.after, FileNode) or "/.git/" not in f"/{change.path}":
            continue
        matches: list[bytes] = []
        if change.path.endswith("/index"):
            matches = in_index.findall(change.after.load())
        elif _LOOSE_OBJECT.fullmatch("/".join(change.path.split("/")[-2:])):
            with suppress(zlib.error):
                data = zlib.decompress(change.after.load())
                matches = in_tree.findall(data) if data.startswith(b"tree ") else []
        found.update(names[each.decode("utf-8", "surrogateescape")] for each in matches)
    return found
