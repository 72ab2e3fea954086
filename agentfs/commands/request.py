"""`CommandRequest`: a command as it was asked for, checked; `Surroundings`: what of a workspace it needs."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

from agentfs.base import call_context
from agentfs.base.advice import plural
from agentfs.base.visible import one_line
from agentfs.commands.hidden_files import HiddenFiles, Sweep
from agentfs.commands.outside import NAMED_BY
from agentfs.commands.repository import Repository, repository_of, with_git
from agentfs.errors import must_be
from agentfs.fs import Root
from agentfs.fs.settings_file import system_program
from agentfs.history import Journal
from agentfs.history.recording import MAX_LABEL
from agentfs.history.report import MayShow
from agentfs.limits import LARGEST, Limits
from agentfs.shown.outputs import OutputStore
from agentfs.text.display import cut_line, cut_mark

DEFAULT_SECONDS = 120.0  # the timeout of `Workspace.run`
_MOST_BYTES = 100_000  # of a command; the system passes at most 128 KiB
# The variables that a command gets from the program's own environment, besides `NAMED_BY` and `LC_*`.
_ALLOWED = """
HOME USER LOGNAME SHELL PATH LANG LANGUAGE TZ CC CXX CFLAGS CXXFLAGS LDFLAGS MAKEFLAGS GOPATH CARGO_HOME
PYTHONDONTWRITEBYTECODE PNPM_HOME GEM_HOME GEM_PATH PIP_NO_INDEX TMPDIR XDG_CACHE_HOME npm_config_cache
GIT_DISCOVERY_ACROSS_FILESYSTEM
"""
# No colours, pagers, editors or questions, for which a command would wait.
_SETTINGS = """
TERM=dumb NO_COLOR=1 PAGER=cat GIT_PAGER=cat EDITOR=true GIT_EDITOR=true GIT_TERMINAL_PROMPT=0
DEBIAN_FRONTEND=noninteractive npm_config_update_notifier=false
"""
# Without a terminal, vim waits for keys for ever, after the commands of its arguments.
_VIM = "if !has('ttyin') | call timer_start(100, {-> execute('cquit')}) | endif"
_STAGED_SETTINGS = "TMPDIR=/tmp"  # its own


class Surroundings(NamedTuple):
    """The parts of a workspace that a command needs."""

    root: Root
    journal: Journal
    limits: Limits
    outputs: OutputStore
    hidden_files: HiddenFiles
    private: Sequence[str]  # directories that a staged command does not see
    may_show: MayShow
    repository: Repository = Repository("", "")

    def in_repository(self) -> Self:
        """Return these parts with the repository of the root, and its directory of git as `.git`."""
        repository = repository_of(self.root.path)
        return self._replace(root=with_git(self.root, repository), repository=repository)

    def look_for_hidden_files(self) -> Sweep:
        """Look at the tree, and at the work tree that it is a part of."""
        return self.hidden_files.find(self.root.top, self.repository.top)


@dataclass(frozen=True)
class CommandRequest:
    """The arguments of `run`."""

    command: str
    timeout: float
    cwd: str
    network: bool
    env: Mapping[str, str] | None
    stdin: bytes | None
    preview: bool = False
    is_staged: bool = False

    def checked(self, limits: Limits) -> "CommandRequest":
        """Return the request with the timeout that is granted; raise `invalid_argument` for a wrong value."""
        size = len(self.command.encode(errors="replace"))
        if not self.command.strip() or size > _MOST_BYTES:
            what = f"a command of 1 to {_MOST_BYTES} bytes"
            hint = "Write a longer script to a file, and run that."
            raise must_be("command", what, f"one of {plural(size, 'byte')}", hint)
        if not 0 < self.timeout < LARGEST:
            raise must_be("timeout", "a finite number above 0", self.timeout, "Give the seconds to wait.")
        return replace(self, timeout=call_context.granted(self.timeout, limits.run_timeout))

    def label(self, kind: str) -> str:
        """Return the label of the step with its changes, which begins with its kind."""
        return cut_line(one_line(f"{kind}: {self.command.strip()}"), MAX_LABEL - len(cut_mark(10**9)))

    @cached_property
    def environment(self) -> dict[str, str]:
        """The environment of the command."""
        return environment_of(self.env, is_staged=self.is_staged)

    @property
    def arguments(self) -> list[str]:
        """The shell with the command."""
        return [system_program("bash") or "/bin/sh", "-c", self.command]


def environment_of(given: Mapping[str, str] | None, *, is_staged: bool = False) -> dict[str, str]:
    """Return the environment of a command: the allowed part of this process's, and what the caller gives.

    A staged command has a `/tmp` of its own.
    """
    settings = (_SETTINGS + _STAGED_SETTINGS if is_staged else _SETTINGS).split()
    allowed = {*_ALLOWED.split(), *NAMED_BY.split()}
    found = {name: text for name, text in os.environ.items() if name in allowed or name.startswith("LC_")}
    found |= {name: value for name, _, value in (each.partition("=") for each in settings)}
    return {"PATH": os.defpath, "VIMINIT": _VIM, **found, **(given or {})}
