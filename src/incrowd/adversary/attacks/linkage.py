"""Linkage: find somebody's row in a sparse table without names, from a few facts heard elsewhere.

After Narayanan and Shmatikov (2008), who found people in a table of film ratings: see `scoreboard`.

A table of counts per item has no rows to link, yet exact counts less what the attacker knows of everybody
else are a row again. Under (epsilon, delta) for the replacement of one person's row, an attacker who sees the
counts, knows all others, and is told that the row is one of K equally likely ones names the right one with
probability at most `bounds.most_success(epsilon, delta, K)`, whatever else she knows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from incrowd.adversary.attacks.bounds import most_success
from incrowd.adversary.attacks.outcome import Attempt, Rate, Report
from incrowd.adversary.attacks.scoreboard import Facts, Scoreboard, eccentric, recalled
from incrowd.adversary.data.ratings import Ratings, first_of_each, generated_ratings, rows_of, thinned
from incrowd.errors import InvalidInput
from incrowd.mechanisms import INTEGERS, Gaussian
from incrowd.noise import Source


def expectations(known: Sequence[Facts], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """One row per candidate: the known items weighted by rarity, scaled to length 1.

    >>> heard = Facts(np.array([0, 2]), np.array([5, 9]), np.array([4, 1]))
    >>> expectations([heard], np.array([0.6, 1.0, 0.8])).tolist()
    [[0.6, 0.0, 0.8]]
    """
    rows = np.zeros((len(known), len(weights)))
    for place, facts in enumerate(known):
        rows[place, facts.items] = weights[facts.items]
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300))


def best_candidates(
    residuals: NDArray[np.int64], expected: NDArray[np.float64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Best-fitting candidate for each residual (published counts minus everyone else's); ties are random.

    >>> rng = np.random.default_rng(0)
    >>> best_candidates(np.array([[0, 1], [1, 0]]), np.eye(2), rng).tolist()
    [1, 0]
    """
    scores = residuals @ expected.T
    # A tolerance, because float sums in another order differ slightly.
    best = scores >= scores.max(axis=1, keepdims=True) - 1e-9
    return np.asarray(np.where(best, rng.random(scores.shape), -1.0).argmax(axis=1))


def noisy_counts(epsilon: float, delta: float, most: int) -> Gaussian:
    """The mechanism for the counts of all items when at most `most` ratings of each person count.

    Replacing a person's row by another takes 1 from at most `most` counts and adds 1 to at most `most`:
    sqrt(2 most) in L2. The number of people is public.
    """
    reach = float(np.nextafter(np.sqrt(2.0 * most), np.inf))
    return Gaussian(epsilon=epsilon, delta=delta, sensitivity=reach, grid=INTEGERS)


def linkage(
    ratings: Ratings | None = None,
    *,
    facts: Sequence[int] = (1, 2, 3, 4, 6, 8, 10, 12),
    wrong: float = 0.2,
    days_off: int = 14,
    most: int = 30,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    trials: int = 300,
    seed: int = 0,
    source: Source | None = None,
) -> Report:
    """Look for people in a table of ratings (a generated one unless one is given), by facts known.

    In each trial somebody is drawn and the attacker hears so many facts about them, off by up to `days_off`
    days and one star, and wrong with probability `wrong`. She looks for the row in the table without names,
    also without dates, or with half of all ratings withheld. Where counts per item are published, one of
    the table's people was counted beside others whom she knows; she says who, from as many facts about each.
    The counts are exact, or hold at most `most` ratings of each person and noise under `epsilon` and `delta`.
    `seed` fixes everything but that noise, which comes from `source`, the system's random bits unless a test
    gives another.
    """
    table = generated_ratings() if ratings is None else ratings
    if trials < 1 or most < 1 or not facts or min(facts) < 1 or not 0 <= wrong <= 1 or days_off < 0:
        raise InvalidInput(
            "Linkage needs at least one trial, one fact and one rating that counts, wrong= between 0 and 1, "
            "and days_off= of 0 or more."
        )
    rng = np.random.default_rng(seed)
    people = table.user_count
    whole, half = Scoreboard.of(table), Scoreboard.of(thinned(table, 0.5, rng))
    rows, kept = rows_of(table), rows_of(first_of_each(table, most))
    mechanism = noisy_counts(epsilon, delta, most)
    attempts = []
    for count in facts:
        known = [recalled(table, user, count, rng, days_off=days_off, wrong=wrong) for user in range(people)]
        targets = rng.integers(0, people, trials)
        heard = [known[user] for user in targets]
        expected = expectations(known, whole.weights)
        noisy = mechanism.release(kept[targets], source)
        named_rows: dict[str, Sequence[int] | NDArray[np.int64]] = {
            "rows without names": [eccentric(whole.scores(clues)) for clues in heard],
            "rows without names or dates": [eccentric(whole.scores(clues, dates=False)) for clues in heard],
            "rows without half the ratings": [eccentric(half.scores(clues)) for clues in heard],
            "exact counts per item": best_candidates(rows[targets], expected, rng),
        }
        rates = {name: _right(named, targets) for name, named in named_rows.items()}
        attempts += [Attempt(name, rate, 1 / people, x=count) for name, rate in rates.items()]
        attempts.append(
            Attempt(
                f"noisy counts, epsilon {epsilon:g}, delta {delta:g}",
                _right(best_candidates(noisy, expected, rng), targets),
                guessing=1 / people,
                allowed=most_success(epsilon, delta, people),
                x=count,
            )
        )
    return Report(
        name="linkage",
        title="Finding somebody's row by a few facts",
        knows=(
            f"The attacker knows a few ratings of the target, dates within {days_off} days and stars "
            f"within one, {wrong:.0%} of them wrong; against counts, as much about each of the {people:,} "
            "people of whom one was counted, and everything about all others who were."
        ),
        succeeds=f"She names the target's row among {people:,}.",
        attempts=tuple(attempts),
        lesson=(
            "In a sparse table a handful of facts is a name, and taking out dates or half of the ratings "
            "only asks for a few facts more; noisy counts have no rows to find, and their guarantee bounds "
            "what they tell about anybody."
        ),
        axis="facts known",
        details={"users": people, "items": table.item_count, "ratings": len(table.users)},
    )


def _right(named: Sequence[int] | NDArray[np.int64], targets: NDArray[np.int64]) -> Rate:
    return Rate(int(np.count_nonzero(np.asarray(named) == targets)), len(targets))
