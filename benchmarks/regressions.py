"""Undo fixes one at a time, and count those that the first tier of the tests finds.

    python benchmarks/regressions.py [PART OF A NAME…]

Each row undoes a fix, or a rule that was added because of a report: it replaces a text of the package in a
copy of the last commit. The tests of the packages concerned then run until the first failure. A row whose
text is no longer there is an error: replace it by a row about the code of today.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]


class Fix(NamedTuple):
    """A fix: its place, the text that is replaced to undo it, and its tests, the likely ones first."""

    name: str
    file: str
    fixed: str
    undone: str
    tests: tuple[str, ...]


FIXES = (
    # text
    Fix(
        "equal changes of both sides are no conflict",
        "text/merge.py",
        "if our_lines in (before, their_lines):",
        "if our_lines == before:",
        ("tests/text/test_merge.py", "tests/text"),
    ),
    Fix(
        "the mark of UTF-32 begins with that of UTF-16",
        "text/decoding.py",
        '    (codecs.BOM_UTF32_LE, "utf-32-le"),\n',
        "",
        ("tests/text/test_decoding.py", "tests/editing/test_encodings.py", "tests/text", "tests/editing"),
    ),
    Fix(
        "ASCII text is encoded as it declares",
        "text/decoding.py",
        "declared_encoding(text) if named is None and text.isascii() else None",
        "None",
        ("tests/text/test_decoding.py", "tests/editing/test_encodings.py", "tests/text", "tests/editing"),
    ),
    Fix(
        "a new character of an unknown 8-bit encoding is refused",
        "text/decoding.py",
        "            if unknown:\n                raise",
        "            if unknown is None:\n                raise",
        ("tests/text/test_decoding.py", "tests/editing/test_encodings.py", "tests/text", "tests/editing"),
    ),
    Fix(
        "a lone CR ends no line of a text with LF",
        "text/lines.py",
        'text.replace("\\r\\n", "\\n") if "\\n" in text else text.replace("\\r", "\\n")',
        'text.replace("\\r\\n", "\\n").replace("\\r", "\\n")',
        ("tests/text/test_lines.py", "tests/editing/test_edit.py", "tests/text"),
    ),
    Fix(
        "inserted lines get the line end of the line before",
        "text/lines.py",
        "line = first - 1 if first == stop and first > start else first",
        "line = first",
        ("tests/text/test_lines.py", "tests/editing/test_edit.py", "tests/text", "tests/editing"),
    ),
    Fix(
        "a joiner between other characters is hidden",
        "base/visible.py",
        "(?<=[{JOINERS}])(?!{_KEPT_AFTER})",
        "(?<=[{JOINERS}])(?!)",
        ("tests/base/test_visible.py", "tests/base"),
    ),
    Fix(
        "an escape that no text has is kept as it is",
        "base/visible.py",
        'if code > 0x10FFFF or found[1] != f"{code:04X}":',
        "if code > 0x10FFFF:",
        ("tests/base/test_visible.py", "tests/base"),
    ),
    # fs and tree
    Fix(
        "a directory whose name only begins like another is outside of it",
        "fs/path.py",
        'path.startswith(f"{directory}/")',
        "path.startswith(directory)",
        ("tests/test_restricted_view.py", "tests/fs", "tests/history"),
    ),
    Fix(
        "final dots and spaces do not unprotect a name",
        "fs/protect.py",
        'name = name.rstrip(". ") or name\n',
        "pass\n",
        ("tests/fs/test_protect.py", "tests/fs"),
    ),
    Fix(
        "git~1 is .git on some disks",
        "fs/protect.py",
        'return ".git" if _SHORT_GIT.fullmatch(name) else name',
        "return name",
        ("tests/fs/test_protect.py", "tests/fs"),
    ),
    Fix(
        "a stream of a protected file is protected",
        "fs/protect.py",
        'for part in parts]] if ":" in path else []',
        "for part in parts]] if not path else []",
        ("tests/fs/test_protect.py", "tests/fs"),
    ),
    Fix(
        "a backup of a backup is protected",
        "fs/protect.py",
        "while found := re.fullmatch(_BACKUP, name):\n        name = fold(found[1] or found[2])",
        "if found := re.fullmatch(_BACKUP, name):\n        name = fold(found[1] or found[2])",
        ("tests/fs/test_protect.py", "tests/fs"),
    ),
    Fix(
        "surrogates of one character are one spelling",
        "fs/path.py",
        'path = path.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")',
        'path.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")',
        ("tests/fs/test_path.py", "tests/fs"),
    ),
    Fix(
        "a rule file that is too large is named and not read",
        "tree/ignore_sources.py",
        "if content is None or len(content) > MAX_RULE_BYTES:",
        "if content is None:",
        ("tests/tree/test_bounded_rules.py", "tests/tree/test_ignore_sources.py", "tests/tree"),
    ),
    Fix(
        "the rules of a submodule begin anew",
        "tree/ignore_sources.py",
        'return is_git_file(self._content(directory, ".git") or b""), None',
        "return False, None",
        ("tests/tree/test_bounded_rules.py", "tests/tree/test_ignore_sources.py", "tests/tree"),
    ),
    Fix(
        "an empty part after two stars is read as by git",
        "tree/gitignore.py",
        "self.prefix or self.parts[-1] == ANY_PARTS",
        "self.parts[-1] == ANY_PARTS",
        ("tests/tree/test_ignore_git.py", "tests/tree"),
    ),
    Fix(
        "a negated glob excludes everything below a directory",
        "tree/globs.py",
        "if slash > 0 and is_pruned(path[:slash]):",
        "if slash < 0 and is_pruned(path[:slash]):",
        ("tests/tree/test_globs.py", "tests/search/test_glob_lists_rg.py", "tests/tree", "tests/search"),
    ),
    Fix(
        "braces with one alternative match it",
        "tree/globs.py",
        'tokens[opening] = text = ""',
        "pass",
        ("tests/tree/test_globs.py", "tests/search/test_glob_lists_rg.py", "tests/tree", "tests/search"),
    ),
    Fix(
        "a glob cannot lead out by ..",
        "tree/globs.py",
        'if ".." in each.split("/"):',
        'if ".." == each:',
        ("tests/tree/test_globs.py", "tests/search/test_glob_lists_rg.py", "tests/tree"),
    ),
    # permission and tools
    Fix(
        "plan mode refuses changes before any ask rule",
        "permission/decide.py",
        'if effect != "read" and (policy.read_only or policy.mode == "plan"):',
        'if effect != "read" and policy.read_only:',
        ("tests/permissions", "tests/tools"),
    ),
    Fix(
        "a deny rule holds for capitals if the disk ignores case",
        "permission/decide.py",
        "or (subject.ignores_case and matches_path(fold_letters(glob), fold_letters(path)))",
        "",
        ("tests/permissions", "tests/tools"),
    ),
    Fix(
        "a deny rule holds in each Unicode form",
        "permission/decide.py",
        'or matches_path(unicodedata.normalize("NFC", glob), unicodedata.normalize("NFC", path))',
        "",
        ("tests/permissions", "tests/tools"),
    ),
    Fix(
        "a rule about a directory in brackets means that directory too",
        "permission/decide.py",
        "return compile_globs([glob] if literal == glob else [glob, literal])",
        "return compile_globs([glob])",
        ("tests/permissions", "tests/tools"),
    ),
    Fix(
        "allow rules must cover a change",
        "permission/decide.py",
        "policy.on_ask is None and not policy.allow",
        "policy.on_ask is None",
        ("tests/permissions", "tests/tools"),
    ),
    Fix(
        "a deny rule catches a program behind xargs",
        "permission/command_lines.py",
        '"nohup", "xargs"}',
        '"nohup"}',
        ("tests/permissions/test_command_lines.py", "tests/tools"),
    ),
    Fix(
        "a deny rule catches a program with its path",
        "permission/command_lines.py",
        "    if name != words[0]:\n        yield",
        "    if name is None:\n        yield",
        ("tests/permissions/test_command_lines.py", "tests/tools"),
    ),
    Fix(
        "an empty command line matches no allow rule",
        "permission/command_lines.py",
        "return bool(commands) and all(map(allowed, commands))",
        "return all(map(allowed, commands))",
        ("tests/permissions/test_command_lines.py", "tests/tools"),
    ),
    Fix(
        "no text of an exception that may hold a secret or an outer path",
        "tools/result.py",
        "{type(error).__name__}, not because",
        "{error}, not because",
        ("tests/tools/test_toolset.py", "tests/tools"),
    ),
    Fix(
        "no lone surrogate reaches an API",
        "tools/gate.py",
        'result.content.encode("utf-8", "backslashreplace").decode()',
        "result.content",
        ("tests/tools/test_gate.py", "tests/tools", "tests/test_visible_everywhere.py"),
    ),
    # providers, arguments and dialects
    Fix(
        "Gemini gets no object without properties",
        "providers/gemini.py",
        'if tool["parameters"]["properties"]:',
        'if tool["parameters"]:',
        ("tests/providers", "tests/tools"),
    ),
    Fix(
        "a failed tool is an error for Anthropic",
        "providers/anthropic_format.py",
        '[block if result.success else {**block, "is_error": True}]',
        "[block]",
        ("tests/providers",),
    ),
    Fix(
        "the answers to the commands of one call are one message",
        "providers/openai.py",
        'if of_call[0] == of_call[1] and of_call[0][0] == "shell_call_output":',
        "if of_call[0] is None:",
        ("tests/providers",),
    ),
    Fix(
        "raw line ends in JSON strings are accepted",
        "arguments/json_text.py",
        "json.loads(text, strict=False,",
        "json.loads(text, strict=True,",
        ("tests/arguments/test_reader.py", "tests/arguments"),
    ),
    Fix(
        "JSON that is encoded twice is accepted",
        "arguments/json_text.py",
        "    for _ in range(2):\n        if isinstance(value, str):",
        "    for _ in range(1):\n        if isinstance(value, str):",
        ("tests/arguments/test_reader.py", "tests/arguments", "tests/tools"),
    ),
    Fix(
        "the directory of memories is not deleted",
        "dialects/anthropic_files.py",
        'if is_top and command in {"delete", "rename"}:',
        'if is_top and command == "rename":',
        ("tests/dialects/test_memory.py", "tests/dialects"),
    ),
    Fix(
        "the text of an insertion may be new_str, as in older versions",
        "dialects/anthropic_files.py",
        "new_str if insert_text is None else insert_text",
        "insert_text",
        ("tests/dialects/test_text_editor.py", "tests/dialects"),
    ),
    # remote, store and commands
    Fix(
        "control characters of the other side are shown",
        "remote/wire.py",
        "return value if value.isascii() and value.isprintable() else escape_controls(value)",
        "return value",
        ("tests/remote/test_wire.py", "tests/remote/test_hostile_server.py", "tests/remote"),
    ),
    Fix(
        "a deep message is an error of the protocol",
        "remote/wire.py",
        "    if depth > _MAX_DEPTH:\n",
        "    if depth > 10**9:\n",
        ("tests/remote/test_wire.py", "tests/remote/test_hostile_server.py", "tests/remote"),
    ),
    Fix(
        "a line that takes too much memory is refused",
        "remote/wire.py",
        '    if memory_of(line) > MAX_MEMORY:\n        raise ProtocolError("A line takes',
        '    if not line:\n        raise ProtocolError("A line takes',
        ("tests/remote/test_wire.py", "tests/remote/test_hostile_server.py", "tests/remote"),
    ),
    Fix(
        "a cache is not pushed to the tree of another store",
        "store/sync.py",
        'if expected not in ("", found):',
        'if expected == "none":',
        ("tests/store/test_stored_tree.py", "tests/store/test_bad_input.py", "tests/store"),
    ),
    Fix(
        "a link in a store's cache is left out",
        "store/sync.py",
        "isinstance(node, FileNode | DirectoryNode):\n            raise",
        "isinstance(node, FileNode | DirectoryNode) and not node:\n            raise",
        ("tests/store/test_stored_tree.py", "tests/store/test_bad_input.py", "tests/store"),
    ),
    Fix(
        "the output of a command shows its control characters",
        "commands/result_text.py",
        'return visible(data.decode("utf-8", "backslashreplace").replace("\\r\\n", "\\n"))',
        'return data.decode("utf-8", "backslashreplace").replace("\\r\\n", "\\n")',
        ("tests/commands/test_run.py", "tests/commands"),
    ),
    # editing and history
    Fix(
        "an old text that is found by several steps is ambiguous",
        "editing/match.py",
        "            matches += [each for each in found if",
        "            matches += [each for each in [] if",
        ("tests/editing/test_edit.py", "tests/editing/test_reported.py", "tests/editing"),
    ),
    Fix(
        "lines that old and new text share are taken from the file",
        "editing/match.py",
        "        made += actual_lines[position:old_start]\n",
        "        made += old_lines[position:old_start]\n",
        ("tests/editing/test_edit.py", "tests/editing/test_reported.py", "tests/editing"),
    ),
)


def main(parts: Sequence[str]) -> int:
    chosen = [fix for fix in FIXES if not parts or any(part in fix.name for part in parts)]
    with tempfile.TemporaryDirectory(prefix="agentfs-regressions-") as directory:
        copy = Path(directory)
        archive = subprocess.run(["git", "-C", ROOT, "archive", "HEAD"], stdout=subprocess.PIPE, check=True)
        subprocess.run(["tar", "-x", "-C", copy], input=archive.stdout, check=True)
        texts = {fix: (copy / "agentfs" / fix.file).read_text(encoding="utf-8") for fix in chosen}
        gone = [fix for fix, text in texts.items() if text.count(fix.fixed) != 1]
        for fix in gone:
            print(f"{fix.file} does not have the text of “{fix.name}” once.", file=sys.stderr)
        missed = list(undone(copy, [fix for fix in chosen if fix not in gone]))
    found = len(chosen) - len(gone) - len(missed)
    print(f"\n{found} of {len(chosen)} were found.", *missed, sep="\nNot found: ")
    return bool(gone or missed)


def undone(copy: Path, fixes: Sequence[Fix]) -> Iterator[str]:
    """Undo each fix in a copy, and yield the names of those that no test finds."""
    unsteady: list[str] = []  # tests that fail without a change too
    for fix in fixes:
        path = copy / "agentfs" / fix.file
        text = path.read_text(encoding="utf-8")
        for tests in fix.tests:
            while True:
                path.write_text(text.replace(fix.fixed, fix.undone), encoding="utf-8")
                found = first_failure(copy, tests, unsteady)
                path.write_text(text, encoding="utf-8")
                if not found or not first_failure(copy, found, []):
                    break
                print(f"{found} fails in any case.", flush=True)
                unsteady.append(found)
            if found:
                break
        print(f"| {fix.name} | {fix.file} | {found or 'not found'} |", flush=True)
        if not found:
            yield fix.name


def first_failure(copy: Path, tests: str, left_out: Sequence[str]) -> str:
    """Run tests until the first failure, and return its name."""
    options = ["-q", "-x", "-p", "no:cacheprovider", "--tb=no", "--hypothesis-profile=repeatable"]
    options += [f"--deselect={each}" for each in left_out]
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, tests],
        cwd=copy, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode in {0, 5}:  # 5 if all tests of a file are left out
        return ""
    lines = [line for line in done.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    if not lines:
        raise SystemExit(f"pytest ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return lines[0].split(" ", 1)[1].split(" - ")[0]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
