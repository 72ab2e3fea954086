import os
import re
import unicodedata
from pathlib import Path

import pytest
import regex
from hypothesis import strategies as st

from agentfs import AgentFSError, Policy, Protect, Workspace
from agentfs.fs import protect
from agentfs.fs.protect import NameMatcher, fold, name_matcher
from tests.conftest import law
from tests.kit import put, refused

READ, WRITE = name_matcher(Protect.READ, backups=True), name_matcher(Protect.WRITE)
SECRET = "hunter2"


def code_of(call, *arguments, **options) -> str:
    try:
        call(*arguments, **options)
    except AgentFSError as error:
        return "told" if SECRET in str(error) + str(error.details) else error.code
    return "ok"


@pytest.mark.parametrize("path", [
    *(".env", ".ENV", "a/.env", "a/b/.env.local", ".env.prod", ".Env.", ".env:stream", ".env::$DATA"),
    *(".e\u200cnv", ".enK.pem", "key.pem", "x:.pem", "KEY.PEM", "a.key", "id_rsa", "id_ed25519_work"),
    *(".ssh", ".ssh/config", ".ssh/keys/x", ".ssh/id_rsa.pub", ".SSH/config", ".aws/credentials"),
    *("home/.config/gcloud/x.db", ".kube/config", ".docker/config.json", ".netrc", "_netrc", ".npmrc"),
    *(".cargo/credentials.toml", "infra/terraform.tfstate", "terraform.tfstate.backup", "prod.tfvars"),
    *("credentials.json", "service-account-7.json", "secrets.json", "deploy/secrets.yaml", "secrets.env"),
    *(".git/config", ".Git/config", "sub/.git/config.worktree", ".git/modules/lib/config"),
    *(".git/modules/libs/foo/config", ".git/modules/a/modules/b/modules/c/config"),
    *(".git/modules/a/modules/b/config.worktree", ".git/worktrees/w/config.worktree", ".git/config.lock"),
    *(".git/config.worktree.lock", ".git/modules/libs/foo/config.lock", ".GIT/Modules/x/y/CONFIG"),
    *("bare.git/config", "srv/bare.git/config.lock", "bare.git/modules/a/b/config"),
    *("bare.git/worktrees/w/config.worktree", ".git/credentials", ".git/modules/x/credentials"),
    *(".git/remotes/origin", ".git/git-crypt/keys/default", ".git/annex/creds/x"),
    *(".config/git/credentials", ".hg/hgrc", ".hg/hgrc-not-shared", "sub/.hg/hgrc~", ".hgrc"),
    *(".subversion/auth/svn.simple/0123", ".jj/repo/store/git/config", ".jj/repo/config.toml"),
    *(".bzr/branch/branch.conf", "CVS/Root", ".e\u00adnv", ".npm\ufe0frc", "id_\u3164rsa", ".envrc"),
    *("prod.env", "deploy/Prod.ENV", ".bash_history", ".zsh_history", ".python_history", ".psql_history"),
    *(".local/share/fish/fish_history", ".dockercfg", ".config/gh/hosts.yml", ".config/hub", ".s3cfg"),
    *("kubeconfig", "staging.kubeconfig", "local.settings.json", "application_default_credentials.json"),
    *(".ssh.bak/config", "home/.aws~/config"),
])  # fmt: skip
def test_unreadable_names(path):
    assert READ.covers(path)


@pytest.mark.parametrize("backup", [
    *("{}~", "#{}#", "{}.bak", ".{}.swp", "{}.orig", "{}.swp", ".{}.swo", "{}.~3~", "{}.bak~", "{}.old"),
])  # fmt: skip
@pytest.mark.parametrize("name", [
    *(".env", "prod.env", ".npmrc", "server.pem", "id_rsa", "credentials.json", "kubeconfig", "secrets.yaml"),
    *(".git/config", "home/.kube/config", ".config/hub", ".bash_history", "x/.Netrc"),
])  # fmt: skip
def test_backups_of_protected_names_are_not_shown(name, backup):
    directory, slash, last = name.rpartition("/")
    path = f"{directory}{slash}{backup.format(last)}"
    assert READ.covers(path)
    assert not WRITE.covers(path) or path.startswith(".git/"), "nothing runs a backup"


@pytest.mark.parametrize("path", [
    *("env", ".env.example", "example.env", "sample.env", "template.env", "prod.example.env"),
    *("example.env~", "main.py~", "#notes#", "README.md.bak", ".main.py.swp", "~", "##", ".bak", ".swp"),
    *("history", "bash_history.md", "modules/x/config", ".git/HEAD", ".git/info/exclude"),
    *(".git/modules/lib/HEAD", "settings.json", ".env.local.example", ".env.sample", ".env.template"),
    *("environment", "id_rsa.pub", "id_ed25519.pub", "src/secrets.py", "secrets.md", "secrets"),
    *("secrets/x.py", "config.json", "docker/config.json", ".kube/other", ".config/other", "monkey.pemx"),
    *("README.md", ".gitignore", "credentials.py", "a/b.c/keys.py", ".cargo/config.toml"),
    *(".git/refs/heads/main", ".git/modules/lib/description", "bare.git/src/config", "bare.git/HEAD"),
    *("poetry.lock", "config.lock", "a.conf", "pyproject.toml", "git/config", "vscode/x", "a.git/x"),
    *("gitx~1", ".github/x.yml"),
])  # fmt: skip
def test_readable_names(path):
    assert not READ.covers(path)
    assert WRITE.covers(path) == path.startswith(".git/")


@pytest.mark.parametrize("path", [
    *(".git", ".git/config", ".Git/hooks/pre-commit", "bare.git/hooks/pre-receive"),
    *(".jj/repo/config.toml", ".config/git/config", ".git./config", ".GIT::$INDEX_ALLOCATION/config"),
    *("GIT~1/config", "git~2", ".g\u200cit/config", ".\u200dGIT\ufeff/config", "sub/.git/config"),
    *(".vscode/tasks.json", "x.code-workspace", ".IDEA/x", ".claude/settings.json", ".cursor/mcp.json"),
    *(".mcp.json", ".envrc", ".husky/pre-commit", ".devcontainer/devcontainer.json", ".gitconfig"),
    *(".bashrc", ".bash_profile", ".zshenv", ".zprofile", ".vimrc", ".windsurf/rules.md"),
    ".zed/tasks.json", ".git /config",
])  # fmt: skip
def test_unwritable_names(path):
    assert WRITE.covers(path)


def test_the_last_pattern_that_matches_decides():
    guard = name_matcher(("*.txt", "!keep.*", "keep.me.txt", "dir/", "!dir/open/"))
    covered = ["a.txt", "keep.txt", "keep.me.txt", "dir/x", "dir/open/x", "dir/open", "b/dir/c/x"]
    assert [path for path in covered if guard.covers(path)] == ["a.txt", "keep.me.txt", "dir/x", "b/dir/c/x"]


def test_two_stars_match_any_number_of_names():
    guard = name_matcher(("a/**/b", "c/**", "**/d/e", "f/**/g/**/h/"))
    covered = ["a/b", "a/x/b", "a/x/y/b", "z/a/x/b", "c/x", "c/x/y", "d/e", "x/d/e", "f/g/h", "f/x/g/y/h/z"]
    assert [path for path in covered if not guard.covers(path)] == []
    assert [
        path for path in ("a", "b", "x/b", "c", "a/x/bb", "d", "f/h", "g/h/x") if guard.covers(path)
    ] == []


def test_every_default_ignorable_character_is_ignored_in_names():
    ignorable = regex.compile(r"\p{Default_Ignorable_Code_Point}")
    for character in ignorable.findall("".join(map(chr, range(0x80, 0x110000)))):
        assert fold(f".e{character}nv") == ".env", ascii(character)


NAMES = st.sampled_from([
    *(".env", ".git", ".ssh", "id_rsa", "id_rsa.pub", "a", "config", ".kube", "x.pem", "README.md"),
    *("modules", ".git~", "config.bak", "#.env#", ".kubeconfig.swp", ".ssh.orig", "gh", ".config"),
])  # fmt: skip


def covers_slowly(matcher, path):
    """Match every interpretation of a path with every rule, without the fast test of its names."""
    readings = protect._interpretations(path, backups=matcher._backups)
    return any(map(matcher._matches_rules, readings))


@law(40, 100, st.lists(NAMES, min_size=1, max_size=5))
def test_the_fast_test_agrees_with_the_rules(parts):
    path = "/".join(parts)
    for matcher in (READ, WRITE):
        unused = NameMatcher(Protect.READ if matcher is READ else Protect.WRITE, backups=matcher is READ)
        assert matcher.covers(path) == unused.covers(path) == covers_slowly(matcher, path)


LIKE_PROTECTED = st.builds(
    lambda front, middle, back: front + middle + back,
    st.sampled_from(["", "a", "A.", ".", "\n", "x\n", "é", "#"]),
    st.sampled_from([*Protect.READ, *Protect.WRITE, "secrets.XML", "GIT~1", "main.py"]).map(
        lambda pattern: pattern.strip("!/").rpartition("/")[2].replace("*", "b")
    ),
    st.sampled_from(["", "b", ".", " ", ":x", "~", "\n", "\nx", "\u200c", "#", ".bak", ".ORIG", ".swp"]),
)


MATCHERS = [
    *(READ, WRITE, name_matcher(("*",)), name_matcher(("*a*",))),
    name_matcher(("!*", "a*b"), backups=True),
    name_matcher(("a/**", "b*/.env", "*x/", "!x/y")),
    name_matcher((".git/**/config", "**/src/.env", "bx/**/.ssh/"), backups=True),
]


DIRECTORIES = st.sampled_from(["", "src", ".git", "src/.ssh", "bx", ".ssh.bak/x"])


@law(20, 100, st.lists(st.tuples(DIRECTORIES, st.lists(LIKE_PROTECTED, max_size=5)), min_size=1, max_size=4))
def test_names_that_are_ordinary_in_one_directory_are_tested_again_in_another(listed):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(protect, "_MAX_CACHED", 6)
        for matcher in MATCHERS:
            for directory, names in listed:
                prefix = f"{directory}/" if directory else ""
                expected = [name for name in names if covers_slowly(matcher, prefix + name)]
                assert [name for name in names if name in matcher.covered(directory, names)] == expected


@law(80, 500, LIKE_PROTECTED, DIRECTORIES)
def test_no_name_similar_to_a_protected_one_passes_the_fast_test(name, directory):
    path = f"{directory}/{name}" if directory else name
    for matcher in MATCHERS:
        assert matcher.covers(path) == covers_slowly(matcher, path)


@law(40, 100, st.text(min_size=1).filter(lambda text: "/" not in text and text not in {".", ".."}))
def test_folding_is_idempotent_and_ignores_the_spelling(name):
    assert fold(fold(name)) == fold(name)
    assert fold(unicodedata.normalize("NFD", name)) == fold(name)


TAILS = st.sampled_from(["", ".", " ", "..", ". .", "\u200d"])


@law(40, 100, st.lists(st.booleans(), min_size=4, max_size=4), TAILS)
def test_every_spelling_of_git_is_protected(upper, tail):
    name = "".join(c.upper() if up else c for c, up in zip(".git", upper, strict=True)) + tail
    assert WRITE.covers(f"{name}/config")


def test_empty_names_in_a_pattern_are_ignored():
    """`a//b` matched nothing, and ended in an IndexError."""
    for pattern in ("a//b", "./a/b", "/a/./b"):
        guard = name_matcher((pattern,))
        assert guard.covers("x/a/b")
        assert not guard.covers("b")


@pytest.mark.parametrize("wrong", [".env", [1], [""], ["/"], ["./"], ["!."], ["a/../b"], [".."]])
def test_patterns_must_be_a_list(wrong):
    refused(lambda: Protect(read=wrong), "invalid_argument")
    refused(lambda: Policy(protect=wrong), "invalid_argument")


@pytest.fixture
def secrets(tmp_path):
    """A tree with a secret under its own name, and a link's."""
    put(tmp_path, {".env": f"PASSWORD={SECRET}\n", ".ssh/config": f"{SECRET}\n", "plain.txt": "plain\n"})
    put(tmp_path, {".git/config": f"[remote]\nurl = https://me:{SECRET}@example.com/x\n"})
    put(tmp_path, {".git/HEAD": "ref: main\n"})
    (tmp_path / ".git" / "hooks").mkdir()
    links = {"notes.md": ".env", "keys": ".ssh", "cfg.json": ".git/config", "head": ".git/HEAD"}
    for name, target in {**links, "hooks": ".git/hooks"}.items():
        (tmp_path / name).symlink_to(target)
    return tmp_path


PROTECTED = [".env", "notes.md", ".ssh/config", "keys/config", "./.ssh/../.env"]
PROTECTED += [".git/config", "cfg.json"]


def test_no_method_shows_or_changes_a_protected_file(secrets):
    with Workspace(secrets) as ws:
        for path in PROTECTED:
            assert SECRET in (secrets / path).read_text(), "the naive way reads it"
            edits = [(ws.edit, path, old, "x") for old in (SECRET, "not there")]
            for call in ((ws.read, path), (ws.write, path, "x"), (ws.grep, "PASS|hunter", path), *edits):
                assert code_of(*call) == "protected"
        for path in (".env~", "#.env#", ".env.bak", "..env.swp", ".env.orig"):
            (secrets / path).write_text(f"{SECRET}\n")
            assert code_of(ws.read, path) == "protected"
            assert code_of(ws.grep, "hunter", path) == "protected"
        assert code_of(ws.write, "new/.env", "x") == "protected"
        assert not (secrets / "new").exists()


def test_searches_count_protected_files_and_lists_mark_them(secrets):
    with Workspace(secrets) as ws:
        found = ws.grep("hunter|plain", include_ignored=True)
        assert [match.path for match in found.matches] == ["plain.txt"]
        assert found.skipped.protected == 2  # .env, .ssh/config
        assert SECRET not in ws.grep("PASSWORD", include_ignored=True).text
        listed = {entry.path: entry.protected for entry in ws.ls(depth=0, include_ignored=True).entries}
        marked = {path for path, protected in listed.items() if protected}
        assert marked == {".env", ".ssh", ".ssh/config", "notes.md", "keys", "cfg.json"}
        globbed = ws.glob("**", include_ignored=True).files
        marked = {entry.path for entry in globbed if entry.protected}
        assert marked == {".env", ".ssh/config", "notes.md", "cfg.json"}
        assert "\n.env  (protected)\n" in ws.ls(include_ignored=True).text


def test_files_that_run_code_are_shown_and_not_changed(secrets):
    with Workspace(secrets) as ws:
        for path in (".git/HEAD", "head"):
            assert ws.read(path).content == "ref: main\n"
            assert code_of(ws.edit, path, "main", "x") == "protected"
        for path in (
            "hooks/post-checkout",
            ".git/hooks/x",
            ".GIT/hooks/x",
            "GIT~1/config",
            "sub/.git",
            ".vscode/x",
        ):
            assert code_of(ws.write, path, "x") == "protected"
    assert sorted(os.listdir(secrets / ".git")) == ["HEAD", "config", "hooks"]
    assert os.listdir(secrets / ".git" / "hooks") == []
    assert not (secrets / ".vscode").exists()


def test_a_policy_protects_more_or_fewer(secrets):
    policy = Policy(protect=Protect(read=[*Protect.READ, "!.env", "plain.*"], write=[]))
    with Workspace(secrets, policy=policy) as ws:
        assert SECRET in ws.read(".env").content
        assert code_of(ws.read, "plain.txt") == "protected"
        assert ws.edit(".git/HEAD", "main", "x").replacements == 1


@pytest.mark.parametrize("there", ["GEHEIM-\u00e9.txt", "geheim-e\u0301.TXT", "Geheim-\u00c9.txt. "])
def test_a_name_added_by_the_policy_is_protected_in_every_spelling(tmp_path, there):
    (tmp_path / there).write_text(SECRET)
    policy = Policy(protect=Protect(read=["geheim-\u00e9.txt"]))
    with Workspace(tmp_path, policy=policy) as ws:
        assert code_of(ws.read, there) == "protected"
        assert ws.grep(SECRET).skipped.protected == 1
        assert [entry.protected for entry in ws.ls().entries] == [True]


def test_the_procfs_link_to_the_root_is_not_followed(secrets):
    with Workspace(secrets) as ws:
        for way in ("/proc/self/root", "/proc/self/cwd", f"/proc/{os.getpid()}/root"):
            (secrets / "way").symlink_to(way)
            assert code_of(ws.read, f"way{secrets}/.env") == "outside_workspace"
            assert code_of(ws.read, f"{way}{secrets}/plain.txt") == "outside_workspace"
            (secrets / "way").unlink()


def test_the_page_lists_every_protected_name():
    page = (Path(__file__).parents[2] / "docs" / "reference" / "limits.md").read_text(encoding="utf-8")
    lists = page.partition("Read-protected by default:")[2].partition("A pattern is")[0]
    stated = set(re.findall(r"`([^`]+)`", lists))
    names = {name for name in (*Protect.READ, *Protect.WRITE) if not name.startswith("secrets.")}
    assert {name.removeprefix("!") for name in names} <= stated
    suffixes = {name.removeprefix("secrets") for name in Protect.READ if name.startswith("secrets.")}
    assert " ".join(sorted(suffixes)) == " ".join(sorted(next(s for s in stated if ".yaml" in s).split()))


@pytest.mark.parametrize("watch", [False, True])
def test_regression_a_protected_name_that_is_a_link_shows_nothing(tmp_path, watch):
    """The name of the target alone was judged: `.env -> config/prod` showed the file."""
    put(tmp_path, {"config/prod": "KEY=1\n", "config/sub/x": "KEY=2\n"})
    for name, target in (("keys", ".ssh"), ("notes", ".env"), (".env", "config/prod")):
        (tmp_path / name).symlink_to(target)
    (tmp_path / ".ssh").symlink_to("config")
    with Workspace(tmp_path, policy=Policy(overwrite="always"), watch=watch) as ws:
        for path in (".env", "./.env", ".ssh/prod"):
            calls = [
                (ws.read, path),
                (ws.read_bytes, path),
                (ws.grep, "KEY", path),
                (ws.edit, path, "KEY", "x"),
            ]
            for call in (*calls, (ws.write, path, "x"), (ws.append, path, "x")):
                assert code_of(*call) == "protected", path
        assert [match.path for match in ws.grep("KEY").matches] == ["config/prod", "config/sub/x"]
        for path in (".ssh", "keys", ".ssh/sub", "keys/sub"):  # the search of a directory showed its files
            found = ws.grep("KEY", path)
            assert (found.total_lines, found.skipped.protected > 0) == (0, True), path
            assert all(entry.protected for entry in ws.ls(path).entries), path
        marked = [entry.path for entry in ws.ls(include_ignored=True).entries if entry.protected]
        assert marked == [".ssh", "keys", ".env", "notes"]
    assert (tmp_path / "config" / "prod").read_text() == "KEY=1\n"


def test_regression_nothing_is_changed_through_a_link_with_a_protected_name(tmp_path):
    """`move`, `delete` and `mkdir` judged the real path alone, and moved a task into `.vscode`."""
    put(tmp_path, {"vs/tasks.json": "{}\n", "a": "a\n"})
    (tmp_path / ".vscode").symlink_to("vs")
    with Workspace(tmp_path) as ws:
        for call, *paths in (
            (ws.move, "a", ".vscode/a"), (ws.move, ".vscode/tasks.json", "b"), (ws.mkdir, ".vscode/d/e"),
            (ws.delete, ".vscode/tasks.json"), (ws.move, ".vscode", "c"),
        ):  # fmt: skip
            assert code_of(call, *paths) == "protected"
        assert ws.read(".vscode/tasks.json").content == "{}\n"
        assert ws.move("a", "vs/a").to == "vs/a"
