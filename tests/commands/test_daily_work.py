"""The law of commands: the outcome of outside, named in full, and taken back by `undo`.

A second agent changes the tree before the `undo`, which keeps that. The differences that the kernel makes are
those that `docs/how-to/shell.md` names; no command here meets them.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from agentfs import Limits, Policy, Workspace
from agentfs.results import RecordedResult
from tests.conftest import needs
from tests.kit import put
from tests.tree_difference import difference, snapshot, without

PYTHON = shlex.quote(sys.executable)  # as a word of a command line
SECRET = "TOKEN=secret"
GIT = """
git status --short
git log --oneline --all
git diff HEAD
git show --stat HEAD
git blame app/core.py
git add -A; git status --short
git commit -qam work; git log --format=%s
git checkout -q -b topic; echo 1 > topic; git add topic; git commit -qm topic
git checkout -q other
git merge -q other -m merged
git merge -q --no-ff other -m merged; git log --format=%s --graph
git rebase -q other
git cherry-pick other
git revert --no-edit HEAD~1
git reset -q --hard HEAD~1
git reset -q --soft HEAD~1; git status --short
git stash -q; git status --short
git stash -q -u; git stash pop -q; git status --short
git restore app/core.py
git clean -fdxq -e .env
git rm -q --cached README; git status --short
git mv README READ.ME; git status --short
git tag v1; git describe --tags
git branch -D other
git worktree list
git submodule status
git apply change.patch; git diff --stat
git format-patch -q -1 HEAD
git bisect start HEAD HEAD~2; git bisect reset
git gc -q
git grep -n total
git archive HEAD | tar t
git ls-files -co --exclude-standard
git -C vendor/lib log --oneline
git -C vendor/lib commit -q --allow-empty -m more; git status --short
"""
TEXT = """
sed -i s/total/price/g app/*.py
sed -n 2,3p app/core.py
perl -pi -e 's/total/sum/' app/core.py
grep -rn total app
find . -name '*.py' -newer README
find . -name '*.o' -delete
awk '{print NR": "$0}' README > numbered
sort -r README -o README
tr a-z A-Z < README > LOUD
head -c 100000 /dev/zero > zeros
cat app/*.py | wc -l
cut -d, -f2 data/table.csv
patch -p1 < change.patch
diff -u README data/table.csv
tee a b < README
printf 'x' >> README
echo "caf\u00e9" > "name with space"
mkdir -p deep/er/est; touch deep/er/est/leaf
cp -r app app2
cp -p README copy
mv README docs/
mv app renamed_app
rm -rf app
rm -rf build node_modules
rm data/table.csv; echo new > data/table.csv
ln -s app link; ls link/
chmod +x run.sh; ./run.sh
chmod 600 README
touch -d 2020-01-01 README
tar czf all.tgz app docs; tar tzf all.tgz
tar xzf bundle.tgz
gzip -k README
zip -Xqr app.zip app
split -l 1 data/table.csv part_
install -m 755 run.sh installed
truncate -s 10 README
dd if=/dev/zero of=blob bs=1k count=3 status=none
xargs -n1 echo < README
cd app; echo in_app > here
bash -c 'for i in 1 2 3; do echo $i > file$i; done'
false; echo $? > status
exit 3
"""
# Of these, the first tier runs each.
FEW = r"""
sed -i 's/total/1/' app/*.py
tar cf all.tar app && rm -r app && tar xf all.tar && rm all.tar
mv app lib && mkdir app && mv lib app/lib
find . -name '*.py' -exec chmod +x {} +
for i in $(seq 50); do echo $i > many-$i; done; rm many-1*
rm README && mkdir README && echo x > README/x
rm -r docs/../app && echo file > app
ln -s nowhere dangling; ln -sf app other; ln -sfn README other
cat app/core.py | tee one two > three
mkdir -p a/b/c/d && rmdir a/b/c/d && chmod 700 a/b
truncate -s 100000 hole; : > README
touch $'a\nb' ' ' './-rf' $'\xff'
echo x > $'caf\xe9'; mkdir $'d\xff'; echo y > $'d\xff/\n'
chmod 000 README; rm -f README; echo again > README
mv app/core.py t && mv run.sh app/core.py && mv t run.sh
sed -i s/two/2/ README; printf 'new\r\n' > n; chmod 755 n; mkdir -p e/in; rm run.sh; chmod 600 README; exit 3
cd app; rm -rf ../app; pwd > /dev/null; echo gone
rm -rf "$PWD"/[!v]*
git add -A && git commit -qm x && git mv app/core.py a
"""
# Tasks whose side effects are easily overlooked.
FEW += r"""
mkdir out && cat app/*.py > out/all.py && rm -r app/gen app/core.py
grep -rl total . --include='*.py' | xargs sed -i s/total/TOTAL/g
for each in data/*.csv; do echo '{"new": 1}' > $each; done
git checkout -q . && git checkout -q HEAD~1 -- docs
git stash -q -u
PYTHON -c "from pathlib import Path; [p.write_text(p.read_text().upper()) for p in Path().rglob('*.py')]"
mv app lib && mv lib/gen gen
chmod -R go-rwx app docs && find app -type f -exec chmod a+x {} +
mkdir -p node_modules/left-pad; echo 1 > node_modules/left-pad/index.js; sed -i s/1.0.0/1.0.1/ package.json
: > data/table.csv && : > app/core.py
ln -sfn docs current && rm app/link && echo file > app/link
mv README readme && mv app/core.py app/Core.py
PYTHON -m unittest -q
sed -i s/3/4/ test_app.py; PYTHON -m unittest -q
"""
# Regressions: changes of ignored files were not named; directories with protected files could not be removed.
FEW += r"""
echo lost > data/app.db
rm data/app.db
rm -rf build
mkdir -p build/new; echo x > build/new/x; echo y > other.db
chmod 600 data/app.db build/deep/out; chmod 700 build
mv build/deep build/moved; ln -s app.db build/link
rm -rf build; echo file > build
rm -rf node_modules; mkdir -p node_modules/dep; echo new > node_modules/dep/index.js
rm -rf node_modules; mkdir -p node_modules/dep; echo new > node_modules/dep/key.pem
mv node_modules modules
rm -rf conf; echo file > conf
mv conf other; echo x > other/more
PYTHON -c "import shutil; shutil.rmtree('node_modules')"
"""
# The objects, references and indexes of git.
FEW += r"""
git checkout -q . && git checkout -q -b topic && echo 2 > app/two && git add app && git commit -qm two
echo 2 > app/core.py; git stash -q; git tag v1; git branch other2 && git branch -q -d other2
git stash -q; git checkout -qb a; git commit -qm a --allow-empty; git checkout -q main; git merge -q -m m a
git gc -q && git gc -q --prune=now
git pack-refs --all && git repack -qad
echo 2 > app/new; git add app; git commit -qm b; git revert --no-edit HEAD && git reset -q HEAD~1
git worktree add -q wt && git worktree remove wt
"""
PROGRAMS = """
make
make; make
make clean; make; ./build/prog
gcc -O1 -fsanitize=address -o build/asan src/prog.c && ./build/asan
gcc -c src/prog.c -o build/prog.o; ar rc build/lib.a build/prog.o
PYTHON -m unittest -q
PYTHON -m pytest -q -p no:cacheprovider tests_py
PYTHON -m compileall -q app
PYTHON -c "import app.core; print(app.core.total([1, 2]))"
PYTHON -m venv --without-pip build/venv; build/venv/bin/python -c 'print(1)'
PYTHON -m zipfile -c build/app.zip app
PYTHON -c "import json; json.dump({'a': 1}, open('out.json', 'w'))"
PYTHON -c "import shutil; shutil.rmtree('build')"
PYTHON -c "import os; os.replace('README', 'README.old')"
PYTHON -c "import tempfile, os; fd, name = tempfile.mkstemp(dir='.'); os.close(fd); os.rename(name, 't')"
PYTHON -c "import multiprocessing as m; p = m.Pool(2); print(p.map(abs, [-1, 2]))"
PYTHON -c "import asyncio; print(asyncio.run(asyncio.sleep(0, 5)))"
PYTHON -m http.server -b 127.0.0.1 PORT >/dev/null 2>&1 & sleep 1; curl -s http://127.0.0.1:PORT/README
sqlite3 data/app.db 'insert into t values (2); select count(*) from t'
sqlite3 new.db 'create table t (x); insert into t values (1)'
node -e 'require("fs").writeFileSync("n.json", JSON.stringify({a: 1}))'
node --test
npm test
npm init
npm pkg set description=changed
npm run build
echo 'ignored change' > build/out.log
echo more >> node_modules/dep/index.js
"""
COMMANDS = [
    *filter(None, FEW.splitlines()),
    *(pytest.param(each, marks=pytest.mark.long) for each in f"{GIT}{TEXT}{PROGRAMS}".split("\n") if each),
]
ENV = {
    "GIT_AUTHOR_DATE": "2026-01-01T00:00:00",
    "GIT_COMMITTER_DATE": "2026-01-01T00:00:00",
    "PYTHONDONTWRITEBYTECODE": "1",
}
FILES = {
    "README": "one\ntwo\nthree\n", "app/__init__.py": "",
    "app/core.py": "def total(items):\n    return sum(items)\n\n\ndef main():\n    print(total([1]))\n",
    "test_app.py": "import unittest\nfrom app.core import total\n\n\nclass T(unittest.TestCase):\n"
    "    def test(self):\n        self.assertEqual(total([1, 2]), 3)\n",
    "tests_py/test_it.py": "def test_it():\n    assert True\n",
    "data/table.csv": "a,1\nb,2\n", "docs/index.md": "# Docs\n", "run.sh": "#!/bin/sh\necho ran > ran\n",
    "Makefile": "build/prog: src/prog.c\n\tmkdir -p build && gcc -o build/prog src/prog.c\n"
    "clean:\n\trm -rf build\n",
    "src/prog.c": '#include <stdio.h>\nint main(void) { puts("prog"); return 0; }\n',
    "package.json": '{"name": "x", "version": "1.0.0", "scripts": {"test": "node --test",'
    ' "build": "mkdir -p build && cp README build/"}}\n',
    "x.test.js": 'require("node:test")("fine", () => {});\n',
    "change.patch": "--- a/README\n+++ b/README\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n",
    ".gitignore": "build/\nnode_modules/\n*.db\n__pycache__/\n",
    "build/old.o": "object\n", "build/deep/out": "old\n", "app/gen/made.py": "made = 1\n",
    "node_modules/dep/index.js": "module.exports = 1;\n",
    **dict.fromkeys([".env", "conf/server.key", "node_modules/dep/key.pem"], f"{SECRET}\n"),
}  # fmt: skip
HISTORY = """
git init -q -b main . && git config user.name x && git config user.email x@y
printf '.env\\nconf/\\n' >> .git/info/exclude; ln -s app current; ln -s ../README app/link
git add -A && git commit -qm first && echo more >> docs/index.md && git commit -qam second
git checkout -q -b other && echo other > other && git add other && git commit -qm other
git checkout -q main
git init -q vendor/lib -b main && cd vendor/lib && git config user.name x && git config user.email x@y
echo lib > lib.txt && git add -A && git commit -qm lib && cd ../.. && echo vendor/ >> .git/info/exclude
echo third >> docs/index.md && git commit -qam third
PYTHON -c "import sqlite3; sqlite3.connect('data/app.db').executescript('create table t (x)')"
tar czf bundle.tgz docs && echo dirty >> app/core.py
"""


def shell(script: str, top: Path) -> "subprocess.CompletedProcess[bytes]":
    given = {"cwd": top, "env": {**os.environ, **ENV}, "stdin": subprocess.DEVNULL, "capture_output": True}
    return subprocess.run(["bash", "-c", script], check=False, **given)


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    top = tmp_path_factory.mktemp("daily") / "project"
    put(top, FILES)
    assert shell(f"set -e\n{HISTORY}".replace("PYTHON", PYTHON), top).returncode == 0
    return top


ASKED = """
git status --short; git log --all --format=%H; git stash list; git diff HEAD; git diff --cached
git for-each-ref; git fsck; git -C vendor/lib log --format=%H
"""


def facts(top: Path) -> dict[str, object]:
    """Return what git says about its repositories, and everything else by an independent walk."""
    return {**without(snapshot(top), ".git", "__pycache__"), "git": shell(ASKED, top).stdout}


def untimed(tree: dict) -> dict:
    return {path: replace(node, modified=None) for path, node in without(tree, ".git").items()}


@needs("git")
@pytest.mark.parametrize("run", ["staged", "recorded"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_has_the_outcome_of_outside_and_is_undone(project, tmp_path, command, run):
    # Both have the same path, because compilers and caches write it into files.
    root, kept = tmp_path / "project", tmp_path / "outside"
    port = str(20_000 + os.getpid() % 20_000)
    line = command.replace("PYTHON", PYTHON).replace("PORT", port)
    shutil.copytree(project, root, symlinks=True)
    outside = shell(line, root)
    expected = facts(root)
    root.rename(kept)
    shutil.copytree(project, root, symlinks=True)
    before = snapshot(root, times=True)
    state = tmp_path / "state" if run == "recorded" else None
    with Workspace(root, policy=Policy(run=run), state=state) as ws:
        result = ws.run(line, env=ENV)
        after, found = snapshot(root, times=True), facts(root)
        assert result.exit_status == outside.returncode, result.text
        assert found.pop("git") == expected.pop("git")
        assert difference(expected, found) == [], result.text
        assert SECRET not in f"{result.text}{result.changes.patch}{ws.changes().text}"
        check_what_is_said(before, after, result.changes)
        if not result.changes.files:
            return
        for act, wanted in ((ws.undo, before), (ws.redo, after), (ws.undo, before)):
            written = second_agent_writes(root) if act == ws.undo else []
            act()
            take_back(root, written)
            ours = differing(untimed(wanted), untimed(snapshot(root)))
            assert [path for path in ours if not is_below(path, result.changes.lost)] == [], result.text


def differing(before: dict, after: dict) -> list[str]:
    return [path for path in {**before, **after} if before.get(path) != after.get(path)]


def is_below(path: str, tops: Iterable[str]) -> bool:
    return any(f"{path}/".startswith(f"{top}/") for top in tops)


def check_what_is_said(before: dict, after: dict, changes: RecordedResult) -> None:
    """Check that the paths that an answer names are those that an independent walk finds different."""
    listed = {each.path for each in changes.files}
    said = {*listed, *(each.moved_from for each in changes.files), *changes.lost}
    differ = {os.fsencode(path).decode(errors="backslashreplace"): path for path in differing(before, after)}
    assert differ.keys() >= listed
    others = {path for name, path in differ.items() if not is_below(name, said)}
    assert others.isdisjoint(differing(untimed(before), untimed(after)))  # they are times of directories


def second_agent_writes(root: Path) -> list[Path]:
    """Write a new file, and a line of a file that the command may have changed."""
    written = [path for path in (root / "docs/index.md", root / "theirs.txt") if path.parent.is_dir()]
    for path in written:
        path.write_text("theirs\n" + (path.read_text() if path.exists() else ""))
    return written


def take_back(root: Path, written: list[Path]) -> None:
    """Check that what the second agent wrote is still there, and remove it."""
    for path in written:
        text = path.read_text()
        assert text.startswith("theirs\n")
        path.write_text(text.removeprefix("theirs\n")) if path.name == "index.md" else path.unlink()


@pytest.mark.long
def test_the_utils_tests_of_django_have_the_outcome_of_outside(opened, ws, django_source, tmp_path):
    """641 tests, with subprocesses, temporary files, file locks and time zones; staged, without network."""
    root, copy = tmp_path / "project", tmp_path / "outside"
    shutil.copytree(django_source, root, symlinks=True)
    install = [sys.executable, "-m", "pip", "install", "-q", "--target", str(root / "needed")]
    subprocess.run([*install, "asgiref", "sqlparse"], check=True)
    shutil.copytree(root, copy, symlinks=True)
    command = f"cd tests && {PYTHON} runtests.py utils_tests --parallel 1"

    def env(top):
        return {"PYTHONPATH": f"{top}:{top}/needed"}

    outside = subprocess.run(
        ["bash", "-c", command], cwd=copy, env=env(copy), capture_output=True, check=False
    )
    limits = Limits(snapshot_bytes=1_000_000_000, timeout=120)  # the first recording keeps 7,000 files
    result = opened(ws.policy.run, root=root, limits=limits).run(command, timeout=600, env=env(root))
    assert outside.returncode == 0, outside.stderr.decode()
    assert result.exit_status == 0, result.text
    counted = [re.findall(rb"Ran (\d+) tests|OK \((.*)\)", each) for each in (outside.stderr, result.stderr)]
    assert counted[0] == counted[1]
    assert int(counted[0][0][0]) > 500
