"""A rule is checked on the file that is opened or written, under any name of the file."""

import os
import time
import unicodedata

import pytest

from agentfs import Policy, Protect, Workspace
from agentfs.cli import main
from agentfs.errors import AgentFSError, BusyError, RefusedError, StaleError
from agentfs.fs import syscalls
from tests import kit
from tests.faults.test_races import attacking, needs_exchange
from tests.kit import code_of, error_of, put

SECRET = "the-secret-text"


@pytest.fixture
def tree(tmp_path):
    texts = {"src/a.txt": "one\n", "public/k.txt": "harmless\n", "secret/k.txt": f"{SECRET}\n"}
    (tmp_path / "tree/other").mkdir(parents=True)
    return put(tmp_path / "tree", texts)


def everything_below(tree):
    return {str(path.relative_to(tree)) for path in tree.rglob("*")}


@pytest.mark.parametrize("policy", [
    Policy(allow=["write(src/**)"]), Policy(deny=["write(other/**)"]),
    Policy(on_ask=lambda request: all(path.startswith("src/") for path in request.paths)),
])  # fmt: skip
@pytest.mark.parametrize(("link", "target", "path"), [
    ("src/dangling", "../other/new.txt", "src/dangling"),
    ("src/dangling", "../other/new", "src/dangling/new.txt"),
    ("src/dangling", "../other", "src/dangling/deep/new.txt"),
])  # fmt: skip
def test_a_write_through_a_dangling_link_stays_within_the_granted_paths(tree, policy, link, target, path):
    os.symlink(target, tree / link)
    before = everything_below(tree)
    with Workspace(tree, policy=policy) as ws:
        assert code_of(ws.write, path, "x") == "refused"
    assert everything_below(tree) == before


@pytest.mark.parametrize("rule", ["read(secret/**)", "read(secret)", "*(secret/**)"])
@pytest.mark.parametrize("call", [
    lambda ws: ws.read("secret/k.txt"), lambda ws: ws.read("link/k.txt"),
    lambda ws: ws.grep("secret|text", path="secret"), lambda ws: ws.grep("secret|text", path="secret/k.txt"),
    lambda ws: kit.grep(ws, "secret|text", follow_symlinks=True),
    lambda ws: ws.edit("secret/k.txt", SECRET, "changed"),
    lambda ws: ws.edit("secret/k.txt", "the-secret-txt", "changed"),  # it misses
    lambda ws: ws.edit("public/k.txt", SECRET, "changed"),  # it misses in another file
    lambda ws: ws.edit("secret/k.txt", "the", "changed", preview=True),
    lambda ws: ws.write("secret/k.txt", "x", overwrite=True),
    lambda ws: ws.move("secret/k.txt", "public/moved.txt"), lambda ws: ws.delete("secret/k.txt"),
])  # fmt: skip
def test_files_denied_to_reading_are_not_shown_or_changed_by_any_method(tree, rule, call):
    os.symlink("secret", tree / "link")
    with Workspace(tree, policy=Policy(deny=[rule])) as ws:
        assert SECRET not in said_by(call, ws)
        found = ws.grep("e", path=".")
        assert {match.path for match in found.matches} == {"src/a.txt", "public/k.txt"}
        assert found.skipped.protected == 1
    assert (tree / "secret" / "k.txt").read_text() == f"{SECRET}\n"
    assert not (tree / "public" / "moved.txt").exists()


def said_by(call, *given):
    """Return what a call shows, or its error."""
    try:
        return str(call(*given))
    except AgentFSError as error:
        return f"{error}{error.details}"


def test_a_file_denied_to_reading_does_not_explain_a_miss(tree):
    state = tree.parent / "state"
    with Workspace(tree, state=state) as ws:
        ws.read("secret/k.txt")
    policy = Policy(deny=["read(secret/**)"])
    with Workspace(tree, state=state, policy=policy) as ws:
        said = str(error_of(ws.edit, "public/k.txt", f"{SECRET}\n", "x"))
    assert "secret/k.txt" not in said, "told as the file that the text is in"


@pytest.mark.parametrize(("rule", "undone"), [
    *((f"{name}(src/**)", False) for name in ("edit", "write", "change", "read")), ("change(other/**)", True),
])  # fmt: skip
def test_undo_does_not_change_what_a_rule_denies(tree, rule, undone):
    state = tree.parent / "state"
    with Workspace(tree, state=state) as ws:
        ws.edit("src/a.txt", "one", "two")
    with Workspace(tree, state=state, policy=Policy(deny=[rule])) as ws:
        assert ws.undo() if undone else code_of(ws.undo) == "refused"
    assert (tree / "src" / "a.txt").read_text() == ("one\n" if undone else "two\n")


def test_a_transaction_is_judged_file_by_file(tree):
    os.symlink("../secret", tree / "src" / "link")
    with Workspace(tree, policy=Policy(deny=["*(secret/**)"])) as ws, ws.transaction() as inner:
        inner.edit("src/a.txt", "one", "two")
        assert code_of(inner.read, "src/link/k.txt") == "refused"
        assert code_of(inner.write, "src/link/new.txt", "x") == "refused"
    assert (tree / "src" / "a.txt").read_text() == "two\n"
    assert not (tree / "secret" / "new.txt").exists()


def fold_names(monkeypatch):
    """Make the system calls ignore case in names."""

    def folding(call):
        return lambda handle, name, *more, **named: call(handle, str(name).lower(), *more, **named)

    for name in ("enter", "open_directory", "open_file", "create_file", "lstat"):
        monkeypatch.setattr(syscalls, name, folding(getattr(syscalls, name)))


@pytest.mark.parametrize("path", ["SECRET/k.txt", "Secret/K.TXT", "secret/K.txt"])
def test_a_rule_matches_in_other_case_if_the_file_system_ignores_case(tree, monkeypatch, path):
    fold_names(monkeypatch)
    with Workspace(tree) as ws:
        assert SECRET in str(ws.read(path)), "the attack works without the rule"
    new = path.replace("k.", "new.").replace("K.", "new.")
    with Workspace(tree, policy=Policy(deny=["*(secret/**)"])) as ws:
        assert code_of(ws.read, path) == code_of(ws.edit, path, "the", "x") == "refused"
        assert code_of(ws.write, new, "x") == "refused"
    assert everything_below(tree / "secret") == {"k.txt"}


@pytest.mark.parametrize(("form", "other"), [("NFC", "NFD"), ("NFD", "NFC")])
def test_regression_a_deny_rule_holds_for_names_in_the_other_unicode_form(tree, form, other):
    path, rule = (f"{unicodedata.normalize(each, 'café')}/" for each in (form, other))
    put(tree, {f"{path}k.txt": "kept\n"})
    with Workspace(tree, policy=Policy(deny=[f"*({rule}**)"])) as ws:
        assert code_of(ws.read, f"{path}k.txt") == code_of(ws.edit, f"{path}k.txt", "kept", "x") == "refused"
    assert (tree / path / "k.txt").read_text() == "kept\n"


def test_a_rule_matches_one_case_if_the_file_system_is_case_sensitive(tree):
    (tree / "SECRET").mkdir()
    (tree / "SECRET" / "k.txt").write_text("another\n")
    with Workspace(tree, policy=Policy(deny=["*(secret/**)"])) as ws:
        assert "another" in str(ws.read("SECRET/k.txt"))
        ws.write("SECRET/new/x.txt", "x")


def swapping(tree):
    """Swap the target of `src/link` repeatedly, in another process."""
    link, other = tree / "src/link", tree / "src/other"
    link.symlink_to("../public")
    other.symlink_to("../secret")
    return attacking((link, other))


def going_on(start, seen):
    """Attack for at least a fifth of a second, and for up to 60 until the naive way has failed."""
    return time.monotonic() < start + (0.2 if seen else 60)


def naive_read(tree, path):
    """Check the path and then open it, like a rule that is checked only before the call."""
    if os.path.realpath(tree / path).startswith(str(tree / "secret")):
        return ""
    return (tree / path).read_text()


@needs_exchange
def test_a_link_swapped_during_a_read_shows_nothing_denied(tree):
    start, policy = time.monotonic(), Policy(deny=["read(secret/**)"])
    leaks = shown = refused = 0
    with swapping(tree), Workspace(tree, policy=policy) as ws:
        while going_on(start, leaks and shown and refused):
            leaks += any(SECRET in naive_read(tree, "src/link/k.txt") for _ in range(10))
            try:
                said = str(ws.read("src/link/k.txt")) + str(ws.grep("e", path="src/link"))
            except RefusedError as error:
                said, refused = str(error), refused + 1
            else:
                shown += 1
            assert SECRET not in said
    assert leaks, "the attack did not work against the naive way"
    assert shown, "nothing was read at all"
    assert refused, "nothing was refused at all"


@pytest.mark.full
@needs_exchange
@pytest.mark.parametrize("policy", [
    Policy(deny=["write(secret/**)"]), Policy(allow=["write(public/**)", "write(src/**)"]),
    Policy(on_ask=lambda request: "secret" not in str(request.paths)),
])  # fmt: skip
def test_a_link_swapped_during_a_write_changes_no_denied_file(tree, policy):
    start, number, naive = time.monotonic(), 0, False
    with swapping(tree), Workspace(tree, policy=policy) as ws:
        while going_on(start, naive):
            number += 1
            for _ in range(10):
                if not os.path.realpath(tree / "src" / "link").startswith(str(tree / "secret")):
                    (tree / "src" / "link" / f"naive{number}.txt").write_text("x")
            naive = naive or (tree / "secret" / f"naive{number}.txt").exists()
            try:
                ws.write(f"src/link/ours{number}.txt", "x")
            except (RefusedError, BusyError, StaleError):  # busy: the link was swapped at each attempt
                continue
    assert naive, "the attack did not work against the naive way"
    assert not [name for name in everything_below(tree / "secret") if name.startswith("ours")]


def edited_before(tree):
    """A workspace with an edited file that is protected or denied later."""
    with Workspace(tree, state=tree.parent / "state") as ws:
        ws.edit("secret/k.txt", SECRET, f"{SECRET}\nmore of {SECRET}")
        ws.write("secret/new.txt", f"{SECRET}\n")
        ws.read("secret/new.txt")
        ws.delete("secret/new.txt")
        ws.write("public/new.txt", "harmless\n")


@pytest.mark.parametrize("policy", [
    Policy(protect=Protect(read=[*Protect().read, "secret/"])),
    Policy(deny=["read(secret/**)"]), Policy(deny=["*(secret/k.txt)"]), Policy(deny=["changes(secret/**)"]),
])  # fmt: skip
def test_changes_shows_no_content_that_is_now_denied(tree, tmp_path, policy):
    edited_before(tree)
    with Workspace(tree, policy=policy, state=tmp_path / "state") as ws:
        changes = ws.changes()
        tool = ws.tools(["changes"]).call("changes", {})
        with ws.transaction() as tx:
            tx.write("public/other.txt", "harmless\n")
            staged = tx.changes()
        if "changes(secret/**)" not in policy.deny:
            (tree / "secret" / "k.txt").write_text(f"{SECRET}, by somebody else\n")
            error = error_of(ws.undo, ws.checkpoint().steps)
            assert error.code in ("protected", "refused")
            assert SECRET not in str(error) + str(error.details)
    answers = [str(changes), str(changes.to_dict()), changes.patch.decode(), tool.content, str(tool.data)]
    for answer in answers:
        assert SECRET not in answer
        assert "harmless" in answer
    assert "harmless" in str(staged)
    hidden = next(file for file in changes.files if file.path == "secret/k.txt")
    assert (hidden.action, hidden.protected, hidden.added, hidden.removed) == ("changed", True, None, None)
    assert changes.notes == ('not in the patch, because reading is not allowed: "secret/k.txt"',)


def test_changes_asks_for_permission(tree, tmp_path):
    edited_before(tree)
    asked = []
    ask = Policy(ask=["read"], on_ask=lambda request: asked.append((request.method, request.effect)))
    for policy in (Policy(deny=["changes"]), Policy(deny=["read"]), ask):
        with Workspace(tree, policy=policy, state=tmp_path / "state") as ws:
            assert code_of(ws.changes) == "refused"
    assert asked == [("changes", "read")]


def test_the_commands_show_no_protected_content_that_was_changed_before(tree, tmp_path, capfdbinary):
    (tree / ".env").write_text(f"KEY={SECRET}\n")
    with Workspace(tree, policy=Policy(protect=Protect(read=[])), state=tmp_path / "state") as ws:
        ws.edit(".env", SECRET, f"{SECRET}{SECRET}")
        ws.write("public/new.txt", "harmless\n")
    for command in (["diff"], ["diff", "--json"], ["log"], ["log", "--json"]):
        assert main([*command, "--state", str(tmp_path / "state")]) == 0
        told, warned = capfdbinary.readouterr()
        assert SECRET.encode() not in told + warned
        assert b"new.txt" in told
        assert (b"not in the patch" in warned) is (command[0] == "diff")


@pytest.mark.parametrize("name", ["*", "[s]*", "{secret,x}", "?ecret"])
@pytest.mark.parametrize("call", [
    lambda ws, name: ws.read(f"{name}/k.txt"), lambda ws, name: ws.grep("text", path=name),
])  # fmt: skip
def test_a_granted_path_with_wildcards_is_one_path(tree, name, call):
    """Attack: a directory named like a glob becomes a link to another while the user is asked."""
    put(tree, {f"{name}/k.txt": "harmless text\n"})

    def swap(request):
        if not (tree / name).is_symlink():
            os.rename(tree / name, tree / "moved")
            os.symlink("secret", tree / name)
        return True

    with Workspace(tree, policy=Policy(ask=["*"], on_ask=swap)) as ws:
        assert SECRET not in said_by(call, ws, name)
