"""The ratings that linkage is tried on: generated ones are like real ones, tables are read as they are."""

from __future__ import annotations

import datetime
import math

import numpy as np
import pyarrow as pa
import pytest

from incrowd.adversary.data.ratings import first_of_each, generated_ratings, ratings_of, rows_of, thinned
from incrowd.errors import InvalidInput

MADE = generated_ratings(users=400, items=300, seed=1)


def test_generated_ratings_are_sparse_long_tailed_and_sorted() -> None:
    support = np.sort(MADE.support)[::-1]
    assert support[:30].sum() > 2 * support[-100:].sum()
    assert len(MADE.users) < 0.2 * 400 * 300
    keys = MADE.users * 300 + MADE.items
    assert (np.diff(keys) > 0).all()  # sorted, and nobody rates an item twice
    assert MADE.stars.min() >= 1 and MADE.stars.max() <= 5 and np.bincount(MADE.users).min() >= 5


def test_the_same_seed_makes_the_same_ratings() -> None:
    again, other = (generated_ratings(users=400, items=300, seed=seed) for seed in (1, 2))
    assert (again.items == MADE.items).all() and not np.array_equal(other.items, MADE.items)


def test_a_users_ratings_are_found() -> None:
    for user in (0, 17, 399):
        assert (np.flatnonzero(MADE.users == user) == np.arange(MADE.users.size)[MADE.of(user)]).all()


def test_the_first_of_each_are_her_earliest_and_the_others_keep_theirs() -> None:
    cut = first_of_each(MADE, 8)
    for user in range(0, 400, 37):
        days = MADE.days[MADE.of(user)]
        assert sorted(cut.days[cut.of(user)]) == sorted(days)[:8]
    assert rows_of(cut).sum(axis=1).max() == 8
    assert (rows_of(cut) <= rows_of(MADE)).all()


def test_thinning_withholds_ratings_and_keeps_the_people() -> None:
    thin = thinned(MADE, 0.5, np.random.default_rng(0))
    assert 0.4 < len(thin.users) / len(MADE.users) < 0.6 and thin.user_count == 400
    assert (rows_of(thin) <= rows_of(MADE)).all()


def test_a_table_is_read_without_missing_values_and_with_the_last_of_repeated_ratings() -> None:
    day = datetime.datetime(1970, 1, 5, 13)
    table = pa.table(
        {
            "who": ["b", "a", "b", None, "c"],
            "film": ["x", "y", "x", "x", "y"],
            "when": [day, day, day.replace(day=9), day, day],
            "stars": [1.0, 4.4, 5.0, 2.0, math.nan],
        }
    )
    read = ratings_of(table, "who", "film", "when", "stars")
    assert list(zip(read.users, read.items, read.days, read.stars, strict=True)) == [
        (0, 1, 4, 4),
        (1, 0, 8, 5),
    ]
    assert (read.user_count, read.item_count) == (2, 2)


def test_wrong_tables_and_sizes_are_refused_in_words() -> None:
    table = pa.table({"who": ["a"], "film": ["x"], "day": [1], "stars": pa.array([None], pa.int64())})
    with pytest.raises(InvalidInput, match="no row in which who, film, day and stars are all given"):
        ratings_of(table, "who", "film", "day", "stars")
    with pytest.raises(InvalidInput, match="stars must hold dates or numbers, and who numbers"):
        ratings_of(table, "film", "day", "stars", "who")
    with pytest.raises(InvalidInput, match="no column score"):
        ratings_of(table, "who", "film", "day", "score")
    with pytest.raises(InvalidInput, match="at least 1 user and 20 items"):
        generated_ratings(users=0)
