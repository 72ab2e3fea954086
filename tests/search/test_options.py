"""The options of each search are the parameters of its method, and make the call for the next page."""

import inspect
from dataclasses import fields, replace

import pytest

from agentfs import Workspace
from agentfs.editing.change_options import EditLinesOptions
from agentfs.reading.page import ReadOptions
from agentfs.search.options import GlobOptions, GrepOptions, ListOptions, next_page

OPTIONS = [
    (ReadOptions("f"), Workspace.read),
    (EditLinesOptions("f", []), Workspace.edit_lines),
    (ListOptions(), Workspace.ls),
    (GlobOptions("*"), Workspace.glob),
    (GrepOptions("x"), Workspace.grep),
]


@pytest.mark.parametrize(("options", "method"), OPTIONS)
def test_options_begin_with_the_parameters_of_the_method_in_their_order(options, method):
    parameters = list(inspect.signature(method).parameters.values())[1:]
    found = fields(options)[: len(parameters)]
    assert [each.name for each in found] == [each.name for each in parameters]
    assert options.method == method.__name__
    for parameter, field in zip(parameters, found, strict=True):
        if parameter.default is not parameter.empty:
            assert field.default == parameter.default


@pytest.mark.parametrize(("options", "method"), OPTIONS[2:])
def test_the_call_for_the_next_page_repeats_arguments_without_defaults(options, method):
    required = {"pattern": options.pattern} if isinstance(options, (GlobOptions, GrepOptions)) else {}
    assert next_page(options, 7) == {"name": method.__name__, "arguments": {**required, "offset": 7}}
    given = replace(options, path=["a", "b"], hidden=False, include_ignored=True, limit=3, offset=4)
    arguments = next_page(given, 7)["arguments"]
    added = {"path": ["a", "b"], "limit": 3, "include_ignored": True, "hidden": False, "offset": 7}
    assert arguments == {**required, **added}


def test_regression_the_next_page_of_a_search_for_line_ids_has_them_too(tmp_path):
    (tmp_path / "f").write_text("x\nx\nx\n")
    with Workspace(tmp_path) as ws:
        page = ws.grep("x", limit=2, line_ids=True)
        assert page.next is not None
        rest = ws.grep(**page.next["arguments"])
        assert [match.line for match in rest.matches] == [3]
        assert rest.matches[0].line_id is not None
