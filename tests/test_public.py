"""The public surface, frozen: a change here is a change for users."""

import inspect
import subprocess
import sys
import typing

import agentfs
from agentfs import AgentFSError, Workspace

NAMES = """
Allow Coercion Deny Event PermissionRequest
AccessError AgentFSError AlreadyExistsError AmbiguousError ArgumentError BinaryError BusyError
ContentError Edit EditError EditResult EncodingError Entry FileCount GlobResult GrepResult Image
InputOutputError InvalidArgumentError InvalidPathError InvalidPatternError Limits LineChange
LinkLoopError ListResult Match NameTooLongError NoChangeError NoMatchError NotAFileError NotDirectoryError
NotFoundError NotRegularError OutsideWorkspaceError OverlapError PastEndError PathError Policy
Protect ProtectedError ReadManyResult ReadOnlyError ReadResult RefusedError RenderContext Result Skipped StaleError
SystemFailure TimedOutError TooLargeError ToolOffer ToolResult Toolset UnknownLineError UnknownToolError UnreadError
Workspace WriteResult ChangesResult CheckpointResult DeleteResult FileChange MoveResult UndoResult
""".split()  # noqa: SIM905 - a list of strings would be five times as long

CODES = """
outside_workspace not_found already_exists not_a_file not_a_directory not_regular link_loop invalid_path
name_too_long protected read_only refused no_match ambiguous no_change unread stale unknown_line overlap
binary encoding too_large past_end invalid_argument invalid_pattern unknown_tool timeout busy io unsupported
""".split()  # noqa: SIM905 - a list of strings would be five times as long

SIGNATURES = {
    "read": "path, offset=1, limit=None",
    "write": "path, content",
    "edit": "path, old_string, new_string, replace_all=False",
    "multi_edit": "path, edits",
    "edit_lines": "path, changes",
    "ls": "path='.', depth=1, limit=None, offset=0, include_ignored=False",
    "glob": "pattern, path='.', limit=None, offset=0, include_ignored=False",
    "find": "path='.'",
    "delete": "path",
    "move": "path, to",
    "undo": "steps=1",
    "redo": "steps=1",
    "checkpoint": "name=None",
    "rollback": "to",
    "changes": "since=None",
    "grep": "pattern, path='.', glob=None, type=None, output_mode='content', ignore_case=False, "
    "context=None, multiline=False, limit=None, offset=0, include_ignored=False",
}


def leaves(cls: type[AgentFSError]) -> list[type[AgentFSError]]:
    below = cls.__subclasses__()
    return [cls] if not below else [leaf for child in below for leaf in leaves(child)]


def test_all_is_frozen():
    assert sorted(agentfs.__all__) == sorted(NAMES)
    assert all(hasattr(agentfs, name) for name in NAMES)


def test_all_is_everything_that_is_imported():
    # Names of typing and importlib serve the module; what loads late is in `dir` only.
    named = {name for name in dir(agentfs) if name[0] != "_" and not inspect.ismodule(getattr(agentfs, name))}
    public = named - {"Any", "TYPE_CHECKING", "import_module"}
    assert public == set(NAMES)


def test_every_code_of_the_contract_has_one_error():
    codes = [leaf.code for leaf in leaves(AgentFSError)]
    assert sorted(codes) == sorted(CODES)


def test_the_tree_in_the_errors_docstring_names_every_class_and_code():
    from agentfs import errors

    assert errors.__doc__ is not None
    for leaf in leaves(AgentFSError):
        assert f"{leaf.__name__} " in errors.__doc__
        assert leaf.code in errors.__doc__


def test_what_a_model_sees_of_each_method_is_frozen():
    for name, expected in SIGNATURES.items():
        parameters = list(inspect.signature(getattr(Workspace, name)).parameters.values())[1:]
        visible = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        shown = [p.name if p.default is p.empty else f"{p.name}={p.default!r}" for p in visible]
        assert ", ".join(shown) == expected


def test_hints_are_real_objects_at_run_time():
    for name in SIGNATURES:
        assert "return" in typing.get_type_hints(getattr(Workspace, name))


def test_import_loads_none_of_the_dependencies():
    late = ("regex", "pathspec", "wcmatch", "difflib", "asyncio", "subprocess")
    code = f"import sys, agentfs; print([name for name in {late} if name in sys.modules])"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"
