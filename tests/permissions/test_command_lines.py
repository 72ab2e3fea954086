"""Command lines taken apart for rules, judged by bash and dash with stand-ins for programs."""

import os
import re
import shutil
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import pytest

from agentfs.permission.command_lines import REFUSED_LINE, SimpleCommand, allows, catches, simple_commands
from tests.conftest import part_or_all, program, public_directory

TAKEN_APART = {
    "git push": ["git push"], "a;b&&c||d|e&f": ["a", "b", "c", "d", "e", "f"],
    "a\nb\n\n# c; d\ne # f": ["a", "b", "e"], "a#b c": ["a#b c"], 'a "$(b "$(c)" `d`)" <(e) >(f)': ["!?"],
    "(a; b) && { c; }": ["!", "!a", "!b", "!", "!?", "!c", "!", "}"],
    "if [ -f x ]; then a; elif b; then c; else d; fi 2>&1":
        ["!if [ -f x ]", "!then a", "!elif b", "!then c", "!else d", "!fi"],
    "while a x; do b; done; until c; do d; done":
        ["!while a x", "!do b", "!done", "!until c", "!do d", "!done"],
    "for f in *.py; do cat $f; done": ["!for f in ?.py", "!do cat ?", "!done"],
    "! a | ! b": ["!! a", "!! b"],
    "a 2>&1 >/dev/null </dev/null 2>>/dev/null &>/dev/null 1>&-": ["!&> /dev/null", "!a"],
    "a >f 2>>g <h &>i >|j <>k >&l": ["!> f", "!>> g", "!< h", "!&> i", "!>| j", "!<> k", "!>& l", "!a"],
    "a > /dev/null/../x": ["!> /dev/null/../x", "!a"], "> f": ["!> f", "!"], "x=1 a": ["!x=1 a"],
    "PATH+=:$x": ["!PATH+=:?"], "a x=1": ["a x=1"], "x=1 if": ["!x=1 if"],
    "cat <<E; a\nb $x\nE\nc": ["!cat", "a", "c"], "cat <<'E'\n$(b)`c`\nE": ["!cat"],
    'cat <<-"E"\n\tb\n\tE': ["!cat"],
    "git commit -m \"$(cat <<'EOF'\nIt's $(x)\nEOF\n)\" && a": ["!?"],
    "a <<<b": ["a"], "\\rm 'a b' \\; c\\ d": ["rm a_b ; c_d"], "a '' \"\"": ["a '' ''"],
    "a \\\n  b \\\n\tc": ["a b c"],
    'a *.py [ab] ~/x {b,c} {} $x ${y} ${z:-d} $((1 + 2)) "$x b" $': ["a ?.py ? ?/x ? {} ? ? ? ? ?_b $"],
    '"a b" c': ["a_b c"], "$x a": ["!? a"], "l$x a": ["!l? a"], "~/a": ["!?/a"], "{a,b}": ["!?"], "*": ["!?"],
    "[[ -f x ]] && a": ["![[ -f x ]]", "a"],
    "sudo b; env c; eval d; x=1 time e": ["sudo b", "env c", "eval d", "!x=1 time e"],
    "a 2x>&1": ["a 2x"], "a 2&>/dev/null": ["!&> /dev/null", "!a 2"], "a {1..3} '{b,c}'": ["a ? {b,c}"],
    "": [],
}  # fmt: skip

REFUSED = [
    "((a))", "$((x))", "$[1]", "$((1)(2))", "$'a'", '$"a"', "a $((b) | c)", "a ${x@P}", "a ${x[$(b)]}",
    "a ${!x}", "a ${x:=b}", "a {fd}>&1", "a 10>&1", "a\r", "a\0b", "a\x01", "a\x7f", "a\udc80",
    "a\u00a0b", "l\\\ns", "a;\\\n;b", "$\\\n(a)", "(\\\n(a))", "a \\", "a 'b", 'a "b', "a `b", "a $(b",
    "a `b \\`c\\``", 'a "`b "c"`"', "(a", "a)", "case x in a) b", "case a) b;; esac",
    "case x in a) b;& c) d;; esac", "case x in a) b;; esac", "a; case x in\na) b\nesac",
    "for ((;;)); do a; done", "cat <<E\nb", "cat <<E\n$(b)\nE", "cat <<E\n`b`\nE", "cat <<E\n\\\nE\nE",
    "cat <<E\nEOF\nE", "cat <<$x\n$x", "a >", "a > \n", "a &>/dev/null b", "&>/dev/null a",
    'a "$(b "$(c)" `d`)"', "git commit -m \"$(cat <<'EOF'\nx\nEOF\n)\"", "a;" * 2**16, "$(" * 20_000,
]  # fmt: skip
# Lines that are cut into commands, but that no allow rule matches.
NOT_ALLOWED = [
    "a() { b; }", "function a { b; }", "a=(b c)", "coproc a", "select x in a; do b; done", "a @(b)", "esac",
    "for x do a; done", "$(cat <<E)\nE", "a{b", "for x { a; }", "time a", "! time a", "a [!]b]", "a {$x,y}",
    "cat <<E 'a\nb'\nE", "( " * 100 + "a" + " )" * 100, "a <(b)", "a $(b)", "a `b`", "(a)", "{ a; }", "x=1 a",
]  # fmt: skip


# Lines as agents write them.
TYPICAL = r"""
grep -rn "foo$" src | head -20
grep -E "^(a|b)$" f
grep "a\|b" f
grep "^def \w*(" f
sed -n '1,5p' f
python -c "print(f\"{x}\")"
for i in $(seq 1 5); do echo $i; done
if [[ $? -eq 0 ]]; then echo ok; fi
find . -name "*.py" -exec grep -l foo {} +
git show HEAD@{1}
docker run -v "$(pwd)":/app img
ls *.{js,ts}
kill $(lsof -t -i:3000)
x=$(cmd); echo $x
pytest "tests/test_x.py::test_y[a-b]" -q
curl -s -H "Authorization: Bearer $TOKEN" "https://x/$ID?x=1" | jq '.a[] | .b'
diff <(sort a) <(sort b)
nohup a > log 2>&1 &
find . \( -name a -o -name b \) -print
git commit -m "fix: don't crash (#12)"
{ a; b; } | c
set -euo pipefail
echo 'it'"'"'s'
ps aux | grep -v grep | awk '{print $2}' | xargs -r kill -9
mkdir -p a/{b,c}
ls -la /tmp 2>/dev/null; echo "exit: $?"
timeout 10 ./run.sh; echo $?
cat a.txt | tr -d '\r' > b.txt
python3 -m http.server 8000 &> /dev/null &
jq -r '.[] | "\(.a) \(.b)"' f
echo "$HOME/.config" ~/x
(cd sub && make)
ls **/*.py
touch 'a b' a\ b
env FOO=1 make
FOO=1 make
tee a <<< "x"
ls # comment
git log --since="2 weeks ago" --pretty=format:"%h %an"
printf "%s\t%s\n" "$a" "$b"
echo übung.txt naïve
cat "$file" | while IFS= read -r line; do echo "$line"; done
[[ "$a" == b* && -n $c ]] && d
trap 'rm -f x' EXIT
sed -E 's/([a-z]+)$/\1/' f
perl -pe 's/\$x/y/' f
echo "cost: \$5"
rm -rf "$DIR"/*
cargo build --release 2>&1 | grep -E "^(warning|error)" | sort | uniq -c
""".strip().split("\n")


def shown(command: SimpleCommand) -> str:
    """Write a command: `!` first if no rule may allow it, `?` for an expansion, `_` for a blank in a word."""
    words = [word.replace("\0", "?").replace(" ", "_") or "''" for word in command.words]
    return "!" * (not command.allowable) + " ".join(words)


@pytest.mark.parametrize("line", TAKEN_APART)
def test_simple_commands(line):
    assert [shown(command) for command in simple_commands(line)] == TAKEN_APART[line]


def test_typical_lines_are_taken_apart():
    assert [line for line in TYPICAL if simple_commands(line) == REFUSED_LINE] == []


@pytest.mark.parametrize("line", [*REFUSED, *NOT_ALLOWED], ids=lambda line: repr(line[:20]))
def test_a_line_of_more_than_simple_commands_matches_no_allow_rule(line):
    """If it cannot be cut, every other rule matches it."""
    assert not allows(["*"], line)
    assert (simple_commands(line) == REFUSED_LINE) is (line in REFUSED)
    assert line not in REFUSED or catches("rm x", line)


@pytest.mark.parametrize("line", [
    "sudo rm x", "sudo -u root rm x", "env rm x", "env -i A=b rm x", "A=b rm x", "nice -n 5 rm x",
    "nohup rm x", "timeout 5 rm x", "timeout -k 1 5 rm x", "ls | xargs rm x", "xargs -n1 rm x",
    "sh -c 'rm x'", 'bash -lc "cd y && rm x"', "sudo env nice sh -c 'timeout 5 /bin/rm x'",
    "if rm x; then a; fi", "a() { rm x; }", "(rm x)", "a $(rm x)", "a `rm x`", "for i in a; do rm x; done",
    "! time rm x", 'sh -c "$x"', "sudo $x", "a <(rm x)", 'a "$(rm x)"', "case y in (y) rm x;; esac",
])  # fmt: skip
def test_deny_rules_see_through_wrappers_and_grammar(line):
    assert catches("rm x*", line)


def test_regression_a_command_behind_many_wrappers_is_caught():
    """Behind more than 20 of them, no rule caught it."""
    assert catches("rm x*", f"{'sudo ' * 30}rm x")
    assert catches("rm x*", f"{'sudo ' * 5000}rm x")


@pytest.mark.parametrize("line", [
    "xargs -n 1 -P 4 -I {} rm x", "sudo -u root -g staff rm x", "timeout -k 1 -s KILL 5 rm x",
    "nice -n 5 -- rm x", 'env -S"rm x"', "A=/tmp/b rm x", "time -p rm x", "sh -c -e 'rm x'",
    "bash -c -- 'rm x'", "bash -cx 'rm x'", "busybox sh -c 'rm x'", "exec rm x", "eval 'rm x'",
    "command rm x", "setsid rm x", "find . -exec rm x {} +",
])  # fmt: skip
def test_regression_options_and_other_words_before_a_command_do_not_hide_it(line):
    assert catches("rm x*", line)


@pytest.mark.parametrize("line", [
    "sh -c 'ls \"$1\"' _ \"$f\"", "xargs -n 1 grep rm x", "find . -name rm x",
    "sudo ls rm", "env A=rm ls", "echo rm x", "sh -c 'ls x'", "grep 'rm x' f", "timeout 5 ls x", "sh x -c",
])  # fmt: skip
def test_deny_rules_do_not_catch_arguments(line):
    assert not catches("rm x*", line)


@pytest.mark.parametrize(("pattern", "line", "expected"), [
    ("git push", "git push", True), ("git push", "git  'pu'sh", True), ("git push", "git push -f", False),
    ("git push*", "git push -f", True), ("git push*", "git pushy", True), ("git push *", "git push", True),
    ("git push *", "git push -f x", True), ("git push *", "git pushy", False),
    ("git push *", "git push $x", True), ("git push origin*", "git push $x", False),
    ("git push origin*", "git push origin$x", True), ("git * --dry-run", "git push --dry-run", True),
    ("git * --dry-run", "git --dry-run", True), ("git * --dry-run", "git push --dry-run -f", False),
    ("git * --dry-run", "git push $x --dry-run", True), ("cat src/*", "cat src/*.py", True),
    ("cat src/*", "cat {src/a,/etc/passwd}", False), ("ls *", "'ls /x' a", False),
    ("git commit *", "git 'commit x'", False), ("find . -name *", "find . -name '*.py'", True),
    ("*a*b*c", "xaxbxc", True), ("*a*b*c", "xbxaxc", False), ("ab*bc", "abc", False), ("*", "a | b", True),
    ("*", "x=1 a", False), ("*", "a > f", False), ("*", "for x in a; do b; done", False),
    ("*", 'a "$(b)"', False), ("*", "$x", False), ("*", "", False), ("[ *", "[ -f x ]", True),
    ("a.b", "axb", False),
])  # fmt: skip
def test_allow(pattern, line, expected):
    assert allows([pattern], line) is expected


def test_each_command_of_a_line_may_be_allowed_by_another_rule():
    assert allows(["cd *", "git push*"], "cd x && git push")
    assert not allows(["cd *", "git push*"], "cd x && git push && rm x")
    assert not allows([], "git push")


@pytest.mark.parametrize(("pattern", "line", "expected"), [
    ("rm*", "a; rm x", True), ("rm*", "a `r\\m x`", True), ("rm*", "/bin/rm x", True),
    ("/bin/rm*", "/bin/rm x", True), ("rm*", "$x", True), ("rm*", "r$x", True), ("rm*", "l$x", False),
    ("rm*", "echo $x", False), ("rm*", "echo rm", False), ("git push*", "git $x", True),
    ("git push", "git push$x", True), ("git push", "git push x $x", False),
    ("git push *", "git push", True), ("*.env*", "cat $x", True), ("*.env*", "cat .env", True),
    ("*.env*", "cat <.env", True), ("*.env*", "if a; then cat x >'.env'; fi", True),
    ("*DROP TABLE*", 'psql -c "x; DROP TABLE y"', True), ("> *", "a >f", True),
    ("LD_PRELOAD=*", "LD_PRELOAD=x a", True), ("rm*", "sudo rm x", True), ("sudo *", "sudo rm x", True),
])  # fmt: skip
def test_catch(pattern, line, expected):
    assert catches(pattern, line) is expected


@pytest.mark.parametrize(
    "unit", ["a;", "$(", "a ", "`a`", "a<<E\n", " \\\n", "[a", "~", "$x", "case x in ", "( ", "'", '"']
)
@pytest.mark.parametrize("length", [2**14, pytest.param(2**17 - 1, marks=pytest.mark.full), 10**7])
def test_long_lines(unit, length):
    line = unit * (length // len(unit))
    allows(["a *b*c*d"], line)
    catches("a *b*c*d", line)


# What shells do with it.

ATTACKS = [
    "aa x; bb x", "aa x && bb x", "aa x | bb x", "aa x & bb x", "aa x\nbb x", "aa x $(bb x)",
    "aa x `bb x`", 'aa x "$(bb x)"', 'aa x "`bb x`"', "aa x <(bb x)", "aa x # '\nbb x # '",
    "aa x <<E\n$(bb x)\nE", "aa x <<E\nE\nbb x", "aa x $'\\'' ; bb x # '", "aa x ${y:-$(bb x)}",
    "aa x $((a[$(bb x)]))", "aa x \\\\\nbb x", "aa x ''$(bb x)''", "aa x |& bb x", "aa x ;(bb x)",
    "aa() { bb x; }; aa x", 'aa x "$(echo ")"; bb x)"', "aa | if aa; then bb x; fi",
    "aa $(cat <<'E'\n$(aa)\nE\n) <<-F\n\tx\n\tF\nbb x", "aa 2>&1 {x,y} [ab]; bb x", "aa 12>&1; bb x",
    "aa; case x in (x) bb x;; esac", 'aa "`aa; bb x`$x"', "aa &>/dev/null <<<x; x=y bb x",
]  # fmt: skip


# A stand-in for every program: it logs its name and arguments in one piece, writes two names, and fails if
# its own is `cc`. bash finds no program at all, and calls the function.
BASH_STAND_IN = r"""command_not_found_handle() {
    local IFS=$'\x1f'; local words="$*"
    builtin printf '%s\x1e' "${words//$'\n'/$'\x1d'}" >>"$LOG"; builtin printf 'bb cc'; [[ $1 != cc ]]
}
"""
STAND_IN = r"""#!/bin/sh
name=${0##*/}; set -- "$name" "$@"; IFS=$(printf '\037')
printf '%s\036' "$*" >>"$LOG"; printf 'bb cc'; [ "$name" != cc ]
"""
NAMES = ["aa", "bb", "cc"]


class Shell:
    """A shell that runs lines as a user without rights, in a directory of its own, without programs."""

    def __init__(self, place: Path, command: list[str]) -> None:
        self.command = command
        self.name = Path(command[0]).name
        self.place = place / "work"
        self.programs = place / "programs"
        self.log = place / "log"
        told = {"LOG": str(self.log), "PATH": str(self.programs)}
        self.environment = {**told, "x": "bb cc", "y": "-f", "HOME": "/home/none"}
        self.user = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
        for each in (self.place, self.programs):
            each.mkdir()
        if self.name == "bash":
            (place / "stand_in").write_text(BASH_STAND_IN)
            self.environment["BASH_ENV"] = str(place / "stand_in")
        else:
            for name in NAMES:
                (self.programs / name).write_text(STAND_IN)
                (self.programs / name).chmod(0o755)
        self.runs = 0

    def accepts(self, line: str) -> bool:
        """Return True if the shell finds no fault in the syntax of a line."""
        found = subprocess.run([*self.command, "-n", "-c", line], capture_output=True, env={}, check=False)
        return found.returncode == 0 and not found.stderr

    def run(self, line: str) -> list[tuple[str, ...]]:
        """Run a line; return the name and the arguments of each program that it would have started."""
        if self.runs % 200 == 0:
            shutil.rmtree(self.place)
            self.place.mkdir()
            self.place.chmod(0o777)
            for name in ("bb", "f"):
                (self.place / name).write_text("bb cc\n")
                (self.place / name).chmod(0o666)
        self.runs += 1
        self.log.write_text("")
        self.log.chmod(0o666)
        end, held = os.pipe()  # each process of the line holds it open
        streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        place = {"cwd": self.place, "env": self.environment, "process_group": 0, "pass_fds": (held,)}
        process = subprocess.Popen([*self.command, "-c", line], **streams, **place, **self.user)
        os.close(held)
        timer = threading.Timer(5, os.killpg, (process.pid, signal.SIGKILL))
        timer.start()
        with open(end, "rb") as stream:
            stream.read()
        process.wait()
        timer.cancel()
        records = self.log.read_text(errors="surrogateescape").replace("\x1d", "\n").split("\x1e")[:-1]
        return [tuple(each.split("\x1f")) for each in records]


@pytest.fixture(scope="module", params=["bash", "dash"])
def shell(request) -> Iterator[Shell]:
    found = program("bash") if request.param == "bash" else shutil.which("dash")
    if found is None:
        pytest.skip(f"{request.param} is not installed")
    with public_directory() as place:
        yield Shell(place, [found])


def fits(pattern: str, argv: Sequence[str]) -> bool:
    """Return True if a pattern matches a program's name and arguments, decided by a regular expression."""
    words = [re.escape(word).replace(r"\*", ".*") for word in pattern.split()]
    expression = "".join(".*" if word == ".*" else f"\x02{word}\x03" for word in words)
    return re.fullmatch(expression, "".join(f"\x02{word}\x03" for word in argv), re.DOTALL) is not None


ALLOWED = [
    ["aa *"], ["aa *", "bb *"], ["aa *", "bb *", "cc *"], ["aa*", "* bb *"], ["*b*", "cc"],
    ["aa * -f", "cc *"], ["*"],
]  # fmt: skip
DENIED = ["aa *", "bb cc*", "*-f*", "cc * bb", "aa"]


def check(shell: Shell, line: str) -> str:
    """Run a line if it can be taken apart, and compare what it runs with what the rules say."""
    if simple_commands(line) == REFUSED_LINE:
        return "refused"
    ran = shell.run(line)
    for patterns in ALLOWED:
        if allows(patterns, line):
            for argv in ran:
                assert any(fits(pattern, argv) for pattern in patterns), (line, patterns, argv)
    for pattern in DENIED:
        if not catches(pattern, line):
            assert not any(fits(pattern, argv) for argv in ran), (line, pattern, ran)
    return "allowed" if allows(["*"], line) else "parsed"


TOKENS = [
    *NAMES * 6, *[" "] * 12, "\n", "\n", ";", ";;", "&&", "||", "|", "&", "$(", ")", ")", "(", "`", "`",
    "'", "'", '"', '"', "\\", " \\\n", "\\\n", "#", " #", "$", "x", "$x", "${y}", '"$y"', "${x:-bb}",
    "<", ">", " 2>&1", ">/dev/null", ">f", " <f", "<<", "E", "<<E\n", "\nE\n", "<<'E'\n", "<<-E\n", "\t",
    "{", "}", "{ ", " }", "{aa,bb}", "*", "b?", "[b]", "~", "!", "! ", "if ", "then ", "fi", "else ",
    "case x in ", "x)", " esac", "for x in ", "do ", "done", "x=bb ", "=", "[ ", " ]", "[[ ", " ]]",
    "((", "))", "$((1", "$[", "<(", ">(", "$'", '$"', "<<<", "coproc ", "function ", "time ", "@(", "1",
    "2", "-", "\r", "\u00a0", "é", "&>", "|&", ";&", "-f", "aa ", "bb ", "; ", " && ", "\n", "$?", "${",
    "%", "^", "+=", ",", "{x}>&1 ", "`bb`", "$(bb x)", "$(cc",
    " <<E\n$(bb)\nE\n", 'aa "', "x=", "PATH=", " 2>&1 ", "10>&1", "aa x", "\\bb", "#'", "\n\n", "&&bb",
]  # fmt: skip


def soup(seed: int) -> str:
    """Return random tokens, or an attack with a few; from a seed, because Hypothesis repeats choices."""
    random = Random(seed)
    if random.random() < 0.5:
        return "".join(random.choices(TOKENS, k=random.randint(1, 14)))
    line = random.choice(ATTACKS)
    for _ in range(random.randint(0, 3)):
        at = random.randint(0, len(line))
        line = line[:at] + random.choice(TOKENS) + line[at + random.randint(0, 2) :]
    return line


# The parts of a word, and compound commands of two lines.
PARTS = [
    *["x", "-f", "bb", "a.b", "é"] * 2, "'x $(aa)\n`;'", '"bb \\"\\$ ;#&"', r"\;", r"\'", r"\$", r"\ ",
    "*", "?", "[ab]", "{aa,bb}", "${y}", '"$x"', "$((1+2))", "''", '""',
]  # fmt: skip
FORMS = [
    "( {} ; {}\n)", "{{ {}\n{}\n}}", "if {}\nthen {}\nelif aa; then :\nelse bb; fi 2>&1",
    "while {}\ncc\ndo {}\ndone", "for i in x *; do {}\n{}\ndone", "( ! {} \\\n | {}\n)",
    "cat <<E; aa\n$x \"'\nE\n( {} && {}\n)", "cat <<-'E' | aa # it's\n\t$(aa) `\n\tE\n( {} ; {}\n)",
]  # fmt: skip
ENDINGS = ["", "", "", " 2>&1", " >/dev/null", " <<<x", " &>/dev/null", " 2>f", "\t<f"]


def grammatical(seed: int) -> str:
    """Return a line of a grammar: commands with operators between them, some in others."""
    random = Random(seed)

    def word(depth: int) -> str:
        parts = random.choices(PARTS, k=random.randint(1, 3))
        if depth and random.random() < 0.5:
            parts[0] = random.choice(["$( {}\n)", '"$( {}\n)"', "<( {}\n)"]).format(line(depth - 1))
        return "".join(parts)

    def command(depth: int) -> str:
        words = [word(depth) for _ in range(random.randint(0, 3))]
        return " ".join([random.choice([*NAMES, "'aa'", r"\bb", '"c"c']), *words]) + random.choice(ENDINGS)

    def line(depth: int) -> str:
        written = command(depth)
        for _ in range(random.randint(0, 2)):
            text = command(depth)
            if depth and random.random() < 0.5:
                text = random.choice(FORMS).format(text, line(depth - 1))
            written += random.choice(["; ", " && ", " || ", " | ", " &\n", "\n"]) + text
        return written

    return line(2)


@part_or_all(500, full=50)
@pytest.mark.parametrize("make", [soup, grammatical])
def test_no_command_of_a_random_line_runs_that_no_rule_allowed(shell, make, every):
    lines = [make(seed) for seed in range(10_000 // every)]
    if make is grammatical and shell.name == "bash":
        assert [line for line in lines if not shell.accepts(line)] == []
    kinds = Counter(check(shell, line) for line in lines)
    assert kinds["allowed"] > kinds.total() / 50, kinds
    assert make is grammatical or kinds["refused"] > kinds.total() / 10, kinds


def test_the_stand_ins_log_what_runs(shell):
    assert shell.run("aa 'b  c' $x; bb | cc")[0] == ("aa", "b  c", "bb", "cc")
    ran = sorted(shell.run("if aa; then $(bb) $y; fi & cc >f"))
    assert ran == [("aa",), ("bb",), ("bb", "cc", "-f"), ("cc",)]
    assert shell.accepts("aa")
    assert not shell.accepts("aa )")


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_is_caught(attack):
    assert attack.split()[0].startswith("aa")
    assert not allows(["aa *", "cat *", "echo *", ":"], attack)
    assert catches("bb *", attack)
