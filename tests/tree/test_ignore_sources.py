"""Sources of rules: around the root, worktrees, global excludes; and files that are not rule files."""

import os
import subprocess
import sys

import pytest

from agentfs import Workspace
from agentfs.fs.ignore_files import read_outer_rules
from agentfs.fs.syscalls import open_root
from agentfs.fs.trees import OpenTree, RootHandle
from tests import kit
from tests.conftest import needs, program
from tests.kit import put
from tests.tree.judges import git, git_files, plant

pytestmark = needs("git")


def shown_by_git(cwd, config=os.devnull):
    return [name for name in git_files(cwd, config=config) if "/." not in f"/{name}"]


def listed(top):
    """Return the entries of `ls` and its text, which must not quote rules from outside."""
    with Workspace(top) as ws:
        result = ws.ls(depth=0)
    return [entry.path for entry in result.entries if not entry.is_dir], result


def make(top, *names):
    return put(top, dict.fromkeys(names, ""))


@pytest.fixture
def repository(tmp_path):
    git(tmp_path, "init", "-q", ".")
    return tmp_path


def test_rules_above_the_root_hold_in_a_repository_and_are_never_quoted(repository):
    make(repository, "in/root/a.secretname", "in/root/b.kept", "in/root/sub/c.secretname", "in/root/sub/d")
    (repository / ".gitignore").write_text("*.secretname\n/in/root/sub/d\n")
    (repository / "in/.gitignore").write_text("!c.secretname\n")
    files, result = listed(repository / "in/root")
    assert files == ["sub/c.secretname", "b.kept"]
    assert sorted(files) == shown_by_git(repository / "in/root")
    assert result.skipped.rules == {"a rule outside the workspace": 2}
    shown = result.text + repr(result.to_dict())
    assert "2 ignored by a rule outside the workspace" in result.text
    assert "*.secretname" not in shown
    assert "in/root" not in shown
    with Workspace(repository / "in/root") as ws:
        said = ws.glob("a.*").text
    assert "a.secretname (ignored by a rule outside the workspace)" in said


@pytest.mark.parametrize("watch", [False, True])
def test_no_search_lists_what_is_in_the_directory_of_git(repository, monkeypatch, watch):
    make(repository, "a", "sub/b", *(f".git/{number}" for number in range(50)))
    git(repository, "init", "-q", "sub/inner")
    scanned = []
    scandir = os.scandir

    def scan(path):
        scanned.append(os.readlink(f"/proc/self/fd/{path}") if isinstance(path, int) else os.fspath(path))
        return scandir(path)

    with Workspace(repository, watch=watch) as ws:
        monkeypatch.setattr(os, "scandir", scan)
        for _ in range(2):
            ws.ls(depth=0)
            ws.grep("x")
        with ws.transaction() as transaction:
            transaction.write("new", "x")
            assert transaction.glob("*").total == 3
    assert scanned
    assert [path for path in scanned if ".git" in path] == []


@needs("rg")
@needs("fd")
def test_a_tracked_file_that_a_rule_ignores_is_hidden_as_by_rg_and_fd(repository):
    make(repository, "kept", "forced.x")
    (repository / ".gitignore").write_text("*.x\n")
    git(repository, "add", "-f", "forced.x")
    found, result = listed(repository)
    assert found == ["kept"]
    assert "1 ignored by .gitignore:1 *.x" in result.text
    for command in ([program("rg"), "--files"], [program("fd"), "--type=f"]):
        done = subprocess.run(command, cwd=repository, capture_output=True, check=True, text=True)
        assert done.stdout.split() == ["kept"]
    assert shown_by_git(repository) == ["forced.x", "kept"], "git asks its index first"


@pytest.mark.parametrize(("root", "rules", "repository", "files"), [
    ("root", [".git/info/exclude"], ".", ["b"]), ("root", [".ignore"], ".", ["b"]),
    ("root", [".gitignore"], "root", ["a.x", "b"]),  # no rule above the top of a repository
    ("root", [".gitignore", ".ignore"], None, ["a.x", "b"]),  # nothing above the root without a repository
    (".", [".gitignore"], ".", ["root/b"]),  # an empty `root/.git` begins no repository
])  # fmt: skip
def test_rules_around_the_root_hold_within_a_repository(tmp_path, root, rules, repository, files):
    make(tmp_path, "root/a.x", "root/b")
    (tmp_path / "root/.git" if root == "." else tmp_path / ".git").mkdir()  # this is none for git
    if repository:
        git(tmp_path, "init", "-q", repository)
    put(tmp_path, dict.fromkeys(rules, "*.x\n"))
    assert listed(tmp_path / root)[0] == files
    if rules != [".ignore"]:
        assert not repository or shown_by_git(tmp_path / root) == files


@pytest.fixture
def worktree(tmp_path):
    main = tmp_path / "main"
    main.mkdir()
    git(main, "init", "-q", ".")
    git(main, "commit", "-q", "--allow-empty", "-m", "x")
    git(main, "worktree", "add", "-q", "../tree")
    (main / ".git/info/exclude").write_text("*.x\n")
    make(tmp_path, "tree/a.x", "tree/b", "tree/sub/c.x", "tree/sub/d")
    return tmp_path


@pytest.mark.parametrize("root", ["tree", "tree/sub", "."])
def test_a_worktree_begins_a_repository_whose_exclude_file_does_not_count(worktree, root):
    (worktree / ".gitignore").write_text("b\n")
    (worktree / "tree/.gitignore").write_text("*.x\n")
    (worktree / "main/.git/info/exclude").write_text("d\n")
    files, _ = listed(worktree / root)
    kept = [name for name in files if not name.startswith("main")]
    assert sorted(kept) == {"tree": ["b", "sub/d"], "tree/sub": ["d"], ".": ["tree/b", "tree/sub/d"]}[root]


def test_a_forged_git_file_cannot_choose_what_is_read(tmp_path):
    """Who writes in the tree could otherwise test guesses at files outside by what is ignored."""
    outside = tmp_path / "outside"
    as_a_repository(outside)
    root = tmp_path / "root"
    make(root, "guess", "other")
    (root / ".git").write_text(f"gitdir: {outside}\n")
    assert shown_by_git(root) == ["other"]  # the naive way tells
    assert listed(root)[0] == ["guess", "other"]
    # Nor by way of a directory inside that claims to be a worktree's.
    put(root, {"fake/HEAD": "", "fake/gitdir": f"{root}/.git\n", "fake/commondir": f"{outside}\n"})
    (root / ".git").write_text("gitdir: fake\n")
    assert "guess" in listed(root)[0]


def as_a_repository(directory):
    put(directory, {"info/exclude": "guess\n", "HEAD": "ref: refs/heads/main\n"})
    (directory / "objects").mkdir()
    (directory / "refs").mkdir()


def forged(root, common):
    """A directory in the tree that claims to be a worktree's, and names another as its repository."""
    put(root, {"wt/HEAD": "ref: refs/heads/main\n", "wt/gitdir": f"{root}/.git\n", "wt/commondir": common})
    put(root, {".git": "gitdir: wt\n", "guess": "", "other": ""})


@pytest.mark.parametrize(("common", "own"), [
    ("../../private", "wt"), ("{private}", "wt"), ("../link", "wt"), ("../../root/link", "wt"),
    ("wt/../../../private", "wt"),
    ("../../private", "../other/wt"),  # another name of the tree, by which it lies outside
])  # fmt: skip
def test_a_git_directory_in_the_tree_does_not_lead_outside(tmp_path, common, own):
    as_a_repository(tmp_path / "private")
    root = tmp_path / "root"
    forged(root, common.format(private=tmp_path / "private"))
    (root / "link").symlink_to("../private")
    (tmp_path / "other").symlink_to("root")
    if (common, own) == ("../../private", "wt"):
        assert "guess" not in shown_by_git(root)  # the naive way tells
    (root / ".git").write_text(f"gitdir: {own}\n")
    assert "guess" in listed(root)[0]


def test_a_worktree_is_not_followed_through_a_link_in_the_tree(worktree):
    """The link leads to the git directory of a worktree that is not this tree."""
    root = worktree / "root"
    make(root, "a.x")
    (root / "wt").symlink_to("../main/.git/worktrees/tree")
    (root / ".git").write_text("gitdir: wt\n")
    assert "a.x" in listed(root)[0]


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("place", [".git", ".git/HEAD"])
def test_a_link_in_the_tree_does_not_tell_what_is_outside(repository, place, there, tmp_path_factory):
    """Rules above the tree apply unless the tree is the top of a repository."""
    outside = tmp_path_factory.mktemp("outside")
    if there:
        as_a_repository(outside)
    root = repository / "root"
    make(root, "a.x", "b")
    (repository / ".gitignore").write_text("*.x\n")
    if place == ".git":
        (root / ".git").symlink_to(outside)
        expected = ["b"]
    else:
        for name in ("objects", "refs"):
            (root / ".git" / name).mkdir(parents=True)
        (root / ".git/HEAD").symlink_to(outside / "HEAD")
        expected = ["a.x", "b"]
    assert listed(root)[0] == expected


def test_the_configuration_of_a_repository_is_not_followed(repository, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "secrets"
    outside.write_text("guess\n")
    make(repository, "guess", "other")
    git(repository, "config", "core.excludesFile", str(outside))
    assert shown_by_git(repository) == ["other"]  # the naive way tells
    assert listed(repository)[0] == ["guess", "other"]


CONFIGS = {
    "plain": "[core]\n\texcludesFile = {home}/mine\n", "home": "[core]\n  excludesfile = ~/mine\n",
    "quoted": '[core] excludesFile = "{home}/mi\\"ne" ; a comment\n',
    "comment": "[core]\n# excludesFile = /nowhere\n\tEXCLUDESFILE={home}/mine # here\n",
    "subsection": '[core "x"]\n\texcludesFile = /nowhere\n[core]\n\texcludesFile = ~/mine\n',
    "continued": "[core]\n\texcludesFile = ~/\\\nmine\n", "include": "[include]\n\tpath = included\n",
    "last": "[core]\nexcludesFile = /nowhere\n[user]\nexcludesFile = /no\n[core]\nexcludesFile = ~/mine\n",
}  # fmt: skip


@pytest.fixture
def home(tmp_path_factory, monkeypatch):
    """The user's home, whose configuration git reads."""
    made = tmp_path_factory.mktemp("home")
    monkeypatch.delenv("GIT_CONFIG_GLOBAL")
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", str(made))
    return made


@pytest.mark.parametrize("case", CONFIGS)
def test_regression_the_users_global_excludes_hold_and_are_never_quoted(repository, home, case):
    put(home, dict.fromkeys(("mine", 'mi"ne'), "*.guess\n/top\n"))
    put(
        home, {".gitconfig": CONFIGS[case].format(home=home), "included": "[core]\n\texcludesFile = ~/mine\n"}
    )
    make(repository, "a.guess", "b", "top", "sub/top", "sub/c.guess")
    files, result = listed(repository)
    assert sorted(files) == git_files(repository, config=None, home=home) == ["b", "sub/top"]
    assert result.skipped.rules == {"a rule outside the workspace": 3}
    assert "*.guess" not in result.text


OUTSIDE = "[core]\n\texcludesFile = {outside}/secret\n"
# Written in the root, which is the home directory: what the file is, what it leads to, and the environment.
INSIDE = {
    "config": ({".gitconfig": OUTSIDE}, {}), "config of XDG": ({".config/git/config": OUTSIDE}, {}),
    "another XDG": ({"xdg/git/config": OUTSIDE}, {"XDG_CONFIG_HOME": "{root}/xdg"}),
    "a named one": ({"named": OUTSIDE}, {"GIT_CONFIG_GLOBAL": "{root}/named"}),
    "default excludes": ({".config/git/ignore": "-> {outside}/secret"}, {}),
    "excludes": ({"mine": "-> {outside}/secret"}, {"GIT_CONFIG_GLOBAL": "{outside}/names-mine"}),
    "a directory on the way": ({"way": "-> {outside}"}, {"GIT_CONFIG_GLOBAL": "{outside}/names-way"}),
    "a link back": ({"back": "-> {outside}/config"}, {"GIT_CONFIG_GLOBAL": "{outside}/link"}),
    "another name of the root": ({"named": OUTSIDE}, {"GIT_CONFIG_GLOBAL": "{outside}/root/named"}),
    "up and in": ({"named": OUTSIDE}, {"GIT_CONFIG_GLOBAL": "{outside}/../root/named"}),
}  # fmt: skip


@pytest.mark.parametrize("case", INSIDE)
def test_configuration_in_the_root_names_no_file_as_rules(tmp_path, monkeypatch, case):
    root, outside = tmp_path / "root", tmp_path / "outside"
    make(root, "guess", "other")
    (root / ".git").mkdir()
    git(root, "init", "-q", ".")
    outside.mkdir()
    put(outside, {"secret": "guess\n", "config": OUTSIDE.format(outside=outside)})
    for name, path in {"names-mine": "mine", "names-way": "way/secret"}.items():
        (outside / name).write_text(f"[core]\n\texcludesFile = {root}/{path}\n")
    (outside / "link").symlink_to(root / "back")
    (outside / "root").symlink_to(root)
    files, environment = INSIDE[case]
    plant(root, {name: text.format(outside=outside) for name, text in files.items()})
    monkeypatch.setenv("HOME", str(root))
    for name in ("GIT_CONFIG_GLOBAL", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value.format(root=root, outside=outside))
    told = subprocess.run(["git", "check-ignore", "guess"], cwd=root, capture_output=True, check=False)
    assert told.stdout == b"guess\n", "the naive way tells"
    assert "guess" in listed(root)[0]


def test_configuration_outside_is_followed_through_links(repository, home):
    files = {"dotfiles/git/config": "[core]\n\texcludesFile = ~/excludes\n", "dotfiles/excludes": "guess\n"}
    links = {".gitconfig": "-> way/git/../git/config", "way": "-> dotfiles"}
    plant(home, {**files, **links, "excludes": f"-> {home}/way/excludes"})
    make(repository, "guess", "other")
    assert listed(repository)[0] == ["other"]


def test_the_default_global_excludes_hold(tmp_path, monkeypatch, tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    put(home, {"git/ignore": "*.x\n"})
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    make(tmp_path, "a.x", "b")
    assert listed(tmp_path)[0] == ["b"]
    (tmp_path / ".gitignore").write_text("!a.x\n")
    assert listed(tmp_path)[0] == ["a.x", "b"]  # they come last


def test_global_excludes_begin_anew_in_each_repository(repository, monkeypatch, tmp_path_factory):
    excludes = tmp_path_factory.mktemp("home") / "excludes"
    excludes.write_text("/top\n")
    config = excludes.with_name("config")
    config.write_text(f"[core]\n\texcludesFile = {excludes}\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    make(repository, "top", "sub/top", "inner/top", "inner/sub/top")
    git(repository, "init", "-q", "inner")
    judged = [f"inner/{name}" for name in shown_by_git(repository / "inner", config)]
    judged += [name for name in shown_by_git(repository, config) if not name.startswith("inner")]
    assert sorted(listed(repository)[0]) == sorted(judged) == ["inner/sub/top", "sub/top"]


SPOIL = {
    "fifo": os.mkfifo, "link out": lambda path: path.symlink_to("/etc/hosts"), "directory": os.mkdir,
    "giant": lambda path: os.truncate(path.touch() or path, 100 * 2**20),
}  # fmt: skip


@pytest.mark.parametrize("spoil", SPOIL)
@pytest.mark.parametrize("place", [
    ".git/info/exclude", "../.gitignore", "../.git/info/exclude", "../../excludes",
])  # fmt: skip
def test_a_rule_file_that_is_none_is_counted_wherever_it_stands(tmp_path, monkeypatch, spoil, place):
    top = tmp_path / "a" / "b"
    make(top, "x")
    git(top, "init", "-q", "." if place.startswith(".git/") else "..")
    config = tmp_path / "config"
    config.write_text(f"[core]\n\texcludesFile = {tmp_path}/excludes\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    path = top / place
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    SPOIL[spoil](path)
    files, result = listed(top)
    assert files == ["x"]
    # The user's own file may be a link, as those who keep their configuration in a repository have it.
    assert result.skipped.unreadable == (0 if place == "../../excludes" and spoil == "link out" else 1)


@pytest.mark.skipif(sys.platform == "win32", reason="no such names")
def test_surroundings_of_the_file_system_root_end():
    assert read_outer_rules([OpenTree("", "/", RootHandle(open_root("/")))])[""].directories == []


def test_an_unreadable_rule_file_counts_once_even_if_links_lead_to_it(tmp_path):
    put(tmp_path, {"a/x.txt": "needle\n"})
    (tmp_path / "a" / ".gitignore").symlink_to("../a")
    (tmp_path / "linked").symlink_to("a")
    for watch in (False, True):
        with Workspace(tmp_path, watch=watch) as ws:
            for _ in range(2):
                skipped = kit.grep(ws, "needle", follow_symlinks=True).skipped
                assert (skipped.unreadable, skipped.unread_rules) == (1, ("a/.gitignore",))
