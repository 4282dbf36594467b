"""Tracing: from published means of many yes-or-no attributes, decide whether a person was in the data.

The attacker knows the person's attributes and the population's means, not the data. One mean moves by at most
1/n with the person, far less than it varies by chance; but over d attributes the small pulls add up, and once
d is well above n nearly everybody is found out (Homer et al. 2008, on genomes; Dwork, Smith, Steinke, Ullman,
Vadhan 2015, for means with noise as well). Three tests, each a score that is higher for those inside:

- Homer's: by how much the person is nearer to the published means than to the population's;
- the inner product: (person - population) . (published - population), after Dwork et al.;
- the likelihood ratio of two Gaussians with the population's covariance, which is what a thorough attacker
  uses when attributes depend on each other.

Under (epsilon, delta) for the replacement of one person, every test and threshold satisfies
P(says in | in) <= e^epsilon P(says in | out) + delta: `bounds.most_hits` gives the whole curve.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.adversary.attacks.bounds import most_hits
from incrowd.adversary.attacks.outcome import ACCUSING, Attempt, Rate, Report
from incrowd.adversary.data.attributes import binary_attributes
from incrowd.data import adult
from incrowd.errors import InvalidInput
from incrowd.mechanisms import INTEGERS, Gaussian
from incrowd.noise import Source

Reals = NDArray[np.float64]
LEVELS = (0.01, 0.03, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0)
"""The rates of false positives at which the attacker sets her threshold."""


@dataclass(frozen=True, eq=False)
class Population:
    """What the attacker knows about the population: the attributes' means and covariance."""

    means: Reals
    variances: Reals
    """Along the principal axes."""
    axes: Reals
    """The principal axes, as columns."""

    @classmethod
    def of(cls, people: NDArray[np.uint8]) -> Population:
        """The population as a table of 0 and 1, a row for each person."""
        bits = people.astype(np.float32)
        means = people.mean(axis=0)
        together = (bits.T @ bits).astype(np.float64) / len(people)
        variances, axes = np.linalg.eigh(together - np.outer(means, means))
        return cls(means, np.maximum(variances, 0.0), axes)


def homer(persons: Reals, published: Reals, means: Reals) -> Reals:
    """Homer's score of each person against the published means beside it (or against one for all).

    >>> homer(np.array([[1.0, 0.0]]), np.array([[0.7, 0.5]]), np.array([0.5, 0.5])).round(9).tolist()
    [0.2]
    """
    return np.asarray((np.abs(persons - means) - np.abs(persons - published)).sum(axis=1))


def inner_product(persons: Reals, published: Reals, means: Reals) -> Reals:
    """The inner product of what is unusual about the person and what is unusual about the data.

    >>> inner_product(np.array([[1.0, 0.0]]), np.array([[0.7, 0.5]]), np.array([0.5, 0.5])).round(9).tolist()
    [0.1]
    """
    return np.asarray(((persons - means) * (published - means)).sum(axis=1))


def likelihood_ratio(
    persons: Reals, published: Reals, population: Population, members: int, noise: float = 0.0
) -> Reals:
    """The log of how much likelier the published means are with the person inside than without.

    The means of `members` people are taken as Gaussian with covariance V = C / members + noise^2 I, C being
    the population's and `noise` the standard deviation of what was added (by rounding, or on purpose). With
    the person y inside their expectation moves by h = (y - means) / members, so the ratio is
    h V^-1 (published - means) - h V^-1 h / 2. A poor approximation makes a poor test, never an invalid one.
    """
    moved = (persons - population.means) @ population.axes / members
    seen = (published - population.means) @ population.axes
    # Axes along which the population does not vary carry nothing but rounding errors.
    spread = population.variances / members + noise**2
    inverse = np.where(spread > 1e-9, 1 / np.maximum(spread, 1e-9), 0.0)
    return np.asarray((moved * inverse * (seen - moved / 2)).sum(axis=1))


def roc(inside: Reals, outside: Reals, practice: Reals, levels: Sequence[float]) -> list[tuple[Rate, Rate]]:
    """True and false positives at thresholds that were set on the practice scores of other outsiders.

    >>> scores = np.arange(100.0)
    >>> [(hits.value, false.value) for hits, false in roc(scores + 50, scores, scores, [0.1])]
    [(0.6, 0.1)]
    """
    rates = []
    for level in levels:
        threshold = np.quantile(practice, 1 - level, method="lower") if level < 1 else -np.inf
        hits, false = (int(np.count_nonzero(scores > threshold)) for scores in (inside, outside))
        rates.append((Rate(hits, len(inside)), Rate(false, len(outside))))
    return rates


def tracing(
    table: pa.Table | None = None,
    *,
    members: int = 50,
    attributes: int = 500,
    digits: int = 1,
    epsilons: Sequence[float] = (1.0,),
    delta: float = 1e-6,
    trials: int = 2_000,
    seed: int = 0,
    source: Source | None = None,
) -> Report:
    """Trace people in samples of a table (the census extract unless one is given).

    Each trial draws `members` people, publishes the means of all attributes, and scores one person who is in
    the sample and one who is not. The means are exact, rounded to `digits` decimals, or noisy under each of
    `epsilons` with `delta`. `seed` fixes who is drawn; noise comes from `source`, the system's random bits
    unless a test gives another.
    """
    people = binary_attributes(adult() if table is None else table, attributes)
    if not 1 <= members <= len(people) - 2:
        raise InvalidInput(
            f"members must lie between 1 and {len(people) - 2}, two less than the table has rows, not "
            f"{members}."
        )
    if trials < 1:
        raise InvalidInput(f"trials must be at least 1, not {trials}.")
    rng = np.random.default_rng(seed)
    population = Population.of(people)
    drawn = np.array([rng.choice(len(people), members + 2, replace=False) for _ in range(trials)])
    sums = np.array([people[rows[:members]].sum(axis=0, dtype=np.int64) for rows in drawn])
    # One insider, one outsider, and another on whom the attacker practises.
    persons = [people[drawn[:, place]].astype(np.float64) for place in (0, members, members + 1)]

    def attacked(name: str, score: Callable[[Reals], Reals], budget: float | None = None) -> list[Attempt]:
        inside, outside, practice = (score(group) for group in persons)
        curve = roc(inside, outside, practice, LEVELS)
        return [
            _attempt(name, *rates, level, budget, delta) for rates, level in zip(curve, LEVELS, strict=True)
        ]

    exact = sums / members
    rounded = np.round(exact, digits)
    step = 10.0**-digits / 12**0.5

    def ratio(published: Reals, noise: float) -> Callable[[Reals], Reals]:
        return lambda group: likelihood_ratio(group, published, population, members, noise)

    attempts = [
        *attacked("exact means", ratio(exact, 0.0)),
        *attacked(
            "exact means, inner product alone", lambda group: inner_product(group, exact, population.means)
        ),
        *attacked("exact means, Homer's test", lambda group: homer(group, exact, population.means)),
        *attacked(f"means rounded to {10.0**-digits:g}", ratio(rounded, step)),
    ]
    for epsilon in epsilons:
        mechanism = noisy_sums(epsilon, delta, people.shape[1])
        noisy = mechanism.release(sums, source) / members
        name = f"noisy means, epsilon {epsilon:g}, delta {delta:g}"
        attempts += attacked(name, ratio(noisy, mechanism.noise_scale / members), epsilon)
    return Report(
        name="tracing",
        title="Tracing people in published means",
        knows="The attacker knows the target's attributes, the published means, and the population from "
        "which people were drawn.",
        succeeds="She says that the target is in the data, who is; false alarms are the axis.",
        attempts=tuple(attempts),
        lesson=(
            f"Means of {people.shape[1]} attributes over {members} people give away who they are, rounded or "
            "not; the noise of a private release keeps every test under its curve."
        ),
        axis="false positives",
        details={"attributes": people.shape[1], "members": members, "trials": trials},
    )


def noisy_sums(epsilon: float, delta: float, attributes: int) -> Gaussian:
    """The mechanism for the sums of yes-or-no attributes over a public number of people.

    Replacing one person moves each sum by at most 1, so all of them by at most sqrt(attributes) in L2.
    """
    reach = float(np.nextafter(np.sqrt(attributes), np.inf))
    return Gaussian(epsilon=epsilon, delta=delta, sensitivity=reach, grid=INTEGERS)


def _attempt(
    name: str, hits: Rate, false: Rate, level: float, epsilon: float | None, delta: float
) -> Attempt:
    """One point of the curve. The false-positive rate is measured too, so the guarantee is tested at the
    highest rate that it may have.
    """
    if epsilon is None:
        return Attempt(name, hits, guessing=level, x=level)
    most_false = Rate(false.hits, false.trials, ACCUSING).high
    note = f"false positives {false.value:.3f} when measured, at most {most_false:.3f}"
    return Attempt(name, hits, level, most_hits(most_false, epsilon, delta), x=level, note=note)
