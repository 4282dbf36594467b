"""A generated table of ratings, sparse and long-tailed like those of film and book sites.

Few items are rated by many and most by few (Zipf), most people rate a few dozen items and some hundreds, and
they do so in bursts. No two people are alike in what they rated, which is what `linkage` lives on. Nothing
here is about real people.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.adversary.data.mondrian import MISSING, ranked
from incrowd.errors import InvalidInput

DAYS = 2_000
"""The time over which people rate."""


@dataclass(frozen=True, eq=False)
class Ratings:
    """Who rated what, when and how; one entry of each array for each rating, sorted by user, then by item."""

    users: NDArray[np.int64]
    items: NDArray[np.int64]
    days: NDArray[np.int64]
    stars: NDArray[np.int64]
    user_count: int
    item_count: int

    def of(self, user: int) -> slice:
        """The places of one user's ratings."""
        first, last = np.searchsorted(self.users, [user, user + 1])
        return slice(int(first), int(last))

    @property
    def support(self) -> NDArray[np.int64]:
        """How many people rated each item."""
        return np.bincount(self.items, minlength=self.item_count).astype(np.int64)


def generated_ratings(users: int = 2_000, items: int = 1_000, *, typical: int = 30, seed: int = 0) -> Ratings:
    """Ratings of so many users, each of at least 5 items, about `typical` of them in the middle.

    The i-th most popular item is chosen with weight 1 / (i + 10); the number of ratings of a user is
    log-normal; days come in bursts of about a week; stars lean on the item's and the user's own mean.

    >>> ratings = generated_ratings(users=100, items=200)
    >>> ratings.user_count, bool(np.bincount(ratings.users).min() >= 5), int(ratings.stars.max())
    (100, True, 5)
    """
    if users < 1 or items < 20 or not 5 <= typical <= items:
        raise InvalidInput("Ratings need at least 1 user and 20 items, and a typical number from 5 to items.")
    rng = np.random.default_rng(seed)
    counts = np.clip(np.rint(typical * np.exp(rng.normal(0, 0.8, users))), 5, items // 2).astype(np.int64)
    weights = -np.log(np.arange(items) + 10.0)
    # The highest of weight plus Gumbel noise are a weighted draw without replacement.
    order = np.argsort(-(weights + rng.gumbel(size=(users, items))), axis=1)
    chosen = np.sort(np.where(np.arange(items) < counts[:, None], order, items), axis=1)
    who, place = np.nonzero(chosen < items)
    what = chosen[who, place]
    liked = np.clip(rng.normal(3.6, 0.5, items)[what] + rng.normal(0, 0.4, users)[who], 1, 5)
    stars = np.clip(np.rint(liked + rng.normal(0, 0.9, len(what))), 1, 5).astype(np.int64)
    bursts = rng.integers(0, DAYS, size=(users, 12))
    days = bursts[who, rng.integers(0, 12, len(what))] + rng.integers(0, 7, len(what))
    return Ratings(who.astype(np.int64), what.astype(np.int64), days, stars, users, items)


def ratings_of(table: pa.Table, user: str, item: str, day: str, stars: str) -> Ratings:
    """The ratings in a table with these four columns: who, what, when (a date, a time or a number), how.

    A row in which one of them is missing is left out; of several ratings of one item by one user the last row
    counts. Users and items are numbered in the order of their names.

    >>> told = pa.table({"who": ["b", "a"], "film": [7, 9], "day": [1, 2], "stars": [5, 3]})
    >>> ratings_of(told, "who", "film", "day", "stars").users.tolist()
    [0, 1]
    """
    columns = [ranked(table, name) for name in (user, item, day, stars)]
    if not (columns[2].numeric and columns[3].numeric):
        raise InvalidInput(f"{day} must hold dates or numbers, and {stars} numbers.")
    whole = np.logical_and.reduce([column.ranks != MISSING for column in columns])
    if not whole.any():
        raise InvalidInput(f"The table has no row in which {user}, {item}, {day} and {stars} are all given.")
    who, what = (np.unique(column.ranks[whole], return_inverse=True)[1] for column in columns[:2])
    when = _numbers(table[day].combine_chunks())[whole]
    how = np.rint(_numbers(table[stars].combine_chunks())[whole])
    # The last of each pair: the first when the rows are read backwards.
    pairs = (who * (what.max() + 1) + what)[::-1]
    last = len(pairs) - 1 - np.unique(pairs, return_index=True)[1]
    parts = (part[last].astype(np.int64) for part in (who, what, np.floor(when), how))
    users, items, days, marks = parts
    return Ratings(users, items, days, marks, int(who.max()) + 1, int(what.max()) + 1)


def thinned(ratings: Ratings, share: float, rng: np.random.Generator) -> Ratings:
    """The same people with only a share of the ratings, drawn at random."""
    return _kept(ratings, rng.random(len(ratings.users)) < share)


def first_of_each(ratings: Ratings, most: int) -> Ratings:
    """The same people with at most so many ratings each, the earliest (by day, then by item).

    >>> ratings = first_of_each(generated_ratings(users=50, items=100), most=7)
    >>> int(np.bincount(ratings.users).max())
    7
    """
    order = np.lexsort((ratings.items, ratings.days, ratings.users))
    users = ratings.users[order]
    place = np.arange(len(users)) - np.searchsorted(users, users)
    return _kept(ratings, np.sort(order[place < most]))


def rows_of(ratings: Ratings) -> NDArray[np.int64]:
    """A row of 0 and 1 for each user: which items she rated."""
    rows = np.zeros((ratings.user_count, ratings.item_count), dtype=np.int64)
    rows[ratings.users, ratings.items] = 1
    return rows


def _kept(ratings: Ratings, which: NDArray[np.bool_] | NDArray[np.int64]) -> Ratings:
    return replace(
        ratings,
        users=ratings.users[which],
        items=ratings.items[which],
        days=ratings.days[which],
        stars=ratings.stars[which],
    )


def _numbers(cells: pa.Array) -> NDArray[np.float64]:
    """Numbers as they are, dates and times as days since 1970, within what an int64 holds."""
    if pa.types.is_temporal(cells.type):
        cells = cells.cast(pa.date32()).cast(pa.int32())
    numbers = np.asarray(cells.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)
    return np.clip(np.nan_to_num(numbers), -(2.0**52), 2.0**52)
