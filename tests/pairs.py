"""Combinations of values: all of them, or few in which every two values of two dimensions meet."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, product
from random import Random

Cell = dict[str, str]
Dimensions = Mapping[str, Sequence[str]]


def every_cell(dimensions: Dimensions, takes: Callable[[str], Dimensions]) -> Iterator[Cell]:
    """Yield every combination.

    Args:
        dimensions: The values of each dimension. A repeated value is drawn more often by `all_pairs`.
        takes: Returns, for a value of the first dimension, the values of others that it is combined with, if
            not all.
    """
    for offered in _offers(dimensions, takes):
        for values in product(*map(dict.fromkeys, offered.values())):
            yield dict(zip(offered, values, strict=True))


def all_pairs(dimensions: Dimensions, takes: Callable[[str], Dimensions]) -> list[Cell]:
    """Return few of the combinations, in which each pair of values meets that meets in `every_cell`.

    Each cell begins with a pair that has not met yet. Each further value is the one with the most such pairs;
    among equals, one at random. The same dimensions give the same cells.
    """
    first = next(iter(dimensions))
    offers = _offers(dimensions, takes)
    missing = {
        ((one, a), (two, b)): None
        for offered in offers
        for one, two in combinations(sorted(dimensions), 2)
        for a, b in product(offered[one], offered[two])
    }
    cells: list[Cell] = []
    chosen = Random(0)
    while missing:
        cell = dict(next(iter(missing)))
        offered = chosen.choice(
            [each for each in offers if all(value in each[name] for name, value in cell.items())]
        )
        cell.setdefault(first, offered[first][0])
        for name, values in offered.items():
            gains = {
                value: sum(pair in missing for pair in _pairs({**cell, name: value})) for value in values
            }
            cell.setdefault(
                name, chosen.choice([each for each in values if gains[each] == max(gains.values())])
            )
        cells.append({name: cell[name] for name in dimensions})
        for pair in _pairs(cells[-1]):
            missing.pop(pair, None)
    return cells


def _offers(dimensions: Dimensions, takes: Callable[[str], Dimensions]) -> list[dict[str, Sequence[str]]]:
    """Return the combined values of each dimension, for each value of the first."""
    first = next(iter(dimensions))
    return [{**dimensions, **takes(value), first: [value]} for value in dimensions[first]]


def _pairs(cell: Cell) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    return combinations(sorted(cell.items()), 2)
