"""Commands of usual programs on a copy of a tree: undone exactly, with the same outcome as outside."""

import shutil
import subprocess

import pytest

from tests.commands.conftest import snapshot

COMMANDS = [
    "sed -i 's/one/1/' src/*.py",
    "tar cf all.tar src && rm -r src && tar xf all.tar",
    "mv src lib && mkdir src && mv lib src/lib",
    "find . -name '*.py' -exec chmod +x {} +",
    "for i in $(seq 50); do echo $i > many-$i; done; rm many-1*",
    "rm README && mkdir README && echo x > README/x",
    "rm -r conf/../src && echo file > src",
    "ln -s nowhere dangling; ln -sf src other; ln -sfn README other",
    "printf 'all: out\\nout: src/a.py\\n\\tcp src/a.py out\\n' > Makefile && make",
    'python3 -c \'import shutil; shutil.copytree("src", "copy")\'',
    "python3 -m compileall -q src",
    "mkdir -p a/b/c/d && rmdir a/b/c/d && chmod 700 a/b",
    "cat src/a.py | tee one two > three",
    "truncate -s 100000 hole; : > README",
    "patch -p0 <<'END'\n--- src/a.py\n+++ src/a.py\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\nEND",
    "touch $'a\\nb' ' ' '-rf' $'\\xff'",
    "chmod 000 README; rm -f README; echo again > README",
    "mv src/a.py t && mv src/b.py src/a.py && mv t src/b.py",
    "git init -q && git add -A && git -c user.name=a -c user.email=b commit -qm x && git mv src/a.py a",
    pytest.param("npm init -y", marks=pytest.mark.full),
]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_has_the_outcome_of_a_plain_shell_and_is_undone(ws, tree, tmp_path, command):
    if command.startswith("npm") and shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    for path in (tree / ".env", tree / "conf/server.key"):
        path.unlink()  # the tree has no protected files here
    copy = tmp_path / "copy"
    shutil.copytree(tree, copy, symlinks=True)
    before = snapshot(tree, leave_out=(".git",))
    plain = subprocess.run(["bash", "-c", command], cwd=copy, capture_output=True, check=False, timeout=60)
    result = ws.run(command)
    assert result.exit_status == plain.returncode, result.text
    after = snapshot(tree, leave_out=(".git",))
    wanted = snapshot(copy, leave_out=(".git",))
    different = {path for path in after.keys() | wanted.keys() if after.get(path) != wanted.get(path)}
    unstable = ("__pycache__", "all.tar", "package.json")  # they hold times or the name of the directory
    assert not [path for path in different if not any(each in path for each in unstable)]
    if result.changes.files:
        ws.undo()
    assert snapshot(tree, leave_out=(".git",)) == before
