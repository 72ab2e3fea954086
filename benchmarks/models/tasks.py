"""Thirty tasks on small trees: six each of editing, renaming over files, fixing a test, finding, and undoing.

Each tree is made here from the number of its task. A task states the files that must differ at the end, byte
for byte, so that a check needs no judgement. `steps` is one solution, for the scripted model.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

# `read` path, `edit` or `undo` path old new, `test`, `say` text.
Step = tuple[str, ...]
KINDS = ("edit", "rename", "fix", "find", "undo")


@dataclass(frozen=True)
class Task:
    name: str
    kind: str
    prompt: str
    files: Mapping[str, bytes]
    wanted: Mapping[str, bytes] = field(default_factory=dict)  # the files that differ at the end
    answers: tuple[str, ...] = ()  # what the last message must contain
    steps: tuple[Step, ...] = ()

    def solved(self, after: Mapping[str, bytes], answer: str, *, tests_pass: bool) -> bool:
        """Return True if tree and answer are as wanted. A fix may differ from ours if the tests pass."""
        others_same = all(
            after.get(path) == data for path, data in self.files.items() if path not in self.wanted
        )
        nothing_new = after.keys() <= self.files.keys()
        right = (
            tests_pass
            if self.kind == "fix"
            else all(after.get(path) == data for path, data in self.wanted.items())
        )
        return right and others_same and nothing_new and all(text in answer for text in self.answers)

    def damaged(self, after: Mapping[str, bytes]) -> int:
        """Count the files that the task does not name but that changed, and those that lost their format."""
        paths = self.files.keys() | after.keys()
        others = sum(self.files.get(path) != after.get(path) for path in paths if path not in self.wanted)
        named = [path for path in self.wanted if path in self.files]
        return others + sum(_format(self.files[path]) != _format(after.get(path, b"")) for path in named)


def _format(data: bytes) -> tuple[object, ...]:
    """Return the properties that an edit must keep: byte order mark, line ends, encoding, last line end."""
    ends = "crlf" if data.count(b"\r\n") == data.count(b"\n") > 0 else "mixed" if b"\r" in data else "lf"
    try:
        data.decode()
    except UnicodeDecodeError:
        return data[:3] == b"\xef\xbb\xbf", ends, "other", data.endswith(b"\n")
    return data[:3] == b"\xef\xbb\xbf", ends, "utf-8", data.endswith(b"\n")


def tasks() -> list[Task]:
    """Return all tasks, each with a tree of its own."""
    return [*_edits(), *_renames(), *_fixes(), *_finds(), *_undos()]


def _tree(number: int) -> dict[str, bytes]:
    """Make a tree of thirty files with repeated lines, similar names and several formats."""
    draw = random.Random(number)
    files = {".gitignore": b"build/\n", "README.md": b"# Shop\n\nPrices are in cents.\n"}
    for module in range(20):
        body = [f'"""Module {module} of the shop."""\n']
        body += [
            f"\n\ndef compute_{module}_{each}(value: int) -> int:\n"
            f'    """Return value {draw.randrange(1000, 9999)} of the shop."""\n'
            f"    if value > {each * 10 + 100}:\n"
            f'        raise ValueError("too large")\n'
            f"    return value * {each + 2}\n"
            for each in range(8)
        ]
        files[f"shop/module_{module:02}.py"] = "".join(body).encode()
        if module % 4 == 0:
            files[f"build/module_{module:02}.py"] = files[f"shop/module_{module:02}.py"]
    files["data/table.py"] = "".join(f"ROW_{row} = {row * 3}\n" for row in range(3000)).encode()
    files["notes.txt"] = b"".join(b"Note %d: open\r\n" % note for note in range(40))
    files["towns.csv"] = "town,people\nOrléans,116000\nNîmes,148000\nSète,44000\n".encode("latin-1")
    files["Makefile"] = b"test:\n\tpython -m unittest -q\n\nclean:\n\trm -rf build\n"
    files["settings.ini"] = b"\xef\xbb\xbf[server]\nport = 8000\nhost = localhost\nworkers = 4\n"
    return files


def _changed(files: Mapping[str, bytes], edits: list[tuple[str, str, str]]) -> dict[str, bytes]:
    changed: dict[str, bytes] = {}
    for path, old, new in edits:
        before = changed.get(path, files[path])
        assert before.count(old.encode()) == 1, (path, old)
        changed[path] = before.replace(old.encode(), new.encode())
    return changed


def _task(
    name: str, kind: str, prompt: str, files: dict[str, bytes], edits: list[tuple[str, str, str]]
) -> Task:
    steps: list[Step] = []
    for edit in edits:
        steps += [("read", edit[0]), ("edit", *edit)]
    return Task(name, kind, prompt, files, _changed(files, edits), (), (*steps, ("say", "Done.")))


_KEEP = " Change nothing else."


def _edits() -> Iterator[Task]:
    files = [_tree(number) for number in range(6)]
    head = "def compute_7_3(value: int) -> int:\n"
    at = files[1]["shop/module_07.py"].decode().index(head)
    block = files[1]["shop/module_07.py"].decode()[at:].partition('("too large")')[0] + '("too large")'
    cases = [
        (
            "a line of a long file",
            "Set ROW_1712 in data/table.py to 7.",
            [("data/table.py", "ROW_1712 = 5136\n", "ROW_1712 = 7\n")],
        ),
        (
            "one of many equal lines",
            "Let compute_7_3 in shop/module_07.py raise OverflowError instead of ValueError.",
            [("shop/module_07.py", block, block.replace("ValueError", "OverflowError"))],
        ),
        (
            "a file with CRLF",
            "Mark note 17 in notes.txt as closed instead of open.",
            [("notes.txt", "Note 17: open", "Note 17: closed")],
        ),
        (
            "a file in Latin-1",
            "The third town in towns.csv has 45000 people, not 44000. Correct that.",
            [("towns.csv", "44000", "45000")],
        ),
        (
            "a line after a tab",
            "Let `make clean` also remove the directory dist.",
            [("Makefile", "rm -rf build", "rm -rf build dist")],
        ),
        (
            "two places and a byte order mark",
            "In settings.ini set the port to 9000 and the workers to 8.",
            [("settings.ini", "port = 8000", "port = 9000"), ("settings.ini", "workers = 4", "workers = 8")],
        ),
    ]
    for tree, (name, prompt, edits) in zip(files, cases, strict=True):
        yield _task(name, "edit", prompt + _KEEP, tree, edits)


def _renames() -> Iterator[Task]:
    for number in range(6):
        files, old, new = _tree(100 + number), f"price_{number}", f"net_price_{number}"
        callers = [f"shop/module_{module:02}.py" for module in range(0, 3 * number + 3, 2)]
        files["shop/prices.py"] = (
            f"def {old}(x):\n    return x\n\n\ndef {old}_old(x):\n    return x + 1\n".encode()
        )
        for path in callers:
            files[path] += f"\n\ntotal = {old}(3) + {old}_old(4)\n".encode()
        files["build/prices.py"] = files["shop/prices.py"]
        edits = [("shop/prices.py", f"def {old}(x)", f"def {new}(x)")]
        edits += [(path, f"total = {old}(3)", f"total = {new}(3)") for path in callers]
        prompt = (
            f"Rename the function {old} to {new} where it is defined and used. "
            f"Leave {old}_old and the directory build as they are."
        )
        yield _task(f"rename in {len(edits)} files", "rename", prompt, files, edits)


_FAULTS = [
    (
        "return [x for x in items if x > low]",
        "return [x for x in items if x >= low]",
        "f([1, 2, 3], 2) == [2, 3]",
        "items, low",
    ),
    ("return items[: size - 1]", "return items[:size]", "f([1, 2, 3], 2) == [1, 2]", "items, size"),
    ("return total * percent / 10", "return total * percent / 100", "f(200, 50) == 100", "total, percent"),
    ("text.strip().lower()", "return text.strip().lower()", "f(' A ') == 'a'", "text"),
    ("return sorted(names)", "return sorted(set(names))", "f(['b', 'a', 'b']) == ['a', 'b']", "names"),
    ("return first + last", "return f'{first} {last}'", "f('A', 'B') == 'A B'", "first, last"),
]


def _fixes() -> Iterator[Task]:
    for number, (wrong, right, claim, parameters) in enumerate(_FAULTS):
        files, path = _tree(200 + number), f"shop/fault_{number}.py"
        files[path] = f"def f({parameters}):\n    {wrong}\n".encode()
        files[f"test_fault_{number}.py"] = (
            f"import unittest\n\nfrom shop.fault_{number} import f\n\n\nclass Test(unittest.TestCase):\n"
            f"    def test_it(self):\n        self.assertTrue({claim})\n"
        ).encode()
        files["shop/__init__.py"] = b""
        prompt = "A test fails. Find the fault in the package shop and correct it. Do not change the tests."
        task = _task(f"fault {number}", "fix", prompt, files, [(path, f"    {wrong}\n", f"    {right}\n")])
        yield Task(
            **{**vars(task), "steps": (("test",), *task.steps[:-1], ("test",), ("say", "The tests pass."))}
        )


def _finds() -> Iterator[Task]:
    for number in range(6):
        files, path, name = (
            _tree(300 + number),
            f"shop/module_{number * 3:02}.py",
            f"compute_{number * 3}_{number}",
        )
        lines = files[path].decode().splitlines()
        line = next(at for at, each in enumerate(lines, 1) if each.startswith(f"def {name}("))
        if number % 2:
            prompt, answers = (
                f"Which line of which file in shop defines {name}? Answer PATH:LINE.",
                (f"{path}:{line}",),
            )
        else:
            said = lines[line].strip().strip('"')
            prompt, answers = (
                f"In which file of shop does a docstring say {said!r}? Answer with its path.",
                (path,),
            )
        steps = (("read", path), ("say", " ".join(answers)))
        yield Task(f"find {number}", "find", f"{prompt} Change nothing.", files, {}, answers, steps)


def _undos() -> Iterator[Task]:
    for number in range(6):
        files = _tree(400 + number)
        first = ("settings.ini", "port = 8000", f"port = 900{number}")
        path = f"shop/module_{number:02}.py"
        second = (path, f"def compute_{number}_1(value", f"def compute_{number}_one(value")
        prompt = (
            f"Do three things in this order. Set the port in settings.ini to 900{number}. "
            f"Rename compute_{number}_1 to compute_{number}_one in {path}. "
            "Then take the second change back, so that only the first remains."
        )
        steps = (("edit", *first), ("edit", *second), ("undo", path, second[2], second[1]), ("say", "Done."))
        yield Task(f"undo {number}", "undo", prompt, files, _changed(files, [first]), (), steps)
