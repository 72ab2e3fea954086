"""The cheap rules of our prose: they catch the worst sentences, and do not replace reading."""

import ast
import functools
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])
MODULES = sorted(
    path
    for folder in ("agentfs", "tests", "benchmarks", "scripts")
    for path in ROOT.glob(f"{folder}/**/*.py")
)
MESSAGES = [path for path in MODULES if path.is_relative_to(ROOT / "agentfs")]  # elsewhere, strings are data

BAD_STARTS = re.compile(r"(What|Where|Of|How|Whether|Which|That)\b")
BAD_WORDS = re.compile(
    r"\bbut for\b|\bof which\b|\bshall\b|\b(?:has|have) come to\b|\bsomebody else\b"
    r"|(?<!here )\b(?:is|are) no (?!longer\b|more than\b)|\b(?:is|are) to (?:be|have)\b"
    r"|\bthe (?:far|near) side\b|\bis not there any more\b",
    re.IGNORECASE,
)
BAD_IN_MESSAGES = re.compile(BAD_WORDS.pattern + r"|\bin it\.", re.IGNORECASE)  # a message names its object
COUNTED = re.compile(
    r" (?:bytes|calls|characters|columns|directories|edits|entries|files|ids|links|lines|matches|names"
    r"|pages|places|replacements|rows|steps)\b"
)
ALWAYS_SEVERAL = re.compile(r"_?[A-Z_]+|limits?\b.*")
LONGEST = 25  # words of a sentence in docs

# A string literal or a comment, since a `#` in a string begins none. `tokenize` takes 20 times as long.
STRING_OR_COMMENT = re.compile(
    r"""\"{3}(?:[^"\\]|\\.|"(?!""))*\"{3}|'{3}(?:[^'\\]|\\.|'(?!''))*'{3}"""
    r"""|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\#[^\n]*""",
    re.DOTALL,
)


class Text(NamedTuple):
    """A piece of prose and its place."""

    file: str
    line: int
    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.kind}: {' '.join(self.text.split())[:160]}"


def texts_in(path: Path) -> Iterator[Text]:
    """Yield the docstrings and comments of a module, and its messages if it is in the package."""
    name = path.relative_to(ROOT).as_posix()
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    docstrings = {
        node.body[0].value for node in scopes(tree) if ast.get_docstring(node, clean=False) is not None
    }
    for constant in docstrings:
        yield Text(name, constant.lineno, "docstring", constant.value)
    for node in ast.walk(tree) if path in MESSAGES else ():
        if isinstance(node, ast.JoinedStr):
            for value, after in itertools.pairwise(node.values):
                if (
                    isinstance(value, ast.FormattedValue)
                    and isinstance(after, ast.Constant)
                    and COUNTED.match(after.value)
                ):
                    number = ast.unparse(value.value)
                    if not ALWAYS_SEVERAL.fullmatch(number):
                        yield Text(name, node.lineno, "count", number + after.value)
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and node not in docstrings
            and " " in node.value
        ):
            yield Text(name, node.lineno, "message", node.value)
    for found in STRING_OR_COMMENT.finditer(source):
        if found[0].startswith("#"):
            yield Text(name, source.count("\n", 0, found.start()) + 1, "comment", found[0].lstrip("#! "))


def scopes(tree: ast.Module) -> Iterator[ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield a module, its classes and its functions, without looking into expressions."""
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node
        for field in ("body", "handlers", "orelse", "finalbody", "cases"):
            todo += getattr(node, field, ())


def page_texts(path: Path) -> Iterator[Text]:
    """Yield the paragraphs and list items of a page, without code, tables and headings."""
    name = path.relative_to(ROOT).as_posix()
    paragraph: list[str] = []
    start, fence = 0, ""
    for number, line in enumerate([*path.read_text(encoding="utf-8").splitlines(), ""], 1):
        stripped = line.strip()
        marks = re.match(r"`{3,}|~{3,}", stripped)
        if marks and (not fence or stripped == fence):
            fence = "" if fence else marks[0]
            stripped = ""
        elif fence:
            continue
        begins = re.match(r"[-*+] |\d+\. |#|\||<|!!!|\?\?\?|:::", stripped)
        if (not stripped or begins) and paragraph:
            yield Text(name, start, "page", " ".join(paragraph))
            paragraph = []
        if stripped and not re.match(r"#|\||<|!!!|\?\?\?|:::", stripped):
            start = start if paragraph else number
            paragraph.append(re.sub(r"^(?:[-*+]|\d+\.) ", "", stripped))


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a paragraph, with each code span and link target as one word."""
    text = re.sub(r"`[^`]*`", "code", text)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    yield from re.split(r"(?<=[.!?:;])\s+", text)


@functools.cache
def all_texts() -> list[Text]:
    """Return the texts of all modules and pages, each read once."""
    in_modules = (text for path in MODULES for text in texts_in(path))
    return [*in_modules, *(text for path in PAGES for text in page_texts(path))]


@pytest.fixture(scope="module", autouse=True)
def read() -> None:
    all_texts()


def test_no_docstring_begins_with_a_clause():
    found = [t for t in all_texts() if t.kind == "docstring" and BAD_STARTS.match(t.text.strip())]
    assert not found, "\n".join(map(str, found))


@pytest.mark.parametrize("kind", ["docstring", "comment", "message", "page"])
def test_no_text_has_a_word_to_decode(kind):
    words = BAD_IN_MESSAGES if kind == "message" else BAD_WORDS
    found = [text for text in all_texts() if text.kind == kind and words.search(text.text)]
    assert not found, "\n".join(map(str, found))


def test_numbers_and_nouns_agree_by_one_function():
    """`1 files` is a usual mistake, so `advice.plural` joins a number and its noun."""
    found = [text for text in all_texts() if text.kind == "count"]
    assert not found, "\n".join(map(str, found))


def test_no_sentence_of_a_page_is_too_long():
    pages = [text for text in all_texts() if text.kind == "page"]
    found = [
        f"{text} …: {each}" for text in pages for each in sentences(text.text) if len(each.split()) > LONGEST
    ]
    assert not found, "\n".join(found)
