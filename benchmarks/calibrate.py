"""Measure the error of `estimate_tokens` against real tokenizers, by corpus.

    python benchmarks/calibrate.py CODE_DIRECTORY PROSE_DIRECTORY CJK_DIRECTORY

Takes `tiktoken` with the vocabularies cl100k_base and o200k_base: it downloads them, or finds them in
TIKTOKEN_CACHE_DIR (the wheel of `litellm` ships both). Of each directory up to 120 files are drawn, always
the same, 6,000 characters of each; for CJK only texts with at least a fifth of such characters.
"""

import itertools
import os
import random
import statistics
import sys
from collections.abc import Iterator

import tiktoken  # type: ignore[import-not-found] # no dependency of ours

from agentfs.text.display import estimate_tokens

ENCODINGS = ("cl100k_base", "o200k_base")


def texts(directory: str, *, wide: bool) -> Iterator[str]:
    names = sorted(os.path.join(at, name) for at, _, files in os.walk(directory) for name in files)
    random.Random(8).shuffle(names)
    found = dict.fromkeys(readable(name) for name in names) if len(names) < 5000 else map(readable, names)
    return (text for text in found if text and (not wide or 5 * sum(c > "\u2e7f" for c in text) > len(text)))


def readable(name: str) -> str:
    try:
        with open(name, encoding="utf-8") as file:
            text = file.read(6000)
    except (OSError, UnicodeDecodeError):
        return ""
    return text if len(text) >= 500 and "\x00" not in text else ""


def main() -> None:
    encodings = [(name, tiktoken.get_encoding(name)) for name in ENCODINGS]
    for corpus, directory in zip(("code", "prose", "CJK"), sys.argv[1:], strict=True):
        chosen = list(itertools.islice(texts(directory, wide=corpus == "CJK"), 120))
        for name, encoding in encodings:
            errors = []
            for text in chosen:
                count = len(encoding.encode(text, disallowed_special=()))
                errors.append((estimate_tokens(text) - count) / count)
            off = statistics.median(map(abs, errors))
            high = sum(error > 0 for error in errors)
            print(f"{corpus:6} {name:12} {len(errors):4} texts  median error {off:5.1%}  {high:4} too high")


if __name__ == "__main__":
    main()
