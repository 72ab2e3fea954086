from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentfs.limits import Limits
from agentfs.results import Result
from agentfs.text import Step, estimate_tokens, fits, fitted


@dataclass(frozen=True)
class Answer(Result):
    step: str
    count: int


def step(name, most, characters, tried=None):
    def render(count):
        if tried is not None:
            tried.append((name, count))
        return Answer(name, count, text="x" * (characters * count))

    return Step(most, render)


def letters(limit):
    return Limits(output_tokens=limit, count_tokens=len)


def test_what_fits_is_rendered_once_and_left_alone():
    tried = []
    answer = fitted(letters(100), step("all", 10, 10, tried), step("few", 3, 1, tried))
    assert (answer.step, answer.count, answer.whole) == ("all", 10, None)
    assert tried == [("all", 10)]


@pytest.mark.parametrize(
    ("budget", "step_taken", "count"),
    [
        (100, "lines", 10),
        (99, "lines", 9),
        (10, "lines", 1),
        (9, "counts", 3),
        (5, "counts", 1),
        (2, "total", 1),
    ],
)
def test_the_mildest_step_that_fits_is_taken_and_the_most_of_it(budget, step_taken, count):
    answer = fitted(letters(budget), step("lines", 10, 10), step("counts", 3, 3), step("total", 1, 1))
    assert (answer.step, answer.count) == (step_taken, count)
    assert answer.whole == (None if budget == 100 else "x" * 100)


def test_where_nothing_fits_the_smallest_is_given():
    answer = fitted(letters(1), step("lines", 10, 10), step("total", 1, 5))
    assert (answer.step, answer.count, answer.whole) == ("total", 1, "x" * 100)


@given(st.integers(1, 300), st.integers(1, 20), st.integers(1, 400))
def test_the_largest_that_fits_is_the_one_a_search_through_all_finds(most, characters, budget):
    answer = fitted(letters(budget), step("lines", most, characters))
    fitting = [count for count in range(1, most + 1) if count * characters <= budget]
    assert answer.count == max(fitting, default=1)


@given(st.text(max_size=300), st.integers(1, 300))
def test_fits_says_what_the_counter_says(text, budget):
    assert fits(text, Limits(output_tokens=budget)) == (estimate_tokens(text) <= budget)
