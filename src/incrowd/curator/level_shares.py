"""How the budget of a sum is shared among the levels that add it up (ROLLUP, CUBE, GROUPING SETS).

The shares make the product of the levels' standard deviations small, after the numbers were made consistent
(`marginals`), and no level is less accurate than if each had been asked by itself with an equal share. They
depend on the question and on what is declared, never on rows.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

from incrowd.curator.marginals import Kept, variances
from incrowd.query import Leaf

PARTS = 32
"""Shares are multiples of one part in so many."""
SEARCHED = 8
"""More levels than this share alike, as a search would take too long."""
USUAL_SIZE = 8
"""How many values a key is taken to have whose values are not listed."""
_BETTER = 1e-6


def level_shares(leaves: Sequence[Leaf], gaussian: bool) -> list[Fraction]:
    """The share of each level, the finest first; 0 for a level that is only added up from others."""
    finest = leaves[0].totals
    assert finest is not None
    kept = [leaf.totals.kept for leaf in leaves if leaf.totals is not None]
    sizes = tuple(
        float(USUAL_SIZE if key.values is None else max(len(key.values), 1)) for key in leaves[0].keys
    )
    asked = [place for place in range(len(leaves)) if place or finest.asked]
    if not leaves[0].public and not nested(kept):
        # Without a grid, only a tree has a simple solution; cells alone are consistent in any case.
        asked = [0]
    shares = _searched(sizes, tuple(kept[place] for place in asked), gaussian)
    return [
        Fraction(shares[asked.index(place)], sum(shares)) if place in asked else Fraction(0)
        for place in range(len(leaves))
    ]


def nested(kept: Sequence[Kept]) -> bool:
    """Whether each level adds up the one before it, the finest first."""
    ordered = sorted(kept, key=len, reverse=True)
    return all(set(above) <= set(below) for below, above in itertools.pairwise(ordered))


@functools.lru_cache(maxsize=256)
def _searched(sizes: tuple[float, ...], levels: tuple[Kept, ...], gaussian: bool) -> tuple[int, ...]:
    """Shares in parts: from equal ones, a part is moved from one level to another while that helps."""
    shares = [PARTS // len(levels)] * len(levels)
    shares[0] += PARTS - sum(shares)
    if not 1 < len(levels) <= SEARCHED:
        return (1,) * len(levels)

    power = 1 if gaussian else 2
    alone = (PARTS / len(levels)) ** -power * (1 + _BETTER)

    def spread(parts: Sequence[int]) -> float:
        noise = {level: float(part) ** -power for level, part in zip(levels, parts, strict=True)}
        after = variances(sizes, noise, levels)
        if parts is not shares and max(after) > alone:
            return math.inf
        return sum(math.log(variance) for variance in after)

    least = spread(shares)
    while True:
        moves = []
        for giver, taker in itertools.permutations(range(len(levels)), 2):
            if shares[giver] > 1:
                moved = list(shares)
                moved[giver] -= 1
                moved[taker] += 1
                moves.append((spread(moved), moved))
        best = min(moves, default=(least, shares))
        if best[0] > least - _BETTER:
            return tuple(shares)
        least, shares = best
