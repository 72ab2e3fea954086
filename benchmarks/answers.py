"""The same random calls on this checkout and on another one: where their answers differ.

    python benchmarks/answers.py OTHER_CHECKOUT [--calls 200] [--seed 1] [--only METHOD,METHOD] [--show 3]

Each checkout answers from a process of its own, on its own copy of a small tree that the script writes. Every
public method gets the given number of calls. Fields that only one of them has are left out. After each call
the two trees are compared; if they differ, both are written anew.
"""

import argparse
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
VOLATILE = {"mtime", "elapsed_ms", "accessed", "created_at"}
TEXTS = ["a.py", "src/b.py", "src/deep/c.txt", "crlf.txt", "docs/é.md", "long.txt", "mixed.txt", "latin.txt"]
OTHERS = [
    ".env",
    "data.bin",
    "book.ipynb",
    "link.py",
    "build/out.log",
    "large.txt",
    "pixel.png",
    "none.py",
    "src",
]
DIRECTORIES = [".", "src", "src/deep", "docs", "build", ".hidden", "none"]
WORDS = [
    "alpha",
    "beta",
    "def get_name(self):",
    "    return x",
    "TODO",
    "value = 1",
    "“quoted”",
    "gamma\n",
    "x",
]
PATTERNS = [
    "alpha",
    r"\w+ = \d",
    "TODO|beta",
    r"^def (\w+)",
    "a.*b",
    r"\bx\b",
    "(",
    "",
    "quoted”",
    r"return\s+x$",
]
GLOBS = ["*.py", "**/*.txt", "src/**", "*.{py,md}", "!*.py", "[ab].*", "/a.py", "none/*", "build/*", ".env"]
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c4944415408d763f8cfc0000003010100"
    "c9fe92ef0000000049454e44ae426082"
)


def write_tree(top: Path) -> None:
    """Write the tree that the calls are about."""
    body = "".join(f"{WORDS[n % 7]} {n}\n" for n in range(120))
    cells = [
        {
            "cell_type": "code",
            "metadata": {},
            "outputs": [],
            "execution_count": None,
            "source": ["alpha = 1\n", "beta"],
        }
    ]
    files = {
        "a.py": body,
        "src/b.py": body[:400] + "value = 1\n",
        "src/deep/c.txt": "alpha\nbeta\n",
        "crlf.txt": body.replace("\n", "\r\n"),
        "docs/é.md": "# “quoted”\n\nTODO\n",
        "long.txt": "alpha " * 3000 + "\nx\n",
        "mixed.txt": "alpha\r\nbeta\nTODO\r\n",
        ".env": "SECRET=alpha\n",
        "build/out.log": body,
        ".gitignore": "build/\n",
        ".hidden/h.py": body[:200],
        "book.ipynb": json.dumps(
            {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1
        ),
        "large.txt": "value = 1 and more text of a line\n" * 350_000,
    }
    for name, text in files.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_bytes(text.encode())
    (top / "latin.txt").write_bytes("caf\xe9 alpha\n".encode("latin-1") * 20)
    (top / "data.bin").write_bytes(b"\0alpha\n" * 50)
    (top / "pixel.png").write_bytes(PIXEL)
    (top / "link.py").symlink_to("a.py")
    for directory, _, names in os.walk(top):
        for name in names:
            os.utime(Path(directory, name), (1_700_000_000, 1_700_000_000), follow_symlinks=False)


def draw(chosen: random.Random, method: str) -> dict[str, object]:
    """Return random arguments of a method."""
    pick = chosen.choice
    path = pick(TEXTS * 3 + OTHERS)
    some = pick([path, [path, pick(TEXTS)], pick(DIRECTORIES)])
    paged = pick([{}, {}, {"limit": pick([1, 3, 50])}, {"offset": pick([1, 5]), "limit": 2}])
    ignored = pick([{}, {}, {"include_ignored": True}, {"hidden": True}])
    match method:
        case "read":
            return {"path": path} | pick(
                [
                    {},
                    {"offset": pick([1, 7, -3, 0, 500]), "limit": pick([None, 1, 9])},
                    {"column": 10},
                    {"line_ids": True},
                    {"encoding": "latin-1"},
                    {"raw": True},
                ]
            )
        case "write":
            return {"path": pick([path, "new.txt"]), "content": pick(WORDS)} | pick(
                [{}, {"overwrite": True}, {"preview": True}]
            )
        case "append":
            return {"path": pick([path, "new.txt"]), "content": pick(WORDS)}
        case "edit":
            more = pick([{}, {}, {"replace_all": True}, {"preview": True}, {"match": "exact"}, {"expect": 2}])
            return {
                "path": path,
                "old_string": pick([*WORDS, "beta 8", "TODO  4", "“quoted”", ""]),
                "new_string": pick(WORDS),
            } | more
        case "multi_edit":
            return {
                "path": path,
                "edits": [
                    {"old_string": pick(WORDS), "new_string": pick(WORDS)} for _ in range(pick([0, 1, 2]))
                ],
            }
        case "edit_lines":
            return {"path": path, "changes": [{"line_id": pick(["abcdef", "000000"]), "new_content": "x"}]}
        case "replace":
            more = pick(
                [{}, {"glob": pick(GLOBS)}, {"regex": True}, {"word": True}, {"preview": True}, {"expect": 3}]
            )
            return {
                "old_string": pick([*WORDS, *PATTERNS]),
                "new_string": pick(["y", r"\1", "beta"]),
                "path": some,
            } | more
        case "ls":
            return (
                {"path": some, "depth": pick([0, 1, 2])}
                | paged
                | ignored
                | pick([{}, {"ignore": ["*.py"]}, {"sort": "size"}])
            )
        case "glob":
            more = pick([{}, {"sort": "size"}, {"exclude": "*.txt"}, {"max_depth": 1}, {"types": "fd"}])
            return {"pattern": pick(GLOBS), "path": some} | paged | ignored | more
        case "grep":
            more = pick(
                [
                    {},
                    {"glob": pick(GLOBS)},
                    {"type": "py"},
                    {"ignore_case": True},
                    {"context": 1},
                    {"multiline": True},
                    {"word": True},
                    {"fixed_strings": True},
                    {"exclude": "*.txt"},
                ]
            )
            mode = pick(["content", "content", "files_with_matches", "count", "summary", "total"])
            return {"pattern": pick(PATTERNS), "path": some, "output_mode": mode} | paged | ignored | more
        case "delete":
            return {"path": path} | pick([{}, {"recursive": True}])
        case "move":
            return {"path": path, "to": pick(["new/place.py", *TEXTS])}
        case "undo" | "redo":
            return pick([{}, {"steps": 2}])
        case "checkpoint":
            return {"name": pick("pq")}
        case "rollback":
            return {"to": pick("pqr")}
        case "changes":
            return pick([{}, {"paths": [path]}])
        case _:
            return {"path": path}


METHODS = [
    "read",
    "write",
    "append",
    "edit",
    "multi_edit",
    "edit_lines",
    "replace",
    "ls",
    "glob",
    "grep",
    "delete",
    "move",
    "undo",
    "redo",
    "checkpoint",
    "rollback",
    "changes",
    "exists",
    "stat",
]


def plain(value: object, root: str) -> object:
    """Return an answer without times, and without the place of the tree."""
    if isinstance(value, dict):
        return {key: plain(each, root) for key, each in value.items() if key not in VOLATILE}
    if isinstance(value, (list, tuple)):
        return [plain(each, root) for each in value]
    return value.replace(root, "<root>") if isinstance(value, str) else value


def serve(top: Path) -> None:
    """Answer calls, a JSON list of method and arguments on each line; null opens the workspace anew."""
    from agentfs import AgentFSError, Workspace  # noqa: PLC0415 - of the checkout that PYTHONPATH names

    workspace = Workspace(top)
    for line in sys.stdin:
        call = json.loads(line)
        if call is None:
            workspace.close()
            workspace = Workspace(top)
            print("null", flush=True)
            continue
        method, arguments = call
        try:
            result = getattr(workspace, method)(**arguments)
            if hasattr(result, "to_dict"):
                answer = [result.to_dict(), result.text]
            else:
                answer = [vars(result) if hasattr(result, "__dict__") else result]
        except AgentFSError as error:
            answer = [error.code, str(error), error.details]
        digest = hashlib.sha256()
        for directory, names, files in sorted(os.walk(top)):
            names.sort()
            for name in sorted(files):
                path = Path(directory, name)
                content = os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
                digest.update(
                    json.dumps([str(path.relative_to(top)), path.lstat().st_mode]).encode() + content
                )
        text = json.dumps([plain(answer, str(top)), digest.hexdigest()], default=str, ensure_ascii=False)
        print(text, flush=True)


def shared(one: object, other: object) -> object:
    """Return an answer without the fields that another answer does not have."""
    if isinstance(one, dict) and isinstance(other, dict):
        return {key: shared(each, other[key]) for key, each in one.items() if key in other}
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [shared(*pair) for pair in zip(one, other, strict=True)]
    return one


class Version:
    """A process that answers with the package of one checkout."""

    def __init__(self, checkout: Path, top: Path) -> None:
        self.top = top
        environment = {**os.environ, "PYTHONPATH": str(checkout)}
        command = [sys.executable, __file__, "--serve", str(top)]
        top.mkdir()
        write_tree(top)
        self.process = subprocess.Popen(
            command, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def ask(self, call: object) -> list[object]:
        self.process.stdin.write(json.dumps(call) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def reset(self) -> None:
        shutil.rmtree(self.top)
        self.top.mkdir()
        write_tree(self.top)
        self.ask(None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--show", type=int, default=3)
    options = parser.parse_args()
    wanted = options.only.split(",") if options.only else METHODS
    chosen = random.Random(options.seed)
    same: Counter[str] = Counter()
    differing = defaultdict(list)
    with tempfile.TemporaryDirectory() as scratch:
        versions = [
            Version(checkout, Path(scratch) / name)
            for checkout, name in ((options.other.resolve(), "other"), (HERE, "this_"))
        ]
        calls = [method for method in wanted for _ in range(options.calls)]
        chosen.shuffle(calls)
        for number, method in enumerate(calls):
            if number % 25 == 24:
                for version in versions:
                    version.reset()
            call = [method, draw(chosen, method)]
            other, this = (version.ask(call) for version in versions)
            if shared(other, this) == shared(this, other):
                same[method] += 1
                continue
            kind = "tree" if other[1] != this[1] else "text only" if other[0][:1] == this[0][:1] else "data"
            differing[method, kind].append((call, other[0], this[0]))
            if kind == "tree":
                for version in versions:
                    version.reset()
    print("| method | same | different |\n|---|---|---|")
    for method in wanted:
        kinds = ", ".join(
            f"{len(found)} {kind}" for (name, kind), found in differing.items() if name == method
        )
        print(f"| {method} | {same[method]} | {kinds or '0'} |")
    for (method, kind), found in differing.items():
        for call, other, this in found[: options.show]:
            print(f"\n{method}, {kind}: {json.dumps(call[1], ensure_ascii=False)}")
            for sign, answer in (("-", other), ("+", this)):
                print(sign, json.dumps(answer, ensure_ascii=False)[-1500:])


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(Path(sys.argv[2]))
    else:
        main()
