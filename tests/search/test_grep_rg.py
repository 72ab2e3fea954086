"""`grep` beside ripgrep: the same files, lines and spans, over patterns that models write."""

import json
import os
import shutil
import subprocess
import sysconfig

import pytest

from agentfs.disk import Root
from agentfs.limits import Limits
from agentfs.policy import Policy
from agentfs.search import grep
from agentfs.search.filetypes import compile_types, type_names

RG = shutil.which("rg")
pytestmark = pytest.mark.skipif(RG is None, reason="rg is not installed")

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
    names = ["self", "get_queryset", "request", "Message", "decode", "__init__", "policy", "header", "value"]
    calls = [
        "len",
        "isinstance",
        "super",
        "open",
        "getattr",
        "str",
        "dict",
        "append",
        "format",
        "join",
        "None",
    ]
    forms = (
        r"""
{0} ~ \b{0}\b ~ def {0} ~ def {0}\( ~ class {0} ~ {0}\s*= ~ {0}\s*=\s*None ~ \.{0}\b ~ {0}\( ~ {0}\([^)]*\)
{0}\.\w+ ~ import .*{0} ~ from .*{0} ~ ^\s*{0} ~ {0}$ ~ {0}.*:$ ~ (?i){0} ~ {0}\w* ~ \w*{0}\w+ ~ ['"]{0}['"]
#.*{0} ~ {0}[,)] ~ {0}|{1} ~ \b(?:{0}|{1})\b ~ ({0}|{1})\s*\( ~ {0}.*{1} ~ return.*{0} ~ if .*{0}.*: ~ not {0}
@{0}""".strip()
        .replace("\n", " ~ ")
        .split(" ~ ")
    )
    words = names + calls
    for at, form in enumerate(forms):
        for step in range(9):
            one, other = words[(at + 3 * step) % len(words)], words[(at + 3 * step + 7) % len(words)]
            yield form.replace("{0}", one).replace("{1}", other)


MANY = list(dict.fromkeys([*PATTERNS, *families()]))


@pytest.fixture(scope="module")
def tree():
    """A real tree on every machine: packages of the standard library."""
    return sysconfig.get_path("stdlib")


def by_rg(tree, folder, pattern, *options):
    command = [
        RG,
        "--no-config",
        "--json",
        "--no-require-git",
        "--sort",
        "path",
        *options,
        "-e",
        pattern,
        "--",
        folder,
    ]
    run = subprocess.run(command, cwd=tree, capture_output=True, check=False)
    assert run.returncode in (0, 1), run.stderr
    found = []
    for line in run.stdout.splitlines():
        event = json.loads(line)
        if event["type"] != "match" or "bytes" in event["data"]["lines"]:
            continue
        text = event["data"]["lines"]["text"]
        raw = text.encode()
        spans = [
            (len(raw[: s["start"]].decode(errors="replace")), len(raw[: s["end"]].decode(errors="replace")))
            for s in event["data"]["submatches"]
        ]
        if "\r" not in text:
            found.append(
                (event["data"]["path"]["text"], event["data"]["line_number"], text.rstrip("\n"), spans)
            )
    return found


def by_grep(tree, folder, pattern, **kwargs):
    with Root(tree, Policy()) as root:
        limits = Limits(grep_line_chars=10**6, timeout=30)
        result = grep(root, limits, pattern, path=folder, limit=10**7, context=0, **kwargs)
    assert result.exact
    undecoded = {m.path for m in result.matches if not m.text.isascii() and not _is_utf8(tree, m.path)}
    return [
        (m.path, m.line, m.text, list(m.spans))
        for m in result.matches
        if "\r" not in m.text and m.path not in undecoded
    ], undecoded


def _is_utf8(tree, path):
    with open(f"{tree}/{path}", "rb") as file:
        try:
            file.read().decode()
        except UnicodeDecodeError:
            return False
    return True


@pytest.mark.parametrize("folder", ["email", "json"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_same_matches_as_ripgrep(tree, folder, pattern):
    ours, undecoded = by_grep(tree, folder, pattern)
    theirs = [each for each in by_rg(tree, folder, pattern) if each[0] not in undecoded]
    assert [each[:3] for each in ours] == [each[:3] for each in theirs]
    # ripgrep's --json leaves out empty matches next to others; the rest must be the same.
    for mine, rg in zip(ours, theirs, strict=True):
        assert [s for s in mine[3] if s[0] < s[1]] == [s for s in rg[3] if s[0] < s[1]]


@pytest.mark.long
@pytest.mark.parametrize("engine", ["python", "ripgrep"])
@pytest.mark.parametrize("pattern", MANY)
def test_the_same_matches_as_ripgrep_in_whole_trees(tree, engine, pattern):
    trees = [(tree, "asyncio"), (tree, "unittest")]
    django = os.environ.get("AGENTFS_TREE")
    if django:
        trees.append((django, "django"))
    for where, folder in trees:
        ours, undecoded = by_grep(where, folder, pattern, engine=engine)
        theirs = [each for each in by_rg(where, folder, pattern) if each[0] not in undecoded]
        assert [each[:3] for each in ours] == [each[:3] for each in theirs]
        for mine, rg in zip(ours, theirs, strict=True):
            assert [s for s in mine[3] if s[0] < s[1]] == [s for s in rg[3] if s[0] < s[1]]


def test_there_are_enough_patterns():
    assert len(MANY) >= 300


@pytest.mark.parametrize("pattern", ["error", "k", "IMPORT", "Straße", "[a-z]+ERROR", "value|TYPE"])
def test_the_same_matches_as_ripgrep_ignoring_case(tree, pattern):
    ours, undecoded = by_grep(tree, "email", pattern, ignore_case=True)
    theirs = by_rg(tree, "email", pattern, "-i")
    assert [each[:3] for each in ours] == [each[:3] for each in theirs if each[0] not in undecoded]


def test_types_have_the_names_that_ripgrep_has():
    listing = subprocess.run([RG, "--type-list"], capture_output=True, text=True, check=True).stdout
    theirs = dict(line.split(": ", 1) for line in listing.splitlines())
    assert set(theirs) <= set(type_names())
    for name, globs in theirs.items():
        is_of_type = compile_types([name])
        for glob in globs.split(", "):
            if "[" not in glob:
                assert is_of_type(glob.replace("*", "x")), (name, glob)
