"""Tokens of what a model is shown for fixed tasks, in our format and in those of four peers.

    python benchmarks/tokens.py [--json FILE]

The peers' formats are written down here as research on their sources describes them (August 2026), and show
the same content; the peers are not run. The first table compares like with like. The tasks of the second
show more than some peers do: line numbers, a diff, or why an edit fails. A peer without a task has a dash.
"without numbers" is agentfs with the `line_numbers=False` of its dialects.
Tokens are those of tiktoken's cl100k_base, or estimated without it.
"""

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

from ratios import save

from agentfs import Limits, Workspace
from agentfs.dialects import toolkit
from agentfs.dialects.toolkit import ReadOptions
from agentfs.text.display import estimate_tokens

PEERS = ("agentfs", "without numbers", "Claude Code", "codex", "opencode", "gemini-cli")
MORE = ("read", "edit: the diff", "edit: a miss")  # tasks with more than some peers show


def counter() -> tuple[str, Callable[[str], int]]:
    try:
        import tiktoken  # type: ignore[import-not-found]  # noqa: PLC0415 - an optional judge

        encoding = tiktoken.get_encoding("cl100k_base")
    except Exception:  # noqa: BLE001 - not installed, or no vocabulary
        return "estimate_tokens", estimate_tokens
    return "tiktoken cl100k_base", lambda text: len(encoding.encode(text, disallowed_special=()))


def function(number: int) -> str:
    return (
        f"\ndef compute_{number}(value: int, name: str) -> str:\n"
        f'    """Return the name of value {number}."""\n'
        f"    if value > {number * 10}:\n"
        f'        raise ValueError(f"{{name}} is over {number * 10}")\n'
        f"    return os.path.join(name, str(value))  # {'TODO' if number == 7 else 'done'}\n\n"
    )


def build(root: Path) -> None:
    for package in range(20):
        for module in range(30):
            path = root / f"package_{package:02}" / f"module_{module:02}.py"
            path.parent.mkdir(exist_ok=True)
            body = [f'"""Module {module} of package {package}."""\n\nimport os\n\n']
            body += [function(number) for number in range(12)]
            path.write_text("".join(body))
    (root / "flat").mkdir()
    for number in range(110):
        (root / "flat" / f"component_{number:03}.tsx").write_text(function(number))
    (root / "large.py").write_text("".join(f"    total_{n} = compute({n}, 'name')\n" for n in range(6000)))


def pages(path: str, first: int, content: str, total: int) -> list[str]:
    lines = content.splitlines()
    last = first + len(lines) - 1
    more = last < total
    claude = "\n".join(f"{n:6}\t{line}" for n, line in enumerate(lines, first))
    left = (
        f"\n\n(Showing lines {first}-{last} of {total}. Use offset={last + 1} to continue.)" if more else ""
    )
    opencode = (
        f"<path>/workspace/{path}</path>\n<type>file</type>\n<content>\n"
        + "\n".join(f"{n}: {line}" for n, line in enumerate(lines, first))
        + f"{left}\n</content>"
    )
    head = (
        "\nIMPORTANT: The file content has been truncated.\n"
        f"Status: Showing lines {first}-{last} of {total} total lines.\n"
        f"Action: To read more of the file, use start_line: {last + 1}.\n\n--- FILE CONTENT (truncated) ---\n"
        if more
        else ""
    )
    codex = "\n".join(f"L{n}: {line}" for n, line in enumerate(lines, first))
    return [claude, codex, opencode, head + "\n".join(lines)]


def shell(text: str) -> str:
    """Return the output of a command as codex shows it."""
    return f"Exit code: 0\nWall time: 0.1 seconds\nOutput:\n{text}\n"


def hits(found: list[tuple[str, int, str]]) -> list[str]:
    by_file: dict[str, list[tuple[int, str]]] = {}
    for path, line, text in found:
        by_file.setdefault(path, []).append((line, text))
    claude = "\n".join(f"/workspace/{path}:{line}:{text}" for path, line, text in found)
    opencode = f"Found {len(found)} matches\n" + "\n".join(
        f"/workspace/{path}:\n" + "\n".join(f"  Line {line}: {text}" for line, text in lines) + "\n"
        for path, lines in by_file.items()
    )
    gemini = f'Found {len(found)} matches for pattern "x" in path ".":\n---\n' + "\n".join(
        f"File: {path}\n" + "\n".join(f"L{line}: {text}" for line, text in lines) + "\n---"
        for path, lines in by_file.items()
    )
    codex = shell("\n".join(f"{path}:{line}:{text}" for path, line, text in found))
    return [claude, codex, opencode, gemini]


def names(paths: list[str]) -> list[str]:
    absolute = "\n".join(f"/workspace/{path}" for path in paths)
    found = f"Found {len(paths)} file(s), sorted by modification time:\n{absolute}"
    return [absolute, absolute, absolute, found]


def listed(paths: list[str]) -> list[str]:
    """Return a listing; codex and opencode show the names below their directory, indented."""
    tree = "\n".join(f"{'  ' * path.count('/')}{path.rpartition('/')[2]}" for path in paths)
    names = "\n".join(f"  - {path}" for path in paths)
    return [
        f"- /workspace/\n{names}",
        f"Absolute path: /workspace\n{tree}",
        f"/workspace/\n{tree}",
        "Directory listing for /workspace:\n" + "\n".join(paths),
    ]


def edited(path: str, before: list[str], at: int, new: str) -> list[str]:
    after = [*before[:at], new, *before[at + 1 :]]
    near = range(max(at - 4, 0), min(at + 5, len(after)))
    snippet = "\n".join(f"{n + 1:6}\t{after[n]}" for n in near)
    claude = (
        f"The file /workspace/{path} has been updated. Here's the result of running `cat -n` on a snippet of "
        f"the edited file:\n{snippet}"
    )
    gemini = (
        f"Successfully modified file: /workspace/{path} (1 replacements). Here is the updated code:\n"
        + "\n".join(after[n] for n in range(max(at - 5, 0), min(at + 6, len(after))))
    )
    return [claude, f"Success. Updated the following files:\nM {path}", "Edit applied successfully.", gemini]


def missed(path: str, old: str) -> list[str]:
    """Return what the peers say of an old text that a file does not have."""
    where = "It must match exactly, including whitespace, indentation, and line endings."
    advice = "Ensure you're not escaping content incorrectly and check whitespace, indentation, and context."
    return [
        f"String to replace not found in file.\nString: {old}",
        f"Failed to find expected lines in /workspace/{path}:\n{old}",
        f"Could not find oldString in the file. {where}",
        (
            f"Failed to edit, 0 occurrences found for old_string in /workspace/{path}. No edits made. "
            f"The exact text in old_string was not found. {advice} Use read_file tool to verify."
        ),
    ]


def tasks(ws: Workspace) -> list[tuple[str, list[str]]]:
    rows: list[tuple[str, list[str]]] = []

    def add(what: str, text: str, peers: list[str], without_numbers: str = "") -> None:
        rows.append((what, [text, without_numbers or text, *peers]))

    def read(what: str, path: str, offset: int = 1, limit: int | None = None) -> None:
        page = ws.read(path, offset, limit)
        plain = toolkit.read(ws, ReadOptions(path, offset, limit, line_numbers=False))
        add(what, page.text, pages(path, page.start_line, page.content, page.total_lines), plain.text)

    read("read: first page of a large file", "large.py")
    read("read: 100 lines of its middle", "large.py", 3000, 100)
    read("read: its last 20 lines", "large.py", -20)
    read("read: a small file", "package_03/module_04.py")
    for what, pattern, limit in (
        ("grep: 200 hits", "TODO", 200),
        ("grep: 30 hits in 30 files", "Module 4 of", 30),
    ):
        result = ws.grep(pattern, limit=limit)
        add(what, result.text, hits([(m.path, m.line, m.text) for m in result.matches]))
    found = ws.grep("TODO", output_mode="files_with_matches", limit=200)
    add("grep: 200 names of files", found.text, names(list(found.counts)))
    counted = ws.grep("name", output_mode="count", limit=200)
    counts = "\n".join(f"{path}:{each.lines}" for path, each in counted.counts.items())
    add("grep: counts of 200 files", counted.text, [counts, shell(counts), "", ""])
    flat = ws.ls("flat")
    add("ls: a directory of 110 files", flat.text, listed([e.name for e in flat.entries]))
    listing = ws.ls(depth=2, limit=500)
    add("ls: 500 entries of a tree", listing.text, listed([e.path for e in listing.entries]))
    globbed = ws.glob("**/module_0*.py", limit=200)
    add("glob: 200 files", globbed.text, names([e.path for e in globbed.files]))
    path = "package_05/module_06.py"
    before = ws.read(path).content.splitlines()
    at = next(n for n, line in enumerate(before) if "TODO" in line)
    change = ws.edit(path, "# TODO", "# later")
    peers = edited(path, before, at, before[at].replace("TODO", "later"))
    alone = [f"The file /workspace/{path} has been updated.", *peers[1:3], peers[3].partition(". Here")[0]]
    add("edit: the result without its diff", change.text.partition("\n")[0], alone)
    add("edit: the diff", change.text, peers)
    wrong = "\n".join(before[at - 3 : at + 1]).replace("later", "done").replace("value", "count", 1)
    miss = ws.tools().call("edit", {"path": path, "old_string": wrong, "new_string": "pass"})
    add("edit: a miss", miss.content, missed(path, wrong))
    made = ws.write("package_05/new.py", "".join(map(function, range(3))))
    created = [
        "File created successfully at: /workspace/package_05/new.py",
        "Success. Updated the following files:\nA package_05/new.py",
        "Wrote file successfully.",
        "Successfully created and wrote to new file: /workspace/package_05/new.py.",
    ]
    add("write: a new file", made.text, created)
    return rows


def table(rows: list[tuple[str, list[int | None]]]) -> None:
    """Print the tokens of tasks, and for each peer the sum of ours for the tasks that it has."""
    print("\n| task | " + " | ".join(PEERS) + " |")
    print("|---" * (len(PEERS) + 1) + "|")
    for what, counts in rows:
        print(f"| {what} | " + " | ".join("–" if each is None else f"{each:,}" for each in counts) + " |")
    sums = [sum(counts[n] or 0 for _, counts in rows) for n in range(len(PEERS))]
    ours = [sum(counts[0] or 0 for _, counts in rows if counts[n] is not None) for n in range(len(PEERS))]
    print("| in sum | " + " | ".join(f"{total:,}" for total in sums) + " |")
    print("| agentfs, the same tasks | " + " | ".join(f"{total:,}" for total in ours) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", help="the file for the figures")
    file = parser.parse_args().json
    named, count = counter()
    with tempfile.TemporaryDirectory() as directory:
        build(Path(directory))
        limits = Limits(read_bytes=200_000, output_tokens=100_000)
        with Workspace(directory, limits=limits) as ws:
            texts = tasks(ws)
    print(f"tokens by {named}")
    rows = [(what, [count(text) if text else None for text in each]) for what, each in texts]
    table([row for row in rows if not row[0].startswith(MORE)])
    table([row for row in rows if row[0].startswith(MORE)])
    if file:
        complete = [(what, counts) for what, counts in rows if None not in counts]
        save(
            file,
            named,
            [{"label": what, "tokens": dict(zip(PEERS, counts, strict=True))} for what, counts in complete],
        )


if __name__ == "__main__":
    main()
