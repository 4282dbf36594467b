"""Crowds under attack: who is a target, what singles her out, and that her secret is a coin."""

from __future__ import annotations

import datetime as dt
from itertools import islice

import duckdb
import numpy as np
import polars
import pyarrow as pa
import pytest

from incrowd.adversary.data.crowd import gather
from incrowd.errors import InvalidInput

TABLE = pa.table(
    {
        "age": [30, 30, 40, None, 50],
        "name": ["o'neil", "x", None, "x", "x"],
        "born": [dt.date(2000, 1, day) for day in (1, 2, 3, 4, 5)],
        "size": [1.5, 2.5, 3.5, 4.5, 5.5],
        "ill": ["yes", "no", None, "yes", "no"],
    }
)


def test_what_is_known_singles_out_each_target_and_nobody_else_nulls_and_quotes_included() -> None:
    crowd = gather(TABLE, known=("age", "name", "born"), secret="ill = 'yes'", seed=1)
    people = crowd.table
    for person in crowd.targets:
        matches = duckdb.execute(f"SELECT person FROM people WHERE {crowd.where(int(person))}").fetchall()
        assert matches == [(int(person),)]
    assert len(crowd.targets) == people.num_rows == 5


def test_people_alike_are_no_targets_and_keep_their_true_secrets() -> None:
    table = pa.table({"age": [30, 30, 40], "ill": ["yes", "yes", "yes"]})
    for seed in range(10):
        crowd = gather(table, known=("age",), secret="ill = 'yes'", seed=seed)
        assert crowd.targets.tolist() == [2]
        assert crowd.table["secret"].to_pylist()[:2] == [1, 1]


@pytest.mark.statistical
def test_the_secrets_of_targets_are_fair_coins() -> None:
    """6 standard deviations: fails by chance below 2e-9."""
    bits = gather(secret="FALSE", people=5_000).bits
    assert abs(bits.mean() - 0.5) < 6 * 0.5 / len(bits) ** 0.5


def test_a_seed_means_the_same_crowd() -> None:
    assert gather(people=300, targets=20, seed=4).table.equals(gather(people=300, targets=20, seed=4).table)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_every_kind_of_frame_is_taken(kind: str) -> None:
    frame = polars.from_arrow(TABLE)
    if kind == "pandas":
        frame = TABLE.to_pandas().astype({"name": "category"})
    crowd = gather(frame, known=("name", "born"), secret="ill = 'yes'", seed=1)
    assert crowd.table.num_rows == 5


def test_paddings_are_sets_that_the_engine_understands() -> None:
    crowd = gather(people=200, seed=1)
    people = crowd.table
    for padding in islice(crowd.paddings(np.random.default_rng(1)), 30):
        (size,) = duckdb.execute(f"SELECT COUNT(*) FROM people WHERE {padding}").fetchall()[0]
        assert 0 < size <= people.num_rows


@pytest.mark.parametrize(
    "wrong, said",
    [
        ({"known": ("weight",)}, "weight: choose among"),
        ({"known": ()}, "choose among"),
        ({"secret": "illness > 3"}, "such as income"),
        ({"known": ("ill",), "people": 1}, "at least two people"),
    ],
)
def test_wrong_input_is_named(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        gather(TABLE, **{"known": ("age",), "secret": "ill = 'yes'", **wrong})  # type: ignore[arg-type]


def test_tables_that_single_out_nobody_and_columns_that_no_sql_can_name_are_refused() -> None:
    with pytest.raises(InvalidInput, match="Nobody is singled out"):
        gather(pa.table({"a": [1, 1]}), known=("a",), secret="a = 1")
    with pytest.raises(InvalidInput, match="rename"):
        gather(pa.table({"person": [1, 2]}), known=("person",), secret="TRUE")
    with pytest.raises(InvalidInput, match=r"size cannot single anybody out.*whole numbers"):
        gather(TABLE, known=("age", "size"), secret="TRUE")
    with pytest.raises(InvalidInput, match="one value each"):
        crowd = gather(pa.table({"a": [1, None]}), known=("a",), secret="TRUE")
        next(crowd.paddings(np.random.default_rng(1)))
    with pytest.raises(InvalidInput, match="must be a frame"):
        gather("adult.csv")
