"""Tokens of what a model is shown for ten fixed tasks, in our format and in those of four peers.

    python benchmarks/tokens.py [--json FILE]

The peers' formats are written down here as research on their sources describes them (August 2026), and show
the same content; the peers are not run. "without numbers" is agentfs with `Policy(line_numbers=False)`.
Tokens are those of tiktoken's cl100k_base, or estimated without it.
"""

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

from save import save

from agentfs import Limits, Policy, Workspace
from agentfs.text import estimate_tokens

PEERS = ("agentfs", "without numbers", "Claude Code", "opencode", "gemini-cli", "pydantic-harness")


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
    rest = f"\n... ({total - last} more lines. Use offset={last} to continue reading.)" if more else ""
    return [
        claude,
        opencode,
        head + "\n".join(lines),
        f"[{path} | {total} lines | hash:3146e9d03fc9]\n{claude}{rest}",
    ]


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
    return [claude, opencode, gemini, "\n".join(f"{path}:{line}:{text}" for path, line, text in found)]


def names(paths: list[str], *, listed: bool) -> list[str]:
    absolute = "\n".join(f"/workspace/{path}" for path in paths)
    if listed:
        tree = "\n".join(f"  - {path}" for path in paths)
        return [
            f"- /workspace/\n{tree}",
            f"/workspace/\n{tree}",
            "Directory listing:\n" + "\n".join(paths),
            "\n".join(paths),
        ]
    return [
        absolute,
        absolute,
        f"Found {len(paths)} file(s), sorted by modification time:\n{absolute}",
        "\n".join(paths),
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
    return [claude, "Edit applied successfully.", gemini, f"Edited {path}. [hash:3146e9d03fc9]"]


def tasks(ws: Workspace, unnumbered: Workspace) -> list[tuple[str, list[str]]]:
    rows: list[tuple[str, list[str]]] = []

    def add(what: str, text: str, peers: list[str], without_numbers: str = "") -> None:
        rows.append((what, [text, without_numbers or text, *peers]))

    def read(what: str, path: str, offset: int = 1, limit: int | None = None) -> None:
        page, plain = (each.read(path, offset, limit) for each in (ws, unnumbered))
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
    add("grep: 200 names of files", found.text, names(list(found.counts), listed=False))
    listing = ws.ls(depth=0, limit=500)
    add("ls: 500 entries of a tree", listing.text, names([e.path for e in listing.entries], listed=True))
    globbed = ws.glob("**/module_0*.py", limit=200)
    add("glob: 200 files", globbed.text, names([e.path for e in globbed.files], listed=False))
    path = "package_05/module_06.py"
    before = ws.read(path).content.splitlines()
    at = next(n for n, line in enumerate(before) if "TODO" in line)
    change = ws.edit(path, "# TODO", "# later")
    add("edit: one line", change.text, edited(path, before, at, before[at].replace("TODO", "later")))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", help="the file for the figures")
    file = parser.parse_args().json
    named, count = counter()
    with tempfile.TemporaryDirectory() as directory:
        build(Path(directory))
        limits = Limits(read_bytes=200_000, output_tokens=100_000)
        plain = Workspace(directory, policy=Policy(line_numbers=False), limits=limits)
        with Workspace(directory, limits=limits) as ws, plain:
            rows = tasks(ws, plain)
    print(f"tokens by {named}\n")
    print("| task | " + " | ".join(PEERS) + " |")
    print("|---" * (len(PEERS) + 1) + "|")
    sums = [0] * len(PEERS)
    table = []
    for what, texts in rows:
        counts = [count(text) for text in texts]
        sums = [total + number for total, number in zip(sums, counts, strict=True)]
        print(f"| {what} | " + " | ".join(f"{number:,}" for number in counts) + " |")
        table.append({"label": what, "tokens": dict(zip(PEERS, counts, strict=True))})
    print("| all ten | " + " | ".join(f"{number:,}" for number in sums) + " |")
    if file:
        save(file, named, table)


if __name__ == "__main__":
    main()
