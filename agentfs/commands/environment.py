"""The environment of a command."""

import os
from collections.abc import Mapping

from agentfs.errors import InvalidArgumentError

# The variables that a command gets from the program's own environment; `LC_*` too.
_ALLOWED = """
HOME USER LOGNAME SHELL PATH LANG LANGUAGE TZ LD_LIBRARY_PATH PKG_CONFIG_PATH CC CXX CFLAGS CXXFLAGS LDFLAGS
MAKEFLAGS VIRTUAL_ENV CONDA_PREFIX PYENV_ROOT PYTHONPATH PYTHONDONTWRITEBYTECODE NVM_DIR NODE_PATH PNPM_HOME
JAVA_HOME GOROOT GOPATH CARGO_HOME RUSTUP_HOME GEM_HOME GEM_PATH SSL_CERT_FILE SSL_CERT_DIR
REQUESTS_CA_BUNDLE CURL_CA_BUNDLE NODE_EXTRA_CA_CERTS GIT_SSL_CAINFO PIP_CERT CARGO_HTTP_CAINFO
PIP_FIND_LINKS PIP_NO_INDEX TMPDIR XDG_CACHE_HOME npm_config_cache
"""
# No colours, pagers, editors or questions, for which a command would wait.
_SETTINGS = """
TERM=dumb NO_COLOR=1 PAGER=cat GIT_PAGER=cat EDITOR=true GIT_EDITOR=true GIT_TERMINAL_PROMPT=0
DEBIAN_FRONTEND=noninteractive
"""
_STAGED_SETTINGS = "TMPDIR=/tmp"  # its own


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
