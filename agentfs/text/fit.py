"""The one rule by which an answer is made to fit its budget of tokens: smaller and smaller, until it does."""

from collections.abc import Callable
from dataclasses import replace
from typing import Generic, NamedTuple, TypeVar

from agentfs.limits import Limits
from agentfs.results import Result
from agentfs.text.tokens import estimate_tokens

R = TypeVar("R", bound=Result)

_GUESSES = 4


class Step(NamedTuple, Generic[R]):
    """One way to make an answer smaller: fewer of something.

    Attributes:
        most: How many there are when nothing is left out, at least 1.
        render: Returns the answer with this many of them (1 to `most`): it says what it left out, and its
            `next` goes on there. With fewer of them its text may not be longer.
    """

    most: int
    render: Callable[[int], R]


def fits(text: str, limits: Limits) -> bool:
    """Tell whether a text is within `Limits.output_tokens`.

    Args:
        text: What a model would be shown.
        limits: The budget, and what counts tokens.

    Returns:
        Whether it fits.
    """
    # No tokenizer makes more tokens than there are bytes, so short texts need no count.
    return len(text) * 4 <= limits.output_tokens or _tokens(text, limits) <= limits.output_tokens


def _tokens(text: str, limits: Limits) -> int:
    return (limits.count_tokens or estimate_tokens)(text)


def fitted(limits: Limits, *steps: Step[R]) -> R:
    """Return the largest answer that fits the budget.

    The steps are tried in order, from the mildest cut to the hardest; of each the most that fits is taken.
    The first step with all it has is the whole answer, and most calls need no other.

    Args:
        limits: `output_tokens`, and `count_tokens` if there is one.
        *steps: How the answer is made smaller; at least one.

    Returns:
        The answer; where nothing fits, the last step with one. What was cut has the whole text in `whole`.
    """
    whole: str | None = None
    smallest: R | None = None
    for step in steps:
        made = step.render(step.most)
        if fits(made.text, limits):
            return made if whole is None else replace(made, whole=whole)
        whole = made.text if whole is None else whole
        found, smallest = _largest(limits, step, made)
        if found is not None:
            return replace(found, whole=whole)
    if smallest is None:
        msg = "an answer needs a step that makes it"
        raise ValueError(msg)
    return replace(smallest, whole=whole)


def most_that_fit(most: int, render: Callable[[int], str], limits: Limits) -> int:
    """Return how many of some things an answer can have within its budget.

    Args:
        most: How many there are.
        render: Returns the text with this many of them; with fewer of them it may not be longer.
        limits: The budget.

    Returns:
        From 0 to `most`.
    """
    if fits(render(most), limits):
        return most
    low, high = 0, most  # as far as known, `low` fits and `high` does not
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(render(middle), limits) else (low, middle)
    return low


def _largest(limits: Limits, step: Step[R], made: R) -> tuple[R | None, R]:
    """Return the largest answer of a step that fits, if one does, and the smallest that was tried.

    Parts of an answer mostly cost alike, so the first tries go where the budget would end if all did; when
    they do not close in, halving goes on.
    """
    found: R | None = None
    low, high = 0, step.most  # as far as known, `low` fits and `high` does not
    low_tokens, high_tokens = 0, _tokens(made.text, limits)
    guesses = _GUESSES
    while high - low > 1:
        share = (limits.output_tokens - low_tokens) / max(high_tokens - low_tokens, 1) if guesses else 0.5
        guesses -= guesses > 0
        middle = min(max(low + int((high - low) * share), low + 1), high - 1)
        tried = step.render(middle)
        tokens = _tokens(tried.text, limits)
        if tokens <= limits.output_tokens:
            found, low, low_tokens = tried, middle, tokens
        else:
            made, high, high_tokens = tried, middle, tokens
    return found, made
