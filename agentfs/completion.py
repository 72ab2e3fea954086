"""Completion scripts of bash, zsh and fish for the command line, made from its parsers."""

import argparse
import shlex
from collections.abc import Callable, Iterator, Mapping

Parsers = Mapping[str, argparse.ArgumentParser]


def _bash(commands: Parsers) -> str:
    words = "\n".join(
        f"        {name}) options={shlex.quote(' '.join(_flags(parser)))} ;;"
        for name, parser in commands.items()
    )
    values = "\n".join(
        f"        '{name} {flag}') choices={shlex.quote(_choices(action))} ;;"
        for name, parser in commands.items()
        for action in _options(parser)
        if action.choices
        for flag in action.option_strings
    )
    return f"""_agentfs() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} options= choices=
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W {shlex.quote(" ".join(commands))} -- "$current"))
        return
    fi
    case "${{COMP_WORDS[1]}}" in
{words}
    esac
    case "${{COMP_WORDS[1]}} $previous" in
{values}
    esac
    if [ -n "$choices" ]; then
        COMPREPLY=($(compgen -W "$choices" -- "$current"))
    elif [[ $current == -* ]]; then
        COMPREPLY=($(compgen -W "$options" -- "$current"))
    fi
}}
complete -o default -F _agentfs agentfs agentfs-workspace
"""


def _zsh(commands: Parsers) -> str:
    return (
        f"#compdef agentfs agentfs-workspace\nautoload -U +X bashcompinit && bashcompinit\n{_bash(commands)}"
    )


def _fish(commands: Parsers) -> str:
    def lines() -> Iterator[str]:
        for program in ("agentfs", "agentfs-workspace"):
            yield f"complete -c {program} -n __fish_use_subcommand -f -a {_quoted(' '.join(commands))}"
            for name, parser in commands.items():
                condition = _quoted(f"__fish_seen_subcommand_from {name}")
                for action in _options(parser):
                    yield f"complete -c {program} -n {condition} {_fish_option(action)}"

    return "\n".join(lines()) + "\n"


def _fish_option(action: argparse.Action) -> str:
    parts = [
        f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in action.option_strings
    ]
    if action.nargs != 0:
        parts.append("-r")
    if action.choices:
        parts.append(f"-f -a {_quoted(_choices(action))}")
    parts.append(f"-d {_quoted((action.help or '').replace('%%', '%'))}")
    return " ".join(parts)


def _quoted(text: str) -> str:
    """Quote a text for fish."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _options(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    return (action for action in parser._actions if action.option_strings)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - argparse has no public list


def _choices(action: argparse.Action) -> str:
    return " ".join(map(str, action.choices or ()))


def _flags(parser: argparse.ArgumentParser) -> Iterator[str]:
    return (flag for action in _options(parser) for flag in action.option_strings)


SHELLS: dict[str, Callable[[Parsers], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
