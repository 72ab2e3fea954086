"""The table of what a staged command sees outside the root, and the mounts that show it.

Nothing else is there. All of it is read-only, or has an overlay of its own whose changes are dropped. Only
the user's own settings show a part of the home, never what a file of the tree says.
"""

import os
import stat
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
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
_GIT_PATHS = {"core.excludesfile", "core.hookspath", "core.attributesfile", "init.templatedir"}
# A directory with one of these is the installation of the programs in its `bin`.
_MARKS = ("lib", "libexec", "pyvenv.cfg", "versions")
_WHOLE = ("/usr/bin", "/usr/sbin")  # programs of the system lead to the system
_MOST_LINKS = 40
_MOST_HOPS = 4  # from a script to its interpreter
_FIRST_LINE = 256  # bytes
_FILE_FOR_ALL, _DIRECTORY_FOR_ALL = 0o004, 0o005  # the bits of what everybody may read
_SHOWN, _OVERLAID = "--ro-bind", "--overlay-src"


class Outside:
    """The files outside the root that a staged command sees.

    Args:
        root: The real path of the workspace, which an overlay shows.
        environment: The environment of the command.
        more: Further paths to show, those of `Policy.run_paths`.
        network: True if the command has the network of the system.
    """

    def __init__(
        self, root: str, environment: Mapping[str, str], more: Sequence[str], *, network: bool
    ) -> None:
        self._root, self._environment, self.network = root, environment, network
        home = os.path.realpath(environment.get("HOME") or "/")
        # A home that the root holds is a part of the tree.
        self.home = home if os.path.isdir(home) and home != "/" and not is_in(home, root) else ""
        self._mounts: dict[str, tuple[str, ...]] = {}  # the arguments that mount each path
        self._links: dict[str, str] = {}  # the targets of links on the way to shown paths
        self._times: dict[str, int] = {}  # the time of each directory that was looked at
        for path in (*_SYSTEM.split(), *(["/etc/resolv.conf"] if network else [])):
            self._show(path)
        self._show_programs()
        if self.home:
            self._show_home()
        for name in NAMED_BY.split():
            for path in environment.get(name, "").split(os.pathsep):
                self._show_installation(path)
        for path in more:
            self._show(path)
        self._masked = [] if os.geteuid() else self._unreadable_for_others("/etc")

    @property
    def private(self) -> list[str]:
        """The directories that the command gets new ones for."""
        places = [*SHARED, self.home, self._environment.get("XDG_CACHE_HOME", "")]
        return sorted({each for each in places if os.path.isdir(each) and not is_in(each, self._root)})

    @property
    def arguments(self) -> list[str]:
        """The arguments of bubblewrap, outer directories first."""
        found = {path: ("--symlink", target, path) for path, target in self._links.items()} | self._mounts
        shown = {at: how for at, how in found.items() if how[0] == _OVERLAID or not self._is_covered(at)}
        for path in self._masked:
            shown[path] = ("--tmpfs", path) if os.path.isdir(path) else (_SHOWN, os.devnull, path)
        return [argument for _, arguments in sorted(shown.items()) for argument in arguments]

    def is_current(self) -> bool:
        """Return True if nothing was added to the directories that were looked at, or removed."""
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
        if real != "/" and os.path.exists(real) and not is_in(real, self._root):
            self._links.update(_links_to(path))
            how = (_OVERLAID, real, "--tmp-overlay", real) if is_cache else (_SHOWN, real, real)
            self._mounts.setdefault(real, how)

    def _show_home(self) -> None:
        cache = self._environment.get("XDG_CACHE_HOME") or os.path.join(self.home, ".cache")
        caches = [os.path.join(self.home, each) for each in _CACHES.split()]
        caches += [os.path.join(cache, each) for each in _IN_CACHE.split()]
        caches += filter(None, [self._environment.get("npm_config_cache")])
        for path in caches:
            self._show(path, is_cache=True)
        for path in [*(os.path.join(self.home, each) for each in _HOME.split()), *_git_settings(self.home)]:
            self._show(path)

    def _show_programs(self) -> None:
        """Show the directories of `PATH`, the programs that they lead to, and the running interpreter."""
        for prefix in {sys.prefix, sys.base_prefix}:
            self._show_installation(os.path.join(prefix, "bin"))
        for directory in self._environment.get("PATH", "").split(os.pathsep):
            # A directory of the tree may have links that a model has written.
            if not is_in(os.path.realpath(directory), self._root):
                self._times[directory] = _time_of(directory)
                self._show_installation(directory)
                for program in [] if os.path.realpath(directory) in _WHOLE else entries(directory):
                    self._show_program(program)

    def _show_installation(self, directory: str) -> None:
        """Show a directory of programs, or the installation that it belongs to."""
        if os.path.isabs(directory):
            for each in {os.path.normpath(directory), os.path.realpath(directory)}:
                self._show(self._installation(each) or each)

    def _installation(self, directory: str) -> str:
        """Return the parent of a directory of programs if that is their installation, or ""."""
        parent = os.path.dirname(directory)
        real = os.path.realpath(parent)
        holds = is_in(self._root, real) or (self.home and is_in(self.home, real))
        personal = real in (os.path.join(self.home, ".local"), *SHARED, "/run", "/var")
        marked = any(os.path.lexists(os.path.join(parent, mark)) for mark in _MARKS)
        return parent if marked and not holds and not personal else ""

    def _show_program(self, path: str, hops: int = _MOST_HOPS) -> None:
        """Show a program through its links, and the interpreter that its first line names."""
        real = os.path.realpath(path)
        if is_in(real, self._root) or not os.path.isfile(real):
            return
        if not self.shows(real):
            directory = os.path.dirname(real)
            is_bin = os.path.basename(directory) == "bin"
            self._show((self._installation(directory) if is_bin else "") or real)
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


def outside_of(root: str, environment: Mapping[str, str], more: Sequence[str], *, network: bool) -> Outside:
    """Return a view, that of an earlier command if no directory that it depends on has changed."""
    given = tuple((name, environment[name]) for name in _DECIDING if name in environment)
    arguments = root, given, tuple(more), network, os.geteuid()
    if not _view(*arguments).is_current():
        _view.cache_clear()
    return _view(*arguments)


@lru_cache(maxsize=20)
def _view(
    root: str, environment: tuple[tuple[str, str], ...], more: tuple[str, ...], network: bool, _user: int
) -> Outside:
    return Outside(root, dict(environment), more, network=network)


_DECIDING = ("HOME", "PATH", "XDG_CACHE_HOME", "npm_config_cache", *NAMED_BY.split())


def _time_of(directory: str) -> int:
    with suppress(OSError):
        return os.stat(directory).st_mtime_ns
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


def _git_settings(home: str) -> list[str]:
    """Return the files of the user's own configuration of git, and what it names."""
    listed = from_git(home, "config", "--global", "--show-origin", "--includes", "--list", "-z")
    parts = listed.decode("utf-8", "surrogateescape").split("\0")
    found = [each.removeprefix("file:") for each in parts[::2]]
    for setting in parts[1::2]:
        name, _, value = setting.partition("\n")
        if name in _GIT_PATHS:
            found.append(os.path.join(home, value[2:]) if value.startswith("~/") else value)
    return [each for each in found if os.path.isabs(each)]
