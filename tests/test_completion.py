"""Completion of the command line, asked of the shells themselves."""

import os
import pty
import re
import select
import shlex
import subprocess

import pytest

from tests.conftest import needs, program
from tests.forked import run_command

# What is typed, and what the last word is completed to.
OFFERED = {
    "agentfs gr": {"grep"},
    "agentfs gl": {"glob"},
    "agentfs mult": {"multi-edit"},
    "agentfs-workspace gr": {"grep"},
    "agentfs grep --ignore": {"--ignore-case"},
    "agentfs grep --output-mode c": {"content", "count"},
    "agentfs grep --output-mode=c": {"content", "count"},
    "agentfs ls --color ": {"auto", "always", "never"},
    "agentfs multi-edit --pre": {"--preview"},
    "agentfs multi_edit --pre": {"--preview"},
    "agentfs completion ": {"bash", "zsh", "fish"},
    "agentfs read no": {"notes.txt"},
    "agentfs grep pattern no": {"notes.txt"},
    "agentfs ls --root pack": {"pack age"},
    "agentfs ls --root=pack": {"pack age"},
    "agentfs read pack": {"pack age"},
}
# The command prints its arguments, after a key has put all completions into the line.
SETTINGS = """
agentfs() { printf '<%s>' "$@" && echo '<end>'; }
agentfs-workspace() { agentfs "$@"; }
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


def in_fish(tree, script):
    """Return what fish offers for each line, without its descriptions."""
    ask = "".join(f"complete -C {shlex.quote(line)}; echo '<end>'\n" for line in OFFERED)
    done = subprocess.run(
        [program("fish"), "--no-config", "-c", script + ask],
        cwd=tree,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "HOME": str(tree)},
    )
    assert done.stderr == ""
    answers = done.stdout.split("<end>\n")
    return [[offer.partition("\t")[0] for offer in answer.splitlines()] for answer in answers[:-1]]


def on_a_terminal(tree, shell, script):
    """Type each line in bash or zsh, and yield the last words that the command got."""
    (tree / f".{shell}rc").write_text(BEFORE[shell] + script + AFTER[shell] + SETTINGS)
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [program(shell), *START[shell], "-i"],
        cwd=tree,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={"HOME": str(tree), "PATH": os.environ["PATH"], "TERM": "xterm"},
        start_new_session=True,
    ) as process:
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


@pytest.mark.parametrize(
    "shell", [pytest.param(shell, marks=needs(shell)) for shell in ("bash", "zsh", "fish")]
)
def test_a_shell_completes_commands_options_values_and_paths(tmp_path, shell):
    (tmp_path / "pack age").mkdir()
    (tmp_path / "notes.txt").touch()
    script = run_command("completion", shell, cwd=tmp_path).stdout
    answers = in_fish(tmp_path, script) if shell == "fish" else on_a_terminal(tmp_path, shell, script)
    offered = {
        line: {word.removeprefix("--output-mode=").removeprefix("--root=").rstrip("/") for word in answer}
        for line, answer in zip(OFFERED, answers, strict=True)
    }
    assert offered == OFFERED
