"""The strongest analyst against a filter, by exhaustive dynamic programming.

She holds a menu of randomized responses, picks the next one after seeing every report, and stops when she
likes. Her state is how often she used each (which fixes the filter's state) and the privacy loss so far, a
whole number of steps; the value of a state is the largest E[(1 - e^(epsilon - loss))_+] she can still reach.
At the start that is the true delta of the whole interaction: no more can be had, and she can have it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from incrowd.privacy import Filter, Guarantee, bounded_range, compose, pure
from incrowd.privacy.filters import Kind

Counts = tuple[int, ...]


def reachable_delta(
    menu: list[Fraction], step: Fraction, epsilon: float, accepts: Callable[[Counts], bool], most: list[int]
) -> float:
    """The delta that an adaptive analyst reaches; `accepts(counts)` says whether she may get there."""
    sizes = [int(e / step) for e in menu]
    span = sum(s * n for s, n in zip(sizes, most, strict=True))
    loss = float(step) * np.arange(-span, span + 1)
    stop = np.maximum(0.0, -np.expm1(epsilon - loss))
    values: dict[Counts, np.ndarray] = {}
    for counts in sorted(itertools.product(*(range(n + 1) for n in most)), key=sum, reverse=True):
        if not accepts(counts):
            continue
        best = stop
        for kind, size in enumerate(sizes):
            after = tuple(n + (i == kind) for i, n in enumerate(counts))
            if after in values:
                up = 1 / (1 + math.exp(-size * float(step)))
                ahead = values[after]
                moved = np.zeros_like(stop)
                moved[size:-size] = up * ahead[2 * size :] + (1 - up) * ahead[: -2 * size]
                # Past the ends of the range no state is ever reached from the start.
                best = np.maximum(best, moved)
        values[counts] = best
    return float(values[tuple(0 for _ in menu)][span])


def plan(menu: list[Fraction], counts: Counts) -> Guarantee:
    return compose(*(pure(e) * n for e, n in zip(menu, counts, strict=True)))


def filter_accepts(menu: list[Fraction], budget: Filter) -> Callable[[Counts], bool]:
    # What a filter accepts depends on sums alone, so a state is open when its last ask was; an ask is never
    # accepted after a dearer state was, because sums only grow.
    return lambda counts: budget.fits(plan(menu, counts))


def most_of_each(menu: list[Fraction], accepts: Callable[[Counts], bool]) -> list[int]:
    most = []
    for kind in range(len(menu)):
        n = 0
        while accepts(tuple((n + 1) * (i == kind) for i in range(len(menu)))):
            n += 1
        most.append(n)
    return most


def reachable_by_choices(
    menu: list[Fraction], step: Fraction, epsilon: float, accepts: Callable[[Counts], bool], most: list[int]
) -> float:
    """The same with bounded-range releases: she also picks t, on a grid of steps, for every release."""
    sizes = [int(e / step) for e in menu]
    span = sum(s * n for s, n in zip(sizes, most, strict=True))
    pad = max(sizes)
    loss = float(step) * np.arange(-span - pad, span + pad + 1)
    stop = np.maximum(0.0, -np.expm1(epsilon - loss))
    values: dict[Counts, np.ndarray] = {}
    for counts in sorted(itertools.product(*(range(n + 1) for n in most)), key=sum, reverse=True):
        if not accepts(counts):
            continue
        best = stop.copy()
        inner = slice(pad, len(loss) - pad)
        for kind, size in enumerate(sizes):
            ahead = values.get(tuple(n + (i == kind) for i, n in enumerate(counts)))
            if ahead is None:
                continue
            whole = math.expm1(size * float(step))
            for t in range(size + 1):
                down = math.expm1(t * float(step)) / whole
                up = ahead[pad + t : len(loss) - pad + t]
                low = ahead[pad + t - size : len(loss) - pad + t - size]
                best[inner] = np.maximum(best[inner], (1 - down) * up + down * low)
        values[counts] = best
    return float(values[tuple(0 for _ in menu)][span + pad])


@pytest.mark.parametrize(("epsilon", "delta"), [(2.0, 1e-3), (6.0, 1e-4)])
def test_no_adaptive_analyst_exceeds_the_budget_with_exponential_mechanisms(
    epsilon: float, delta: float
) -> None:
    menu = [Fraction(1, 2), Fraction(1)]
    budget = Filter(epsilon, delta, threshold_share=0)

    def accepts(counts: Counts) -> bool:
        return budget.fits(compose(*(bounded_range(e) * n for e, n in zip(menu, counts, strict=True))))

    most = most_of_each(menu, accepts)
    reached = reachable_by_choices(menu, Fraction(1, 16), epsilon, accepts, most)
    assert delta / 1000 < reached <= delta


MENUS = [
    [Fraction(1, 10), Fraction(3, 10)],
    [Fraction(1, 10), Fraction(2, 10), Fraction(5, 10)],
    [Fraction(1, 4), Fraction(1), Fraction(3, 2)],
]


@pytest.mark.parametrize("menu", MENUS)
@pytest.mark.parametrize(
    ("epsilon", "delta", "kind"), [(3.0, 1e-6, "zcdp"), (1.0, 1e-3, "zcdp"), (2.0, 0.0, "pure")]
)
def test_no_adaptive_analyst_exceeds_the_budget(
    menu: list[Fraction], epsilon: float, delta: float, kind: Kind
) -> None:
    budget = Filter(epsilon, delta, kind=kind, threshold_share=0)
    accepts = filter_accepts(menu, budget)
    reached = reachable_delta(menu, Fraction(1, 20), epsilon, accepts, most_of_each(menu, accepts))
    assert reached <= delta + 1e-15


def test_the_adversary_breaks_a_filter_that_trusts_the_accountant_of_fixed_plans() -> None:
    # The mutant: go on while delta(epsilon) of what was run is within the budget. (With 4/5 on the menu as
    # well she reaches 5.6 times delta; that takes ten seconds.)
    menu, epsilon, delta = [Fraction(1, 20), Fraction(1, 5)], 3.0, 1e-6

    def accepts(counts: Counts) -> bool:
        return plan(menu, counts).delta(epsilon) <= delta

    reached = reachable_delta(menu, Fraction(1, 20), epsilon, accepts, most_of_each(menu, accepts))
    assert reached > 3 * delta


def test_the_adversary_reaches_exactly_the_composition_when_she_has_no_choice() -> None:
    # One item on the menu and no reason to stop early: the program must find the fixed plan's own delta.
    menu = [Fraction(1, 2)]
    reached = reachable_delta(menu, Fraction(1, 2), 1.0, lambda counts: counts[0] <= 5, [5])
    assert reached == pytest.approx((pure(0.5) * 5).delta(1.0), rel=1e-9)
