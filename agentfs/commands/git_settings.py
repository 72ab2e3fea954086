"""The settings of a git repository that can neither run code nor hold a credential.

A command may not change the configuration or the hooks of a repository: both run code later, outside. A
repository that a command makes anew may have what `git init` and `git clone` write.
"""

import os
import re
from collections.abc import Collection, Sequence
from functools import cache

from agentfs.fs import Change, DirectoryNode, FileNode, Root
from agentfs.fs.protect import fold
from agentfs.tree.walk import VCS_NAMES

# Harmless settings. A section of `[remote "origin"]` has its first word here.
_PLAIN = """
core.repositoryformatversion core.filemode core.bare core.logallrefupdates core.ignorecase core.symlinks
core.precomposeunicode extensions.objectformat extensions.refstorage extensions.compatobjectformat remote.url
remote.fetch remote.tagopt branch.remote branch.merge branch.rebase submodule.active submodule.url
"""
# Commands may also see these, which change how git works and are not credentials.
_SHOWN = f"""
{_PLAIN}
core.autocrlf core.eol core.safecrlf core.hookspath core.excludesfile core.attributesfile core.quotepath
core.sparsecheckout core.sparsecheckoutcone extensions.worktreeconfig extensions.partialclone user.name
user.email init.defaultbranch filter.clean filter.smudge filter.process filter.required diff.algorithm
diff.renames diff.textconv diff.driver merge.ff merge.driver merge.name merge.conflictstyle pull.rebase
pull.ff push.default rebase.autostash rebase.autosquash commit.gpgsign commit.template rerere.enabled
submodule.recurse
"""
_SECTION = re.compile(rb'\[([a-z]+)(?: "[^"\\\n]*")?\]', re.IGNORECASE)
_SETTING = re.compile(rb"\s*([a-z][a-z0-9-]*)\s*=\s*([^\\\n]*)", re.IGNORECASE)
_USER = re.compile(rb"(?<=://)[^/@\s]*@")
_MARKS = ("HEAD", "objects", "refs")  # what git itself looks for in one of its directories
# Commits and the places that say where they are.
_DATA = {"refs", "logs", "lfs", "rr-cache", "sequencer"}
_STATE = re.compile(
    r"(?:.*_)?head|index|packed-refs|shallow|(?:merge|bisect)_.*|auto_merge|(?:commit|tag)_editmsg|squash_msg"
)
_OBEYED = {"config", "config.worktree", "hooks", "info", "commondir"}
_OBJECT = re.compile(r"/objects/(?:[0-9a-f]{2}|pack|info)(?:/|$)")
_OBJECT_NAME = re.compile(r"[0-9a-f]{2}/[0-9a-f]+|pack/pack-[0-9a-f]+\.(?:pack|idx)")
_FACTS_ON_OBJECTS = {"packs", "commit-graph", "commit-graphs"}  # and not `alternates`


def shown_settings(config: bytes, allowed: str = _SHOWN) -> bytes:
    """Return the lines of a configuration that a command may see, without credentials in addresses."""
    found, section, names = b"", "", allowed.split()
    shown = {*names, *(name.partition(".")[0] for name in names)}
    for line in filter(None, config.replace(b"\r\n", b"\n").split(b"\n")):
        head, setting = _SECTION.fullmatch(line), _SETTING.fullmatch(line)
        if head is not None:
            section = head[1].decode().lower()
        if (f"{section}.{setting[1].decode().lower()}" if setting else head and section) in shown:
            found += line + b"\n"
    return _USER.sub(b"", found)


def _is_plain(config: bytes) -> bool:
    """Return True if a configuration has only what `git init` and `git clone` write."""
    return b"::" not in config and shown_settings(config, _PLAIN) == config.replace(b"\r\n", b"\n")


def git_directory(path: str) -> str:
    """Return the outermost directory of version control in which a path lies, or ""."""
    parts = path.split("/")
    at = next((number for number, name in enumerate(parts) if name.lower() in VCS_NAMES), None)
    return "" if at is None else "/".join(parts[: at + 1])


def has_settings(path: str) -> bool:
    """Return True if a path may be a configuration that `shown_settings` can show."""
    above, _, name = path.rpartition("/")
    return fold(name) == "config" and ".git" in map(fold, above.split("/"))


def refused_paths(changes: Sequence[Change], root: Root, free: Collection[str]) -> set[str]:
    """Return the paths that a command may not change: protected ones, and settings and hooks of git.

    A directory of git is recognised by what it holds, whatever its name, so that a submodule called `hooks`
    has hooks that are not touched. Its configuration and its hooks may change only if the command has made
    it, and nothing in `.git` may if git would not recognise it afterwards. `free` are other permitted paths.
    """
    after = {each.path: each.after for each in changes}

    @cache
    def holds(directory: str) -> tuple[bool, bool]:
        """Return whether a directory was one of git before the command, and whether it is one now."""
        marks = [os.path.join(directory, mark) for mark in _MARKS]
        before = {mark: os.path.lexists(root.trees.path_on_disk(mark)) for mark in marks}
        return all(before.values()), all(after[m] if m in after else before[m] for m in marks)

    def is_refused(change: Change) -> bool:
        parts = change.path.split("/")
        is_protected = root.is_protected(change.path) and change.path not in free
        if not is_protected and (change.after is None or _OBEYED.isdisjoint(parts)):
            return False
        lengths = range(len(parts) - 1, -1, -1)  # of the paths above, the nearest first
        length = next((each for each in lengths if any(holds("/".join(parts[:each])))), None)
        if length is None:  # the directory itself: it may be made, and its mode may change
            is_made = isinstance(change.after, DirectoryNode) or _is_worktree(change, root)
            return is_protected and not (fold(parts[-1]) == ".git" and is_made)
        before, now = holds("/".join(parts[:length]))
        inside = [*map(fold, parts[length:])]
        is_new = not before and _is_of_a_new_one(change, inside)
        return (is_protected or inside[0] in _OBEYED) and not (
            now and (is_new or _is_harmless(change, inside))
        )

    return {each.path for each in changes if is_refused(each)}


def _is_worktree(change: Change, root: Root) -> bool:
    """Return True for a new file that names one of the repository's worktrees, whose settings it has."""
    git, after = root.trees.path_on_disk(".git"), change.after
    name = re.compile(b"gitdir: %s/worktrees/[^/\n]+\n" % re.escape(os.fsencode(git)))
    is_new = change.before is None and isinstance(after, FileNode) and name.fullmatch(after.load())
    return bool(is_new) and os.path.isdir(git)


def is_lost_object(change: Change) -> bool:
    """Return True for the removal of an object of git, which may be the only copy of a commit.

    Maintenance puts it into a pack first; beside this, it takes up space and does no harm.
    """
    is_object = _OBJECT.search(change.path) or (change.of_directory and change.path.endswith("/objects"))
    return change.after is None and bool(is_object) and bool(git_directory(change.path))


def _is_harmless(change: Change, inside: Sequence[str]) -> bool:
    """Return True if git runs and obeys nothing because of a change in one of its directories."""
    first, *rest = inside
    if not isinstance(change.after, FileNode | DirectoryNode | None):
        return False  # git would write through a link
    if first == "worktrees" and rest:
        if rest[1:] == ["commondir"] and isinstance(change.after, FileNode):
            return change.after.load() == b"../..\n"
        return len(rest) < 2 or rest[1] in {"gitdir", "locked"} or _is_harmless(change, rest[1:])
    if first == "modules" or inside == ["worktrees"]:
        return isinstance(change.after, DirectoryNode)
    if first == "objects":
        if _OBJECT_NAME.fullmatch("/".join(rest)) and isinstance(change.before, FileNode):
            # An object never changes: other content would be the loss of this one.
            return isinstance(change.after, FileNode) and change.before.digest == change.after.digest
        return rest[:1] != ["info"] or len(rest) < 2 or rest[1] in _FACTS_ON_OBJECTS
    return bool(first in _DATA or (not rest and _STATE.fullmatch(first)) or inside == ["info", "refs"])


def _is_of_a_new_one(change: Change, inside: Sequence[str]) -> bool:
    """Return True for what `git init` and `git clone` write into a new directory of git."""
    if isinstance(change.after, FileNode):
        is_settings = inside == ["config"] and _is_plain(change.after.load())
        is_sample = inside[0] == "hooks" and inside[-1].endswith(".sample")
        return is_settings or is_sample or inside in (["description"], ["info", "exclude"])
    return isinstance(change.after, DirectoryNode)
