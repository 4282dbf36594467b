"""The scoreboard of Narayanan and Shmatikov (2008): which row of a sparse table do a few rough facts fit?

Each fact is an item with a date and a rating, all of which may be off. A row's score is the sum, over the
known items i that it holds, of

    (exp(-|stars apart| / 1.5) + exp(-|days apart| / 30)) / ln(number of rows that hold i)

so rare items weigh most, and the best row is named if it is *eccentric*: ahead of the second best by 1.5
standard deviations of all scores. Wrong facts only cost what they would have added. This module knows nothing
of privacy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from incrowd.adversary.data.ratings import Ratings

STARS_SCALE, DAYS_SCALE = 1.5, 30.0
ECCENTRICITY = 1.5
NOBODY = -1


@dataclass(frozen=True, eq=False)
class Facts:
    """What the attacker has heard about one person: items, about when, and about how they were rated."""

    items: NDArray[np.int64]
    days: NDArray[np.int64]
    stars: NDArray[np.int64]


def recalled(
    ratings: Ratings,
    user: int,
    count: int,
    rng: np.random.Generator,
    *,
    days_off: int = 14,
    wrong: float = 0.2,
) -> Facts:
    """`count` facts about a user, or as many as she has: days off by up to `days_off`, stars by up to one.

    Each is wrong altogether with probability `wrong`: an item at random, with somebody's day and stars.
    """
    hers = ratings.of(user)
    known = rng.permutation(np.arange(hers.start, hers.stop))[:count]
    size = len(known)
    false = rng.random(size) < wrong
    anybody = np.where(false, rng.integers(0, len(ratings.users), size), known)
    return Facts(
        np.where(false, rng.integers(0, ratings.item_count, size), ratings.items[known]),
        ratings.days[anybody] + rng.integers(-days_off, days_off + 1, size),
        ratings.stars[anybody] + rng.integers(-1, 2, size),
    )


def rarity(support: NDArray[np.int64]) -> NDArray[np.float64]:
    """The weight 1 / ln(support) of each item; an item that one person rated counts as if two had."""
    return np.asarray(1 / np.log(np.maximum(support, 2)))


@dataclass(frozen=True, eq=False)
class Scoreboard:
    """A released table of ratings, laid out by item so that facts are scored against all rows at once."""

    release: Ratings
    order: NDArray[np.int64]
    starts: NDArray[np.int64]
    weights: NDArray[np.float64]

    @classmethod
    def of(cls, release: Ratings) -> Scoreboard:
        """The scoreboard of a release."""
        order = np.argsort(release.items, kind="stable")
        starts = np.searchsorted(release.items[order], np.arange(release.item_count + 1))
        return cls(release, order, starts, rarity(release.support))

    def scores(self, facts: Facts, *, dates: bool = True) -> NDArray[np.float64]:
        """How well every row fits the facts; without `dates`, by items and stars alone."""
        total = np.zeros(self.release.user_count)
        for item, day, stars in zip(facts.items, facts.days, facts.stars, strict=True):
            places = self.order[self.starts[item] : self.starts[item + 1]]
            fit = np.exp(-np.abs(self.release.stars[places] - stars) / STARS_SCALE)
            if dates:
                fit += np.exp(-np.abs(self.release.days[places] - day) / DAYS_SCALE)
            total[self.release.users[places]] += self.weights[item] * fit
        return total


def eccentric(scores: NDArray[np.float64], least: float = ECCENTRICITY) -> int:
    """The row that is ahead of all others by `least` standard deviations of the scores, or -1.

    >>> eccentric(np.array([0.1, 0.2, 3.0, 0.0])), eccentric(np.array([2.9, 0.2, 3.0, 0.0]))
    (2, -1)
    """
    if len(scores) == 1:
        return 0
    second, best = np.partition(scores, -2)[-2:]
    spread = scores.std()
    return int(scores.argmax()) if spread > 0 and best - second >= least * spread else NOBODY
