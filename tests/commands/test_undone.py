"""Commands of usual programs on copies of real trees: after undo, the tree is as it was."""

import json
import os
import random
import shlex
import shutil
import sys
import zipfile
from pathlib import Path

from agentfs import AgentFSError, Limits
from tests.commands.conftest import NAMES, git
from tests.conftest import needs, part_or_all
from tests.tree_difference import difference, snapshot, without

PYTHON = shlex.quote(sys.executable)  # as a word of a command line

COMMANDS = 500


MAKEFILE = (
    "all: out.txt\\nout.txt: {0}\\n\\tcp {0} out.txt\\n\\tmkdir -p objects\\n\\ttouch objects/a.o\\n"
    "clean:\\n\\trm -rf out.txt objects\\n"
)
REWRITE = "import pathlib; [p.write_text(p.read_text().upper()) for p in pathlib.Path('.').rglob('*r*.py')]"
LOCK = "import json; json.dump({'packages': [{'name': 'left-pad'}]}, open('package-lock.json', 'w'))"


def templates(random: random.Random, files: list[str], directories: list[str]) -> list[str]:
    """Return the commands of a round, each about other files."""
    one, two, three = random.sample(files, 3)
    place = random.choice(directories)
    word, number = random.choice(["def", "self", "return", "import", "e", "^ *"]), random.randrange(1000)
    python = f"{PYTHON} -S"
    return [
        f"sed -i 's/{word}/W{number}/g' {one} {two}",
        f"sed -i '1,{number % 20 + 1}d' {one}",
        f"grep -rl {word!r} . --include='*.py' | xargs sed -i s/self/SELF/",
        f"sed -i.bak 's/{word}/x/' {two} && rm {two}.bak",
        f"git add -A && git commit -qm c{number}",
        f"git checkout -q -b b{number}; echo x >> {one}; git commit -qam x; git checkout -q -",
        f"echo more >> {one}; git stash -q -u; git stash pop -q",
        f"echo more >> {one}; git stash -q",
        f"git rm -rqf {place}",
        f"git mv {one} moved-{number} && git commit -qm moved",
        f"git mv {place} elsewhere-{number}",
        f"echo x > untracked-{number}; rm {two}; git clean -fdq; git reset -q --hard",
        f"git diff > p.patch; rm -rf {place}; git checkout -q -- .",
        f"tar cf t.tar {place} && rm -r {place} && tar xf t.tar && rm t.tar",
        f"tar czf all.tgz {one} {two} {place}; rm -rf {one} {place}",
        f"mkdir new && tar cf - {place} | tar xf - -C new",
        f"printf '{MAKEFILE.format(one)}' > Makefile; make -s && make -s clean",
        f"printf '{MAKEFILE.format(two)}' > Makefile; make -s",
        f"{python} -m compileall -q {place}; {python} scanner.py",
        f'{python} -c "{REWRITE}"',
        f'{python} -c "{LOCK}"; echo {number} > yarn.lock',
        f"{python} -m zipfile -c z.zip {place} && rm -r {place} && {python} -m zipfile -e z.zip .",
        f"{PYTHON} -m venv --without-pip --symlinks env-{number}",
        f"mv {one} t && mv {two} {one} && mv t {two}",
        f"mv {place} away-{number}; mkdir {place}; cp -r away-{number}/. {place}",
        f"cp -a {place} copy-{number}; rm -rf {place}",
        f"chmod -R go-rwx *.py {place}; chmod +x {one}; chmod 700 {place}",
        # Only root can read what has no permissions, so only root can take it back.
        f"chmod {'000' if os.geteuid() == 0 else '400'} {two}; mkdir -m 2775 shared",
        f"ln -s {one} l; ln -sfn {place} {two}; ln {three} hard",
        f"rm {one}; mkdir {one}; echo x > {one}/inside",
        f"rm -rf {place}; echo file > {place}",
        f"truncate -s {number}000 {one}; : > {two}",
        f"find . -name '*.py' -newer {one} -not -path './.git/*' -delete",
        f'find {place} -type f -exec sh -c \'mv "$1" "$1.x"\' _ {{}} \\;',
        f"for i in $(seq {number % 40}); do echo $i > many-$i; done; rm -f many-1*",
        f"split -l 20 {one} part-; cat part-* > {two}; gzip -f {three}",
        f"printf 'a\\r\\nb\\r\\n' > {one}; printf '\\377\\0\\1' > {two}; printf x >> {three}",
        f"mkdir -p a/b/c/$'\\xff'; touch $'n\\n{number}' ' ' -- -rf",
        f"dd if=/dev/zero of={one} bs=1 count={number} conv=notrunc 2>&1; sync",
        f"exec 5<>{two}; echo over >&5; rm {two}; false",
    ]


def above_in(root: Path, path: Path) -> list[str]:
    """Return the relative paths of the directories above a path in a tree."""
    return [str(each) for each in path.relative_to(root).parents]


def slow_templates(wheel: Path, random: random.Random) -> list[str]:
    found = [f"{PYTHON} -m pip install -q --no-index --no-deps --target vendor {wheel}"]
    if shutil.which("npm"):
        found += ["npm init -y", "npm init -y && npm pkg set scripts.test=true && npm test && npm pack"]
        found += ["npm init -y; mkdir p; cd p; npm init -y; cd ..; npm install --offline --no-audit ./p"]
    return found


def make_wheel(top: Path) -> Path:
    """Write a wheel with one module."""
    about = {
        "METADATA": "Metadata-Version: 2.1\nName: tiny\nVersion: 1\n",
        "WHEEL": "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "RECORD": "tiny.py,,\n",
    }
    top.parent.mkdir(parents=True, exist_ok=True)
    wheel = top.parent / "tiny-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tiny.py", "x = 1\n")
        for name, text in about.items():
            archive.writestr(f"tiny-1.dist-info/{name}", text)
    return wheel


@needs("git")
@part_or_all(200, full=25)
def test_commands_on_a_copy_of_a_real_tree_are_undone(opened, ws, tmp_path, every):
    root = tmp_path / "root"
    library, ignore = Path(json.__file__).parents[1], shutil.ignore_patterns("__pycache__")
    shutil.copytree(library / "json", root, ignore=ignore)
    shutil.copytree(library / "email/mime", root / "mime", ignore=ignore)
    (root / ".gitignore").write_text("__pycache__/\n*.o\nnode_modules/\n")
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "first"]):
        git(root, *arguments)
    kept = shutil.copytree(root, tmp_path / "kept", symlinks=True)
    wheel = make_wheel(tmp_path / "wheel")
    # Other work may share the machine.
    workspace = opened(ws.policy.run, root=root, limits=Limits(timeout=600.0))
    before = without(snapshot(root), ".git")
    chosen = random.Random(every)
    files = sorted(str(each.relative_to(root)) for each in root.rglob("*.py"))
    changed = 0
    for number in range(COMMANDS // every):
        pool = slow_templates(wheel, chosen) if number % 20 == 19 else templates(chosen, files, ["mime"])
        pieces = chosen.sample(pool, min(chosen.choice([1, 1, 2, 3]), len(pool)))
        command = chosen.choice(["; ", " && ", "\n"]).join(pieces)
        try:
            result = workspace.run(command, 600, env=NAMES)
        except AgentFSError as error:
            raise AssertionError(f"{command}: {error}") from None
        assert not result.timed_out
        changed += bool(result.changes.files)
        if result.changes.files:
            workspace.undo()
        lost = result.changes.lost
        # A recording does not take back ignored files and the repository; the result names them.
        assert workspace.policy.run == "recorded" or {*lost} <= {".git"}, command
        for path in sorted(root.rglob("*"), reverse=True):
            if path.name in {"__pycache__", "node_modules"} or path.suffix == ".o":
                assert any(each in lost for each in (str(path.relative_to(root)), *above_in(root, path))), (
                    command
                )
                shutil.rmtree(path) if path.is_dir() else path.unlink()
                for above in path.parents:
                    if any(above.iterdir()):
                        break
                    above.rmdir()
        assert difference(before, without(snapshot(root), ".git")) == [], command
        shutil.rmtree(root / ".git")
        shutil.copytree(kept / ".git", root / ".git", symlinks=True)
    assert changed > COMMANDS // every * 0.8
    assert os.listdir(kept)
