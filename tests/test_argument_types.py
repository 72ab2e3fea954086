"""Python calls with values of every kind: a call that one makes fail changes nothing.

Pydantic's strict mode tells which values a hint allows, for every parameter of every public method.
"""

import functools
import inspect
import math
import types
from collections.abc import Callable
from contextlib import suppress
from dataclasses import is_dataclass
from operator import or_
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, get_args

import pytest
from pydantic import AfterValidator, ConfigDict, TypeAdapter, ValidationError

from agentfs import AgentFSError, Allow, Deny, Edit, Limits, LineChange, Policy, Protect, Toolset, Workspace
from agentfs.results import GlobResult, Skipped
from tests import kit
from tests.conftest import part_or_all
from tests.kit import described

FILES = {"a.txt": "one\ntwo\n", "b/c.txt": "three\n"}
FILES_AS_BYTES = {name: text.encode() for name, text in FILES.items()}


class BytesPath:
    def __fspath__(self) -> bytes:
        return b"a.txt"


class Odd:
    """An object of no other type."""

    __slots__ = ()

    def __repr__(self) -> str:
        raise ValueError


VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 10**5000, 1.5, math.nan, math.inf, 1j, "", "3", "x", "\ud800", b"x"),
    *(bytearray(b"x"), memoryview(b"x"), [], (), {}, set(), [b"x"], [None], ["x", 1], ("x",), [[]], {"x": 1}),
    *(Path("a.txt"), PurePosixPath("b"), [Path("a.txt")], BytesPath(), Odd(), object, len, range(3)),
    *(iter("x"), {"x"}, GlobResult([], 0, Skipped())),
    *([Odd()], [(0, 1)], [(0, 1, "x")], [(0, "1", "x")], [(0, 1, b"x")], Limits(), Policy(), types),
    *([{"old_string": "one", "new_string": 1}], [{"old_string": "one"}], [{1: 2}], [Edit("one", b"2")]),
    *([Edit("one", "1", replace_all=1)], [Edit(None, "1")], [{"new_content": "x", "line_id": 3}]),
    *([LineChange(new_content=None, line_id="x")], {"read": "x"}, {"read": [1]}, {1: ["x"]}),
]  # fmt: skip
# The other arguments of each method.
USUAL: dict[str, dict[str, Any]] = {
    "append": {"path": "a.txt", "content": "x"}, "branch": {"name": "try"}, "delete": {"path": "a.txt"},
    "edit": {"path": "a.txt", "old_string": "one", "new_string": "1"},
    "edit_lines": {"path": "a.txt", "changes": [LineChange(new_content="x", line_id="abcdef")]},
    "glob": {"pattern": "*"}, "grep": {"pattern": "one"}, "mkdir": {"path": "new"},
    "move": {"path": "a.txt", "to": "new.txt"},
    "multi_edit": {"path": "a.txt", "edits": [Edit("one", "1")]},
    "output": {"id": "c1"}, "read": {"path": "a.txt"}, "read_bytes": {"path": "a.txt"},
    "recorded": {"function": print}, "recording": {"label": "x"},
    "replace": {"old_string": "one", "new_string": "1"}, "rollback": {"to": "1"}, "run": {"command": "true"},
    "stat": {"path": "a.txt"}, "stop": {"id": "c1"}, "write": {"path": "new.txt", "content": "new\n"},
    "write_bytes": {"path": "new.bin", "data": b"\0"},
}  # fmt: skip
METHODS = {
    name: inspect.getattr_static(Workspace, name)
    for name in dir(Workspace)
    if not name.startswith("_") and inspect.isfunction(inspect.getattr_static(Workspace, name))
}
PARAMETERS = [
    (name, parameter)
    for name, method in METHODS.items()
    for parameter in inspect.signature(method).parameters
    if parameter != "self"
]


def judged(hint: Any) -> Any:
    """Return a hint for pydantic that treats our dataclasses as plain classes."""
    if isinstance(hint, types.UnionType):
        return functools.reduce(or_, [judged(each) for each in get_args(hint)])
    if not is_dataclass(hint):
        return hint

    def is_one(value: Any) -> Any:
        assert isinstance(value, hint)
        return value

    return Annotated[Any, AfterValidator(is_one)]


def _is_huge(value: Any) -> bool:
    """Return True if an integer exceeds 64 bits, the one limit that no hint states."""
    return type(value) is int and value.bit_length() > 63


@functools.cache
def allows(name: str, parameter: str) -> Callable[[Any], bool]:
    hint = judged(inspect.signature(METHODS[name]).parameters[parameter].annotation)
    adapter = TypeAdapter(hint, config=ConfigDict(strict=True, arbitrary_types_allowed=True))

    def allowed(value: Any) -> bool:
        try:
            adapter.validate_python(value, strict=True)
        except (ValidationError, ValueError):
            return False
        except OverflowError:  # pydantic converts every integer to a float
            return False
        return not _is_huge(value)

    return allowed


def tree(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_every_method_is_tried():
    assert len(METHODS) >= 24
    defaults = {
        (name, each): inspect.signature(METHODS[name]).parameters[each].default for name, each in PARAMETERS
    }
    assert {name for (name, _), each in defaults.items() if each is inspect._empty} == USUAL.keys()


@part_or_all(2, full=1)
@pytest.mark.parametrize(("name", "parameter"), PARAMETERS, ids=str)
def test_a_call_that_fails_because_of_a_wrong_type_changes_nothing(tmp_path, name, parameter, every):
    """Any exception will do: what a program passes is not checked beforehand."""
    allowed = allows(name, parameter)
    values = [value for value in VALUES if not allowed(value)][::every]
    while values:
        root = tmp_path / str(len(values))  # a call that succeeds may change its tree
        kit.put(root, FILES)
        with Workspace(root) as ws:
            ws.read("a.txt")
            while values:
                value = values.pop()
                try:
                    getattr(ws, name)(**{**USUAL.get(name, {}), parameter: value})
                    break
                except Exception:  # noqa: BLE001 - as above
                    assert tree(root) == FILES_AS_BYTES, repr(type(value))
                    assert ws.changes().files == (), repr(type(value))


@pytest.mark.parametrize(("name", "parameter"), PARAMETERS, ids=str)
def test_a_value_of_the_right_type_raises_only_typed_errors(tmp_path, name, parameter):
    """Numbers out of any range and impossible paths are refused with a code, or accepted."""
    allowed = allows(name, parameter)
    for number, value in enumerate(VALUES):
        if allowed(value) and not isinstance(value, BytesPath):
            root = tmp_path / str(number)
            kit.put(root, FILES)
            errors = (AgentFSError, TypeError) if parameter in ("edits", "changes") else (AgentFSError,)
            with Workspace(root) as ws, suppress(*errors):
                ws.read("a.txt")
                getattr(ws, name)(**{**USUAL.get(name, {}), parameter: value})


def test_mappings_and_path_objects_are_accepted(tmp_path):
    kit.put(tmp_path, FILES)
    with Workspace(tmp_path) as ws:
        edits = [{"old_string": "one", "new_string": "1"}, Edit("two", "2")]
        assert ws.multi_edit("a.txt", edits).replacements == 2
        first, second = ws.read("a.txt", line_ids=True).line_ids
        changes = [{"line_id": first, "new_content": "I"}, LineChange(line_id=second, new_content="")]
        assert ws.edit_lines(Path("a.txt"), changes).path == "a.txt"
        assert ws.read(Path("a.txt")).content == "I\n"
        assert ws.ls(Path("b")).entries[0].name == "c.txt"
        assert ws.glob("*", [Path("b"), "b"]).total == kit.find(ws, tmp_path / "b").total == 1
        assert ws.grep("I", Path("a.txt")).total_lines == 1
        assert ws.write(Path("d.txt"), "x\n").created
        assert ws.edit(Path("a.txt"), "I", "1").replacements == 1
        assert ws.move(Path("d.txt"), Path("e.txt")).to == "e.txt"
        assert ws.delete(Path("e.txt")).path == "e.txt"
        assert ws.view(workdir=Path("b")).read("c.txt").content == "three\n"


@pytest.mark.parametrize("wrong", ["x", "\n\n", "CRLF", None])
def test_regression_a_line_end_that_is_none_is_refused(tmp_path, wrong):
    """Each line was written with `x` at its end."""
    with Workspace(tmp_path) as ws:
        assert "`newline` must be one of" in str(kit.error_of(ws.write, "a.txt", "one\n", newline=wrong))
    assert not (tmp_path / "a.txt").exists()


@pytest.mark.parametrize("make", [
    lambda: Policy(allow=None), lambda: Policy(deny=None), lambda: Policy(deny=5),
    lambda: Policy(allow={"a": 1}), lambda: Policy(deny=b"read"),
    lambda: Policy(mode=[]), lambda: Policy(read_only=None),
    lambda: Policy(protect=None), lambda: Policy(on_ask="ask"), lambda: Policy(on_ask=[print, 1]),
    lambda: Policy(mode="no"), lambda: Policy(deny=["edit("]), lambda: Policy(deny=["a-b"]),
    lambda: Policy(allow="edit"), lambda: Policy(allow=[1]),
    lambda: Protect(read=None), lambda: Protect(write=5), lambda: Protect(read=[None]),
    lambda: Protect(read={".env": 1}), lambda: Protect(write=b".env"),
    lambda: Limits(count_tokens=5), lambda: Limits(timeout=None), lambda: Limits(read_lines="5"),
    lambda: Limits(timeout=float("nan")), lambda: Limits(file_bytes=True),
    lambda: Allow(5), lambda: Allow({1: 2}), lambda: Allow([("path", "x")]), lambda: Deny(None),
])  # fmt: skip
def test_a_wrong_field_of_a_public_constructor_is_invalid_argument(make):
    kit.refused(make, "invalid_argument")


@pytest.mark.parametrize("given", [["edit"], ("edit",), {"edit"}, iter(["edit"])])
def test_rules_may_be_any_collection_of_texts(given):
    assert Policy(allow=given).allow == ("edit",)


def test_a_hint_with_metadata_of_any_kind_makes_a_tool():
    @described
    def search(text: Annotated[str, {"a": 1}], many: list[Annotated[int, []]] | None = None) -> str:
        return f"{text} {many}"

    tools = Toolset([search])
    properties = tools.schemas("anthropic")[0]["input_schema"]["properties"]
    assert properties["text"]["type"] == "string"
    assert tools.call("search", {"text": "x", "many": ["3"]}).content == "x [3]"
