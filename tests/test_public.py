"""The public surface, frozen: a change here is a change for users."""

import inspect
import subprocess
import sys
from dataclasses import FrozenInstanceError, field, fields, is_dataclass, make_dataclass

import pytest

import agentfs
from agentfs import AgentFSError, Workspace, events, results
from agentfs.dialects import toolkit
from tests.kit import put

NAMES = """
AccessError AfterChange AgentFSError Allow ArgumentError CallContext ContentError Deny Edit
EditError Event LineChange Limits Mount OperationalError PathError PermissionRequest Policy Protect
ToolResult Toolset Workspace connect tool
""".split()  # noqa: SIM905 - a list of strings would be five times as long

PYTHON_ERRORS = {
    "outside_workspace": PermissionError, "not_found": FileNotFoundError,
    "already_exists": FileExistsError, "not_a_file": IsADirectoryError,
    "not_a_directory": NotADirectoryError, "not_regular": OSError, "link_loop": OSError,
    "invalid_path": ValueError, "name_too_long": OSError, "protected": PermissionError,
    "read_only": PermissionError, "refused": PermissionError, "encoding": ValueError,
    "invalid_content": ValueError, "invalid_argument": ValueError, "invalid_pattern": ValueError,
    "unknown_tool": ValueError, "timeout": TimeoutError, "busy": OSError, "io": OSError,
    "root_gone": OSError, "closed": ValueError, "unsupported": NotImplementedError,
    "disconnected": ConnectionError,
}  # fmt: skip

CODES = """
outside_workspace not_found already_exists not_a_file not_a_directory not_regular link_loop invalid_path
name_too_long protected read_only refused no_match ambiguous no_change unread stale conflict unknown_line
overlap binary encoding too_large past_end invalid_content invalid_argument invalid_pattern unknown_tool
timeout busy io root_gone closed unsupported disconnected failed
""".split()  # noqa: SIM905 - a list of strings would be five times as long

SIGNATURES = {
    "read": "path, offset=1, limit=None, column=1, encoding=None, raw=False",
    "write": "path, content", "append": "path, content", "stat": "path", "read_bytes": "path",
    "write_bytes": "path, data", "mkdir": "path",
    "edit": "path, old_string, new_string, replace_all=False, encoding=None, raw=False",
    "multi_edit": "path, edits, encoding=None, raw=False", "edit_lines": "path, changes",
    "ls": "path='.', depth=1, limit=None, offset=0, include_ignored=False",
    "glob": "pattern, path='.', limit=None, offset=0, include_ignored=False",
    "replace": "old_string, new_string, path='.', glob=None, expect=None",
    "delete": "path, recursive=False", "move": "path, to", "undo": "steps=1, paths=None", "redo": "steps=1",
    "checkpoint": "name=None", "rollback": "to, paths=None", "changes": "since=None, paths=None",
    "grep": "pattern, path='.', glob=None, type=None, output_mode='content', ignore_case=False, "
    "context=None, multiline=False, limit=None, offset=0, include_ignored=False",
}  # fmt: skip


def leaves(cls: type[AgentFSError]) -> list[type[AgentFSError]]:
    own = [cls] if vars(cls).get("code") else []
    return [*own, *(leaf for child in cls.__subclasses__() for leaf in leaves(child))]


def test_all_is_frozen_and_lists_every_public_name():
    # The module uses three more names itself; the lazy names are in `dir` only.
    named = {name for name in dir(agentfs) if name[0] != "_" and not inspect.ismodule(getattr(agentfs, name))}
    assert {*agentfs.__all__} == named - {"TYPE_CHECKING", "Any", "import_module"} == {*NAMES}


def test_every_code_of_the_contract_has_one_error():
    codes = [leaf.code for leaf in leaves(AgentFSError)]
    assert sorted(codes) == sorted(CODES)


def test_a_leaf_is_also_the_error_that_python_raises():
    found = {
        leaf.code: next(cls for cls in leaf.__mro__ if cls.__module__ == "builtins")
        for leaf in leaves(AgentFSError)
    }
    assert {code: python for code, python in found.items() if python is not Exception} == PYTHON_ERRORS


@pytest.mark.parametrize(("call", "error"), [
    (lambda ws: ws.read("missing.txt"), FileNotFoundError), (lambda ws: ws.grep("a", limit=-1), ValueError),
    (lambda ws: ws.edit("dir", "a", "b"), IsADirectoryError), (lambda ws: ws.read(".env"), PermissionError),
    (lambda ws: ws.move("a", "b"), FileExistsError),
])  # fmt: skip
def test_except_clauses_of_python_catch_what_a_workspace_raises(ws, tmp_path, call, error):
    put(tmp_path, ["dir/c", "a", "b", ".env"])
    with pytest.raises(error):
        call(ws)


def test_the_visible_parameters_of_each_method_are_frozen():
    for name, expected in SIGNATURES.items():
        parameters = list(inspect.signature(getattr(Workspace, name)).parameters.values())[1:]
        visible = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        shown = [p.name if p.default is p.empty else f"{p.name}={p.default!r}" for p in visible]
        assert ", ".join(shown) == expected


# A number that is left out is 0, and a flag False, with these exceptions.
DEFAULTS = """
CallContext.progress(entries=1) DeleteResult(files=1) GlobOptions(links_as_files=True) GlobResult(exact=True)
GrepOptions(dot_all=True) GrepOptions(line_numbers=True) GrepOptions(max_context=20) GrepOptions(samples=3)
GrepResult(exact=True) Limits(file_bytes=10485760) Limits(glob_results=200) Limits(grep_line_chars=400)
Limits(grep_results=100) Limits(line_chars=2000) Limits(list_entries=500) Limits(output_tokens=20000)
Limits(read_bytes=51200) Limits(read_lines=2000) Limits(snapshot_bytes=536870912) Limits(walk_entries=2000000)
Limits(watch_bytes=536870912) MoveResult(files=1) ReadOptions(column=1) ReadOptions(line_numbers=True)
ReadOptions(offset=1) ReadOptions.next_call(column=1) ReadResult(total_exact=True) Tool(for_models=True)
Toolset(concurrency=8) Workspace.ls(depth=1) Workspace.read(column=1) Workspace.read(offset=1)
Workspace.redo(steps=1) Workspace.run(timeout=120) Workspace.undo(steps=1) compile_globs(hidden=True)
""".split()  # noqa: SIM905 - a list of strings would be five times as long


def test_the_defaults_of_public_names_are_frozen():
    publics = {name: each for name, each in vars(results).items() if f"{each}".startswith("<class 'agentfs.")}
    publics |= {name: getattr(module, name) for module in (agentfs, toolkit) for name in module.__all__}
    del publics["connect"]  # it has the methods of `Workspace`
    functions = dict(publics)
    for name, public in publics.items():
        if inspect.isclass(public) and public.__module__.startswith("agentfs"):
            functions |= {f"{name}.{each}": value for each, value in vars(public).items() if each[0] != "_"}
            functions[name] = vars(public).get("__init__")
    found = set()
    for name, function in functions.items():
        signed = inspect.isfunction(function) and inspect.signature(function)
        given = {each.name: each.default for each in signed.parameters.values()} if signed else {}
        found |= {f"{name}({each}={it})" for each, it in given.items() if isinstance(it, int) and it}
    assert found == {*DEFAULTS}
    unequal = [each for kind in publics.values() if is_dataclass(kind) for each in fields(kind)]
    assert {each.name for each in unequal if not each.compare} == {"glob_note"}
    assert {each.name for each in unequal if not each.repr} == {
        "text",
        "glob_note",
        "outcome",
        "_descriptions",
    }


def test_import_loads_none_of_the_dependencies():
    late = ("regex", "pathspec", "wcmatch", "difflib", "asyncio", "subprocess")
    code = f"import sys, agentfs; print([name for name in {late} if name in sys.modules])"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"


def instance(kind, values):
    made = object.__new__(kind)
    vars(made).update(values)
    return made


def test_public_values_are_frozen_and_compare_by_fields():
    found = 0
    publics = {name: getattr(module, name) for module in (agentfs, results, events) for name in dir(module)}
    for name, public in publics.items():
        if isinstance(public, type) and is_dataclass(public):
            found += 1
            assert public.__dataclass_params__.frozen, name
            values = {each.name: f"{each.name} 1" for each in fields(public)}
            one = instance(public, values)
            assert one == instance(public, values), name
            assert hash(one) == hash(instance(public, values)), name
            assert one != instance(type(name, (public,), {}), values), name
            for each in fields(public):
                other = instance(public, values | {each.name: "another"})
                assert (one != other) is each.compare, (name, each.name)
                assert (repr(one) != repr(other)) is each.repr, (name, each.name)
            # A class that the standard library completes prints the same.
            own_fields = [(each.name, each.type, field(repr=each.repr)) for each in fields(public)]
            generated = make_dataclass(public.__qualname__, own_fields)
            assert repr(one) == repr(instance(generated, values)), name
    assert found > 25
    count = results.FileCount(1, 2)
    assert count == results.FileCount(1, 2) != results.FileCount(2, 2)
    with pytest.raises(FrozenInstanceError):
        count.lines = 3
