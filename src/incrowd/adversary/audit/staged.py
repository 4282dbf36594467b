"""Cases of mechanisms that need more than a plain release: several choices, smooth bounds, blocks."""

from __future__ import annotations

from typing import Any

from incrowd.adversary.audit import laws
from incrowd.adversary.audit.case import Case
from incrowd.adversary.audit.checks import ADDED, REPLACED
from incrowd.adversary.audit.neighbours import every_pair
from incrowd.adversary.audit.proofs import Proof, exactly
from incrowd.adversary.audit.replays import replayed
from incrowd.adversary.audit.runs import Single
from incrowd.mechanisms import Quantile, SmoothSensitivity, SubsampleAndAggregate
from incrowd.noise import SeededSource


def several(relation: Any) -> Case:
    """Three quantiles at once, whose choices are replayed one by one."""
    three = Quantile(2.0, q=[0.25, 0.5, 0.75], low=0, high=20, relation=relation)
    pairs = [([2], [2, 20]), *(pair for pair in ADDED if pair[0] == pair[1][:-1])]
    if relation == "replace":
        pairs = [pair for pair in REPLACED if pair[0][:-1] == pair[1][:-1]]

    def release(data: list[int]) -> Any:
        # Seeded, so that each record has the same tie-breaking bits in both runs; no value decides them.
        return three.release(data, SeededSource(1))

    claim = three.privacy.epsilon()
    name = "Quantile, several" + (", replaced" if relation == "replace" else "")
    x, x_prime = ([2], [2, 20]) if relation == "add-remove" else ([2, 0], [2, 20])
    return Case(
        name,
        "Quantile.release",
        Single(three.release),
        x,
        x_prime,
        claim,
        samples=4_000,
        proof=lambda: replayed(release, pairs, claim),
    )


def rank(name: str, mechanism: SmoothSensitivity, delta: float, high: float, values: list[float]) -> Case:
    """The median of five numbers, where one is replaced that shields it."""

    def release(data: list[float]) -> Any:
        return mechanism.release_rank(data, 3, low=0.0, high=high)

    x = [values[0], values[0], values[1], values[2], values[2]]
    x_prime = [values[0], values[1], values[2], values[2], values[2]]
    claim = mechanism.privacy.epsilon(delta)
    law = laws.smooth(mechanism, 3, 0.0, high)

    def proof() -> Proof:
        return exactly(law, every_pair(values, [5], "replace"), claim, delta)

    return Case(name, "release_rank", Single(release), x, x_prime, claim, delta, 10_000, proof)


def blocks(aggregate: Any) -> Case:
    """The aggregation of a function's answers on two blocks, which run in this process.

    A block answers with its last record; an empty block answers with 2.
    """
    sampled = SubsampleAndAggregate(_last, 1.0, blocks=2, low=0, high=20, aggregate=aggregate)

    def release(data: list[int]) -> Any:
        # Seeded, so that the blocks depend on the number of records only, as the drawing of blocks does.
        parts = sampled.partition(data, SeededSource(len(data)))
        return sampled.combine([_last([data[place] for place in part.tolist()]) for part in parts])

    values = [0, 1, 2, 10, 19, 20]
    pairs = [*every_pair(values, [1, 2, 3], "replace")]
    claim = sampled.privacy.epsilon()
    name = f"SubsampleAndAggregate, {aggregate}"
    return Case(
        name,
        "partition and combine",
        Single(release),
        [0],
        [20],
        claim,
        proof=lambda: replayed(release, pairs, claim),
    )


def _last(block: Any) -> float:
    return float(block[-1]) if len(block) else 2.0


def processes() -> Case:
    """The same with blocks in separate processes, as users run it; one run takes a tenth of a second."""
    sampled = SubsampleAndAggregate(_last, 1.0, blocks=2, low=0, high=20)
    pairs = [([0], [20]), ([0, 1], [20, 1]), ([2, 2, 2], [2, 2, 0]), ([19, 0], [19, 20])]

    def release(data: list[int]) -> Any:
        return sampled.release(data, SeededSource(len(data)))

    claim = sampled.privacy.epsilon()
    return Case(
        "SubsampleAndAggregate, whole",
        "SubsampleAndAggregate.release",
        Single(sampled.release),
        [0],
        [20],
        claim,
        samples=100,
        proof=lambda: replayed(release, pairs, claim),
    )
