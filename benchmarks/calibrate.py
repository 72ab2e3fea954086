"""How far `estimate_tokens` is from a real tokenizer, by corpus.

    python benchmarks/calibrate.py CODE_DIRECTORY PROSE_DIRECTORY CJK_DIRECTORY

Takes `tiktoken` with the vocabulary cl100k_base: it downloads it, or finds it in TIKTOKEN_CACHE_DIR (the
wheel of `litellm` ships the file). Of each directory up to 120 files are taken, 6,000 characters of each.
"""

import itertools
import os
import statistics
import sys

import tiktoken  # type: ignore[import-not-found]

from agentfs.text import estimate_tokens


def texts(directory: str) -> list[str]:
    names = (os.path.join(at, name) for at, _, files in os.walk(directory) for name in sorted(files))
    found = (text for name in names if (text := readable(name)))
    return list(itertools.islice(found, 120))


def readable(name: str) -> str:
    try:
        with open(name, encoding="utf-8") as file:
            text = file.read(6000)
    except (OSError, UnicodeDecodeError):
        return ""
    return text if len(text) >= 500 else ""


def main() -> None:
    encoding = tiktoken.get_encoding("cl100k_base")
    for corpus, directory in zip(("code", "prose", "CJK"), sys.argv[1:], strict=True):
        pairs = [
            (estimate_tokens(text), len(encoding.encode(text, disallowed_special=())))
            for text in texts(directory)
        ]
        errors = sorted(abs(guess - count) / count for guess, count in pairs)
        print(f"{corpus:6} {len(pairs):4} texts  median error {statistics.median(errors):.1%}")


if __name__ == "__main__":
    main()
