"""Mechanisms with finitely many outputs, given as a table of probabilities: what they really guarantee.

Everything here follows from the definition by summing over outputs, so it needs no theorem and serves to
check the rest. It also holds the counterexample of the field: "delta-additive secrecy" (every event's
probability moves by at most delta between neighbours) allows a mechanism that publishes somebody's whole
record.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from incrowd.errors import InvalidInput
from incrowd.noise.readings import (
    items_of,
    whole,
)
from incrowd.privacy.amounts import (
    Real,
    read_float,
    read_probability,
)
from incrowd.privacy.transforms import Floats


@dataclass(frozen=True, eq=False)
class FiniteMechanism:
    """Rows are data sets, columns are outputs, entries are probabilities; `neighbours` are pairs of rows.

    >>> coin = FiniteMechanism([[0.75, 0.25], [0.25, 0.75]], [(0, 1)])
    >>> coin.epsilon() == math.log(3), coin.delta(0.0)
    (True, 0.5)
    """

    probabilities: ArrayLike
    neighbours: Iterable[tuple[int, int]]

    def __post_init__(self) -> None:
        try:
            table = np.array(self.probabilities, dtype=float)
        except Exception:
            raise InvalidInput("probabilities must be a table of numbers.") from None
        if table.ndim != 2 or table.size == 0:
            raise InvalidInput("probabilities must be a table with a row for each data set.")
        if not np.all(np.isfinite(table)) or np.any(table < 0) or np.any(abs(table.sum(axis=1) - 1) > 1e-9):
            raise InvalidInput("each row of probabilities must be non-negative and sum to 1.")
        complaint = "neighbours must be pairs of row numbers of the table, at least one."
        pairs = tuple(
            tuple(whole(row, "a row number", 0, most=len(table) - 1) for row in items_of(pair, complaint))
            for pair in items_of(self.neighbours, complaint)
        )
        if not pairs or any(len(pair) != 2 for pair in pairs):
            raise InvalidInput(complaint)
        table.setflags(write=False)
        object.__setattr__(self, "probabilities", table)
        object.__setattr__(self, "neighbours", pairs)

    def _pairs(self) -> list[tuple[Floats, Floats]]:
        table = np.asarray(self.probabilities)
        return [(table[a], table[b]) for pair in self.neighbours for a, b in (pair, pair[::-1])]

    def epsilon(self, delta: Real = 0.0) -> float:
        """The exact smallest epsilon at this delta; inf where there is none."""
        slack = float(read_probability(delta, "delta"))
        return max((_least_epsilon(p, q, slack) for p, q in self._pairs()), default=0.0)

    def delta(self, epsilon: Real) -> float:
        """The exact smallest delta at this epsilon: the largest P(S) - e^epsilon Q(S) over events S."""
        level = math.exp(min(700.0, read_float(epsilon, "epsilon")))
        return max(float(np.maximum(0.0, p - level * q).sum()) for p, q in self._pairs())

    def curve(self, epsilons: Sequence[Real]) -> list[tuple[float, float]]:
        """(epsilon, delta) at each of the epsilons given."""
        listed = items_of(epsilons, "epsilons must be a list of numbers.")
        return [(read_float(epsilon, "epsilon"), self.delta(epsilon)) for epsilon in listed]

    def additive_secrecy(self) -> float:
        """The least delta by which any event's probability moves: NOT a privacy guarantee, see below."""
        return self.delta(0.0)


def _least_epsilon(p: Floats, q: Floats, delta: float) -> float:
    """Where the decreasing, piecewise linear (in e^epsilon) curve of one ordered pair meets delta.

    With outputs sorted by falling ratio, the curve at y is the sum of p - y q over ratios above y.
    """
    seen = p > 0
    p, q = p[seen], q[seen]
    sure = float(p[q == 0].sum())
    if delta < sure * (1 - 1e-15):
        return math.inf
    if delta >= sure:
        delta -= sure
    p, q = p[q > 0], q[q > 0]
    with np.errstate(over="ignore"):
        ratio = p / q
    if delta == 0:
        return max(0.0, math.log(float(ratio.max()))) if len(ratio) else 0.0
    order = np.argsort(-ratio)
    heads, tails = np.cumsum(p[order]), np.cumsum(q[order])
    # Between two ratios the set is fixed: y = (sum p - delta) / sum q where it falls in that range.
    with np.errstate(over="ignore"):
        level = float(((heads - delta) / tails).max(initial=0.0))
    return max(0.0, math.log(level)) if level > 0 else 0.0


def event_range(epsilon: Real, probability: Real, delta: Real = 0.0) -> tuple[float, float]:
    """What probability an event can have on a neighbour, when it has `probability` here.

    Both the event and its complement bind: q <= e^eps p + delta and 1 - q <= e^eps (1 - p) + delta, and the
    same with p and q swapped.

    >>> [round(x, 12) for x in event_range(math.log(5 / 4), 0.2)]
    [0.16, 0.25]
    >>> [round(x, 12) for x in event_range(math.log(5 / 4), 0.5)]
    [0.4, 0.6]
    """
    grow = math.exp(min(700.0, read_float(epsilon, "epsilon")))
    p = float(read_probability(probability, "probability"))
    d = float(read_probability(delta, "delta"))
    low = max((p - d) / grow, 1 - grow * (1 - p) - d, 0.0)
    high = min(grow * p + d, 1 - (1 - p - d) / grow, 1.0)
    return low, high


def name_and_shame(people: int, values: int = 2) -> FiniteMechanism:
    """The counterexample to additive secrecy: pick one of `people` records at random and publish it, named.

    Every event's probability moves by at most 1/people when one record changes, so the mechanism has
    "1/people-additive secrecy"; yet somebody's record is published every time, and epsilon is infinite. Rows
    are the data sets that agree on all but the first record; outputs are (person, value).
    """
    people, values = whole(people, "people", most=100_000), whole(values, "values", 2, most=1_000)
    table = np.zeros((values, people * values))
    for row in range(values):
        table[row, row] = 1 / people
        table[row, values * np.arange(1, people)] = 1 / people
    return FiniteMechanism(table, [(a, b) for a in range(values) for b in range(a)])
