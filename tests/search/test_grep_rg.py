"""`grep` beside ripgrep: the same files, lines and spans, over patterns that models write."""

import json
import os
import subprocess
import sysconfig
from functools import cache
from pathlib import Path

import pytest
import regex

from agentfs import Workspace
from agentfs.limits import Limits
from agentfs.policy import Policy, Protect
from agentfs.tree.file_types import TYPES, compile_types
from tests import kit
from tests.conftest import needs, program

RG = os.environ.get("AGENTFS_RG") or program("rg")
pytestmark = needs("rg")

PATTERNS = r"""
import
def \w+\(
class \w+\(.*\):
TODO|FIXME|XXX
self\.\w+ = 
^import \w+
^from \S+ import
\bNone\b
return$
^\s*$
^\s+return \w+\.\w+\(
raise \w*Error\(
except (ValueError|TypeError)
async def
[A-Z_]{5,}\s*=
[0-9]{4}-[0-9]{2}
\d+\.\d+\.\d+
0x[0-9a-fA-F]+
"[^"]*"
'[^']*'
\(\s*self\s*\)
lambda [^:]+:
@\w+(\.\w+)*
if __name__ == .__main__.
\.join\(
os\.path\.(join|exists)
print\(.*\)
#.*noqa
https?://[^\s]+
[\w.]+@[\w.]+
\w+ed\b
foo.?bar
a{2}
(ab|ba)+
[^a-zA-Z0-9\s]{4,}
\s+$
\t
[[:upper:]]{3,}
é
[^\x00-\x7F]
assert\w*
not in
%[sd]
\{\}
f"\{
\[\]
\*\*kwargs
->\s*\w+
__\w+__
(?:get|set)_\w+
with open\(.* as \w+
\.{3}
\\n
\bis\b.*\bnot\b
(?i)error
(?i)Copyright
while True
.*
x
zzzznothing
""".strip("\n").split("\n")  # noqa: W291 - one pattern ends with a space


def families():
    """Return what models write, by families: forms filled with words of the trees."""
    words = "self get_queryset request Message decode __init__ policy header value len isinstance super open"
    words = f"{words} getattr str dict append format join None struct static ret device kfree".split()
    forms = r"""
{0} ~ \b{0}\b ~ def {0} ~ def {0}\( ~ class {0} ~ {0}\s*= ~ {0}\s*=\s*None ~ \.{0}\b ~ {0}\( ~ {0}\([^)]*\) ~
{0}\.\w+ ~ import .*{0} ~ from .*{0} ~ ^\s*{0} ~ {0}$ ~ {0}.*:$ ~ (?i){0} ~ {0}\w* ~ \w*{0}\w+ ~ ['"]{0}['"] ~
#.*{0} ~ {0}[,)] ~ {0}|{1} ~ \b(?:{0}|{1})\b ~ ({0}|{1})\s*\( ~ {0}.*{1} ~ return.*{0} ~ if .*{0}.*: ~
not {0} ~ @{0}"""
    for at, form in enumerate(each.strip() for each in forms.split(" ~")):
        for step in range(9):
            one, other = words[(at + 3 * step) % len(words)], words[(at + 3 * step + 7) % len(words)]
            yield form.replace("{0}", one).replace("{1}", other)


WIDE = (b"\xff\xfe", b"\xfe\xff")
MANY = list(dict.fromkeys([*PATTERNS, *families()]))


@pytest.fixture(scope="module")
def tree():
    """A real tree on every machine: packages of the standard library."""
    return sysconfig.get_path("stdlib")


def by_rg(tree, paths, pattern, *options):
    command = [RG, "--no-config", "--json", "--no-require-git", *options, "-e", pattern, "--", *paths]
    run = subprocess.run(command, cwd=tree, capture_output=True, check=False)
    assert run.returncode in (0, 1), run.stderr
    found = []
    for line in run.stdout.splitlines():
        if not line.startswith(b'{"type":"match"'):
            continue
        event = json.loads(line)["data"]
        if "text" not in event["lines"]:
            continue  # no UTF-8
        text = event["lines"]["text"]
        spans = [(s["start"], s["end"]) for s in event["submatches"]]
        if not text.isascii():
            raw = text.encode()
            spans = [tuple(len(raw[:at].decode(errors="replace")) for at in span) for span in spans]
        path = os.path.normpath(event["path"]["text"])
        found.append((path, event["line_number"], text.rstrip("\n"), spans))
    return found


def by_grep(tree, paths, pattern, **options):
    # What is protected, ripgrep reads.
    policy, limits = Policy(protect=Protect(read=[], write=[])), Limits(grep_line_chars=10**6, timeout=30)
    with Workspace(tree, policy=policy, limits=limits) as ws:
        result = ws.grep(pattern, paths, limit=10**7, context=0, **options)
    assert result.exact
    return [(m.path, m.line, m.text, list(m.spans)) for m in result.matches]


def solid(found):
    """Leave out empty matches: ripgrep's --json has none beside others."""
    return sorted((path, at, line, [s for s in spans if s[0] < s[1]]) for path, at, line, spans in found)


def whole_trees():
    """Return the directories of the long campaign: of this machine's Python, and those that are named."""
    named = os.environ.get("AGENTFS_TREE", "").split(os.pathsep)
    library = sysconfig.get_path("stdlib")
    return [f"{library}/asyncio", f"{library}/unittest", *filter(None, named)]


@cache
def parts_of(tree, most=2500):
    """Cut a tree into parts, so that one answer with all of a part fits into memory."""
    parts = []

    def cut(folder):
        if sum(len(files) for _, _, files in os.walk(f"{tree}/{folder}")) <= most:
            return parts.append((folder,))
        inside = sorted(os.scandir(f"{tree}/{folder}"), key=lambda each: each.name)
        inside = [each for each in inside if each.name[0] != "." and not each.is_symlink()]
        parts.append(tuple(os.path.normpath(f"{folder}/{each.name}") for each in inside if each.is_file()))
        for each in inside:
            if each.is_dir():
                cut(os.path.normpath(f"{folder}/{each.name}"))
        return None

    cut(".")
    return [part for part in parts if part]


@cache
def odd_files(tree, part):
    r"""Find the files on which ripgrep means something else: `\r` before `\n`, no UTF-8, or a late NUL."""
    command = [RG, "--no-config", "--files", "--no-require-git", "--null", "--", *part]
    listed = subprocess.run(command, cwd=tree, capture_output=True, check=True).stdout
    odd = {}
    for name in filter(None, listed.split(b"\0")):
        path = os.path.normpath(os.fsdecode(name))
        content = Path(tree, path).read_bytes()
        if b"\r" in content or b"\0" in content or not is_utf8(content):
            odd[path] = content if b"\0" not in content[:8192] or content[:2] in WIDE else b""
    return odd


def is_utf8(content):
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def line_by_line(pattern, content):
    """Judge an odd file without any of our code: decoded, cut as DESIGN says, and each line alone."""
    if content[:2] in WIDE:
        text = content.decode("utf-16")
    else:
        text = content.removeprefix(b"\xef\xbb\xbf").decode("utf-8" if is_utf8(content) else "latin-1")
    text = text.replace("\r\n", "\n") if "\n" in text else text.replace("\r", "\n")
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    expression = regex.compile(pattern)
    found = ((at, line, [m.span() for m in expression.finditer(line)]) for at, line in enumerate(lines, 1))
    return [each for each in found if each[2]]


def judged(tree, part, pattern, *options):
    """Return the expected matches: those of ripgrep, and in odd files those of each line."""
    odd = odd_files(tree, part)
    theirs = [each for each in by_rg(tree, part, pattern, *options) if each[0] not in odd]
    return solid(theirs + [(path, *each) for path in odd for each in line_by_line(pattern, odd[path])])


@pytest.mark.parametrize("folder", ["email", "json"])
@pytest.mark.parametrize(
    "pattern", [pytest.param(each, marks=[pytest.mark.full] * (each == ".*")) for each in PATTERNS]
)
def test_the_same_matches_as_ripgrep(tree, folder, pattern):
    assert solid(by_grep(tree, folder, pattern)) == judged(tree, (folder,), pattern)


# Without POSIX classes: ripgrep's are ASCII, those of `regex` are not.
@pytest.mark.long
@pytest.mark.parametrize("pattern", [each for each in MANY if "[[:" not in each])
def test_the_same_matches_as_ripgrep_in_whole_trees(pattern):
    for tree in whole_trees():
        for part in parts_of(tree):
            expected = judged(tree, part, pattern)
            assert solid(by_grep(tree, part, pattern)) == expected, (tree, part)


@pytest.mark.parametrize("pattern", ["error", "k", "IMPORT", "Straße", "[a-z]+ERROR", "value|TYPE"])
def test_the_same_matches_as_ripgrep_ignoring_case(tree, pattern):
    found = solid(by_grep(tree, "email", pattern, ignore_case=True))
    assert found == judged(tree, ("email",), f"(?i){pattern}")


def test_types_have_the_names_that_ripgrep_has():
    listing = subprocess.run([RG, "--type-list"], capture_output=True, text=True, check=True).stdout
    theirs = dict(line.split(": ", 1) for line in listing.splitlines())
    ours = [*TYPES, "markdown", "python", "typescript"]
    assert set(ours) <= set(theirs)
    for name in ours:
        is_of_type = compile_types([name])
        for glob in theirs[name].split(", "):
            if "[" not in glob:
                assert is_of_type(glob.replace("*", "x")), (name, glob)


@pytest.mark.parametrize("multiline", [False, True])
@pytest.mark.parametrize("pattern", [
    ".*", "x*", "^", r"\<word\>", r"\<b", r"b\>", r"\<", r"(\<w|x\>)+", r"\w*", r"^\s*\w*", r"\<(foo|wo)",
    "[^,]*",
])  # fmt: skip
def test_regression_words_and_empty_matches_are_those_of_ripgrep(tmp_path, ws, pattern, multiline):
    (tmp_path / "f").write_text("abc def\n\nword <b> foo_bar, baz\n  x\nswords last x\n")
    command = [RG, "--no-config", "--count-matches", *["-U"] * multiline, "-e", pattern, "f"]
    counted = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    for mode in ("content", "count"):
        found = kit.grep(ws, pattern, multiline=multiline, dot_all=False, output_mode=mode)
        assert found.total_matches == int(counted.stdout)
