"""Every call that `read` suggests succeeds as written: random trees, wrong paths and arguments."""

import tempfile
from pathlib import Path, PurePosixPath

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from agentfs import Limits, ToolResult, Toolset, Workspace
from tests.conftest import part_or_all
from tests.tool_calls import accepts

CHARACTERS = "abcdeXYZ019_-+ .'\"[]{}(),;:#@&%é漢\\"
names = st.text(CHARACTERS, min_size=1, max_size=10).filter(
    lambda name: name.strip(". ") != "" and not name.startswith((".", "~"))
)
paths = (
    st.lists(names, min_size=1, max_size=3)
    .map("/".join)
    .filter(lambda path: path[1:3] != ":\\" and not path.startswith("\\\\"))  # Windows paths are refused
)
bodies = st.lists(st.sampled_from(["", "x", "a line", "é" * 30, "long " * 60]), max_size=40)


def swap(path: str, at: int) -> str:
    at %= len(path)
    return path[:at] + path[at + 1 : at + 2] + path[at : at + 1] + path[at + 2 :]


MISTAKES = {
    "letters swapped": swap,
    "a letter lost": lambda path, at: path[: at % len(path)] + path[at % len(path) + 1 :],
    "a letter twice": lambda path, at: path[: at % len(path) + 1] + path[at % len(path) :],
    "other case": lambda path, _: path.swapcase(),
    "backslashes": lambda path, _: path.replace("/", "\\"),
    "a line": lambda path, at: f"{path}:{at}",
    "a range": lambda path, at: f"{path}#L{at}-L{at + 3}",
    "quotes": lambda path, _: f"`{path}`",
    "a mention": lambda path, _: f"@{path}",
    "a blank": lambda path, _: f"{path} ",
    "the name alone": lambda path, _: PurePosixPath(path).name,
    "a directory too many": lambda path, _: f"project/{path}",
    "an absolute path": lambda path, _: f"/workspace/{path}",
    "a URL": lambda path, _: f"file://{path}",
    "a directory": lambda path, _: str(PurePosixPath(path).parent),
    "below a file": lambda path, _: f"{path}/more",
}
# After these mistakes the intended file is the first suggestion, in any tree.
CERTAIN = {"backslashes", "a line", "a range", "quotes", "a mention", "a blank", "an absolute path", "a URL"}


def is_plain(path: str) -> bool:
    """Return True if a path has no characters that are stripped from around paths."""
    return not set("\\'\"@:#(") & set(path) and path == path.strip()


def plant(root: str, files: dict[str, str]) -> list[str]:
    """Write files, except those whose directory is a file; return the paths written."""
    made = []
    for path, content in files.items():
        try:
            Path(root, path).parent.mkdir(parents=True, exist_ok=True)
            Path(root, path).write_text(content, newline="")
        except OSError:
            continue
        made.append(path)
    return made


def follow(tools: Toolset, result: ToolResult) -> None:
    """Make each complete call that a result or an error suggests; each must succeed."""
    details = {} if result.success else (result.data or {}).get("details", {})
    for call in [*details.get("suggested_calls", ()), *filter(None, [result.next])]:
        assert accepts(tools, call["name"], call["arguments"]), call
        followed = tools.call(call["name"], call["arguments"])
        assert followed.success, (call, followed.content)
    for path in details.get("similar", ()):
        assert tools.call("ls", {"path": path}).success or tools.call("read", {"path": path}).success, path


@part_or_all(20, full=5)
def test_suggestions_for_a_wrong_path_succeed(every):
    @settings(max_examples=50 // every)
    @given(
        st.dictionaries(paths, bodies.map("\n".join), min_size=1, max_size=8),
        st.integers(0, 60),
        st.integers(0, 7),
    )
    def law(files, at, which):
        with tempfile.TemporaryDirectory() as root:
            made = plant(root, files)
            assume(made)
            meant = made[which % len(made)]
            with Workspace(root) as ws:
                for mistake in MISTAKES:
                    check_mistake(ws.tools(), mistake, meant, at)

    law()


def check_mistake(tools: Toolset, mistake: str, meant: str, at: int) -> None:
    wrong = MISTAKES[mistake](meant, at)
    result = tools.call("read", {"path": wrong})
    follow(tools, result)
    is_past_end = result.error is not None and result.error["code"] == "past_end"  # the file was found
    if mistake in CERTAIN and is_plain(meant) and not result.success and not is_past_end:
        similar = result.data["details"].get("similar", [])
        assert tools.call("read", {"path": similar[0]}).success, (wrong, similar)


ARGUMENTS = {
    "offset": st.integers(-60, 60) | st.sampled_from(["3", "x", 2.5, None, 10**9]),
    "limit": st.integers(-3, 60) | st.sampled_from(["3", 0, None, 10**9]),
    "column": st.integers(-3, 300) | st.none(),
    "ofset": st.integers(1, 5),
    "limt": st.integers(1, 5),
    "start_line": st.integers(-2, 50),
    "end_line": st.integers(-2, 50),
    "view_range": st.lists(st.integers(-2, 50), max_size=3),
    "should_read_entire_file": st.booleans(),
    "explanation": st.just("to see it"),
    "zzz": st.just(1),
}


@part_or_all(2)
def test_suggestions_for_wrong_arguments_succeed(every):
    @settings(max_examples=120 // every)
    @given(
        bodies,
        st.sets(st.sampled_from(sorted(ARGUMENTS)), max_size=3),
        st.sampled_from([Limits(), Limits(read_lines=7), Limits(read_bytes=120), Limits(output_tokens=60)]),
        st.data(),
    )
    def law(lines, given_names, limits, data):
        with tempfile.TemporaryDirectory() as root:
            plant(root, {"a.txt": "\n".join(lines)})
            arguments = {name: data.draw(ARGUMENTS[name], label=name) for name in sorted(given_names)}
            with Workspace(root, limits=limits) as ws:
                tools = ws.tools()
                result = tools.call("read", {"path": "a.txt", **arguments})
                follow(tools, result)
                # The parameter suggested for a misspelled one is the right one.
                renamed = {"ofset": "offset", "limt": "limit"}
                if given_names and given_names <= set(renamed):
                    assert result.error["code"] == "invalid_argument"
                    corrected = {renamed[name]: value for name, value in arguments.items()}
                    for wrong, right in renamed.items():
                        assert (wrong in arguments) == (f"did you mean `{right}`" in result.content)
                    again = tools.call("read", {"path": "a.txt", **corrected})
                    assert again.success or again.error["code"] == "past_end"
                    follow(tools, again)

    law()


@part_or_all(6, full=2)
def test_the_continuations_of_a_file_end_at_its_end(every):
    @settings(max_examples=120 // every)
    @given(bodies, st.integers(1, 9) | st.none(), st.integers(40, 400), st.sampled_from([True, False]))
    def law(lines, limit, read_bytes, streamed):
        text = "\n".join(lines)
        limits = Limits(read_bytes=read_bytes, line_chars=50, file_bytes=1 if streamed else 10_000)
        with tempfile.TemporaryDirectory() as root:
            plant(root, {"a.txt": text})
            with Workspace(root, limits=limits) as ws:
                tools = ws.tools()
                result = tools.call("read", {"path": "a.txt", **({} if limit is None else {"limit": limit})})
                seen = 0
                while True:
                    assert result.success
                    page = result.data
                    assert page["start_line"] == seen + 1 or not text
                    seen = page["end_line"]
                    if result.next is None:
                        break
                    assert accepts(tools, **result.next)
                    result = tools.call(**result.next)
                assert seen == page["total_lines"]

    law()


@part_or_all(2)
def test_the_tool_suggested_for_a_wrong_name_exists(every):
    @settings(max_examples=120 // every)
    @given(st.text("raedwitglobpmuv_ ARED", min_size=1, max_size=9))
    def law(name):
        with tempfile.TemporaryDirectory() as root:
            plant(root, {"a.txt": "x\n"})
            with Workspace(root) as ws:
                tools = ws.tools()
                result = tools.call(name, {"path": "a.txt"})
                if not result.success and result.error["code"] == "unknown_tool":
                    details = result.data["details"]
                    assert set(details["names"]) == set(tools.names)
                    assert details["nearest"] is None or details["nearest"] in tools.names
                    for call in details.get("suggested_calls", ()):  # it may be a tool for directories
                        assert accepts(tools, call["name"], call["arguments"])

    law()
