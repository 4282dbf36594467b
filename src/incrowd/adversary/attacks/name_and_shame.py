"""Name and shame: what a delta that is not tiny permits.

`NameAndShame` publishes each person's whole record with probability delta. Theorem: it is (0, delta)-
differentially private. Run it on two tables that differ in one person, with the same coins for all others:
the outputs differ only if that person's coin says publish, so that no event's probability moves by more than
delta. Yet what is published is a whole record, and among n people somebody is exposed with probability
1 - (1 - delta)^n, which is nearly certain from delta = 5 / n on. Hence the rule that delta lies far below
1 / n. The same with exactly one record, picked at random, is `incrowd.privacy.tabulated.name_and_shame`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.adversary.attacks.bounds import most_hits
from incrowd.adversary.attacks.outcome import Attempt, Rate, Report
from incrowd.adversary.data.crowd import KNOWN, SECRET, Crowd, gather
from incrowd.curator import Curator
from incrowd.errors import InvalidInput
from incrowd.mechanisms.mechanism import Mechanism
from incrowd.noise import Source, bernoulli
from incrowd.privacy import Guarantee, approximate, tabulated

DELTAS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1)
SET_ASIDE = 4
"""Ratio of a budget's delta to the part set aside for thresholds, which pays for showing keys."""


@dataclass(frozen=True)
class NameAndShame(Mechanism):
    """Publishes each record with probability delta: private by the letter, and a disgrace.

    >>> from incrowd.noise import SeededSource
    >>> NameAndShame(0.5).release(["ann", "bob", "cyd", "dan"], source=SeededSource(1))
    [(0, 'ann')]
    >>> NameAndShame(1e-3).privacy.delta(0.0)
    0.001
    """

    delta: float

    def __post_init__(self) -> None:
        if not 0 <= self.delta <= 1:
            raise InvalidInput(f"delta must lie between 0 and 1, not {self.delta!r}.")

    @property
    def privacy(self) -> Guarantee:
        """(0, delta), by the coupling above."""
        return approximate(0.0, self.delta)

    def release(self, value: Sequence[Any], source: Source | None = None) -> list[tuple[int, Any]]:
        """The records that were published, with the places of their people."""
        places = np.flatnonzero(self.picks(len(value), source=source)).tolist()
        return [(place, value[place]) for place in places]

    def picks(self, people: int, runs: int | None = None, source: Source | None = None) -> NDArray[np.bool_]:
        """Who is published: one value per person, or with `runs` one row per run."""
        return bernoulli(self.delta, size=people if runs is None else (runs, people), source=source)

    def exposes_somebody(self, people: int) -> float:
        """The probability that at least one of so many people is published.

        >>> round(NameAndShame(1e-3).exposes_somebody(1_000), 3)
        0.632
        """
        if self.delta == 1:
            return float(people > 0)
        return -math.expm1(people * math.log1p(-self.delta))


def shown_names(crowd: Crowd, epsilon: float, delta: float) -> int:
    """How many of a crowd's names, each of one person only, the curator shows when asked for all of them."""
    with Curator.from_tables(
        people=crowd.table.select(["person"]),
        unit="row",
        budget=(epsilon, min(SET_ASIDE * delta * (1 + 1e-6), 0.999)),
    ) as curator:
        asked = "SELECT person, COUNT(*) AS n FROM people GROUP BY person"
        return len(curator.ask(asked, epsilon=epsilon, delta=delta))


def name_and_shame(
    table: Any = None,
    *,
    known: Sequence[str] = KNOWN,
    secret: str = SECRET,
    deltas: Sequence[float] = DELTAS,
    epsilon: float = 1.0,
    people: int = 2_000,
    runs: int = 300,
    seed: int | None = None,
) -> Report:
    """What a (0, delta) promise permits, and what the curator does with its delta.

    table, known, secret, people: see `crowd.gather`. The curator is asked to list a column in which each
    person has a value of her own, which it must not show: its delta, at most 1/4 here, bounds the probability
    for each. An event that cannot happen without a person happens with probability at most delta with her in
    the data, so that is what is allowed for one person, and n delta for somebody among n.
    """
    if not deltas or not all(0 < delta < 1 / SET_ASIDE for delta in deltas) or runs < 1 or not epsilon > 0:
        raise InvalidInput("Deltas must lie between 0 and 1/4, epsilon above 0, and runs be at least 1.")
    crowd = gather(table, known=known, secret=secret, people=people, seed=seed)
    size = crowd.table.num_rows
    somebody: list[Attempt] = []
    one: list[Attempt] = []
    curated: list[Attempt] = []
    for delta in deltas:
        mechanism = NameAndShame(delta)
        picked = mechanism.picks(size, runs)
        met = Rate(int(picked.any(axis=1).sum()), runs)
        note = f"expected {mechanism.exposes_somebody(size):.2g}"
        somebody.append(
            Attempt(f"name and shame: somebody among {size:,}", met, 0.0, min(1.0, size * delta), delta, note)
        )
        allowed = most_hits(0.0, 0.0, delta)
        one.append(
            Attempt(
                "name and shame: a given person", Rate(int(picked.sum()), picked.size), 0.0, allowed, delta
            )
        )
        shown = Rate(shown_names(crowd, epsilon, delta), size)
        allowed = most_hits(0.0, epsilon, delta)
        curated.append(
            Attempt(f"the curator, epsilon {epsilon:g}: a given person's name", shown, 0.0, allowed, delta)
        )
    at_random = tabulated.name_and_shame(size)
    return Report(
        name="name-and-shame",
        title="Name and shame: what a large delta permits",
        knows="The attacker knows nothing, and reads what is published.",
        succeeds="A person's record, or her name, is published.",
        attempts=tuple(somebody + one + curated),
        lesson="A promise of (0, delta) permits to publish whole records. Choose a delta far below 1 / n, "
        f"which is {1 / size:.1g} here; then nobody is exposed but by a freak of chance.",
        axis="delta",
        logarithmic=True,
        details={
            "people": size,
            "one record at random": {
                "delta at epsilon 0": at_random.additive_secrecy(),
                "epsilon": "infinite" if math.isinf(at_random.epsilon()) else at_random.epsilon(),
            },
        },
    )
