"""Systems that cannot stage a command: `run` is refused with the reason, and never runs in another way."""

import pytest

from agentfs.commands import sandbox
from tests.commands.conftest import snapshot
from tests.kit import refused


@pytest.fixture
def bubblewrap(tmp_path, monkeypatch):
    """Return a function that puts a program in the place of bubblewrap."""

    def replace(version: str, error: str) -> None:
        program = tmp_path / "bin/bwrap"
        program.parent.mkdir(exist_ok=True)
        program.write_text(
            f'#!/bin/sh\n[ "$1" = --version ] && exec echo "{version}"\necho "{error}" >&2; exit 1\n'
        )
        program.chmod(0o755)
        monkeypatch.setattr(sandbox, "system_program", lambda name: str(program.with_name(name)))
        sandbox._probe.cache_clear()

    yield replace
    sandbox._probe.cache_clear()


@pytest.mark.parametrize(("version", "error", "reason", "hint"), [
    (
        "bubblewrap 0.12.1",
        "bwrap: No permissions to create a new namespace",
        "No permissions to create a new namespace",
        "namespace",
    ),
    ("bubblewrap 0.11.0", "bwrap: Can't make overlay mount", "Can't make overlay mount", "overlays"),
])  # fmt: skip
def test_the_reason_of_the_system_is_given(opened, tree, bubblewrap, version, error, reason, hint):
    bubblewrap(version, error)
    before = snapshot(tree)
    raised = refused(lambda: opened("staged").run("touch made"), "unsupported")
    assert reason in raised.details["reason"]
    assert hint in raised.hint
    assert "recorded" in raised.hint
    assert snapshot(tree) == before
    assert opened("recorded").run("touch made").confinement == "recorded"


def test_an_old_bubblewrap_is_not_used(opened, tree, bubblewrap, monkeypatch):
    monkeypatch.setattr(sandbox, "_OLDEST", (99, 0))
    bubblewrap("bubblewrap 0.8.0", "")
    error = refused(lambda: opened("staged").run("touch made"), "unsupported")
    assert "which has no overlays" in error.details["reason"]
    assert "Install bubblewrap 99.0 or newer" in error.hint
    assert not (tree / "made").exists()
