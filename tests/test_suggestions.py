"""Every suggestion in a text works: complete calls succeed, and named tools and parameters exist.

Checked for every dialect, with and without a prefix, for subsets of the tools, for `wave` in a workdir and
for `tree-sitter-analyzer` in both languages. Each parameter of each tool gets values that fail or find
nothing on a small tree, and the tests follow each suggestion exactly.
"""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

import pytest
import yaml

from agentfs import Limits, ToolResult, Toolset, Workspace, dialects
from agentfs.dialects.tree_sitter_analyzer import in_language
from tests.conftest import part_or_all
from tests.kit import error_of, put

TWICE_THERE = "src/twice.txt"
FILES: dict[str, Any] = {
    ".gitignore": "built/\n", ".hidden/deep.txt": "onlyhidden here\n",
    "README.md": "# Title\n\nSee the source\n", "built/out.py": "made = 1\n",
    "src/main.py": "def main():\n    first = 1\n    second = 2\n    return first + second\n\n\nBY = 2\n",
    TWICE_THERE: "same\nsame\nother\n",
    "src/long.txt": "".join(f"line {number}\n" for number in range(1, 3001)),
    "src/wide.txt": "x" * 5000 + "\n", "src/paren.txt": "apply(x)\nwith [brackets]\nempty()\n",
    "src/latin.txt": b"caf\xe9\n", 'src/quo"te \\ \xa0.txt': "a name\n", "docs/page.txt": "a page\n",
    "binary.dat": b"\x00\x01\x02",
}  # fmt: skip
# By parameter: values that are wrong, find nothing, or leave out part of the answer.
PATHS = [
    *("src/mian.py", "scr/main.py", "src", "README.md", "main.py", "src/main.py/x", "nosuch/deep/x.py"),
    *("~/x", "../x", "src\\main.py", "binary.dat", "src/long.txt", "src/latin.txt", "built", "", "a\0b"),
    *("src/*.py", "sr?/*", "src/[xyz]*"),
]
PATTERNS = [
    *("(", "f(x", "apply(x)", "empty()", "onlyhidden", "made", "zzz", "", "[", "ap.*x", "*.py", "../*"),
    *("/etc/*", "{a,b", "a/b", "src/nothing.*", "*.rs", "[brackets]", "**/[brackets].txt"),
    *(r"first\|second", r"\(def\|return\) ", r"main\(\|apply\(", r"first.*\n    second", "DEF MAIN"),
]
GLOBS = ["[", "../x", "*.rs"]
OLD = [
    *("same", "def mian():", "first  = 1", "2|    first = 1", "See the source", "", "absent words"),
    *("    return first + second", "def main():\n    ...\n    return first + second", "first = 1"),
]
TWICE = [{"old_string": "first = 1", "new_string": "x"}, {"old_string": "first = 1", "new_string": "y"}]
NUMBERS = [0, -1, 1, 2, 99_999]
UPDATE = "*** Begin Patch\n*** Update File: {}\n@@\n-a\n+b\n*** End Patch"
CONTENTS = ["a\0", "new\n", "y" * 60_000]
PATH_LISTS = [[path] for path in PATHS]
GLOB_LISTS = [[glob] for glob in GLOBS]
VALUES: dict[str, list[Any]] = {
    **dict.fromkeys(("path", "file_path"), PATHS),
    **dict.fromkeys(("roots", "files"), PATH_LISTS),
    **dict.fromkeys(("pattern", "query", "literal"), PATTERNS),
    **dict.fromkeys(("glob", "include", "globs"), GLOBS),
    **dict.fromkeys(("include_globs", "exclude", "exclude_globs"), GLOB_LISTS),
    **dict.fromkeys(("content", "file_text"), CONTENTS),
    **dict.fromkeys(("old_string", "old_str"), OLD),
    "fixed_strings": [True],
    "include_ignored": [True],
    "paths": [PATHS, ["src/mian.py"], ["src/*.txt", "src"]],
    "to": ["src", "docs", "README.md", "../x"],
    "type": ["pyhton", "zzzzz"],
    "types": [["q"], ["d"]],
    "extensions": [[""]],
    "size": [["x"]],
    "changed_within": ["x"],
    "max_filesize": ["x"],
    "encoding": ["nope"],
    "regex": [False],
    "new_string": ["first = 1", "a\0"],
    "edits": [[], TWICE[:1], TWICE, [{"old_string": "same", "new_string": "x"}]],
    "changes": [[], [{"line_id": "abcdef", "new_content": "x"}], [{"new_content": "x"}]],
    "command": ["view", "create", "str_replace", "insert"],
    "view_range": [[1], [0, 2], [9999, -1], [5, 2]],
    "range": ["9999~", "9~1", "x"],
    "rg_args": ["-F", "-F -i", "-x", "-t pyhton", "-E nope", "--max-filesize x", "-q"],
    "insert": ["append"],
    "since": ["nothing"],
    "input": ["", *map(UPDATE.format, ("src/mian.py", "src/main.py", "src", "../x", "binary.dat"))],
}
# By parameter: the values of required parameters in all other calls.
USUAL: dict[str, Any] = {
    **dict.fromkeys(("path", "file_path"), "src/main.py"),
    **dict.fromkeys(("pattern", "query", "literal", "input"), "first"),
    "to": "docs/page.txt",
    "roots": ["."],
    "paths": ["src/main.py"],
    "old_string": "first = 1",
    "new_string": "x = 1",
    "content": "new\n",
    "edits": TWICE[:1],
    "changes": [{"line_id": "abcdef", "new_content": "x"}],
    "command": "view",
}
LIMITS = Limits(file_bytes=50_000)
CALL = re.compile(r"\b([A-Za-z]\w*)\((?=[a-z_]+=)")
CALL_TEXT = re.compile(CALL.pattern + r'(?:[^()"]|"(?:[^"\\]|\\.)*")*\)')
ARGUMENT = re.compile(r"([A-Za-z_-]+)=")
DECODER = json.JSONDecoder()


def views() -> dict[str, Callable[[Workspace], Toolset]]:
    """Return the tested views: all dialects, prefixes, subsets, a workdir, two languages."""
    ids = {"read": ["line_ids"]}
    made: dict[str, Callable[[Workspace], Toolset]] = {
        "agentfs": Workspace.tools, "agentfs all": lambda ws: ws.tools("all"),
        "agentfs prefix": lambda ws: ws.tools(prefix="fs_"),
        "agentfs ids": lambda ws: ws.tools(["read", "grep", "edit_lines"], expose=ids),
        "wave workdir": lambda ws: ws.view(workdir="src").tools(dialect="wave"),
        "analyzer en": lambda ws: in_language("en").tools(ws),
        "analyzer ja": lambda ws: in_language("ja").tools(ws, prefix="fs_"),
    }  # fmt: skip
    with Workspace(".") as any_workspace:
        for name in dialects.names():
            tools = any_workspace.tools(dialect=name)
            made[name] = partial(Workspace.tools, dialect=name)
            made[f"{name} prefix"] = partial(Workspace.tools, dialect=name, prefix="fs_")
            for tool in tools.names if len(tools.names) > 1 else ():
                made[f"{name} only {tool}"] = partial(Workspace.tools, names=[tool], dialect=name)
    return made


VIEWS = views()


def cases(tools: Toolset) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield calls of each tool in which one parameter has each of its values."""
    for schema in tools.schemas("anthropic"):
        properties = schema["input_schema"]["properties"]
        usual = {name: USUAL[name] for name in schema["input_schema"].get("required", ())}
        for name, shown in properties.items():
            values = VALUES.get(name, NUMBERS if shown.get("type") == "integer" else [])
            for value in values:
                yield schema["name"], {**usual, name: value}
                if values is NUMBERS and "path" in properties:
                    yield schema["name"], {**usual, "path": "src", name: value}
        if "command" in properties:
            given = {"file_text": "new\n", "insert_line": 99_999, "insert_text": "x"}
            calls = [{"command": command, **given} for command in ("view", "create", "insert")]
            calls += [{"command": "str_replace", "old_str": old, "new_str": "x"} for old in OLD]
            for path, call in product((*PATHS, "src/main.py", "src/twice.txt"), calls):
                yield schema["name"], {"path": path, **call}
        if "old_string" in properties:
            path = "path" if "path" in properties else "file_path"
            files = ("src/twice.txt", "README.md", "src/latin.txt", "binary.dat")
            for file, old in product(files, VALUES["old_string"]):
                yield schema["name"], {path: file, "old_string": old, "new_string": "é"}


def texts_of(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, each in value.items():
            if name not in {"suggested_calls", "code"}:
                yield from texts_of(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from texts_of(each)


def calls_in(text: str) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """Yield the calls in a text, each a name and its arguments, or None if these cannot be read."""
    for found in CALL.finditer(text):
        yield found[1], arguments_at(text, found.end())


def arguments_at(text: str, at: int) -> dict[str, Any] | None:
    arguments: dict[str, Any] = {}
    while named := ARGUMENT.match(text, at):
        try:
            arguments[named[1]], at = DECODER.raw_decode(text, named.end())
        except ValueError:
            return None
        if text.startswith(", ", at):
            at += 2
    return arguments if text.startswith(")", at) else None


def changes_in(text: str) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """Yield the parameters that a text suggests to pass and to leave out."""
    for found in re.finditer(r"\b(?:pass (?=[a-z_-]+=)|leave out (?!the\b)([a-z_-]+)\b)", text):
        passed: dict[str, Any] = {}
        left = [found[1]] if found[1] else []
        at = found.end()
        while not left and (named := ARGUMENT.match(text, at)):
            passed[named[1]], at = DECODER.raw_decode(text, named.end())
            if text.startswith(" and leave out ", at):
                left.append(re.compile("[a-z_-]+").match(text, at + len(" and leave out "))[0])
            at += len(" and ") if text.startswith(" and ", at) else 0
        yield passed, left


WORD = re.compile(r"(?<![@a-z])[a-z]+(?:_[a-z]+)+|(?<=`)[a-z]+(?=`)|(?<=[Cc]all )\w+")
# Names that are not those of tools or parameters.
OTHERS = {"shift_jis", "node_modules"}
EXAMPLE = re.compile("(?:Example|使用例): ")


def texts_for_a_model(result: ToolResult) -> list[str]:
    """Return the texts for a model, also from the JSON or YAML of some dialects."""
    try:
        value = json.loads(result.content)
    except ValueError:
        value = yaml.safe_load(result.content) if result.content.startswith("status: ") else result.content
    return [*texts_of(value), *result.notes]


def check(
    tools: Toolset, name: str, arguments: dict[str, Any], result: ToolResult, root: str
) -> Iterator[str]:
    """Yield the wrong suggestions of a result: calls that fail, and unknown names."""
    schema = next(each["input_schema"] for each in tools.schemas("anthropic") if each["name"] == name)
    given = json.dumps(arguments)
    known = {*OTHERS, *tools.names, *re.findall(r'"([\w-]+)"', json.dumps(schema["properties"]))}
    advised = [result.next] if result.next else []
    for text in texts_for_a_model(result):
        for called, sent in calls_in(text):
            if called not in tools.names:
                yield f"names the tool {called}: {text[-300:]}"
            elif sent is None:
                yield f"has a call that cannot be read: {text[-300:]}"
            else:
                advised.append({"name": called, "arguments": sent})
        for passed, left in changes_in(text):
            kept = {key: value for key, value in arguments.items() if key not in left}
            if not {*passed, *left} <= schema["properties"].keys():
                yield f"names {passed} {left}: {text[-300:]}"
            advised.append({"name": name, "arguments": {**kept, **passed}})
        for found in EXAMPLE.finditer(text):
            advised.append({"name": name, "arguments": DECODER.raw_decode(text, found.end())[0]})
        for word in WORD.findall(CALL_TEXT.sub("", text).replace(root, "")):
            in_files = any(word in str(content) for content in FILES.values())
            if word not in known and word not in given and not in_files:
                yield f"has the word {word}: {text[-300:]}"
    if isinstance(result.data, dict) and not result.success:
        listed = result.data.get("details", {}).get("suggested_calls", [])
        yield from (f"lists {each}, and does not say it" for each in listed if each not in advised)
    for each in advised:
        made = tools.call(each["name"], each["arguments"])
        if not made.success:
            yield f"advises {each}: {made.content[:300]}"
        elif each["name"] == "replace":  # several texts may suggest it, and it cannot be repeated
            tools.call("undo", {})


@part_or_all(140, full=24)
@pytest.mark.parametrize("view", VIEWS)
def test_every_suggestion_works(tmp_path, view, every):
    """Before any read, and after reading files that then changed."""
    root = put(tmp_path / "tree", FILES)
    with Workspace(root) as ws:
        calls = list(cases(VIEWS[view](ws)))[list(VIEWS).index(view) % every :: every]
    wrong: list[str] = []
    for known in (False,) if " only " in view else (False, True):
        for name, arguments in calls:
            with Workspace(root, limits=LIMITS) as ws:
                if known:
                    (root / TWICE_THERE).write_text("same\nsame\nanother\n")
                    for path in ("README.md", "src/main.py", TWICE_THERE):
                        ws.read(path)
                    (root / TWICE_THERE).write_text(FILES[TWICE_THERE])
                tools = VIEWS[view](ws)
                result = tools.call(name, arguments)
                said = f"{name}({json.dumps(arguments)[:150]})"
                wrong += [f"{said} {each}" for each in check(tools, name, arguments, result, ws.root)]
                if ws.changes().files:
                    shutil.rmtree(root)
                    put(root, FILES)
    assert wrong == []


@pytest.mark.full
def test_a_prefix_changes_names_and_nothing_else(tmp_path):
    root = put(tmp_path, FILES)
    with Workspace(root, limits=LIMITS) as ws, Workspace(root, limits=LIMITS) as other:
        tools, prefixed = ws.tools(), other.tools(prefix="fs_")
        for name, arguments in cases(tools):
            if name == "write" or '"old_string": ""' in json.dumps(arguments):
                continue  # the first call creates the file
            sent = {**arguments, "path": "src/mian.py"} if "edit" in name else arguments
            plain = tools.call(name, sent).content
            assert prefixed.call(f"fs_{name}", sent).content.replace("fs_", "") == plain


@pytest.mark.parametrize("dialect", ["agentfs", "wave", "codescout"])
def test_english_words_are_not_renamed(tmp_path, dialect):
    """The advice "or write a second file" became "or fs_write a second file" under a prefix."""
    (tmp_path / "a.txt").write_text("one\n")
    with Workspace(tmp_path, limits=Limits(file_bytes=100)) as ws:
        tools = ws.tools(dialect=dialect, prefix="fs_")
        edit = next(name for name in tools.names if name.lower().startswith("fs_edit"))
        path = "file_path" if dialect == "wave" else "path"
        result = tools.call(edit, {path: "a.txt", "old_string": "one", "new_string": "x" * 200})
    assert result.error["code"] == "too_large"
    said = result.data["error"]["hint"] if dialect == "codescout" else result.data["hint"]
    assert said == "Make the new text smaller, or write a second file."


def test_a_toolset_does_not_suggest_a_tool_that_it_lacks(tmp_path):
    with Workspace(put(tmp_path, FILES)) as ws:
        for names, said in ((["read", "ls"], 'Call ls(path="src")'), (["read"], "")):
            hint = ws.tools(names).call("read", {"path": "src/mian.py"}).data["hint"]
            assert hint.partition("? ")[2].partition(" to see")[0] == said
        error = error_of(ws.read, "src/mian.py")
    assert error.details["suggested_calls"] == [{"name": "ls", "arguments": {"path": "src"}}]


def test_a_higher_limit_is_suggested_only_if_it_shows_more(tmp_path):
    """`Grep` has `head_limit` and no offset; if tokens cut a page, twice the limit shows the same."""
    put(tmp_path, [f"{number:03}.txt" for number in range(50)], "needle one\n" * 20)
    found = {}
    for tokens in (200, 20_000):
        with Workspace(tmp_path, limits=Limits(output_tokens=tokens)) as ws:
            given = {"pattern": "needle", "output_mode": "content", "head_limit": 40}
            found[tokens] = ws.tools(dialect="wave").call("Grep", given)
    assert found[200].next is None
    assert "narrow the search" in found[200].content_with_notes
    assert found[20_000].next == {"name": "Grep", "arguments": {**given, "head_limit": 80}}
