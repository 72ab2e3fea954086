"""Policy files: what they set, what they refuse, and that no tool can change them."""

import json
import os
from dataclasses import fields
from importlib import import_module

import pytest

from agentfs import Limits, Policy, Protect, Workspace
from agentfs.cli.command_options import CommandOptions
from agentfs.cli.policy_file import read_policy_file, settings_of
from tests.forked import run_command
from tests.kit import code_of, error_of, put

ALL = """
deny = ["read(private/**)"]
ask = ["delete"]
allow = ["edit(src/**)", "write"]
mode = "accept_edits"
read_only = false
root = "../project"
dialect = "wave"
prefix = "fs_"

[protect]
read = ["*.secret", "!.npmrc"]
write = ["Makefile"]

[limits]
read_lines = 500
timeout = 2.5
"""


@pytest.fixture
def root(tmp_path):
    return put(tmp_path / "project", {"a.txt": "one\n"})


@pytest.fixture
def file(tmp_path):
    def write(text, *names):
        name = "/".join(names) or "config/policy.toml"
        return put(tmp_path, {name: text}) / name

    return write


def read(path, limits=None):
    return read_policy_file(str(path), limits or Limits())


def checked(path, root, **options):
    return settings_of(CommandOptions(root=str(root), policy=str(path), **options), Limits())


def refused(path):
    error = error_of(read, path)
    return f"{error}\n{error.hint}"


def test_a_file_sets_policy_limits_and_names(file, root):
    settings = read(file(ALL))
    assert settings.policy == Policy(
        deny=["read(private/**)"], ask=["delete"], allow=["edit(src/**)", "write"], mode="accept_edits",
        protect=Protect(read=[*Protect.READ, "*.secret", "!.npmrc"], write=[*Protect.WRITE, "Makefile"]),
    )  # fmt: skip
    assert settings.limits == Limits(read_lines=500, timeout=2.5)
    assert os.path.realpath(settings.root) == os.path.realpath(root)
    assert (settings.dialect, settings.prefix) == ("wave", "fs_")


def test_an_empty_file_sets_nothing(file):
    settings = read(file(""), Limits(timeout=3))
    assert (settings.policy, settings.limits) == (Policy(), Limits(timeout=3))
    assert (settings.root, settings.dialect, settings.prefix) == (".", "agentfs", "")


@pytest.mark.parametrize(("text", "said"), [
    ("alow = []", ["`alow` is not a setting", "deny, ask", "allow", "mounts"]),
    ("on_ask = 1", ["`on_ask` is not a setting"]),
    ("allow = 'read'", ["Policy.allow must be a list of rules"]),
    ("ask = [1]", ["1 is not a rule"]),
    ("[protect]\nread = ['/root/secrets/']", ["Protect.read", "leave out the leading `/`"]),
    ("[protect]\nwrite = ['~/.bashrc']", ["Protect.write", "`~` stands for no directory"]),
    ("[protect]\nread = ['!.env ']", ["Protect.read", "leave out the space"]),
    ("mode = 'plann'", ["Policy.mode", "'plan'"]), ("read_only = 1", ["Policy.read_only"]),
    ("protect = []", ["`protect` must be a table"]),
    ("[protect]\nreads = []", ["`reads` is not a setting", "are read, write"]),
    ("[protect]\nread = ['..']", ["Protect.read"]),
    ("[limits]\nread_line = 1", ["`read_line` is not a setting", "read_lines", "timeout"]),
    ("[limits]\nread_lines = 0", ["Limits.read_lines must be a positive number"]),
    ("[limits]\ncount_tokens = 1", ["`count_tokens` is not a setting"]),
    ("root = 1", ["`root` must be a string"]), ("[mounts]\nx = 3", ["`x` must be a string"]),
    ("mounts = 'x'", ["`mounts` must be a table"]), ("dialect = 1", ["`dialect` must be a string"]),
    ("allow = read", ["is not TOML", "line 1"]), ("allow = []\nallow = []", ["is not TOML"]),
])  # fmt: skip
def test_an_error_names_the_file_the_key_and_the_valid_names(file, text, said):
    path = file(text)
    message = refused(path)
    assert str(path) in message
    for each in said:
        assert each in message


@pytest.mark.parametrize("rule", ["edit({)", "edit(../x)", "read( x)", 'read("x")', "read(/root/secrets/**)"])
def test_a_wrong_rule_of_a_file_is_an_error_of_the_workspace(file, root, rule):
    """`deny = ["read(/root/secrets/**)"]` was accepted and protected nothing."""
    policy = read(file(f"deny = [{rule!r}]")).policy
    assert code_of(Workspace, root, policy=policy) == "invalid_argument"


def test_a_file_that_cannot_be_read_is_an_error(file, tmp_path):
    assert "No such file" in refused(tmp_path / "missing.toml")
    assert "cannot be read" in refused(tmp_path)
    binary = file("")
    binary.write_bytes(b"# \xff")
    assert "is not TOML" in refused(binary)


def test_each_setting_of_a_policy_and_of_limits_can_be_in_a_file(file):
    for kind, table in ((Policy, ""), (Limits, "[limits]\n")):
        for each in fields(kind):
            value = getattr(kind(), each.name)
            if each.name in ("on_ask", "after_change", "protect", "count_tokens") or value is None:
                continue
            text = json.dumps(list(value) if isinstance(value, tuple) else value)
            settings = read(file(f"{table}{each.name} = {text}"))
            assert (settings.policy, settings.limits) == (Policy(), Limits())


@pytest.mark.parametrize("place", ["policy.toml", "deep/er/policy.toml"])
def test_a_file_in_the_workspace_is_refused(file, root, place):
    """Attack: a model edits the policy that it works under."""
    path = file("", "project", *place.split("/"))
    assert "where a model could use it" in error_of(checked, path, root).message
    assert checked(path, root, read_only=True).policy.read_only


@pytest.mark.parametrize("links", [
    {"outside.toml": "project/policy.toml"}, {"project/link.toml": "../config/policy.toml"},
    {"project/config": "../config"},
    {"outside.toml": "project/link.toml", "project/link.toml": "../config/policy.toml"},
    {"around": "project", "outside.toml": "around/policy.toml"},
    {"outside.toml": "project/../project/link.toml", "project/link.toml": "../config/policy.toml"},
])  # fmt: skip
def test_a_file_is_refused_if_a_link_on_the_way_is_in_the_workspace(file, root, tmp_path, links):
    """Attack: a link in the workspace leads to the file, so a model could let it lead to another."""
    file("")
    file("", "project", "policy.toml")
    for link, target in links.items():
        (tmp_path / link).symlink_to(tmp_path / target if link == "outside.toml" else target)
    first = next(iter(links))
    path = tmp_path / ("outside.toml" if "outside.toml" in links else first)
    path = path / "policy.toml" if path.is_dir() else path
    assert code_of(checked, path, root) == "refused"


def test_a_link_to_the_workspace_does_not_hide_that_a_file_is_in_it(file, root, tmp_path):
    path = file("", "project", "policy.toml")
    (tmp_path / "around").symlink_to("project")
    (tmp_path / "config").mkdir()
    around = tmp_path / "config" / ".." / "around"
    for spelled in (path, tmp_path / "around" / "policy.toml", around / "policy.toml"):
        for directory in (root, tmp_path / "around", os.path.relpath(root)):
            assert code_of(checked, spelled, directory) == "refused"


def test_a_file_beside_the_workspace_is_accepted(file, root, monkeypatch):
    path = file("")
    checked(path, root / "missing")
    for spelled in (path, os.path.relpath(path), root / ".." / "config" / "policy.toml"):
        checked(spelled, root)
    monkeypatch.chdir(root)
    checked("../config/policy.toml", ".")


@pytest.mark.full
def test_the_server_refuses_a_policy_file_in_its_workspace(file, root):
    import_module("agentfs.mcp")  # otherwise each forked process loads it
    path = file("", "project", "policy.toml")
    for options in (["--root", root], ["--root", root.parent]):
        done = run_command("mcp", *map(str, options), "--policy", str(path), cwd=root)
        assert done.returncode == 2, options
        assert "where a model could use it" in done.stderr
    # A server whose client leaves at once.
    assert run_command("mcp", "--root", str(root), "--policy", str(file("")), cwd=root).returncode == 0
