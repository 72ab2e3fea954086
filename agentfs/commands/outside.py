"""The table of what a staged command sees outside the root, and the mounts that show it.

Nothing else is there. All of it is read-only, or has an overlay of its own whose changes are dropped. Only
the user's own settings show a part of the home, never what a file of the tree says.
"""

import os
import stat
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import PurePath

from agentfs.commands.stage import SHARED
from agentfs.commands.system import entries, from_git
from agentfs.fs.path import is_in

_SYSTEM = """
/usr /bin /sbin /lib /lib32 /lib64 /libx32 /opt /nix /gnu /etc
/var/lib/dpkg /var/cache/fontconfig /sys/devices/system/cpu /sys/fs/cgroup
"""
# Toolchains and settings in the home.
_HOME = """
.cargo/bin .cargo/env .cargo/config .cargo/config.toml .rustup .pyenv .rbenv .nodenv .goenv .jenv .asdf
.sdkman .nvm .fnm .volta .local/bin .local/lib .local/share/uv/python .local/share/mise .local/share/fnm
.bun/bin .deno/bin .dotnet .ghcup .opam .juliaup .npm-global .yarn/bin .nix-profile go/bin
.gitconfig .config/git/config .config/git/ignore .config/git/attributes
"""
# Caches of packages, in the home and in its `.cache`. Programs write to them.
_CACHES = """
.cargo/registry .cargo/git .pyenv/shims .local/share/uv/tools .npm/_cacache .npm/_npx go/pkg .m2/repository
.gradle/caches .gradle/wrapper .ivy2/cache .nuget/packages .bundle/cache .gem/ruby .yarn/berry .pnpm-store
.local/share/pnpm .bun/install/cache .cabal/packages .hex/packages .pub-cache/hosted .conda/pkgs .ccache
"""
_IN_CACHE = """
pip uv pypoetry pre-commit go-build yarn pnpm node deno electron ms-playwright puppeteer Cypress ccache
sccache composer coursier zig rattler torch huggingface/hub
"""
# Variables whose files and directories are shown.
NAMED_BY = """
SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE NODE_EXTRA_CA_CERTS GIT_SSL_CAINFO PIP_CERT
CARGO_HTTP_CAINFO PIP_FIND_LINKS PYTHONPATH NODE_PATH VIRTUAL_ENV CONDA_PREFIX PYENV_ROOT NVM_DIR JAVA_HOME
GOROOT RUSTUP_HOME PKG_CONFIG_PATH LD_LIBRARY_PATH
"""
_GIT_PATHS = "core.excludesfile core.hookspath core.attributesfile init.templatedir blame.ignorerevsfile"
# A directory with one of these is the installation of the programs in its `bin`.
_MARKS = ("lib", "libexec", "pyvenv.cfg", "versions")
_PROGRAMS = ("bin", "sbin", "shims")
_WHOLE = ("/usr/bin", "/usr/sbin")  # programs of the system lead to the system
_MOST_LINKS = 40
_MOST_HOPS = 4  # from a script to its interpreter
_FIRST_LINE = 256  # bytes
_Pairs = tuple[tuple[str, str], ...]
_FILE_FOR_ALL, _DIRECTORY_FOR_ALL = 0o004, 0o005  # the bits of what everybody may read
_SHOWN = "--ro-bind"
_OF_CACHE = 4  # arguments


class Outside:
    """The files outside the root that a staged command sees.

    Args:
        trees: The real paths of the root and of its other trees, which overlays show.
        environment: The names and values of the environment of the command.
        more: Further paths to show, those of `Policy.run_paths`.
        network: True if the command has the network of the system.
        user: The effective user.
    """

    def __init__(
        self, trees: Sequence[str], environment: _Pairs, more: Sequence[str], *, network: bool, user: int
    ) -> None:
        self._environment = given = dict(environment)
        self._trees, self._root, self.network = trees, trees[0], network
        home = os.path.realpath(given.get("HOME") or "/")
        # A home that the root holds is a part of the tree.
        self.home = home if os.path.isdir(home) and home != "/" and not is_in(home, self._root) else ""
        self._mounts: dict[str, tuple[str, ...]] = {}  # the arguments that mount each path
        self._links: dict[str, str] = {}  # the targets of links on the way to shown paths
        self._times: dict[str, int] = {}  # the time of each directory or file that was looked at
        for path in (*_SYSTEM.split(), *more, *(["/etc/resolv.conf"] if network else [])):
            self._show(path)
        self._show_programs()
        for name in NAMED_BY.split():
            for path in given.get(name, "").split(os.pathsep):
                self._show_installation(path)
        if self.home:
            self._show_home()
        self._masked = [] if user else self._unreadable_for_others("/etc")

    @property
    def private(self) -> list[str]:
        """The directories that the command gets new ones for."""
        places = [*SHARED, self.home, self._environment.get("XDG_CACHE_HOME", "")]
        return sorted({each for each in places if os.path.isdir(each) and not is_in(each, self._root)})

    @property
    def arguments(self) -> list[str]:
        """The arguments of bubblewrap, outer directories first."""
        found = {path: ("--symlink", target, path) for path, target in self._links.items()} | self._mounts
        shown = {at: how for at, how in found.items() if len(how) == _OF_CACHE or not self._is_covered(at)}
        for path in self._masked:
            shown[path] = ("--tmpfs", path) if os.path.isdir(path) else (_SHOWN, os.devnull, path)
        return [argument for _, arguments in sorted(shown.items()) for argument in arguments]

    def is_current(self) -> bool:
        """Return True if the directories and the files that were looked at are as they were."""
        return all(_time_of(path) == time for path, time in self._times.items())

    def shows(self, path: str) -> bool:
        """Return True if a real path outside the root is shown."""
        return path in self._mounts or self._is_covered(path)

    def _is_covered(self, path: str) -> bool:
        return any(str(above) in self._mounts for above in PurePath(path).parents)

    def _show(self, path: str, *, is_cache: bool = False) -> None:
        """Show a path, if it exists, and the links that lead to it."""
        real = os.path.realpath(path)
        self._times.setdefault(os.path.dirname(path), _time_of(os.path.dirname(path)))
        if real != "/" and os.path.exists(real) and not self._is_of_trees(path):
            self._links.update(_links_to(path))
            # In an overlay, no socket or FIFO leads to a process outside.
            last = () if is_cache else ("--remount-ro", real)
            overlay = "--overlay-src", real, "--tmp-overlay", real, *last
            is_plain = path in _SYSTEM.split() or not os.path.isdir(real)
            self._mounts[real] = (_SHOWN, real, real) if is_plain else overlay

    def _is_of_trees(self, path: str) -> bool:
        """Return True if a path lies in a tree, or leads through one, where a model may have made a link."""
        places = (os.path.realpath(path), *_links_to(path))
        return any(is_in(place, tree) for place in places for tree in self._trees)

    def _show_home(self) -> None:
        cache = self._environment.get("XDG_CACHE_HOME") or os.path.join(self.home, ".cache")
        caches = [os.path.join(self.home, each) for each in _CACHES.split()]
        caches += [os.path.join(cache, each) for each in _IN_CACHE.split()]
        caches += filter(None, [self._environment.get("npm_config_cache")])
        for path in caches:
            self._show(path, is_cache=True)
        of_git = _git_settings(self.home, self._root)
        for path in [*(os.path.join(self.home, each) for each in _HOME.split()), *of_git]:
            self._show(path)
        self._times |= {path: _time_of(path) for path in of_git}  # they may name other paths

    def _show_programs(self) -> None:
        """Show the directories of `PATH`, the programs that they lead to, and the running interpreter."""
        for prefix in {sys.prefix, sys.base_prefix}:
            self._show_installation(os.path.join(prefix, "bin"))
        for directory in self._environment.get("PATH", "").split(os.pathsep):
            if not self._is_of_trees(directory):
                self._times[directory] = _time_of(directory)
                self._show_installation(directory)
                for program in [] if os.path.realpath(directory) in _WHOLE else entries(directory):
                    self._show_program(program)

    def _show_installation(self, directory: str) -> None:
        """Show a directory of programs, or the installation that it belongs to."""
        if os.path.isabs(directory) and not self._is_of_trees(directory):
            for each in {os.path.normpath(directory), os.path.realpath(directory)}:
                self._show(self._installation(each) or each)

    def _installation(self, directory: str) -> str:
        """Return the parent of a directory of programs if that is their installation, or ""."""
        parent = os.path.dirname(directory)
        real = os.path.realpath(parent)
        holds = is_in(self._root, real) or (self.home and is_in(self.home, real))
        local = os.path.join(self.home, ".local")
        personal = real in (local, *SHARED, "/run", "/var") or os.path.dirname(real) == "/home"
        marks = _MARKS if os.path.basename(directory) in _PROGRAMS else ()
        marked = any(os.path.lexists(os.path.join(parent, mark)) for mark in marks)
        return parent if marked and not holds and not personal else ""

    def _show_program(self, path: str, hops: int = _MOST_HOPS) -> None:
        """Show a program through its links, and the interpreter that its first line names."""
        real = os.path.realpath(path)
        if self._is_of_trees(path) or not os.path.isfile(real):
            return
        if not self.shows(real):
            self._show(self._installation(os.path.dirname(real)) or real)
        self._links.update(_links_to(path))
        with suppress(OSError, IndexError), open(real, "rb") as file:
            line = file.read(_FIRST_LINE).partition(b"\n")[0]
            interpreter = os.fsdecode(line[2:].split()[0])
            if line[:2] == b"#!" and os.path.isabs(interpreter) and hops:
                self._show_program(interpreter, hops - 1)

    def _unreadable_for_others(self, top: str) -> list[str]:
        """Return the paths below a directory that only some users may read, as root may in a sandbox."""
        found: list[str] = []
        stack = [top]
        while stack:
            self._times[stack[-1]] = _time_of(stack[-1])
            with suppress(OSError), os.scandir(stack.pop()) as listed:
                for entry in listed:
                    mode = entry.stat(follow_symlinks=False).st_mode
                    wanted = _DIRECTORY_FOR_ALL if stat.S_ISDIR(mode) else _FILE_FOR_ALL
                    if not stat.S_ISLNK(mode) and mode & wanted != wanted:
                        found.append(entry.path)
                    elif stat.S_ISDIR(mode):
                        stack.append(entry.path)
        return found


def outside_of(
    trees: Sequence[str], environment: Mapping[str, str], more: Sequence[str] = (), *, network: bool = False
) -> Outside:
    """Return a view, that of an earlier command if no directory that it depends on has changed."""
    given = tuple((name, environment[name]) for name in _DECIDING if name in environment)
    view = partial(_kept, tuple(trees), given, tuple(more), network=network, user=os.geteuid())
    if not view().is_current():
        _kept.cache_clear()
    return view()


_kept = lru_cache(maxsize=20)(Outside)  # for each user, and each way to start a command
_DECIDING = ("HOME", "PATH", "XDG_CACHE_HOME", "npm_config_cache", *NAMED_BY.split())


def _time_of(path: str) -> int:
    with suppress(OSError):
        return os.stat(path).st_mtime_ns
    return 0


def _links_to(path: str) -> dict[str, str]:
    """Return the targets of all links on the way to a path."""
    found: dict[str, str] = {}
    done, left = "/", [each for each in os.path.abspath(path).split("/") if each]
    while left and len(found) < _MOST_LINKS:
        done = os.path.normpath(os.path.join(done, left.pop(0)))
        if os.path.islink(done) and done not in found:
            target = found[done] = os.readlink(done)
            done = os.path.dirname(done)
            left = [*(each for each in target.split("/") if each), *left]
            done = "/" if target.startswith("/") else done
    return found


def _git_settings(home: str, root: str) -> list[str]:
    """Return the files of the user's own configuration of git, and what it names, for a repository."""
    listed = from_git(home, "-C", root, "config", "--global", "--show-origin", "--includes", "--list", "-z")
    parts = listed.decode("utf-8", "surrogateescape").split("\0")
    found = [each.removeprefix("file:") for each in parts[::2]]
    for setting in parts[1::2]:
        name, _, value = setting.partition("\n")
        if name in _GIT_PATHS.split():
            found.append(os.path.join(home, value[2:]) if value.startswith("~/") else value)
    return [each for each in found if os.path.isabs(each)]
