"""Building blocks of the real cases: mechanisms as cases, kinds of exact check, pairs of neighbours.

Pairs are all lists of a few telling values, or hostile ones drawn with a fixed seed, so that every run checks
the same.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from incrowd.adversary.audit import laws
from incrowd.adversary.audit.case import Case
from incrowd.adversary.audit.neighbours import HOSTILE, every_pair, hostile
from incrowd.adversary.audit.proofs import Law, Proof, exactly
from incrowd.adversary.audit.replays import replayed
from incrowd.adversary.audit.runs import Batch, Single
from incrowd.mechanisms import Mechanism

DELTA = 0.01
TALL: list[int] = [1] + [0] * 35
"""Utilities of which one falls and all others rise: what the exponential mechanism protects least."""
LOW: list[int] = [0] + [1] * 35


Check = Callable[[Mechanism, float, float], Proof]
"""An exact check of a mechanism at its claim."""


def single(
    name: str,
    mechanism: Mechanism,
    x: Any,
    x_prime: Any,
    samples: int = 20_000,
    delta: float = 0.0,
    check: Check | None = None,
) -> Case:
    """A mechanism that releases one output at a time."""
    claim = mechanism.privacy.epsilon(delta)
    about = f"{type(mechanism).__name__}.release"
    proof = None if check is None else lambda: check(mechanism, claim, delta)
    return Case(name, about, Single(mechanism.release), x, x_prime, claim, delta, samples, proof)


def many(
    name: str,
    mechanism: Mechanism,
    x: Any,
    x_prime: Any,
    samples: int = 200_000,
    delta: float = 0.0,
    check: Check | None = None,
) -> Case:
    """A mechanism whose noise is independent over the places of an array, so that one release is many."""

    def release(data: Any, runs: int) -> Any:
        values = np.asarray(data)
        return mechanism.release(np.tile(values, (runs, 1)) if values.ndim else np.full(runs, values))

    claim = mechanism.privacy.epsilon(delta)
    about = f"{type(mechanism).__name__}.release of arrays"
    proof = None if check is None else lambda: check(mechanism, claim, delta)
    return Case(name, about, Batch(release), x, x_prime, claim, delta, samples, proof)


def by_law(
    law: Callable[[Any], Callable[[Any], Law]], pairs: Iterable[tuple[Any, Any]], sampled: int = 3
) -> Check:
    """An exact check on these pairs; `release` is held to the law on the first few of them."""
    listed = list(pairs)
    some = [data for pair in listed[:: max(1, len(listed) // max(1, sampled))][:sampled] for data in pair]

    def check(mechanism: Any, epsilon: float, delta: float) -> Proof:
        return exactly(law(mechanism), listed, epsilon, delta, release=mechanism.release, sampled=some)

    return check


def by_replay(pairs: Iterable[tuple[Any, Any]]) -> Check:
    """A replay of `release` on these pairs."""
    listed = list(pairs)

    def check(mechanism: Mechanism, epsilon: float, delta: float) -> Proof:
        # Looked up in each run, because a replay replaces some releases.
        return replayed(lambda data: mechanism.release(data), listed, epsilon, delta)

    return check


def by_answers(*lists: list[int]) -> Check:
    """Questions that rise and fall by 1, in all ways that the sparse vector allows."""

    def check(mechanism: Any, epsilon: float, delta: float) -> Proof:
        moves = (0, 1) if mechanism.monotone else (-1, 0, 1)
        pairs = [
            (questions, [q + move for q, move in zip(questions, moved, strict=True)])
            for questions in lists
            for moved in itertools.product(moves, repeat=len(questions))
        ]
        return laws.answered(mechanism, epsilon, pairs)

    return check


def choices() -> Iterable[tuple[list[int], list[int]]]:
    """Utilities of which each moves by 1 at most."""
    for utilities in ([0, 0, 0, 0], [3, 0, 0, -2], [1, 1, 0, 9]):
        for moved in itertools.product((-1, 0, 1), repeat=4):
            yield utilities, [u + move for u, move in zip(utilities, moved, strict=True)]
    yield TALL, LOW
    yield LOW, TALL


RECORDS = [0, 1, 2, 10, 19, 20]
ADDED = list(every_pair(RECORDS, range(5)))
REPLACED = list(every_pair(RECORDS, range(1, 4), "replace"))
HOSTILE_ADDED = [([1.0], [1.0, 1e6]), *hostile(150)]
HOSTILE_REPLACED = [([0.0, 0.0], [0.0, 1.0]), ([0.0], [1.0]), *hostile(150, "replace")]
ROWS = [(a, b) for a in HOSTILE for b in HOSTILE[::5]]
TABLES = [
    ([(0.0, 0.0)], [(0.0, 0.0), (1.0, 1.0)]),
    *hostile(100, values=ROWS, ordinary=[(0.0, 1.0), (0.5, 0.25), (1.0, 1.0)]),
]
NEAR_ZERO = [0.0, 5e-324, 2.0**-1000, 1.25 * 2.0**-1000, 1.75 * 2.0**-1000, 1.0]
BLOCKS = ([0.0] * 20 + [1.75] * 16 + [3.0] * 4, [0.0] * 20 + [1.75] * 15 + [3.0] * 5)
"""Both tests of the interquartile range are six records from their limit, then five."""
CLOSE = [0.0] * 500 + [0.9 * 2.0**-1000] * 249 + [1.1 * 2.0**-1000] * 250
TINY = ([*CLOSE, 0.9 * 2.0**-1000], [*CLOSE, 1.1 * 2.0**-1000])
"""Ranges just below and above 2^-1000, far from all that is not."""
SPREADS = [
    BLOCKS,
    TINY,
    *every_pair(NEAR_ZERO, [4, 5], "replace"),
    *hostile(300, "replace", sizes=(4, 5, 6, 8, 9, 12, 40)),
]
MODES = [({"a": a, "b": b}, {"a": a + 1, "b": b}) for a, b in itertools.product(range(14), repeat=2)] + [
    ({"a": a}, {"a": a, "b": 1}) for a in range(4)
]
TURNED = [({"a": a + 1, "b": b}, {"a": a, "b": b + 1}) for a, b in itertools.product(range(20), repeat=2)]
KEYS = [({"a": a} if a else {}, {"a": a + 1}) for a in range(25)]
MOVED = [
    ({"a": a + 1, "b": b} if b else {"a": a + 1}, {"a": a, "b": b + 1} if a else {"b": b + 1})
    for a, b in itertools.product(range(0, 16, 3), repeat=2)
]
PROPOSED = [(("a", d), ("a", d + 1)) for d in range(25)] + [(("a", 0), ("b", 0))]
NUMBERS = [((7, d), (8, d + 1)) for d in range(25)] + [((7, 0), (90, 0))]
