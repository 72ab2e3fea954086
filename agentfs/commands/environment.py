"""The environment of a command, and the files of the user's home that a staged command does not see."""

import os
from collections.abc import Mapping, Sequence

from agentfs.commands.system import entries, present
from agentfs.errors import InvalidArgumentError
from agentfs.fs import name_matcher

# The variables that a command gets from the program's own environment; `LC_*` too.
_ALLOWED = """
HOME USER LOGNAME SHELL PATH LANG LANGUAGE TZ LD_LIBRARY_PATH PKG_CONFIG_PATH CC CXX CFLAGS CXXFLAGS LDFLAGS
MAKEFLAGS VIRTUAL_ENV CONDA_PREFIX PYENV_ROOT PYTHONPATH PYTHONDONTWRITEBYTECODE NVM_DIR NODE_PATH PNPM_HOME
JAVA_HOME GOROOT GOPATH CARGO_HOME RUSTUP_HOME GEM_HOME GEM_PATH SSL_CERT_FILE SSL_CERT_DIR TMPDIR
XDG_CACHE_HOME npm_config_cache
"""
# No colours, pagers, editors or questions, for which a command would wait.
_SETTINGS = """
TERM=dumb NO_COLOR=1 PAGER=cat GIT_PAGER=cat EDITOR=true GIT_EDITOR=true GIT_TERMINAL_PROMPT=0
DEBIAN_FRONTEND=noninteractive
"""
# Elsewhere another user could make these directories first, and fill them with programs that are then run.
_STAGED_SETTINGS = "TMPDIR=/tmp XDG_CACHE_HOME=/tmp/.cache npm_config_cache=/tmp/.cache/npm"
# Paths in the user's home with credentials or traces, besides those that `Protect.READ` names.
_PRIVATE = """
.docker .kube .boto .oci .config/glab-cli .config/rclone .config/op .config/pip .pip .yarnrc.yml
.m2/settings.xml .gem/credentials .gradle/gradle.properties .composer/auth.json .terraformrc .terraform.d
.password-store .local/share/keyrings .local/share/kwalletd .config/sops .config/age .local/share/fish
.lesshst .wget-hsts .mozilla .thunderbird .config/google-chrome .config/chromium .config/BraveSoftware
.claude .claude.json .codex .gemini .cursor .continue .config/github-copilot .huggingface
.cache/huggingface/token .config/openai .config/anthropic
"""


def environment(given: Mapping[str, str] | None, *, is_staged: bool = False) -> dict[str, str]:
    """Return the environment of a command: the allowed part of this process's, and what the caller gives.

    A staged command has a `/tmp` of its own.
    """
    allowed = set(_ALLOWED.split())
    chosen = _SETTINGS + _STAGED_SETTINGS if is_staged else _SETTINGS
    settings = {name: value for name, _, value in (each.partition("=") for each in chosen.split())}
    found = {name: value for name, value in os.environ.items() if name in allowed or name.startswith("LC_")}
    for name, value in (given or {}).items():
        if not name or "=" in name or "\0" in name + value or not can_be_passed(name + value):
            raise InvalidArgumentError(
                f"{name!r} cannot be set in an environment.",
                hint="A name is not empty and has no `=`; neither it nor its value has a NUL.",
                details={"parameter": "env"},
            )
    return {"PATH": os.defpath, **found, **settings, **(given or {})}


def can_be_passed(text: str) -> bool:
    """Return True if the system can pass a text to a program."""
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return False
    return True


def credentials(protected: Sequence[str]) -> list[str]:
    """Return the paths with credentials that exist in the home of the user; `protected` are patterns."""
    there = {os.path.basename(path): path for path in entries(os.path.expanduser("~"))}
    named = [each.rstrip("/") for each in protected if not each.startswith("!") and "*" not in each]
    deeper = [each.partition("/") for each in (*named, *_PRIVATE.split())]
    matcher = name_matcher(tuple(protected), backups=True)
    private = {first for first, _, below in deeper if not below}
    found = [path for name, path in there.items() if name in private or matcher.covers(name)]
    return found + present(
        os.path.join(there[first], below) for first, _, below in deeper if below and first in there
    )
