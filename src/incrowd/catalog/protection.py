"""Budgets that protect nobody: each allowed, and each worth a warning."""

from __future__ import annotations

import math
from collections.abc import Iterator

from incrowd.catalog.catalog import Catalog

MOST_EPSILON = 20.0
"""From here on a promise allows near certainty: odds of one in a million may become 99.8 in 100."""
MOST_DELTA = 1e-3
"""From here on a promise allows one person in a thousand to be published outright."""


def weak_promises(catalog: Catalog) -> tuple[str, ...]:
    """A sentence for each budget whose promise means nothing.

    >>> from incrowd.catalog import parse
    >>> said = "sources: {s: {csv: a.csv}}\\ntables: {t: {private: false}}\\nbudget: {epsilon: 50}"
    >>> print(*weak_promises(parse(said)))
    budget: epsilon 50 protects nobody: a guess of one in a million may become certain; take 20 or less.
    """
    return tuple(_weak(catalog))


def _weak(catalog: Catalog) -> Iterator[str]:
    holders = {f"groups.{name}": group for name, group in catalog.groups.items()}
    promises = {
        "budget": (catalog.budget.epsilon, catalog.budget.delta),
        **{name: (group.epsilon, group.delta or 0.0) for name, group in holders.items()},
    }
    for name, (epsilon, delta) in promises.items():
        if epsilon > MOST_EPSILON:
            yield (
                f"{name}: epsilon {epsilon:g} protects nobody: a guess of one in a million may become "
                f"certain; take {MOST_EPSILON:g} or less."
            )
        if delta > MOST_DELTA:
            people = math.floor(1 / delta)
            yield (
                f"{name}: delta {delta:g} protects nobody: one person in {people:,} may be published "
                "outright; take far less than one in the number of people."
            )
