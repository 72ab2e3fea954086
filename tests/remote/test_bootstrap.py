"""The package is sent to a bare Python once, checked, and never run from a place that others can change."""

import ast
import errno
import importlib.resources
import importlib.util
import io
import marshal
import os
import shlex
import shutil
import stat
import subprocess
import sys
import threading
from contextlib import suppress
from modulefinder import ModuleFinder
from pathlib import Path

import pytest

from agentfs.errors import DisconnectedError, UnsupportedSystemError
from agentfs.remote import bootstrap_far, bootstrap_near
from agentfs.remote.transport import CommandStream, line_reader

PYENV = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
SERVER = """\
import os, sys
Options = dict
def serve(options):
    print(ascii([sys.argv[1], sys.flags.isolated, sys.flags.no_site, options, os.umask(0)]), flush=True)
    print("back", sys.stdin.readline(), flush=True)
"""
TRIVIAL = {"agentfs/__init__.py": "", "agentfs/remote/__init__.py": "", "agentfs/remote/server.py": SERVER}
OPTIONS = {"root": "/a b'\"$x;\\ü\n\udcff"}
SPLIT_BY_SHELL = ["sh", "-c", 'eval "$*"', "sh"]  # as the remote shell of ssh does


class Far:
    """A remote side with its own cache directory."""

    def __init__(self, cache: Path) -> None:
        self.prefix = ["env", f"XDG_CACHE_HOME={cache}"]
        self.packages = cache / "agentfs-packages"
        self.sent = 0

    def start(self, *prefix, python=sys.executable):
        """Return what the trivial server prints first."""
        stream = CommandStream([*self.prefix, *prefix, *bootstrap_near.command(python)])
        write = stream.write

        def counted(data):
            self.sent += len(data)
            write(data)

        stream.write = counted
        read_line = line_reader(stream.readline, 1 << 20)
        try:
            bootstrap_near.start_server(stream, read_line, OPTIONS)
            first = read_line()
            stream.write(b"answer\n")
            assert read_line() == b"back answer\n"
            return eval(first)
        finally:
            stream.close()


@pytest.fixture
def trivial(monkeypatch):
    digest, document = bootstrap_near.pack(TRIVIAL)
    line = bootstrap_near.package_line(document)
    monkeypatch.setattr(bootstrap_near, "_package", lambda: (digest, line))
    return digest


@pytest.fixture
def far(tmp_path):
    return Far(tmp_path / "cache")


def pythons():
    """Return this Python and one of each other installed version."""
    found = [shutil.which(f"python3.{minor}") for minor in (11, 12, 13)]
    found += map(str, sorted(PYENV.glob("3.1[123].*/bin/python3")))
    versions = {f"{sys.version_info[0]}.{sys.version_info[1]}": sys.executable}
    ask = "import sys; print('%d.%d' % sys.version_info[:2])"
    for each in filter(None, found):  # a pyenv name may have no version behind it
        done = subprocess.run([each, "-c", ask], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            versions.setdefault(done.stdout.strip(), each)
    return list(versions.values())


@pytest.mark.parametrize("python", pythons())
@pytest.mark.parametrize("prefix", [[], SPLIT_BY_SHELL], ids=["arguments", "shell"])
def test_a_bare_python_gets_the_package_and_the_options_as_they_are(trivial, far, prefix, python):
    assert far.start(*prefix, python=python)[:-1] == [str(far.packages / trivial), 1, 1, OPTIONS]


def test_the_package_is_sent_once(trivial, far):
    far.start()
    first, far.sent = far.sent, 0
    far.start()
    assert far.sent < 10_000 < first + 10_000
    assert [each.name for each in far.packages.iterdir()] == [trivial]
    assert far.packages.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "damage",
    [
        lambda at: at.write_text("{}"),
        lambda at: at.unlink(),
        lambda at: at.chmod(0o622),
        lambda at: (at.rename(at.parent / "kept"), at.symlink_to("kept")),
        lambda at: (at.unlink(), os.mkfifo(at)),
        lambda at: (at.unlink(), at.mkdir(), (at / "agentfs").mkdir()),
    ],
    ids=["changed", "missing", "open to others", "link", "FIFO", "directory"],
)
def test_a_damaged_package_is_installed_again(trivial, far, damage):
    far.start()
    damage(far.packages / trivial)
    far.sent = 0
    assert far.start()[0] == str(far.packages / trivial)
    found = (far.packages / trivial).lstat()
    assert (stat.S_ISREG(found.st_mode), stat.S_IMODE(found.st_mode)) == (True, 0o600)
    assert {each.name for each in far.packages.iterdir()} <= {trivial, "kept"}


def bytecode(source, path):
    """Return bytecode that Python uses without a look at its source."""
    code = marshal.dumps(compile(source, path, "exec"))
    return importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8) + code


def test_bytecode_that_was_moved_into_the_cache_is_not_run(trivial, far, tmp_path):
    """Attack: a model whose root holds the home directory moves a `.pyc` beside the sources."""
    far.start()
    attack = f"import pathlib; pathlib.Path({str(tmp_path / 'attacked')!r}).touch()"
    for root in (far.packages, far.packages / trivial):
        for name in TRIVIAL:
            source = root / name
            planted = Path(importlib.util.cache_from_source(source))
            with suppress(NotADirectoryError):
                planted.parent.mkdir(parents=True, exist_ok=True)
                planted.write_bytes(bytecode(attack, name))
    assert far.start()[0] == str(far.packages / trivial)
    assert not (tmp_path / "attacked").exists()


def test_a_package_that_is_changed_after_it_was_checked_is_not_run(trivial, tmp_path):
    package = tmp_path / trivial
    package.write_bytes(bootstrap_near.pack({**TRIVIAL, "agentfs/__init__.py": "print('attacked')"})[1])
    command = [sys.executable, "-I", "-S", "-c", bootstrap_far._START, str(package), trivial, "{}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "the package was changed\n")


@pytest.mark.parametrize("mode", [0o777, 0o750, 0o701])
def test_a_cache_that_is_open_to_others_is_not_used(trivial, far, mode):
    far.packages.mkdir(parents=True)
    far.packages.chmod(mode)
    assert not far.start()[0].startswith(str(far.packages))
    assert list(far.packages.iterdir()) == []


def test_a_link_to_a_cache_is_not_used(trivial, far, tmp_path):
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    far.packages.parent.mkdir()
    far.packages.symlink_to(tmp_path / "elsewhere")
    far.start()
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("umask", [0, 0o777])
def test_directories_are_private_under_any_umask_and_the_server_keeps_the_umask(trivial, far, umask):
    command = f'umask {umask:o}; exec "$@"'
    assert far.start("sh", "-c", command, "sh")[-1] == umask
    assert far.packages.parent.stat().st_mode & 0o777 == 0o700


def test_a_cache_of_a_relative_path_is_not_used(trivial, far, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    far.prefix = ["env", "XDG_CACHE_HOME=relative"]
    assert far.start()[0].startswith("/")
    assert list(tmp_path.iterdir()) == []


def test_the_next_directory_is_used_if_one_is_full(tmp_path, monkeypatch):
    digest, document = bootstrap_near.pack(TRIVIAL)
    directories = [tmp_path / "full", tmp_path / "free"]
    for each in directories:
        each.mkdir()
    write = bootstrap_far._install

    def full(cache, *arguments):
        if cache == str(directories[0]):
            raise OSError(errno.ENOSPC, "No space left on device")
        write(cache, *arguments)

    monkeypatch.setattr(bootstrap_far, "_install", full)
    monkeypatch.setattr(bootstrap_far, "_cache_directories", lambda: map(str, directories))
    monkeypatch.setattr(bootstrap_far, "_say", lambda **_: None)
    line = io.BytesIO(bootstrap_near.package_line(document))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(line))
    assert bootstrap_far._installed(digest) == str(directories[1] / digest)
    monkeypatch.setattr(bootstrap_far, "_cache_directories", lambda: [str(directories[0])])
    line.seek(0)
    with pytest.raises(OSError, match="No space left"):
        bootstrap_far._installed(digest)


def test_several_may_install_at_once(trivial, far):
    found = []
    threads = [threading.Thread(target=lambda: found.append(far.start()[0])) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == [str(far.packages / trivial)] * 4
    assert [each.name for each in far.packages.iterdir()] == [trivial]


def test_a_truncated_package_is_not_installed(trivial, far, monkeypatch):
    digest, line = bootstrap_near._package()
    for cut in (line[: len(line) // 2] + b"\n", b"\n", b"====\n", b"x" * 100 + b"\n"):
        monkeypatch.setattr(bootstrap_near, "_package", lambda sent=cut: (digest, sent))
        with pytest.raises(UnsupportedSystemError, match="cannot be installed"):
            far.start()
        assert list(far.packages.iterdir()) == []
    document = bootstrap_near.pack({**TRIVIAL, "agentfs/more.py": ""})[1]
    monkeypatch.setattr(bootstrap_near, "_package", lambda: (digest, bootstrap_near.package_line(document)))
    with pytest.raises(UnsupportedSystemError, match="did not arrive complete"):
        far.start()


def test_output_of_a_login_script_is_skipped(trivial, far):
    script = 'echo "Welcome"; echo; printf "\\033[1mnews\\nno line feed: "; exec "$@"'
    assert far.start("sh", "-c", script, "sh")[0] == str(far.packages / trivial)


@pytest.mark.parametrize("banner", ["{", "{ }", '{"motd": 1}', "[1]", "null"])
def test_a_banner_that_looks_like_json_is_skipped(trivial, far, banner):
    assert far.start("sh", "-c", 'echo "$0"; exec "$@"', banner)[0] == str(far.packages / trivial)


def test_the_error_names_a_python_that_is_too_old(trivial, far, monkeypatch):
    monkeypatch.setattr(bootstrap_near, "_OLDEST", (3, 99))
    with pytest.raises(UnsupportedSystemError, match=rf"has Python 3\.{sys.version_info[1]}; .* needs 3\.99"):
        far.start()


@pytest.mark.parametrize("command", ["cat", "read line; echo '{\"id\": null}'; cat", "seq 200; cat"])
def test_a_fixed_command_is_refused(trivial, far, command):
    with pytest.raises(UnsupportedSystemError, match=r"fixed .*\n?.*push=False"):
        far.start("sh", "-c", command)


@pytest.mark.parametrize("command", ["exit 3", "nosuchcommand", "echo This account is not available."])
def test_a_remote_side_without_python_is_disconnected(trivial, far, command):
    with pytest.raises(DisconnectedError) as caught:
        far.start("sh", "-c", command)
    assert caught.value.details["made"] is False


def lines_left_out(text):
    """The indices of lines of comments, and of docstrings of functions and classes."""
    docstrings, texts = set(), set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant | ast.JoinedStr):
            texts.update(range(node.lineno, node.end_lineno))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            match node.body[0]:
                case ast.Expr(value=ast.Constant(value=str())) as docstring:
                    docstrings.update(range(docstring.lineno - 1, docstring.end_lineno))
    lines = enumerate(text.split("\n"))
    return docstrings | {index for index, line in lines if line.lstrip().startswith("#")} - texts


@pytest.mark.full
def test_the_package_is_small_and_has_every_import_of_the_server(tmp_path):
    digest, line = bootstrap_near._package()
    assert len(line) <= 500_000
    assert line.isascii()
    texts = dict(bootstrap_near._texts())
    assert bootstrap_near.pack(texts)[0] == digest
    for name, text in texts.items():
        package, _, rest = name.partition("/")
        original = importlib.resources.files(package).joinpath(rest).read_text(encoding="utf-8")
        may_be_empty = lines_left_out(original)
        for index, lines in enumerate(zip(text.split("\n"), original.split("\n"), strict=True)):
            packed, line = lines
            assert packed == line or (index in may_be_empty and packed.strip() in {"", '""'}), (name, line)
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    finder = ModuleFinder([str(tmp_path)])
    finder.run_script(str(tmp_path / "agentfs/remote/server.py"))
    missing = {each for each in finder.any_missing() if each.startswith(bootstrap_near._PACKAGES)}
    # Only programs use these names; only a type checker imports the rules of schemas.
    near = {"agentfs.async_workspace", "agentfs.remote.client", "agentfs.tools.tool", "agentfs.tools.toolset"}
    near |= {"agentfs.concurrency.event_loops", "agentfs.concurrency.runner"}
    assert missing <= near | {"agentfs.providers.provider"}
    modules = [name[:-3].replace("/", ".") for name in texts if name.startswith("agentfs/")]
    script = f"import sys; sys.path.insert(0, {str(tmp_path)!a})"
    script += f"; from importlib import import_module; list(map(import_module, {modules!a}))"
    script += "; print([name for name in sys.modules if name.startswith('agentfs.providers')])"
    command = [sys.executable, "-I", "-c", script]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "[]\n"


def test_the_command_needs_no_quoting():
    command = bootstrap_near.command()
    assert shlex.join(command) == " ".join(command)


def test_each_module_that_is_left_out_exists():
    """Otherwise a module that was moved is sent although nothing imports it."""
    root = Path(bootstrap_near.__file__).parents[2]
    names = [name for name in bootstrap_near._LEFT_OUT if name.startswith("agentfs/")]
    assert [name for name in names if not any(root.glob(f"{name.rstrip('/')}*"))] == []
