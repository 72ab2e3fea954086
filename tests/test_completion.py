"""Completion of the command line, asked of the shells themselves."""

import os
import pty
import re
import select
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import needs, program

BINARIES = Path(sys.executable).parent  # has `agentfs` and argcomplete's script
# What is typed, and what the last word is completed to.
OFFERED = {
    "agentfs sch": {"schemas"},
    "agentfs re": {"review"},
    "agentfs-workspace sch": {"schemas"},
    "agentfs schemas --str": {"--strict"},
    "agentfs run --mode ": {"staged", "recorded"},
    "agentfs mcp --pol": {"--policy"},
    "agentfs review --apply no": {"notes.txt"},
    "agentfs call --root pack": {"pack age"},
}
# The command prints its arguments, after a key has put all completions into the line. To complete, the
# programs themselves are called by argcomplete, which finds them in PATH.
SETTINGS = """
agentfs() {
    if [ -n "$_ARGCOMPLETE" ]; then command agentfs "$@"; else printf '<%s>' "$@" && echo '<end>'; fi
}
agentfs-workspace() { if [ -n "$_ARGCOMPLETE" ]; then command agentfs "$@"; else agentfs "$@"; fi; }
PS1='<ready>'
"""
START = {"bash": ["--noprofile", "--rcfile", ".bashrc"], "zsh": ["-d"]}
BEFORE = {"bash": "bind '\"\\C-x\": insert-completions'\n", "zsh": "autoload -U compinit && compinit -u -D\n"}
AFTER = {
    "bash": "",
    "zsh": """
all() { _main_complete; compstate[insert]=all; }
zle -C all complete-word all
bindkey '^X' all
""",
}


def environment(tree):
    return {"HOME": str(tree), "PATH": f"{BINARIES}:{os.environ['PATH']}", "TERM": "xterm"}


def script(tree, shell):
    command = [BINARIES / "register-python-argcomplete", "--shell", shell, "agentfs", "agentfs-workspace"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def in_fish(tree):
    ask = "".join(f"complete -C {shlex.quote(line)}; echo '<end>'\n" for line in OFFERED)
    command = [program("fish"), "--no-config", "-c", script(tree, "fish") + ask]
    given = {"cwd": tree, "env": environment(tree), "text": True}
    done = subprocess.run(command, capture_output=True, check=True, **given)
    assert done.stderr == ""
    answers = done.stdout.split("<end>\n")
    return [[offer.partition("\t")[0] for offer in answer.splitlines()] for answer in answers[:-1]]


def on_a_terminal(tree, shell):
    """Type each line in bash or zsh, and yield the last words that the command got."""
    (tree / f".{shell}rc").write_text(BEFORE[shell] + script(tree, shell) + AFTER[shell] + SETTINGS)
    ours, theirs = pty.openpty()
    given = {"cwd": tree, "env": environment(tree), "start_new_session": True}
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), theirs)
    with subprocess.Popen([program(shell), *START[shell], "-i"], **given, **streams) as process:
        os.close(theirs)

        def until(pattern):
            seen = ""
            while not (found := re.search(pattern, seen, re.DOTALL)):
                assert select.select([ours], [], [], 60)[0], seen
                seen += os.read(ours, 65536).decode()
            return found

        try:
            until("<ready>")
            for line in OFFERED:
                os.write(ours, f"{line}\x18\r".encode())
                words = re.findall("<([^<>]*)>", until("((?:<[^<>]*>)+)<end>.*<ready>")[1])
                yield words[len(line.split(" ")) - 2 :]
        finally:
            process.kill()
            os.close(ours)


@pytest.mark.full
@pytest.mark.parametrize(
    "shell", [pytest.param(shell, marks=needs(shell)) for shell in ("bash", "zsh", "fish")]
)
def test_a_shell_completes_commands_options_values_and_paths(tmp_path, shell):
    (tmp_path / "pack age").mkdir()
    (tmp_path / "notes.txt").touch()
    answers = in_fish(tmp_path) if shell == "fish" else on_a_terminal(tmp_path, shell)
    assert [{word.rstrip("/") for word in answer} for answer in answers] == [*OFFERED.values()]
