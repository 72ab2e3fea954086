"""A workspace with mounts answers as one real tree with the same files, method by method.

The model is a copy in one directory. Where the system allows mount namespaces, the same test runs again with
bind mounts as the model.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentfs import AgentFSError, Mount, Policy, Workspace

BIND, EXAMPLES = "AGENTFS_TEST_BIND", "AGENTFS_TEST_EXAMPLES"
PLACES = ("lib", "notes", "z")  # where the mounts are; the sources lie elsewhere
NAMES = ("a.py", "b.md", "sub/c.py", "sub/deep/d.txt")
TEXTS = ("needle one\n", "two\nneedle\nthree\n", "nothing\n", "")
DIRECTORIES = ("", "src/", *(f"{place}/" for place in PLACES))
paths = st.sampled_from([directory + name for directory in DIRECTORIES for name in NAMES])
files = st.dictionaries(paths, st.sampled_from(TEXTS), min_size=3, max_size=12)
above = st.sampled_from(("", ".", "deps", *PLACES, "src", "lib/..", "notes/../src", "notes/sub"))
some = st.one_of(paths, above)
METHODS = {
    "read": (some,), "ls": (above,), "grep": ("needle", above), "write": (some, st.sampled_from(TEXTS)),
    "glob": (st.sampled_from(("**", "*.py", "lib/**", "**/sub/*", "*/sub/**")),), "append": (some, "more\n"),
    "edit": (some, "needle", "pin"), "replace": ("needle", "pin"), "move": (paths, paths),
    "delete": (paths,), "undo": (), "redo": (), "changes": (),
}  # fmt: skip
calls = st.lists(
    st.one_of(*(
        st.tuples(st.just(name), st.tuples(*(st.just(it) if isinstance(it, str) else it for it in values)))
        for name, values in METHODS.items()
    )),
    min_size=1, max_size=10,
)  # fmt: skip
_LOSES = {"mtime", "mount", "elapsed_ms", "modified"}


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items() if key not in _LOSES}
    return [plain(each) for each in value] if isinstance(value, list) else value


def outcome(workspace: Workspace, name: str, given: tuple[Any, ...]) -> Any:
    try:
        result = getattr(workspace, name)(*given)
    except AgentFSError as error:
        return error.code
    return plain(result.to_dict())


def tree_of(top: Path) -> dict[str, str]:
    return {str(each.relative_to(top)): each.read_text() for each in sorted(top.rglob("*")) if each.is_file()}


def build(directory: Path, contents: dict[str, str]) -> tuple[Path, Path, dict[str, Mount]]:
    model, root, mounts = directory / "model", directory / "root", dict[str, Mount]()
    for number, place in enumerate(PLACES):
        source = directory / f"source-{number}"
        for each in (source, model / place, root):
            each.mkdir(parents=True, exist_ok=True)
        mounts[place] = Mount(source)
        if os.environ.get(BIND):
            bound = directory / f"bound-{number}"
            bound.mkdir()
            subprocess.run(["mount", "--bind", bound, model / place], check=True)
    for path, text in contents.items():
        place, _, name = path.partition("/")
        source = directory / f"source-{PLACES.index(place)}" if place in PLACES else root / place
        for target in (model / path, source / name if name else source):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
            os.utime(target, (1_000_000_000, 1_000_000_000))
    return model, root, mounts


@pytest.mark.parametrize("way", ["cold", "watched", "transaction"])
@settings(max_examples=int(os.environ.get(EXAMPLES, "5")), suppress_health_check=list(HealthCheck))
@given(contents=files, steps=calls)
def test_mounts_answer_as_one_tree(way, contents, steps):
    with tempfile.TemporaryDirectory() as made:
        directory = Path(os.path.realpath(made))
        model, root, mounts = build(directory, contents)
        policy = Policy(overwrite="always")
        watch = "calls" if way == "watched" else False
        with (
            Workspace(model, policy=policy, watch=watch) as one,
            Workspace(root, mounts=mounts, policy=policy, watch=watch) as several,
        ):
            if way == "transaction":
                with one.transaction() as first, several.transaction() as second:
                    compare(first, second, steps)
            else:
                compare(one, several, steps)
            assert outcome(one, "grep", ("needle",)) == outcome(several, "grep", ("needle",))
        found = tree_of(root)
        for number, place in enumerate(PLACES):
            below = tree_of(directory / f"source-{number}")
            found |= {f"{place}/{path}": text for path, text in below.items()}
        expected = tree_of(model)
        if os.environ.get(BIND):
            for place in PLACES:
                subprocess.run(["umount", model / place], check=True)
        assert found == expected


@pytest.mark.full
@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("unshare") is None, reason="it needs a mount namespace")
@pytest.mark.parametrize("examples", [3, pytest.param(300, marks=pytest.mark.long)])
def test_mounts_answer_as_bind_mounts(examples):
    if BIND in os.environ:
        pytest.skip("this is the run in the namespace")
    command = ["unshare", "-m", "--propagation", "private", sys.executable, "-m", "pytest", "-q", __file__]
    environment = {**os.environ, BIND: "1", EXAMPLES: str(examples)}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout


def compare(one: Workspace, several: Workspace, steps: list[tuple[str, tuple[Any, ...]]]) -> None:
    for name, given_ in steps:
        assert outcome(one, name, given_) == outcome(several, name, given_), (name, given_)
