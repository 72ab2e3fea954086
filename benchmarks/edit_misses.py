"""Edits whose old text is damaged as models damage it: what lands, what is refused and why, what goes wrong.

    edit_misses.py OLD_TREE NEW_TREE [--count 2000] [--show applied|cause|suggestion]

The edits are real: hunks of the difference between two trees (two releases of one project), with the lines
around them that make them unique. Each is damaged in every way that applies to it.
"""

import argparse
import difflib
import random
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path

from agentfs import AgentFSError, Policy, Workspace

CONTEXT = 2
MOST_LINES = 25
SUFFIXES = {".py", ".txt", ".html", ".js", ".css", ".ts", ".tsx"}


def real_edits(old_tree, new_tree, count):
    """Hunks of changed files: text before, text after, old, new; old stands once."""
    found = []
    for path in sorted(new_tree.rglob("*")):
        before = old_tree / path.relative_to(new_tree)
        if path.suffix not in SUFFIXES or not before.is_file():
            continue
        try:
            text, after = before.read_bytes().decode(), path.read_bytes().decode()
        except UnicodeDecodeError:
            continue
        if text == after or len(text) > 300_000:
            continue
        lines, changed = text.splitlines(keepends=True), after.splitlines(keepends=True)
        for group in difflib.SequenceMatcher(None, lines, changed, autojunk=False).get_grouped_opcodes(
            CONTEXT
        ):
            old = "".join(lines[group[0][1] : group[-1][2]])
            new = "".join(changed[group[0][3] : group[-1][4]])
            if old.strip() and old.count("\n") <= MOST_LINES and text.count(old) == 1:
                found.append((text, old, new))
    random.Random(4).shuffle(found)
    return found[:count]


# Each damage returns (text of the file now, what was shown of it before or None, old, new) or None.


def trailing_space(text, old, new, rng):
    lines = old.split("\n")
    at = rng.choice([n for n, line in enumerate(lines) if line.strip()])
    lines[at] += rng.choice([" ", "  ", "\t"])
    return text, None, "\n".join(lines), new


def tab_for_spaces(text, old, new, _rng):
    return text, None, "\n".join(tabbed(line) for line in old.split("\n")), new


def tabbed(line):
    depth = (len(line) - len(line.lstrip(" "))) // 4
    return "\t" * depth + line[4 * depth :]


def shifted(text, by):
    return "\n".join(shifted_line(line, by) for line in text.split("\n"))


def shifted_line(line, by):
    if not line.strip():
        return line
    return " " * by + line if by > 0 else line[-by:]


def least_indent(text):
    return min((len(line) - len(line.lstrip(" ")) for line in text.split("\n") if line.strip()), default=0)


def indentation_of_both(text, old, new, rng):
    least = min(least_indent(old), least_indent(new))
    by = rng.choice([2, 4, -least] if least else [2, 4])
    return text, None, shifted(old, by), shifted(new, by)


def indentation_of_old(text, old, new, rng):
    least = least_indent(old)
    by = rng.choice([2, 4, -least] if least else [2, 4])
    return text, None, shifted(old, by), new


def quotes_of_both(text, old, new, _rng):
    table = str.maketrans({'"': "”", "'": "’"})
    return text, None, old.translate(table), new.translate(table)


def quotes_of_old(text, old, new, _rng):
    return text, None, old.translate(str.maketrans({'"': "”", "'": "’", "-": "–"})), new


def escaped_newlines(text, old, new, _rng):
    return text, None, old.rstrip("\n").replace("\n", "\\n"), new.rstrip("\n")


def line_numbers(text, old, new, rng):
    first = text[: text.index(old)].count("\n") + 1
    mark = rng.choice(["|", "\t", ": ", "→"])
    lines = old.removesuffix("\n").split("\n")
    pasted = [f"{n:>4}{mark}{line}" for n, line in enumerate(lines, first)]
    return text, None, "\n".join(pasted) + "\n", new


def stale_text(text, old, new, rng):
    lines = old.split("\n")
    at = rng.choice([n for n, line in enumerate(lines) if line.strip()])
    lines[at] += "  # changed by someone else"
    return text.replace(old, "\n".join(lines)), text, old, new


def applied_before(text, old, new, _rng):
    return text.replace(old, new), None, old, new


def wrong_line(text, old, new, rng):
    lines = old.split("\n")
    at = rng.choice([n for n, line in enumerate(lines) if line.strip()])
    words = lines[at].split(" ")
    word = rng.choice([n for n, word in enumerate(words) if word])
    words[word] = words[word][::-1] + "_"
    lines[at] = " ".join(words)
    return text, None, "\n".join(lines), new


def cut_end(text, old, new, rng):
    lines = old.removesuffix("\n").split("\n")
    if len(lines) < 3:
        return None
    keep = rng.randrange(1, len(lines) - 1)
    if not any(line.strip() for line in lines[:keep]):
        return None
    indent = lines[keep][: len(lines[keep]) - len(lines[keep].lstrip())]
    return text, None, "\n".join([*lines[:keep], indent + "..."]) + "\n", new


# What a refusal may rightly say. Where the edit is not even refused, the bytes have to be those meant.
KINDS = {
    trailing_space: {"whitespace"},
    tab_for_spaces: {"whitespace"},
    indentation_of_both: {"whitespace"},
    indentation_of_old: {"whitespace"},
    quotes_of_both: {"near"},
    quotes_of_old: {"near"},
    escaped_newlines: {"whitespace"},
    line_numbers: {"line_numbers_included"},
    stale_text: {"changed_since_shown"},
    applied_before: {"already_applied"},
    wrong_line: {"near"},
    cut_end: {"near"},
}
# Nothing that lands here is right: the file holds another's work, or the work is done.
MUST_REFUSE = {"stale_text", "applied_before"}
# Where the work is done, nothing can be suggested.
UNSUGGESTED = {"applied_before"}
CAUSES = {damage.__name__: causes for damage, causes in KINDS.items()}


def cases_of(edits):
    rng = random.Random(5)
    cases = []
    for text, old, new in edits:
        for damage in KINDS:
            made = damage(text, old, new, rng)
            # A text that is still there is no miss: each tool would do what it was literally asked.
            if made is None or made[2] in made[0] or made[2] == made[3]:
                continue
            wanted = None if damage.__name__ in MUST_REFUSE else text.replace(old, new)
            cases.append((damage.__name__, *made, wanted))
    return cases


def ours(cases):
    def run(root):
        file = root / "file.txt"
        for _, text, shown, old, new, wanted in cases:
            with Workspace(root, policy=Policy(overwrite="always")) as ws:
                if shown is not None:
                    file.write_bytes(shown.encode())
                    ws.read("file.txt")
                file.write_bytes(text.encode())
                start = time.process_time()
                try:
                    ws.edit("file.txt", old, new)
                    outcome = ["landed", file.read_bytes().decode() == wanted, None, None]
                except AgentFSError as error:
                    cause = error.details.get("cause", error.code)
                    outcome = ["refused", None, cause, None]
                    if suggestion := error.details.get("suggestion"):
                        exact = ws.view(policy=Policy(overwrite="always", match="exact"))
                        try:
                            exact.edit("file.txt", suggestion, new)
                            outcome[3] = file.read_bytes().decode() == wanted
                        except AgentFSError:
                            outcome[3] = "missed again"
                yield [*outcome, time.process_time() - start]

    with tempfile.TemporaryDirectory() as root:
        return list(run(Path(root)))


def faults(case, outcome):
    """Name what is wrong with an outcome, as `--show` calls it."""
    did, right, cause, again, _ = outcome
    if did == "landed":
        return set() if right else {"applied"}
    found = set() if cause in CAUSES[case[0]] else {"cause"}
    return found if case[0] in UNSUGGESTED or again in {True, False} else found | {"suggestion"}


def table(cases, outcomes):
    by_kind = defaultdict(Counter)
    causes = Counter()
    for (kind, *_), (did, right, cause, again, _) in zip(cases, outcomes, strict=True):
        tally = by_kind[kind]
        tally["cases"] += 1
        if did == "landed":
            tally["applied rightly" if right else "APPLIED WRONGLY"] += 1
            continue
        tally["refused"] += 1
        if cause is not None:
            tally["right cause"] += cause in CAUSES[kind]
            causes[kind, cause] += 1
        if again is not None:
            tally["suggested"] += 1
            tally["lands as given"] += again != "missed again"
            tally["and rightly"] += again is True
    columns = ["cases", "applied rightly", "APPLIED WRONGLY", "refused", "right cause"]
    columns += ["suggested", "lands as given", "and rightly"]
    print(f"\n{'':22}" + "".join(f"{column:>17}" for column in columns))
    total = Counter()
    for kind, tally in by_kind.items():
        print(f"{kind:22}" + "".join(f"{tally[column]:>17}" for column in columns))
        total += tally
    print(f"{'all':22}" + "".join(f"{total[column]:>17}" for column in columns))
    due = total["refused"] - sum(by_kind[kind]["refused"] for kind in UNSUGGESTED)
    landing = total["lands as given"] - sum(by_kind[kind]["lands as given"] for kind in UNSUGGESTED)
    if total["right cause"]:
        print(f"right cause: {100 * total['right cause'] / total['refused']:.1f} % of refusals")
        print(f"a suggestion that lands: {100 * landing / due:.1f} % of those with something left to do")
    seconds = sum(outcome[4] for outcome in outcomes)
    print(f"{1000 * seconds / len(outcomes):.2f} ms of processor time a case")
    if causes:
        print("causes:", "; ".join(f"{kind}: {cause} {n}" for (kind, cause), n in sorted(causes.items())))
    return total


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trees", nargs="*", type=Path)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--show", choices=["applied", "cause", "suggestion"], help="print what went wrong")
    options = parser.parse_args()
    edits = real_edits(*options.trees, options.count)
    cases = cases_of(edits)
    print(f"{len(edits)} real edits, {len(cases)} damaged ones")
    outcomes = ours(cases)
    total = table(cases, outcomes)
    for case, outcome in zip(cases, outcomes, strict=True):
        if options.show in faults(case, outcome):
            print(f"\n{case[0]}: {outcome[:4]}\nOLD\n{case[3]}\nNEW\n{case[4]}")
    if total["APPLIED WRONGLY"]:
        sys.exit("an edit was applied wrongly")


if __name__ == "__main__":
    main()
