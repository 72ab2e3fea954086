"""Permission rules for shell command lines, such as `bash(git push*)`.

`simple_commands` takes a line apart as bash and a POSIX `sh` do, without a terminal and with default options.
It refuses what it does not know instead of guessing: functions, `case`, arrays, `((`, `$'…'`, ….

An allow rule must match every command of the line, whatever its expansions become. A deny or ask rule must
match one command, for any value of its expansions. A refused line matches no allow rule and every other one.

A command is judged by its own name only. Rules about `rm` say nothing about `sudo rm`, `env rm`, `xargs rm`,
`sh -c rm`, `find -exec rm`, `eval rm` or `[ -v 'a[$(rm)]' ]`; write rules about `sudo`, `env`, …
This parsing is a convenience for the user who is asked less often. It does not confine a command.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

# Stands for the text of an expansion, which is unknown until the line runs. No line has this character.
_UNKNOWN = "\0"
# Linux limits an argument to 128 KiB, so no longer line can be passed to `sh -c`.
_LONGEST_LINE = 2**17
_DEEPEST_NESTING = 50
# bash uses some of these characters internally. A lone surrogate is a byte that is not valid UTF-8.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_KEYWORDS = {"if", "then", "elif", "else", "fi", "while", "until", "do", "done", "{", "}", "!"}
_UNSUPPORTED = {"case", "esac", "function", "select", "coproc", "time"}

_NAME = "[A-Za-z_][A-Za-z0-9_]*"
# Commands in a subscript run when it is evaluated, so neither arithmetic nor `${…}` may contain one.
_VARIABLE = rf"\${_NAME}|\$[0-9@*#?$!-]|\$\{{{_NAME}(?:(?::?[-+]|\#\#?|%%?)[\w./*,@\ :+-]*)?\}}"
_NUMBERS = r"\$\(\([0-9\ +*/%<>=!&|^~?:,-]*\)\)"
# Without the characters whose meaning in backquotes differs between shells.
_BACKQUOTED = r'`(?P<backquoted>[^`\\"\#<\n]*)`'
_WORD_PART = re.compile(
    rf"""(?P<plain> [\w%+,./:=@^\]\#-]+ | !(?=[\s=]|\Z) | \$(?=[\s;|&)]|\Z) | \[\[?(?=[ \t])
        | [{{}}](?=[\s;&|()<>]|\Z) )
    | \\(?P<escaped>[^\n])
    | '(?P<single>[^']*)'
    | (?P<double>")
    | (?P<unknown> [*?] | ~[\w.+-]* | \[[!^]?[\w-]+\] | \{{[\w.,/-]*\}} | {_VARIABLE} | {_NUMBERS} )
    | (?P<commands>[$<>]\((?!\())
    | {_BACKQUOTED}""",
    re.VERBOSE,
)
_QUOTED_PART = re.compile(
    rf"""(?P<plain> [^"\\$`!]+ | \\(?![\n$`"\\]) | !(?=[\s="]) | \$(?=[\s"|)/]) )
    | \\(?P<escaped>[$`"\\])
    | (?P<unknown> {_VARIABLE} | {_NUMBERS} )
    | (?P<commands>\$\((?!\())
    | {_BACKQUOTED}""",
    re.VERBOSE,
)
# A line may be continued only after a blank, where no token can be split.
_BLANKS = re.compile(r"(?:[ \t]+(?:\\\n[ \t]*)*)?(?:#[^\n]*)?")
_QUOTE = re.compile('"')
_OPERATOR = re.compile(r"\n|;;|&&|\|\||[;&|)]|\Z")
_SUBSHELL = re.compile(r"\((?!\()")
_ASSIGNMENT = re.compile(rf"{_NAME}\+?=")
_REDIRECTION = re.compile(r"&>>?|[0-9]?(?P<operator><<<|<<-?|<>|>>|>\||[<>]&|[<>](?!\())")
# bash takes these for a descriptor, and `sh` for a word.
_LONG_DESCRIPTOR = re.compile(rf"[0-9]+|\{{{_NAME}\}}")
_DELIMITER = re.compile(r"""[ \t]*(?P<quote>['"]?)(?P<word>\w+)(?P=quote)(?=[\s;&|)<>]|\Z)""")
_EXPANDS_IN_DOCUMENT = re.compile(rf"`|\\\n|\$[(\[]|\$\{{(?!{_NAME}\}})")


class SimpleCommand(NamedTuple):
    r"""A command of a line, or an assignment, a redirection to a file, or the head of a `for` loop.

    Attributes:
        words: The name and the arguments without quotes, with `"\0"` for each expansion.
        allowable: False if no allow rule may match: the words are not a command, or do not say which.
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
        return command.allowable and any(_matches_glob(glob, text) for glob in globs)

    commands = simple_commands(line)
    return bool(commands) and all(map(allowed, commands))


def catches(pattern: str, line: str) -> bool:
    """Return True if a pattern matches a command of a line for some value of its expansions.

    Blanks in quotes count as separators, and a program with a path also as its name: `rm*` catches `/bin/rm`.
    """
    glob = _marked(pattern.split(), "*")
    for words, _ in simple_commands(line):
        name = words[0].rpartition("/")[2]
        for judged in (words, (name, *words[1:])):
            if _may_match_glob(glob, _marked(" ".join(judged).split(), _UNKNOWN)):
                return True
    return False


def _marked(words: Iterable[str], wildcard: str) -> str:
    """Join words, with marks at both ends of each word except one that is all wildcards and may be none."""
    return "".join(word if word and not word.strip(wildcard) else f"\x01{word}\x02" for word in words)


def _matches_glob(glob: str, text: str) -> bool:
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


def _may_match_glob(glob: str, text: str) -> bool:
    """Return True if a text may match a glob, for some text from its first expansion on."""
    known, expansion, _ = text.partition(_UNKNOWN)
    first, star, _ = glob.partition("*")
    if not expansion:
        return _matches_glob(glob, text)
    return first.startswith(known) or (bool(star) and known.startswith(first))


class _RefusedError(Exception):
    """Raised for a line that cannot be taken apart."""


class _Line:
    """A command line, read once from left to right; `commands` are those found."""

    def __init__(self, text: str) -> None:
        self.commands: list[SimpleCommand] = []
        self._text = text
        self._at = 0
        self._nesting = 0
        self._documents: list[tuple[str, bool]] = []  # a pattern of the text, and whether it has expansions
        self._read_list("")

    def _read_list(self, closer: str) -> None:
        """Read commands up to `closer`."""
        self._nesting += 1
        if self._nesting > _DEEPEST_NESTING:
            raise _RefusedError
        operator = "\n"
        while operator not in (";;", ")", ""):
            self._read_command()
            operator = self._expect(_OPERATOR)[0]
            if operator == "\n":
                self._read_documents()
        if operator != closer or self._documents:
            raise _RefusedError
        self._nesting -= 1

    def _read_command(self) -> None:
        """Read a command up to an operator."""
        words: list[str] = []
        start, ended = True, False
        while True:
            self._accept(_BLANKS)
            if redirection := self._accept(_REDIRECTION):
                self._read_redirection(redirection[0], redirection["operator"] or "&>")
                ended |= redirection[0].startswith("&")  # in `sh`, `&` ends the command
            elif start and self._accept(_SUBSHELL):
                self._read_list(")")
                continue
            else:
                raw, word = self._read_word()
                if not raw:
                    break
                if start and raw in _KEYWORDS:
                    continue
                if ended or raw == "{" or (start and raw in _UNSUPPORTED):
                    raise _RefusedError
                if not words and _ASSIGNMENT.match(raw):
                    self.commands.append(SimpleCommand((word,), allowable=False))
                else:
                    words.append(word)
            start = False
        if words[:1] == ["for"] and words[2:3] == ["do"]:
            raise _RefusedError
        if words:
            allowable = _UNKNOWN not in words[0] and words[0] not in ("for", "[[")
            self.commands.append(SimpleCommand(tuple(words), allowable))

    def _read_redirection(self, text: str, operator: str) -> None:
        """Read the target of a redirection, or note that a document follows."""
        if operator in ("<<", "<<-"):
            found = self._expect(_DELIMITER)
            last = (r"\t*" if operator == "<<-" else "") + found["word"]
            # bash ends a document at `EOF)` too; so refuse every line that only begins like the last.
            document = rf"(?:(?!\t*{found['word']}).*\n)*+{last}(?:\n|\Z)"
            self._documents.append((document, not found["quote"]))
            return
        self._accept(_BLANKS)
        raw, target = self._read_word()
        if not raw:
            raise _RefusedError
        duplicates = operator.endswith("&") and re.fullmatch("[0-9]|-", target)
        if not duplicates and target != "/dev/null" and operator != "<<<":
            self.commands.append(SimpleCommand((text.lstrip("0123456789"), target), allowable=False))

    def _read_documents(self) -> None:
        """Read the documents that begin after a newline."""
        for pattern, expands in self._documents:
            document = self._expect(re.compile(pattern))[0]
            if expands and _EXPANDS_IN_DOCUMENT.search(document):
                raise _RefusedError
        self._documents.clear()

    def _read_word(self) -> tuple[str, str]:
        """Return a word as it is written, and without its quotes; both "" if there is none."""
        start, documents = self._at, len(self._documents)
        word = self._read_parts(_WORD_PART)
        raw = self._text[start : self._at]
        if documents and "\n" in raw:  # shells disagree about where the document begins
            raise _RefusedError
        if _LONG_DESCRIPTOR.fullmatch(raw) and self._text.startswith(("<", ">"), self._at):
            raise _RefusedError
        return raw, word

    def _read_parts(self, kinds: re.Pattern[str]) -> str:
        parts: list[str] = []
        while part := self._accept(kinds):
            kind = part.lastgroup or ""
            if kind == "double":
                parts.append(self._read_parts(_QUOTED_PART))
                self._expect(_QUOTE)
            elif kind == "unknown":
                parts.append(_UNKNOWN)
            elif kind == "commands":
                self._read_list(")")
                parts.append(_UNKNOWN)
            elif kind == "backquoted":
                self.commands += _Line(part[kind]).commands
                parts.append(_UNKNOWN)
            else:
                parts.append(part[kind])
        return "".join(parts)

    def _accept(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Move behind a match of the pattern here, if there is one."""
        if found := pattern.match(self._text, self._at):
            self._at = found.end()
        return found

    def _expect(self, pattern: re.Pattern[str]) -> re.Match[str]:
        if found := self._accept(pattern):
            return found
        raise _RefusedError
