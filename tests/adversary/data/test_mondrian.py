"""The generaliser keeps its promise: k rows in every class, every row inside its class, nothing lost."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.adversary.data.mondrian import Generalised, mondrian, ranked
from incrowd.data import adult
from incrowd.errors import InvalidInput

ROW = st.tuples(
    st.none() | st.integers(-3, 3),
    st.none() | st.sampled_from([-np.inf, 0.5, 2.0, np.nan, np.inf]),
    st.none() | st.sampled_from(["a", "b", "ü", ""]),
)


def table_of(rows: list[tuple[object, object, object]]) -> pa.Table:
    kinds = (("count", pa.int64()), ("size", pa.float64()), ("kind", pa.string()))
    return pa.table({name: pa.array([r[i] for r in rows], t) for i, (name, t) in enumerate(kinds)})


def boxes_apart(release: Generalised) -> bool:
    """Whether no two classes overlap: in some quasi-identifier, one ends before the other begins."""
    low, high = release.low, release.high
    apart = (low[:, None, :] > high[None, :, :]).any(axis=2)
    return bool((apart | apart.T | np.eye(len(low), dtype=bool)).all())


@settings(max_examples=120)
@given(st.lists(ROW, min_size=1, max_size=60), st.integers(1, 8))
def test_every_class_has_k_rows_and_holds_its_own(rows: list[tuple[object, object, object]], k: int) -> None:
    k = min(k, len(rows))
    table = table_of(rows)
    release = mondrian(table, table.column_names, k)
    assert len(release.classes) == len(rows) == release.sizes.sum()
    assert release.sizes.min() >= k
    ranks = np.column_stack([column.ranks for column in release.columns])
    assert (release.low[release.classes] <= ranks).all()
    assert (ranks <= release.high[release.classes]).all()
    assert boxes_apart(release)
    assert release.table().num_rows == len(rows)
    # Whoever knows a person's quasi-identifiers finds the person's class, missing values and all.
    assert [release.find(row) for row in rows] == release.classes.tolist()


def test_the_census_is_generalised_and_no_class_could_be_cut_again_at_its_median() -> None:
    names = ["age", "workclass", "education", "sex"]
    release = mondrian(adult(), names, 25)
    assert release.sizes.min() >= 25 and len(release.low) > 300
    ranks = np.column_stack([column.ranks for column in release.columns])
    for number in range(0, len(release.low), 20):
        within = ranks[release.classes == number]
        for value in within.T:
            median = np.sort(value)[(len(value) - 1) // 2]
            sides = [int((value <= median).sum()), int((value < median).sum())]
            assert all(min(side, len(value) - side) < 25 for side in sides)


def test_equal_rows_are_never_parted() -> None:
    release = mondrian(pa.table({"age": [30] * 9 + [31] * 2}), ["age"], 3)
    assert release.sizes.tolist() == [11]  # cutting off the two would leave them too few


def test_the_same_table_gives_the_same_classes() -> None:
    table = adult().slice(0, 2_000)
    first, second = (mondrian(table, ["age", "race", "sex"], 7) for _ in range(2))
    assert (first.classes == second.classes).all()


def test_what_is_published_are_ranges_sets_and_missing_values() -> None:
    table = pa.table({"age": [20, 25, None, 40, 41, 41], "town": ["x", "y", None, "z", "z", "z"]})
    told = mondrian(table, ["age", "town"], 3).table().to_pylist()
    assert told[0] == told[2] == {"age": "missing or 20 to 25", "town": "missing or {x, y}"}
    assert told[3] == {"age": "40 to 41", "town": "{z}"}


def test_a_column_of_nothing_but_missing_values_is_published_as_missing() -> None:
    empty = pa.table({"age": pa.array([None, float("nan"), None], pa.float64())})
    assert mondrian(empty, ["age"], 2).table()["age"].to_pylist() == ["missing"] * 3


def test_dates_decimals_booleans_and_dictionaries_have_ranks() -> None:
    day = datetime.date(2020, 1, 1)
    table = pa.table(
        {
            "day": [day, None, day.replace(year=2019)],
            "price": [Decimal("2.50"), Decimal("1.00"), Decimal("2.50")],
            "left": [True, False, None],
            "town": pa.array(["b", "a", None]).dictionary_encode(),
        }
    )
    columns = {name: ranked(table, name) for name in table.column_names}
    assert {name: column.ranks.tolist() for name, column in columns.items()} == {
        "day": [2, 0, 1],
        "price": [2, 1, 2],
        "left": [2, 1, 0],
        "town": [2, 1, 0],
    }
    assert [column.numeric for column in columns.values()] == [True, True, False, False]


def test_somebody_outside_every_class_is_not_found() -> None:
    release = mondrian(pa.table({"age": [20, 21, 60, 61], "sex": ["f", "f", "m", "m"]}), ["age", "sex"], 2)
    assert release.find([20, "m"]) == -1
    assert release.find([33, "f"]) == -1
    with pytest.raises(InvalidInput, match="one value for each of age, sex"):
        release.find([20])


@pytest.mark.parametrize("rows", [0, 3])
def test_too_few_rows_for_k_is_said_in_words(rows: int) -> None:
    table = pa.table({"age": pa.array(range(rows), pa.int64())})
    with pytest.raises(InvalidInput, match=f"A table of {rows} rows cannot be made 4-anonymous"):
        mondrian(table, ["age"], 4)


@pytest.mark.parametrize("k", [0, -1, 2.5, True, "3"])
def test_k_must_be_a_whole_number(k: object) -> None:
    with pytest.raises(InvalidInput, match="k must be a whole number"):
        mondrian(pa.table({"age": [1, 2]}), ["age"], k)  # type: ignore[arg-type]


def test_wrong_columns_are_named() -> None:
    table = pa.table({"age": [1, 2], "visits": [[1], [2]]})
    with pytest.raises(InvalidInput, match="There is no column zip; the table has age, visits"):
        mondrian(table, ["zip"], 1)
    with pytest.raises(InvalidInput, match="Column visits holds values without an order"):
        mondrian(table, ["visits"], 1)
    with pytest.raises(InvalidInput, match="at least one quasi-identifier"):
        mondrian(table, [], 1)
