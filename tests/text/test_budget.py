from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentfs.limits import Limits
from agentfs.results import Result
from agentfs.text.display import estimate_tokens, fits, fitted

# The tokens of each text by tiktoken's cl100k_base, counted once.
PROSE = (
    "Lines end at a line feed, and a final line end starts no further line. The same rule holds for edits "
    "and searches, so that what a reader sees is what an editor changes.\n"
)
CODE = "10|import os\n11|\n12|from agentfs import Workspace\n13|\n14|with Workspace('.') as ws:\n"
CODE += "15|    print(ws.read('a.py').text)\n"
CHINESE = "文件的每一行都有编号。读取时从第一行开始，如果文件太长，就只显示一部分，并说明如何继续。\n"
JAPANESE = "ファイルの各行には番号が付いています。長いファイルは一部だけが表示されます。\n"
COUNTED = [(PROSE, 38), (CODE, 37), (CHINESE, 39), (JAPANESE, 35)]


@pytest.mark.parametrize(("text", "tokens"), COUNTED)
def test_the_estimate_is_near_a_tokenizer(text, tokens):
    assert abs(estimate_tokens(text) - tokens) <= 0.3 * tokens


def test_only_the_empty_text_costs_no_tokens():
    assert estimate_tokens("") == 0
    assert all(estimate_tokens(chr(code)) >= 1 for code in (0, 32, 65, 0xE9, 0x6F22, 0x1F600, 0xD800))


@given(st.text(st.characters(), max_size=200), st.text(st.characters(), max_size=200))
def test_the_estimate_grows_with_the_text_and_never_exceeds_its_bytes(one, two):
    together = estimate_tokens(one + two)
    assert max(estimate_tokens(one), estimate_tokens(two)) <= together
    assert together <= estimate_tokens(one) + estimate_tokens(two)
    assert together <= len((one + two).encode("utf-8", "surrogatepass"))


@dataclass(frozen=True)
class Sized(Result):
    step: str
    count: int


def step(name, most, characters, tried=None):
    def render(count):
        if tried is not None:
            tried.append((name, count))
        return Sized(name, count, text="x" * (characters * count))

    return (most, render)


def letters(limit):
    return Limits(output_tokens=limit, count_tokens=len)


def test_a_result_that_fits_is_rendered_once():
    tried = []
    answer = fitted(letters(100), step("all", 10, 10, tried), step("few", 3, 1, tried))
    assert (answer.step, answer.count) == ("all", 10)
    assert tried == [("all", 10)]


@pytest.mark.parametrize(("budget", "taken"), [
    (100, ("lines", 10)), (99, ("lines", 9)), (10, ("lines", 1)), (9, ("counts", 3)), (5, ("counts", 1)),
    (2, ("total", 1)),
])  # fmt: skip
def test_the_first_step_that_fits_keeps_as_many_items_as_fit(budget, taken):
    answer = fitted(letters(budget), step("lines", 10, 10), step("counts", 3, 3), step("total", 1, 1))
    assert (answer.step, answer.count) == taken


def test_the_shortest_result_is_returned_if_nothing_fits():
    answer = fitted(letters(1), step("lines", 10, 10), step("total", 1, 5))
    assert (answer.step, answer.count) == ("total", 1)


@given(st.integers(1, 300), st.integers(1, 20), st.integers(1, 400))
def test_the_largest_count_that_fits_is_found(most, characters, budget):
    answer = fitted(letters(budget), step("lines", most, characters))
    fitting = [count for count in range(1, most + 1) if count * characters <= budget]
    assert answer.count == max(fitting, default=1)


@given(st.text(max_size=300), st.integers(1, 300))
def test_fits_agrees_with_the_token_counter(text, budget):
    assert fits(text, Limits(output_tokens=budget)) == (estimate_tokens(text) <= budget)
