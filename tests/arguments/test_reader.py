# ruff: noqa: E501 - a row of a table is one line

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from agentfs import Workspace
from agentfs.arguments.json_text import parse_arguments
from agentfs.arguments.kinds import SCALARS
from agentfs.arguments.parameters import ArgumentReader, Parameter
from agentfs.habits.foreign_names import ALIASES
from agentfs.results import Edit
from agentfs.tools.tool import tool_of
from tests.kit import error_of
from tests.tool_samples import Point, change, measure, search, settings

SEARCH = tool_of(search).parameters
CHANGE = tool_of(change).parameters
MEASURE = tool_of(measure).parameters
SETTINGS = tool_of(settings).parameters
EDIT = {"old_string": "a", "new_string": "b"}


def messages_of(parameters, given):
    reader = ArgumentReader(ALIASES)
    reader.read_members(parameters, given)
    return [problem.message for problem in reader.problems]


def values_of(parameters, given):
    reader = ArgumentReader(ALIASES)
    values = reader.read_members(parameters, given)
    assert reader.problems == []
    return values


@pytest.mark.parametrize(("sent", "meant"), [
    ("", {}), ("  ", {}), (None, {}), ("null", {}), ({}, {}), ("{}", {}), ('{"a": 1}', {"a": 1}),
    ('"{\\"a\\": 1}"', {"a": 1}), ('{"a": "x\ny\tz"}', {"a": "x\ny\tz"}),
])  # fmt: skip
def test_arguments_come_as_json_text_or_parsed(sent, meant):
    assert parse_arguments(sent) == meant


@pytest.mark.parametrize(("sent", "message"), [
    ('{"a": 1 "b": 2}', "line 1, column 9"),
    ('{"a": "b" "c": 1}', "expecting ',' delimiter at line 1, column 11"),
    ('{\n  "a": tru}', "line 2, column 8"), ('{"a": "unfinished', "cut off after 17 characters, at"),
    ('{"a": [1, 2', "cut off after 11 characters"), ('{"a": "b", "c', "cut off"),
    ('```json\n{"a": 1}\n```', "not valid JSON"), ('{"a": 1,}', "not valid JSON"),
    ('{"a": 1} trailing', "extra data at line 1, column 10"),
    ('{"a": 1, "a": 2}', '"a" is given twice'), ('{"x": {"b": 1, "b": 1}}', '"b" is given twice'),
    ('{"a": NaN}', "NaN is not a JSON number"), ('{"a": -Infinity}', "-Infinity is not a JSON number"),
    ("[" * 200_000, "nested too deep"), ('{"a": ' + "9" * 5000 + "}", "too many digits"),
    ("[1]", "one JSON object, not a list"), ("7", "not 7"), ([1], "not a list"), (b"{}", "not a bytes"),
])  # fmt: skip
def test_an_error_points_at_the_mistake_in_json(sent, message):
    assert message in error_of(parse_arguments, sent).message


@pytest.mark.parametrize("sent", [
    '```json\n{"a": ["b, }", 1]}\n```', '{"a": ["b, }", 1]}</tool_call>', '{"a": ["b, }", 1,],\n}',
    '```\n{"a": ["b, }", 1,]}\n```\n',
])  # fmt: skip
def test_regression_json_with_something_around_it_is_accepted_for_a_call_that_reads(sent):
    assert parse_arguments(sent, repair=True) == {"a": ["b, }", 1]}
    error_of(parse_arguments, sent)


def test_regression_arguments_that_were_cut_off_are_not_repaired(tmp_path):
    """They got "escape quotes"; now the error says to write less, or to append."""
    with Workspace(tmp_path) as ws:
        cut = '{"path": "a.txt", "content": "one two'
        assert "and add the rest with append." in ws.tools("all").call("write", cut).content
        assert "and add the rest later." in ws.tools().call("write", cut).content
        assert "escape" not in ws.tools().call("write", cut).content
        assert not ws.tools().call("write", '```json\n{"path": "a.txt", "content": ""}\n```').success
        assert ws.tools().call("ls", '```json\n{"path": "."}\n```').success
    assert [*tmp_path.iterdir()] == []


def test_a_hundred_thousand_repeated_names_are_found_at_once():
    text = "{" + ",".join(f'"n{n}":1' for n in range(100_000)) + ',"n99999":2}'
    assert "n99999" in str(error_of(parse_arguments, text))


@pytest.mark.parametrize(("parameters", "given", "values"), [
    (SEARCH, {"pattern": "x", "limit": "10"}, {"pattern": "x", "limit": 10}),
    (SEARCH, {"pattern": "x", "limit": " -5 "}, {"pattern": "x", "limit": -5}),
    (SEARCH, {"pattern": "x", "limit": 10.0}, {"pattern": "x", "limit": 10}),
    (SEARCH, {"pattern": "x", "limit": "10.0"}, {"pattern": "x", "limit": 10}),
    (SEARCH, {"pattern": "x", "limit": None}, {"pattern": "x", "limit": None}),
    (SEARCH, {"pattern": "x", "ignore_case": "True"}, {"pattern": "x", "ignore_case": True}),
    (SEARCH, {"pattern": "x", "ignore_case": None}, {"pattern": "x"}),
    (SEARCH, {"pattern": "x", "ignore_case": ""}, {"pattern": "x"}),
    (SEARCH, {"pattern": "x", "path": None}, {"pattern": "x"}),
    (SEARCH, {"pattern": "x", "path": ""}, {"pattern": "x", "path": ""}),
    *((SEARCH, {"pattern": "x", "output_mode": none}, {"pattern": "x"}) for none in ("none", "null", "")),
    (SEARCH, {"pattern": 42}, {"pattern": "42"}), (SEARCH, {"pattern": '["a"]'}, {"pattern": '["a"]'}),
    (SEARCH, {"pattern": "x", "output_mode": "Files-with-matches"}, {"pattern": "x", "output_mode": "files_with_matches"}),
    (SEARCH, {"pattern": "x", "glob": "*.py"}, {"pattern": "x", "glob": "*.py"}),
    (SEARCH, {"pattern": "x", "glob": ["*.py"]}, {"pattern": "x", "glob": ["*.py"]}),
    (SEARCH, {"pattern": "x", "glob": '["*.py", "*.md"]'}, {"pattern": "x", "glob": ["*.py", "*.md"]}),
    (SEARCH, {"pattern": "x", "glob": "[ab]*.py"}, {"pattern": "x", "glob": "[ab]*.py"}),
    (SEARCH, {"query": "x", "file_path": "a", "caseInsensitive": True}, {"pattern": "x", "path": "a", "ignore_case": True}),
    (SEARCH, {"regex": "x", "-i": True, "head_limit": 3}, {"pattern": "x", "ignore_case": True, "limit": 3}),
    (SEARCH, {"pattern": "x", "path": "a", "file_path": "a"}, {"pattern": "x", "path": "a"}),
    (CHANGE, {"path": "a", "edits": [EDIT]}, {"path": "a", "edits": [Edit("a", "b")]}),
    (CHANGE, {"path": "a", "edits": EDIT}, {"path": "a", "edits": [Edit("a", "b")]}),
    (CHANGE, {"path": "a", "edits": json.dumps([EDIT])}, {"path": "a", "edits": [Edit("a", "b")]}),
    (CHANGE, {"path": "a", "edits": json.dumps(EDIT)}, {"path": "a", "edits": [Edit("a", "b")]}),
    (CHANGE, {"path": "a", "edits": [json.dumps(EDIT)]}, {"path": "a", "edits": [Edit("a", "b")]}),
    (CHANGE, {"path": "a", "edits": [Edit("a", "b")]}, {"path": "a", "edits": [Edit("a", "b")]}),
    (CHANGE, {"path": "a", "edits": [{"old_str": "a", "newText": "b", "replaceAll": "true"}]}, {"path": "a", "edits": [Edit("a", "b", replace_all=True)]}),
    (CHANGE, {"path": "a", "edits": [EDIT | {"replace_all": None}]}, {"path": "a", "edits": [Edit("a", "b")]}),
    (CHANGE, {"path": "a", "edits": []}, {"path": "a", "edits": []}),
    (MEASURE, {"points": {"x": "1.5"}, "tags": "one"}, {"points": [Point(1.5)], "tags": ["one"]}),
    (MEASURE, {"points": [], "ranges": [{"first": 1}], "level": "2"}, {"points": [], "ranges": [{"first": 1}], "level": 2}),
    (MEASURE, {"points": [], "tags": "[1 of them"}, {"points": [], "tags": ["[1 of them"]}),
    (SETTINGS, {"values": '{"a": "1"}', "extra": {"b": [None]}}, {"values": {"a": 1}, "extra": {"b": [None]}}),
])  # fmt: skip
def test_an_unambiguous_value_is_converted(parameters, given, values):
    assert values_of(parameters, given) == values


@pytest.mark.parametrize(("parameters", "given", "messages"), [
    (SEARCH, {}, ["`pattern` is missing (a string)"]),
    (SEARCH, {"pattern": None}, ["`pattern` must be a string, not null"]),
    (SEARCH, {"pattern": True}, ["`pattern` must be a string, not true"]),
    (SEARCH, {"pattern": "x", "limit": True}, ["`limit` must be an integer, not true"]),
    (SEARCH, {"pattern": "x", "limit": 1.5}, ["`limit` must be an integer, not 1.5"]),
    (SEARCH, {"pattern": "x", "limit": math.nan}, ["`limit` must be an integer, not nan"]),
    (SEARCH, {"pattern": "x", "limit": math.inf}, ["`limit` must be an integer, not inf"]),
    (SEARCH, {"pattern": "x", "limit": 10**30}, ["`limit` must be an integer, not an integer of more than 64 bits"]),
    (SEARCH, {"pattern": "x", "limit": "٣"}, ['`limit` must be an integer, not "\\u0663"']),
    (SEARCH, {"pattern": "x", "limit": "ten"}, ['`limit` must be an integer, not "ten"']),
    (SEARCH, {"pattern": "x", "ignore_case": 1}, ["`ignore_case` must be true or false, not 1"]),
    (SEARCH, {"pattern": "x", "glob": {}}, ["`glob` must be a string or a list, each item a string, not an object"]),
    (SEARCH, {"pattern": "x", "output_mode": "contents"},
     [('`output_mode` must be one of "content", "files_with_matches", not "contents"'
      ' (did you mean "content"?)')]),
    (SEARCH, {"pattern": "x", "secret": 1}, ['there is no parameter "secret"']),
    (SEARCH, {"pattern": "x", "ignore_cas": 1}, ['there is no parameter "ignore_cas" (did you mean `ignore_case`?)']),
    (SEARCH, {"pattern": "x", "path": "a", "file_path": "b"}, ['`path` is given twice, as "path" and as "file_path"']),
    (SEARCH, {"pattern": "x", "file": "a", "dir": "b"}, ['`path` is given twice, as "file" and as "dir"']),
    (SEARCH, {"glob_pattern": "x"}, ['there is no parameter "glob_pattern" (did you mean `pattern`?)', "`pattern` is missing (a string)"]),
    (CHANGE, {"path": "a", "edits": [EDIT, {"old_string": 1.5, "nwe_string": ""}]},
     ['`edits[1]` has no member "nwe_string" (did you mean `new_string`?)',
      "`edits[1].old_string` must be a string, not 1.5", "`edits[1].new_string` is missing (a string)"]),
    (CHANGE, {"path": "a", "edits": "x"},
     [("`edits` must be a list, each item an object with old_string (required), new_string (required), "
      'replace_all, not "x"')]),
    (MEASURE, {"points": [{"x": -1}]}, ["`points[0]`: x must not be negative"]),
    (MEASURE, {"points": [], "level": 4}, ["`level` must be one of 1, 2, 3, not 4"]),
    (MEASURE, {"points": [], "level": True}, ["`level` must be one of 1, 2, 3, not true"]),
    (MEASURE, {"points": [], "scale": math.nan}, ["`scale` must be a number, not nan"]),
    (MEASURE, {"points": [], "scale": "1e999"}, ['`scale` must be a number, not "1e999"']),
    (MEASURE, {"points": [], "scale": "0\x1f"}, ['`scale` must be a number, not "0\\u001f"']),
    (SEARCH, {"limit": "x", "path": [], "nope": 1, "ignore_case": "no"},
     ['there is no parameter "nope"', "`pattern` is missing (a string)",
      "`path` must be a string, not a list",
      '`ignore_case` must be true or false, not "no"', '`limit` must be an integer, not "x"']),
])  # fmt: skip
def test_all_problems_are_reported_at_once(parameters, given, messages):
    assert messages_of(parameters, given) == messages


def test_a_list_as_broken_json_text_is_reported_with_its_position():
    (message,) = messages_of(CHANGE, {"path": "a", "edits": '[{"old_string": "a" "new_string": "b"}]'})
    assert "line 1, column 21" in message


def test_each_coercion_is_recorded():
    reader = ArgumentReader(ALIASES)
    edit = {"old_str": "a", "new_string": "b", "replace_all": "true"}
    reader.read_members(CHANGE, {"file": "a", "edits": edit})
    assert [(coercion.parameter, coercion.rule) for coercion in reader.coercions] == [
        ("path", 'alias "file"'), ("edits", "one item as a list"),
        ("edits[0].old_string", 'alias "old_str"'), ("edits[0].replace_all", '"true" as boolean'),
    ]  # fmt: skip


def test_messages_are_few_and_short():
    hostile = {f"n{'x' * 10_000}{n}": 1 for n in range(1000)} | {"pattern": ["\ud800" * 10_000]}
    assert all(len(message) < 300 for message in messages_of(SEARCH, hostile))
    assert len(messages_of(CHANGE, {"path": "a", "edits": [1] * 1_000_000})) < 200


def test_an_alias_is_never_the_name_of_another_parameter():
    for parameters in (SEARCH, CHANGE, MEASURE):
        for name in (parameter.name for parameter in parameters):
            assert values_of([Parameter(name, SCALARS[str], "", required=True)], {name: "x"}) == {name: "x"}
    assert "glob" in ALIASES["pattern"]
    assert values_of(SEARCH, {"pattern": "x", "glob": "y"})["glob"] == "y"


# Values that we accept, pydantic's lax mode accepts with the same result, except where our contract differs.
@pytest.mark.parametrize("kind", [int, float, bool, str])
@given(value=st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(
    ["10", " 7", "1.0", "true", "False", "1e3", "0x1", "1_0", "-0", "+5", "", "nan", "inf"]))  # fmt: skip
def test_pydantic_agrees_on_coercions(kind, value):
    reader = ArgumentReader(ALIASES)
    found = SCALARS[kind].read(value, "a", reader)
    if reader.problems:
        return
    if kind is str and isinstance(value, int):
        assert found == str(value)  # ours: a number for a string
        return
    try:
        assert TypeAdapter(kind).validate_python(value) == kind(found)
    except ValidationError:
        assert isinstance(value, str)
        assert value != value.strip()
    assert kind is bool or not isinstance(found, bool)
