"""Permission rules for shell command lines, such as `run(git push*)`.

`simple_commands` cuts a line at its operators, as bash and a POSIX `sh` do without a terminal. It reads no
grammar: the commands of a substitution, a loop or a function are commands of the line like all others.

An allow rule must match every command of the line, whatever its expansions become, and matches no line with
anything but simple commands, operators, quotes and variables. A deny or ask rule must match one command, for
any value of its expansions, also behind `env`, `sudo` or `sh -c`. A line that cannot be cut matches every
deny and ask rule, and no allow rule.

This reading is a convenience for the user who is asked less often. It does not confine a command.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import dropwhile
from typing import NamedTuple

# Stands for the text of an expansion, which is unknown until the line runs. No line has this character.
_UNKNOWN = "\0"
# Linux limits an argument to 128 KiB, so no longer line can be passed to `sh -c`.
_LONGEST_LINE = 2**17
# bash uses some of these characters internally. A lone surrogate is a byte that is not valid UTF-8.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_KEYWORDS = {
    *("if", "then", "elif", "else", "fi", "while", "until", "do", "done", "{", "}", "!"),
    *("time", "coproc", "for", "case", "esac", "select", "function", "[["),
}
_STARTING = _KEYWORDS | {  # words before a command, perhaps with options
    *("env", "sudo", "nice", "timeout", "nohup", "setsid", "xargs", "busybox", "exec", "eval", "command")
}
_SHELLS = {"sh", "ash", "bash", "dash", "zsh", "ksh"}
_MOST_BEHIND = 20  # commands behind one another, as in `sudo env nice rm`

_NAME = "[A-Za-z_][A-Za-z0-9_]*"
_VARIABLE = rf"\${_NAME}|\$[0-9@*#?$!-]|\$\{{{_NAME}(?:(?::?[-+]|\#\#?|%%?)[\w./*,@\ :+-]*)?\}}"
_NUMBERS = r"\$\(\([0-9\ +*/%<>=!&|^~?:,-]*\)\)"
_END = r"(?=[\s;|&)<>]|\Z)"
_TOKEN = re.compile(
    rf"""(?P<blank>[ \t]+(?:\\\n[ \t]*)*)
    | (?P<quiet>[0-9]?(?:>&[0-9-]|>>?[ \t]*/dev/null|<[ \t]*/dev/null){_END})
    | (?P<document><<(?P<tabs>-?)(?!<)[ \t]*(?P<quote>['"]?)(?P<last>\w+)(?P=quote){_END})
    | (?P<redirection>&>>?|[0-9]?(?:<<<|<>|>>|>\||[<>]&|[<>](?![(<])))
    | (?P<operator>&&|\|\||;;|[;&|\n])
    | (?P<group>[$<>]\((?!\()|\((?!\()|\)|\{{(?=\s))
    | `(?P<backquoted>[^`\\"'\#<\n]*)`
    | (?P<unknown>[*?]|~[\w.+-]*|\[[!^]?[\w-]+\]|\{{[\w.,/-]+\}}|{_VARIABLE}|{_NUMBERS})
    | (?P<odd>\[(?![\[\s])|\{{(?!\}}))
    | (?P<plain>[\w%+,./:=@^\]\#-]+|\[\[?(?=[ \t])|\{{\}}|[}}!]|\$(?=[\s;|&)]|\Z))
    | \\(?P<escaped>[^\n])
    | '(?P<single>[^']*)'
    | "(?P<double>(?:[^"\\$`]|\\[^\n]|{_VARIABLE}|{_NUMBERS}|\$\([^"'()`\\$<\n]*\)|\$(?=[\s"|)/]))*)"
    """,
    re.VERBOSE,
)
_IN_QUOTES = re.compile(
    rf"""\\(?P<escaped>[$`"\\])|(?P<commands>\$\((?!\()(?P<inside>[^()]*)\))|{_NUMBERS}|{_VARIABLE}""",
    re.VERBOSE,
)
_ASSIGNMENT = re.compile(rf"{_NAME}\+?=")
_TIME = re.compile(r"[\d.]+[smhd]?")  # of `timeout`
_LONG_DESCRIPTOR = re.compile(rf"(?:[0-9]{{2,}}|\{{{_NAME}\}})(?=[<>])")  # for bash; a word for `sh`
_EXPANDS_IN_DOCUMENT = re.compile(rf"`|\\\n|\$[(\[]|\$\{{(?!{_NAME}\}})")


class SimpleCommand(NamedTuple):
    r"""A command of a line.

    Attributes:
        words: The name and the arguments without quotes, with `"\0"` for each expansion.
        allowable: False if no allow rule may match.
    """

    words: tuple[str, ...]
    allowable: bool


REFUSED_LINE = (SimpleCommand((_UNKNOWN,), allowable=False),)


def simple_commands(line: str) -> tuple[SimpleCommand, ...]:
    """Return the commands that a line may run, those of its substitutions included, or `REFUSED_LINE`."""
    if len(line) >= _LONGEST_LINE or _CONTROLS.search(line):
        return REFUSED_LINE
    try:
        return tuple(_Line(line).commands)
    except _RefusedError:
        return REFUSED_LINE


def allows(patterns: Iterable[str], line: str) -> bool:
    """Return True if each command of a line is matched by a pattern, for every value of its expansions.

    In a pattern, `*` stands for any text, and `*` between blanks for any number of words. So `git push *`
    matches `git push` but not `git pushy`. Every other character is itself.
    """
    globs = [_marked(pattern.split(), "*") for pattern in patterns]

    def allowed(command: SimpleCommand) -> bool:
        text = _marked(command.words, _UNKNOWN)
        return command.allowable and any(matches_glob(glob, text) for glob in globs)

    commands = simple_commands(line)
    return bool(commands) and all(map(allowed, commands))


def catches(pattern: str, line: str) -> bool:
    """Return True if a pattern matches a command of a line for some value of its expansions.

    Blanks in quotes count as separators, and a program with a path also as its name: `rm*` catches `/bin/rm`.
    """
    glob = _marked(pattern.split(), "*")
    judged = (each for words, _ in simple_commands(line) for each in _behind(words))
    return any(_may_match(glob, _marked(" ".join(each).split(), _UNKNOWN)) for each in judged)


def _behind(words: tuple[str, ...], depth: int = 0) -> Iterator[tuple[str, ...]]:
    """Yield a command, and the commands that it starts: behind assignments, keywords, wrappers, `sh -c`."""
    starts = {0}  # where a command may begin, or an option of the one before
    for at, word in enumerate(words):
        if depth + len(starts) - 1 > _MOST_BEHIND:
            yield (_UNKNOWN,)  # which any pattern catches
            return
        if at not in starts:
            continue
        name = word.rpartition("/")[2]
        yield from {words[at:], (name, *words[at + 1 :])}
        if word.startswith("-"):
            starts |= {at + 1, at + 2}  # the next word may be its value
            if " " in word:  # perhaps a line, as in `env -S"rm x"`
                yield (_UNKNOWN,)
        elif name in _STARTING or _ASSIGNMENT.match(word) or _TIME.fullmatch(word):
            starts.add(at + 1)
        elif name == "find":
            starts |= {begin for begin, each in enumerate(words, 1) if re.match("-(exec|ok)", each)}
        elif name in _SHELLS:
            yield from _in_shell(words[at + 1 :], depth + 1)


def _in_shell(words: Sequence[str], depth: int) -> Iterator[tuple[str, ...]]:
    """Yield the commands of the line that a shell is given with `-c`."""
    behind = [*dropwhile(lambda word: not re.match(r"-\w*c", word), words)]
    for text in [*dropwhile(lambda word: word.startswith(("-", "+")), behind)][:1]:
        for command in simple_commands(text) if _UNKNOWN not in text else REFUSED_LINE:
            yield from _behind(command.words, depth)


def _marked(words: Iterable[str], wildcard: str) -> str:
    """Join words, with marks at both ends of each word except one that is all wildcards and may be none."""
    return "".join(word if word and not word.strip(wildcard) else f"\x01{word}\x02" for word in words)


def matches_glob(glob: str, text: str) -> bool:
    """Return True if a text matches a glob; only `*` matches an expansion in the text."""
    first, *rest = glob.split("*")
    if not rest or not text.startswith(first):
        return text == glob
    *middle, last = rest
    at = len(first)
    for part in middle:
        found = text.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return at <= len(text) - len(last) and text.endswith(last)


def _may_match(glob: str, text: str) -> bool:
    """Return True if a text may match a glob, for some text from its first expansion on."""
    known, expansion, _ = text.partition(_UNKNOWN)
    first, star, _ = glob.partition("*")
    if not expansion:
        return matches_glob(glob, text)
    return first.startswith(known) or (bool(star) and known.startswith(first))


class _RefusedError(Exception):
    """Raised for a line that cannot be cut."""


class _Line:
    """A command line, read once from left to right; `commands` are those found."""

    def __init__(self, text: str) -> None:
        self.commands: list[SimpleCommand] = []
        self._words: list[str] = []
        self._word: list[str] | None = None  # the parts of the word that is read
        self._plain = True  # the word has no quotes
        self._allowable = True
        self._redirects = ""  # the operator whose target the word is
        self._ended = False  # `&>` ends a command in `sh`
        self._documents: list[tuple[str, bool]] = []  # the pattern of each, and if it has expansions
        self._read(text)

    def _read(self, text: str) -> None:
        at, depth = 0, 0
        while at < len(text):
            if self._word is None and text[at] == "#":
                at = (text.find("\n", at) + len(text) + 1) % (len(text) + 1)
                continue
            found = _TOKEN.match(text, at)
            if found is None or (self._word is None and _LONG_DESCRIPTOR.match(text, at)):
                raise _RefusedError
            at = found.end()
            kind = found.lastgroup or ""
            if kind == "group" and found[0] != "{":
                depth += -1 if found[0] == ")" else 1
            if depth < 0:
                raise _RefusedError
            self._take(kind, found)
            if found[0] == "\n":
                at = self._skip_documents(text, at)
        self._end_command()
        if self._documents or depth:
            raise _RefusedError

    def _take(self, kind: str, found: re.Match[str]) -> None:
        if kind == "blank":
            self._end_word()
        elif kind == "operator":
            self._end_command()
        elif kind == "group":
            self._allowable = False
            if found[0] != ")":
                self._add(_UNKNOWN) if found[0] != "(" or self._words or self._word else None
            self._end_command()
            self._allowable = False
        elif kind in ("quiet", "redirection", "document"):
            is_digit_of_word = bool(self._word) and found[0][0].isdigit()
            self._end_word()
            if self._redirects or is_digit_of_word:
                raise _RefusedError
            if kind == "document":
                last = (r"\t*" if found["tabs"] else "") + found["last"]
                # bash ends a document at `EOF)` too; so refuse every line that only begins like the last.
                pattern = rf"(?:(?!\t*{found['last']}).*\n)*{last}(?:\n|\Z)"
                self._documents.append((pattern, not found["quote"]))
            self._redirects = found[0].lstrip("0123456789") if kind == "redirection" else ""
            self._allowable &= kind == "quiet" or found[0] == "<<<"
            self._ended |= found[0].startswith("&")
        elif kind == "backquoted":
            self._allowable = False
            self._add(_UNKNOWN)
            self.commands += _Line(found[kind]).commands
        elif kind == "double":
            self._plain = False
            self._add(_IN_QUOTES.sub(self._in_quotes, found[kind]))
        elif kind in ("unknown", "odd"):
            self._allowable &= kind == "unknown"
            self._add(_UNKNOWN)
        else:
            self._plain &= kind == "plain"
            self._add(found[kind])

    def _in_quotes(self, found: re.Match[str]) -> str:
        if found["commands"]:
            self._allowable = False
            self.commands += _Line(found["inside"]).commands
        return found["escaped"] or _UNKNOWN

    def _add(self, part: str) -> None:
        if self._word is None:
            self._word = []
        self._word.append(part)

    def _end_word(self) -> None:
        if self._word is None:
            return
        word, plain = "".join(self._word), self._plain
        self._word, self._plain = None, True
        if self._redirects:
            if self._redirects != "<<<":
                self.commands.append(SimpleCommand((self._redirects, word), allowable=False))
            self._redirects = ""
            return
        if self._ended:
            raise _RefusedError
        if not self._words and ((plain and word in _KEYWORDS) or _ASSIGNMENT.match(word)):
            self._allowable = False
        if plain and word == "}":
            self._allowable = False
            self._end_command()
        self._words.append(word)

    def _end_command(self) -> None:
        self._end_word()
        if self._redirects:
            raise _RefusedError
        if self._words or not self._allowable:
            allowable = self._allowable and bool(self._words) and _UNKNOWN not in self._words[0]
            self.commands.append(SimpleCommand(tuple(self._words), allowable))
        self._words, self._allowable, self._ended = [], True, False

    def _skip_documents(self, text: str, at: int) -> int:
        """Return where the documents end that begin after a newline."""
        for pattern, expands in self._documents:
            document = re.compile(pattern).match(text, at)
            if document is None or (expands and _EXPANDS_IN_DOCUMENT.search(document[0])):
                raise _RefusedError
            at = document.end()
        self._documents.clear()
        return at
