"""Names for aggregates that have none: words a person would choose, each once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.query import parse
from incrowd.query.ownership import World
from incrowd.query.rules.name_columns import name_columns
from incrowd.query.typed import fold
from tests.backends.houses import catalog_of

WORLD = World(catalog_of("user"), {})


def names(sql: str) -> list[str]:
    return name_columns(parse(sql).tree, WORLD).named_selects


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ("COUNT(*)", ["count"]),
        ("SUM(x)", ["sum_x"]),
        ("AVG(x), AVG(x)", ["avg_x", "avg_x_"]),
        ("COUNT(*) AS n, city", ["n", "city"]),
        ("SUM(x) + 1", ["sum_x"]),
        ("SUM(x), 1 AS SUM_X", ["sum_x_", "SUM_X"]),
        ("COUNT(*), COUNT(*), COUNT(*)", ["count", "count_", "count__"]),
        ("SUM(x + y)", ["sum_x"]),
        ("city", ["city"]),
        ("COUNT(*) * 2, count", ["count_", "count"]),
        ("MEDIAN(x)", ["median_x"]),
    ],
)
def test_an_aggregate_is_called_by_its_function_and_column(columns: str, expected: list[str]) -> None:
    assert names(f"SELECT {columns} FROM visits") == expected


@given(
    st.lists(
        st.sampled_from(
            ["COUNT(*)", "SUM(x)", "SUM(y)", "AVG(x)", "1 AS count", "2 AS sum_x_", "SUM(x) AS SUM_x"]
        ),
        min_size=1,
        max_size=7,
    )
)
def test_no_name_that_is_chosen_here_is_taken(columns: list[str]) -> None:
    column_names = names(f"SELECT {', '.join(columns)} FROM visits")
    chosen = [name for name, column in zip(column_names, columns, strict=True) if " AS " not in column]
    folded = [fold(name) for name in column_names]
    assert all(folded.count(fold(name)) == 1 for name in chosen)
    assert all(name for name in column_names)


def test_sub_queries_get_names_too_and_stars_none() -> None:
    tree = name_columns(parse("SELECT *, q.* FROM (SELECT COUNT(*) FROM visits) AS q").tree, WORLD)
    assert tree.sql() == 'SELECT *, q.* FROM (SELECT COUNT(*) AS "count" FROM visits) AS q'
