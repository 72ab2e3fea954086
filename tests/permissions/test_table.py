"""The table of decisions: every way to change a path, under every kind of rule, mode and policy."""

from collections.abc import Mapping
from typing import Any

import pytest

from agentfs import AgentFSError, Policy, Workspace
from agentfs.permission.decide import Subject, decide
from tests.permissions.ways import WAYS, Way

ACTIONS = ("create", "edit", "delete")
# The actions that each name of a rule is about.
GROUPS = {
    "create": {"create"}, "edit": {"edit"}, "delete": {"delete"}, "write": {"create", "edit"},
    "change": {*ACTIONS}, "*": {*ACTIONS},
}  # fmt: skip


def snapshot(root):
    return {path: path.read_text() for path in root.rglob("*.txt") if path.is_file()}


@pytest.fixture(params=WAYS, ids=lambda way: way.name)
def way(request) -> Way:
    return request.param


def outcome(root, way: Way, settings: Mapping[str, Any]) -> tuple[str, bool]:
    """Return the code of a way under settings, and if it changed anything."""
    policy = Policy(**{**({"run": way.run} if way.run else {}), **settings})
    with Workspace(root, policy=Policy()) as before:
        way.prepare(before)
    with Workspace(root, policy=policy, state=None) as ws:
        for setup in way.setup:
            setup(ws.host)
        found = snapshot(root)
        try:
            way.act(ws)
        except AgentFSError as error:
            return error.code, snapshot(root) != found
        return "", snapshot(root) != found


@pytest.mark.full
@pytest.mark.parametrize("name", [*GROUPS])
@pytest.mark.parametrize("form", ["{}", "{}(src/**)", "{}(other/**)"])
def test_each_way_under_each_deny_rule(tmp_path, way, name, form):
    rule = form.format(name)
    expected = way.is_hit_by(GROUPS[name], rule)
    if expected is None or (way.others and "(" not in rule):
        return
    code, changed = outcome(tmp_path, way, {"deny": [rule]})
    if expected:
        # `*` denies reading too, so a search or a command finds nothing to change.
        assert code == "refused" or name == "*", rule
        assert not changed
    else:
        assert (code, changed) == ("", True), rule


@pytest.mark.parametrize("name", ["create", "edit", "delete"])
def test_each_way_under_the_three_actions(tmp_path, way, name):
    code, changed = outcome(tmp_path, way, {"deny": [f"{name}(src/**)"]})
    assert (code == "refused", changed) == ((name in way.actions), name not in way.actions)


@pytest.mark.parametrize(("settings", "allowed"), [
    ({"mode": "plan"}, False), ({"read_only": True}, False), ({"ask": ["change(src/**)"]}, False),
    ({"ask": ["change(src/**)"], "on_ask": lambda request: False}, False),
    ({"ask": ["change(src/**)"], "on_ask": lambda request: True}, True),
    ({"ask": ["change(x/**)"]}, True), ({"on_ask": lambda request: False}, False),
    ({"allow": ["read"]}, False), ({"allow": ["change(other/**)", "run"]}, False),
    ({"allow": ["change(src/**)", "run"]}, None), ({"allow": ["*"]}, True), ({"mode": "bypass"}, True),
    ({"mode": "bypass", "deny": ["change(src/**)"]}, False), ({}, True),
])  # fmt: skip
def test_each_way_under_modes_and_policies(tmp_path, way, settings, allowed):
    code, changed = outcome(tmp_path, way, settings)
    allowed = not way.others if allowed is None else allowed
    assert (code == "", changed) == (allowed, allowed), code


@pytest.mark.parametrize("rules", [
    {"deny": ["write"]}, {"deny": ["write(src/**)"]}, {"ask": ["write"]}, {"ask": ["write(src/**)"]},
    {"allow": ["edit"]}, {"on_ask": lambda request: request.effect != "write"},
])  # fmt: skip
@pytest.mark.parametrize("way", [each for each in WAYS if each.actions == {"create"} and not each.run])
def test_no_tool_creates_a_file_past_the_rules_of_write(tmp_path, way, rules):
    """An edit with an empty old text creates a file, so it is judged as a write too."""
    code, changed = outcome(tmp_path, way, rules)
    assert (code, changed) == ("refused", False)


PLAIN = Policy()


@pytest.mark.parametrize(("policy", "names", "effect", "subject", "expected"), [
    (PLAIN, ("x",), "read", Subject(("a",)), "allow"), (PLAIN, ("x",), "edit", Subject(("a",)), "allow"),
    (Policy(deny=["change(test_*.py)"]), ("run",), "edit", Subject(("t/test_a.py",)), "refuse"),
    (Policy(deny=["change(test_*.py)"]), ("run",), "read", Subject(("t/test_a.py",)), "allow"),
    (Policy(ask=["change(*.lock)"]), (), "create", Subject(("uv.lock",)), "ask"),
    (Policy(deny=["change(app/[id]/**)"]), (), "edit", Subject(("app/[id]/a",)), "refuse"),
    (Policy(deny=["change(app/[id]/**)"]), (), "edit", Subject(("app/i/a",)), "refuse"),
    (Policy(deny=["change(app/[id]/**)"]), (), "edit", Subject(("app/x/a",)), "allow"),
    (Policy(allow=["change(app/{a}/**)"]), (), "edit", Subject(("app/{a}/x",)), "allow"),
    (Policy(deny=["run(rm -rf /*)"]), ("run",), "command", Subject(command="rm -rf /tmp"), "refuse"),
    (Policy(deny=["run(rm *)"]), ("run",), "command", Subject(command="sudo rm x"), "refuse"),
    (Policy(allow=["run(ls /tmp)"]), ("run",), "command", Subject(command="ls /tmp"), "allow"),
    (Policy(allow=["run(/bin/git *)"]), ("run",), "command", Subject(command="/bin/git log"), "allow"),
    (Policy(allow=["change(src/**)", "run"]), ("run",), "command", Subject(command="ls"), "allow"),
    (Policy(allow=["change"]), ("run",), "command", Subject(command="ls"), "ask"),
    (Policy(deny=["change"]), ("run",), "command", Subject(command="ls"), "allow"),
    (Policy(deny=["change"]), ("bash",), "execute", Subject(command="ls"), "refuse"),
    (Policy(deny=["read"]), ("run",), "command", Subject(command="ls"), "refuse"),
    (Policy(deny=["edit"]), ("edit",), "create", Subject(("a",)), "allow"),
    (Policy(deny=["fetch(https://a/*)"]), ("fetch",), "read", Subject(text="https://a/b"), "refuse"),
    (Policy(mode="plan", ask=["*"]), (), "edit", Subject(("a",)), "refuse"),
    (Policy(mode="accept_edits", on_ask=bool), (), "edit", Subject(("a",)), "allow"),
    (Policy(mode="accept_edits", on_ask=bool), (), "create", Subject(("a",)), "allow"),
    (Policy(mode="accept_edits", on_ask=bool), (), "delete", Subject(("a",)), "ask"),
    (Policy(mode="accept_edits", ask=["edit"]), (), "edit", Subject(("a",)), "ask"),
    (Policy(mode="bypass", deny=["*"]), (), "read", Subject(("a",)), "refuse"),
    (Policy(deny=["*"]), ("x",), "none", Subject(), "allow"),
    (Policy(deny=["Change(a)".lower()]), (), "edit", Subject(("A",)), "refuse"),
    (Policy(deny=["change(a)"]), (), "edit", Subject(("A",), ignores_case=False), "allow"),
])  # fmt: skip
def test_decide(policy, names, effect, subject, expected):
    assert decide(policy, names, effect, subject).outcome == expected
