import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentfs.text import estimate_tokens

# The tokens of each text by tiktoken's cl100k_base, counted once.
COUNTED = [
    (
        (
            "def line_start(text: str, number: int, end: str) -> int:\n    ahead, position = n"
            "umber - 1, 0\n    while ahead:\n        found = text.count(end, position)\n    retu"
            "rn position\n"
        ),
        48,
    ),
    (
        (
            "Lines end at a line feed, and a final line end starts no further line. The same "
            "rule holds for edits and searches, so that what a reader sees is what an editor "
            "changes.\n"
        ),
        38,
    ),
    ("文件的每一行都有编号。读取时从第一行开始，如果文件太长，就只显示一部分，并说明如何继续。\n", 39),
    ("ファイルの各行には番号が付いています。長いファイルは一部だけが表示されます。\n", 35),
    (
        (
            "10|import os\n11|\n12|from agentfs import Workspace\n13|\n14|with Workspace('.') as "
            "ws:\n15|    print(ws.read('a.py').text)\n"
        ),
        37,
    ),
]


@pytest.mark.parametrize(("text", "tokens"), COUNTED)
def test_the_estimate_is_near_a_tokenizer(text, tokens):
    assert abs(estimate_tokens(text) - tokens) <= 0.3 * tokens


def test_nothing_costs_nothing_and_anything_something():
    assert estimate_tokens("") == 0
    assert all(estimate_tokens(chr(code)) >= 1 for code in (0, 32, 65, 0xE9, 0x6F22, 0x1F600, 0xD800))


@given(st.text(st.characters(), max_size=200), st.text(st.characters(), max_size=200))
def test_the_estimate_grows_with_the_text_and_is_never_over_its_bytes(one, two):
    together = estimate_tokens(one + two)
    assert max(estimate_tokens(one), estimate_tokens(two)) <= together
    assert together <= estimate_tokens(one) + estimate_tokens(two)
    assert together <= len((one + two).encode("utf-8", "surrogatepass"))
