"""The output of a command as a model reads it: bounded, without repeats, and never bytes that say nothing."""

import pytest

from agentfs.text.display import estimate_tokens


@pytest.fixture
def shown(recorded):
    tools = recorded.tools("all")
    return lambda command: tools.call("run", {"command": command}).content


@pytest.mark.parametrize(("command", "lines"), [
    ("yes | head -100000", ["y", "⟦+99999 equal lines⟧"]),
    ("printf 'a\\nb\\nb\\nb\\nb\\nc\\n'", ["a", "b", "⟦+3 equal lines⟧", "c"]),
    ("printf 'a\\nb\\nb\\nb\\nc\\n'", ["a", "b", "b", "b", "c"]),
    ("printf '%03000d' 1", ["0" * 2000 + "⟦+1000 characters⟧"]),
    ("head -c 3000 /dev/urandom", ["[3000 bytes of output that is not text]"]),
    ("printf 'caf\\351 and more\\n'", ["caf\\xe9 and more"]),
])  # fmt: skip
def test_regression_output_is_short_whatever_it_is(shown, command, lines):
    assert shown(command).splitlines()[1 : len(lines) + 1] == lines


def test_the_whole_of_output_that_was_folded_can_be_read(recorded):
    tools = recorded.tools("all")
    text = tools.call("run", {"command": "yes | head -50"}).content
    name = text.partition('read(path="')[2].partition('"')[0]
    assert tools.call("read", {"path": name}).data["total_lines"] == 50


@pytest.mark.parametrize("name", ["run_in_background", "is_background"])
def test_regression_other_names_of_background_are_understood(staged, recorded, name):
    assert staged.tools("all").call("run", {"command": "echo hi", name: False}).success
    tools = recorded.tools("all")
    assert tools.call("run", {"command": "echo hi", name: False}).data["exit_status"] == 0
    assert tools.call("run", {"command": "echo hi", name: True}).data["id"] == "c1"


def test_regression_numbers_take_at_most_2000_tokens(shown):
    """16,000 characters of output were shown, whatever they cost: 10,848 tokens of these."""
    assert estimate_tokens(shown("seq 30000")) <= 2_000
