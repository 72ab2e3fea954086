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
        f"        '{name} {before}') choices={shlex.quote(_choices(action))} ;;"
        for name, parser in commands.items()
        for action in _actions(parser)
        if _choices(action)
        for before in action.option_strings or (name,)
    )
    return f"""_agentfs() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} options= choices=
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W {shlex.quote(" ".join(_names(commands)))} -- "$current"))
        return
    fi
    if [ "$current" = = ]; then  # bash makes three words of --option=value
        current=
    elif [ "$previous" = = ]; then
        previous=${{COMP_WORDS[COMP_CWORD-2]}}
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
    words = " ".join(shlex.quote(f"{name}:{_summary(commands[name])}") for name in _names(commands))
    arguments = "\n".join(
        f"        {name}) arguments=({' '.join(map(shlex.quote, _zsh_arguments(parser)))}) ;;"
        for name, parser in commands.items()
    )
    return f"""_agentfs() {{
    local -a commands arguments
    if (( CURRENT == 2 )); then
        commands=({words})
        _describe command commands
        return
    fi
    case $words[2] in
{arguments}
    esac
    shift words
    (( CURRENT-- ))
    _arguments $arguments '*: :_files'
}}
compdef _agentfs agentfs agentfs-workspace
"""


def _zsh_arguments(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in _actions(parser):
        values = f"({choices})" if (choices := _choices(action)) else "_files"
        value = "" if action.nargs == 0 else f": :{values}"
        described = _help(action).replace("[", "\\[").replace("]", "\\]")
        for flag in action.option_strings:
            joined = "" if action.nargs == 0 else "=" if flag.startswith("--") else "+"
            yield f"*{flag}{joined}[{described}]{value}"
        if not action.option_strings and choices:
            yield value


def _fish(commands: Parsers) -> str:
    def lines() -> Iterator[str]:
        for program in ("agentfs", "agentfs-workspace"):
            for name in _names(commands):
                described = _quoted(_summary(commands[name]))
                yield f"complete -c {program} -n __fish_use_subcommand -f -a {name} -d {described}"
            for name, parser in commands.items():
                condition = _quoted(f"__fish_seen_subcommand_from {name}")
                for action in _actions(parser):
                    if action.option_strings or _choices(action):
                        yield f"complete -c {program} -n {condition} {_fish_argument(action)}"

    return "\n".join(lines()) + "\n"


def _fish_argument(action: argparse.Action) -> str:
    parts = [
        f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in action.option_strings
    ]
    if action.option_strings and action.nargs != 0:
        parts.append("-r")
    if choices := _choices(action):
        parts.append(f"-f -a {_quoted(choices)}")
    parts.append(f"-d {_quoted(_help(action))}")
    return " ".join(parts)


def _quoted(text: str) -> str:
    """Quote a text for fish."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _names(commands: Parsers) -> Iterator[str]:
    """Yield the command names to offer: of `multi_edit` and `multi-edit` the second."""
    return (name for name in commands if "_" not in name)


def _summary(parser: argparse.ArgumentParser) -> str:
    return (parser.description or "").replace("%%", "%").partition("\n")[0]


def _help(action: argparse.Action) -> str:
    return (action.help or "").replace("%%", "%")


def _actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return parser._actions  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - argparse has no public list


def _choices(action: argparse.Action) -> str:
    """Return the words that an argument can be; line ends, as of `--newline`, cannot be offered."""
    return " ".join(choice for choice in map(str, action.choices or ()) if not choice.isspace())


def _flags(parser: argparse.ArgumentParser) -> Iterator[str]:
    return (flag for action in _actions(parser) for flag in action.option_strings)


SHELLS: dict[str, Callable[[Parsers], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
