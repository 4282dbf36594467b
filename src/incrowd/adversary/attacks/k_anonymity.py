"""Attacks on k-anonymous releases: homogeneity, background knowledge, and composition.

The attacker knows a person's quasi-identifiers, so she finds the class that hides the person; what the class
holds of the sensitive column are the *candidates*. She has learned the value when one candidate is left:

- homogeneity: all k rows of the class have the same value (Machanavajjhala et al. 2007);
- background knowledge: she knows of some values that the person does not have them (ibid.);
- composition: the person is in two releases, and only one value is in both classes (Ganta, Kasiviswanathan,
  Smith 2008). Neither release is at fault alone: k-anonymity does not compose.

Two differentially private tables of counts are attacked by somebody who knows far more, the records of all
other people, and `assurance` says why she is never sure all the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.adversary.attacks.assurance import beliefs, most_assured, named
from incrowd.adversary.attacks.outcome import Attempt, Rate, Report
from incrowd.adversary.data.hospitals import worked_example
from incrowd.adversary.data.mondrian import MISSING, mondrian, ranked
from incrowd.data import adult
from incrowd.errors import InvalidInput
from incrowd.mechanisms import Histogram
from incrowd.noise import Source

QUASI_IDENTIFIERS = ("age", "workclass", "education", "marital_status", "race", "sex", "native_country")
SURE = 0.95


def candidates(
    classes: NDArray[np.int64], secrets: NDArray[np.int64], targets: NDArray[np.int64], kinds: int
) -> NDArray[np.bool_]:
    """Which of the sensitive values 0 to kinds - 1 occur in the class of each target (a row's number).

    >>> candidates(np.array([0, 0, 1, 1]), np.array([2, 0, 1, 1]), np.array([0, 3]), kinds=3).tolist()
    [[True, False, True], [False, True, False]]
    """
    held = np.zeros((int(classes.max()) + 1, kinds), dtype=bool)
    held[classes, secrets] = True
    return held[classes[targets]]


def pinned(*possible: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The targets for whom exactly one value is left possible.

    Give the candidates of one release (homogeneity), the same beside the values that were not ruled out
    (background knowledge), or the candidates of several releases (composition).

    >>> first, second = np.array([[True, True, False]]), np.array([[False, True, True]])
    >>> pinned(first).tolist(), pinned(first, second).tolist()
    ([False], [True])
    """
    left = np.logical_and.reduce(possible)
    return np.asarray(np.count_nonzero(left, axis=1) == 1)


def not_ruled_out(
    secrets: NDArray[np.int64], kinds: int, excluded: int, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """The values left possible to an attacker who can rule out `excluded` wrong values for each person.

    The values are drawn at random among the wrong ones; the true one always stays possible.
    """
    order = rng.random((len(secrets), kinds))
    order[np.arange(len(secrets)), secrets] = 2.0
    return np.asarray(order.argsort(axis=1).argsort(axis=1) >= excluded)


def k_anonymity(
    table: pa.Table | None = None,
    *,
    quasi_identifiers: Sequence[str] = QUASI_IDENTIFIERS,
    sensitive: str = "occupation",
    ks: Sequence[int] = (2, 3, 4, 5, 6, 8, 12),
    shared: float = 0.05,
    excluded: int = 3,
    epsilon: float = 1.0,
    seed: int = 0,
    source: Source | None = None,
) -> Report:
    """Attack k-anonymous releases of a table (the census extract unless one is given), for several k.

    The table is dealt out to two owners; a share `shared` of its people is with both, and those are the
    targets. Each owner publishes her part made k-anonymous by `mondrian`, or else noisy counts with half of
    `epsilon`. `seed` fixes who is where and what the attacker happens to know; noise comes from `source`, the
    system's random bits unless a test gives another.
    """
    people = adult() if table is None else table
    if sensitive in quasi_identifiers:
        raise InvalidInput(f"{sensitive} is what the attacker looks for: leave it out of quasi_identifiers.")
    column = ranked(people, sensitive)
    # Rows without the sensitive value have no secret to learn.
    people = people.filter(pa.array(column.ranks != MISSING))
    secrets = column.ranks[column.ranks != MISSING] - 1
    kinds = len(column.values) - 1
    if kinds < 2 or not 0 <= excluded < kinds:
        raise InvalidInput(
            f"{sensitive} has {kinds} values and {excluded} are ruled out: choose a column with at least "
            "two, and an excluded= that leaves one possible."
        )
    rng = np.random.default_rng(seed)
    targets, parts = _dealt(len(secrets), shared, rng)
    truth = secrets[targets]
    possible = not_ruled_out(truth, kinds, excluded, rng)
    attempts = []
    for k in ks:
        sets = [
            candidates(
                mondrian(people.take(pa.array(part)), quasi_identifiers, k).classes,
                secrets[part],
                np.searchsorted(part, targets),
                kinds,
            )
            for part in parts
        ]
        tried = {
            "one k-anonymous release": pinned(sets[0]),
            f"one release, {excluded} values ruled out": pinned(sets[0], possible),
            "two releases, intersected": pinned(*sets),
        }
        attempts += [
            Attempt(name, Rate(int(hits.sum()), len(hits)), guessing=0.0, x=k) for name, hits in tried.items()
        ]
        attempts.append(_against_counts(truth, kinds, epsilon, k, source))
    return Report(
        name="k-anonymity",
        title="Who is pinned to one value by k-anonymous releases",
        knows=(
            f"The attacker knows each target's {', '.join(quasi_identifiers)}, and that the target is in "
            "both tables; against the noisy counts, also every record but the target's."
        ),
        succeeds=(
            f"She is sure of the target's {sensitive} (only one value is left; with noise, one is "
            f"{SURE:.0%} probable), and right."
        ),
        attempts=tuple(attempts),
        lesson=(
            "A class of k people hides nobody when the class agrees, and two releases that seem safe alone "
            "expose those who are in both; what private releases tell of a person adds up to a known amount."
        ),
        axis="k",
        details={"worked example": worked_example(), "targets": len(targets)},
    )


def _dealt(
    count: int, shared: float, rng: np.random.Generator
) -> tuple[NDArray[np.int64], tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """The rows that both of two owners hold, and all rows of each owner."""
    if not 0 < shared <= 1:
        raise InvalidInput(f"shared must be a share of the people, above 0 and at most 1, not {shared!r}.")
    both = rng.random(count) < shared
    first = both | (rng.random(count) < 0.5)
    if not both.any():
        raise InvalidInput("Nobody is in both releases: give a larger table, or a larger share with shared=.")
    return np.flatnonzero(both), (np.flatnonzero(first), np.flatnonzero(both | ~first))


def _against_counts(
    truth: NDArray[np.int64], kinds: int, epsilon: float, k: int, source: Source | None
) -> Attempt:
    """Two tables of noisy counts, of every combination of quasi-identifiers with every value.

    The attacker takes everybody else's records away, so of the target's cells there is left 1 for her value
    plus noise. Cells are disjoint and have noise of their own: looking only at them loses nothing, and
    drawing anew for every target makes the trials independent. Another value in the place of the true one
    permutes the residuals, so the success is the same for every truth, and the theorem's average over equally
    likely secrets is this average over real ones.
    """
    histogram = Histogram(epsilon=epsilon / 2, relation="replace")
    alone = np.zeros((len(truth), kinds), dtype=np.int64)
    alone[np.arange(len(truth)), truth] = 1
    seen = np.stack([histogram.release(alone, source) for _ in range(2)])
    right = named(beliefs(seen, histogram.noise_scale), SURE) == truth
    return Attempt(
        f"two tables of noisy counts, epsilon {epsilon:g} in all",
        Rate(int(right.sum()), len(truth)),
        guessing=0.0,
        allowed=most_assured((histogram.privacy * 2).epsilon(), 0.0, kinds, SURE),
        x=k,
    )
