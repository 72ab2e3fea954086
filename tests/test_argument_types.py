"""Python calls with values of every kind: what no hint allows is `invalid_argument`, and changes nothing.

What a hint allows is told by pydantic in its strict mode, for every parameter of every public method.
"""

import inspect
import math
import types
from collections.abc import Callable
from contextlib import suppress
from dataclasses import is_dataclass
from functools import reduce
from operator import or_
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, get_args

import pytest
from pydantic import AfterValidator, ConfigDict, TypeAdapter, ValidationError

from agentfs import AgentFSError, Edit, Limits, LineChange, Policy, Workspace
from agentfs.errors import InvalidArgumentError
from agentfs.results import GlobResult, Skipped

FILES = {"a.txt": "one\ntwo\n", "b/c.txt": "three\n"}


class BytesPath:
    def __fspath__(self) -> bytes:
        return b"a.txt"


class Odd:
    """An object that is nothing, and says nothing of itself."""

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
# What each method is called with otherwise.
USUAL: dict[str, dict[str, Any]] = {
    "delete": {"path": "a.txt"},
    "edit": {"path": "a.txt", "old_string": "one", "new_string": "1"},
    "edit_lines": {"path": "a.txt", "changes": [LineChange(new_content="x", line_id="abcdef")]},
    "glob": {"pattern": "*"},
    "grep": {"pattern": "one"},
    "keep": {"kept": "text"},
    "move": {"path": "a.txt", "to": "new.txt"},
    "multi_edit": {"path": "a.txt", "edits": [Edit("one", "1")]},
    "read": {"path": "a.txt"},
    "read_many": {"paths": ["a.txt"]},
    "replace": {"old_string": "one", "new_string": "1"},
    "rollback": {"to": "1"},
    "splice": {"path": "a.txt", "spans": [(0, 3, "1")]},
    "write": {"path": "new.txt", "content": "new\n"},
}
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
    """Return a hint for pydantic, to which our dataclasses are classes like any others."""
    if isinstance(hint, types.UnionType):
        return reduce(or_, [judged(each) for each in get_args(hint)])
    if not is_dataclass(hint):
        return hint

    def is_one(value: Any) -> Any:
        assert isinstance(value, hint)
        return value

    return Annotated[Any, AfterValidator(is_one)]


def _is_huge(value: Any) -> bool:
    """Tell of the one limit that no hint says: integers have at most 64 bits."""
    return type(value) is int and value.bit_length() > 63


def allows(name: str, parameter: str) -> Callable[[Any], bool]:
    """Return whether pydantic takes a value as it is."""
    hint = judged(inspect.signature(METHODS[name]).parameters[parameter].annotation)
    adapter = TypeAdapter(hint, config=ConfigDict(strict=True, arbitrary_types_allowed=True))

    def allowed(value: Any) -> bool:
        try:
            adapter.validate_python(value, strict=True)
        except (ValidationError, ValueError):
            return False
        except OverflowError:  # pydantic makes a float of every integer
            return False
        return not _is_huge(value)

    return allowed


def tree(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def plant(root: Path) -> None:
    for name, content in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)


def test_every_method_is_tried():
    assert len(METHODS) >= 24
    needed = {
        name
        for name, method in METHODS.items()
        if any(
            parameter.default is parameter.empty and parameter.name != "self"
            for parameter in inspect.signature(method).parameters.values()
        )
    }
    assert needed == USUAL.keys()


@pytest.mark.parametrize(("name", "parameter"), PARAMETERS, ids=str)
def test_a_value_of_a_wrong_type_is_an_invalid_argument_and_changes_nothing(tmp_path, name, parameter):
    allowed = allows(name, parameter)
    plant(tmp_path)
    before = tree(tmp_path)
    tried = 0
    for value in VALUES:
        if allowed(value):
            continue
        tried += 1
        with Workspace(tmp_path) as ws:
            ws.read("a.txt")
            with pytest.raises(InvalidArgumentError) as caught:
                getattr(ws, name)(**{**USUAL.get(name, {}), parameter: value})
            assert f"`{parameter}" in caught.value.message
            assert caught.value.details["argument"] == parameter
            assert not ws.changes().files
        assert tree(tmp_path) == before
    assert tried > 20


@pytest.mark.parametrize(("name", "parameter"), PARAMETERS, ids=str)
def test_a_value_of_the_right_type_raises_nothing_else(tmp_path, name, parameter):
    """Numbers without bounds, texts that no path can have: refused with a code, or taken."""
    allowed = allows(name, parameter)
    for number, value in enumerate(VALUES):
        if allowed(value) and not (parameter == "spans" and callable(value)):
            root = tmp_path / str(number)
            plant(root)
            with Workspace(root) as ws, suppress(AgentFSError):
                ws.read("a.txt")
                getattr(ws, name)(**{**USUAL.get(name, {}), parameter: value})


def test_mappings_are_as_good_as_the_objects(tmp_path):
    plant(tmp_path)
    with Workspace(tmp_path) as ws:
        edits = [{"old_string": "one", "new_string": "1"}, Edit("two", "2")]
        assert ws.multi_edit("a.txt", edits).replacements == 2
        first, second = ws.read("a.txt", line_ids=True).line_ids
        ws.edit_lines(
            "a.txt", [{"line_id": first, "new_content": "I"}, LineChange(line_id=second, new_content="")]
        )
    assert (tmp_path / "a.txt").read_text() == "I\n"


def test_paths_are_taken_wherever_a_path_is(tmp_path):
    plant(tmp_path)
    with Workspace(tmp_path) as ws:
        assert ws.read(Path("a.txt")).path == "a.txt"
        assert ws.read_many([Path("a.txt"), "b/c.txt"]).files[1].path == "b/c.txt"
        assert ws.ls(Path("b")).entries[0].name == "c.txt"
        assert ws.glob("*", [Path("b"), "b"]).total == 1
        assert ws.find(tmp_path / "b").total == 1
        assert (
            ws.grep("one", Path("a.txt")).total_lines
            == ws.grep("one", files=[Path("a.txt")]).total_lines
            == 1
        )
        assert ws.write(Path("d.txt"), "x\n").created
        assert ws.edit(Path("a.txt"), "one", "1").replacements == 1
        assert ws.move(Path("d.txt"), Path("e.txt")).to == "e.txt"
        assert ws.delete(Path("e.txt")).path == "e.txt"
        assert ws.view(workdir=Path("b")).read("c.txt").content == "three\n"


def test_a_constructor_is_checked_too(tmp_path):
    for name, value in (("root", 3), ("policy", {}), ("limits", 1), ("state", b"x"), ("on_event", "x")):
        with pytest.raises(InvalidArgumentError, match=f"`{name}` must be"):
            Workspace(**{"root": tmp_path, name: value})


def test_one_name_is_a_list_of_one_and_all_is_all(tmp_path):
    """`tools("read")` was refused: there is no tool 'r'."""
    with Workspace(tmp_path) as ws:
        assert ws.tools("read").names == ("read",)
        assert ws.tools("all").names == tuple(ws.tool_names())
        assert ws.tools("Grep", dialect="wave").names == ("Grep",)
        assert ws.tools("all", dialect="wave").names == ws.tools(dialect="wave").names
        with pytest.raises(AgentFSError, match="has no tool 'reed'"):
            ws.tools("reed")
