"""The functions of windows: their values worked out by hand, what is known of them, and what is refused."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
import pytest
from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query import parse
from incrowd.query.ownership import World, select_rows, sources
from incrowd.query.rules import rewrite
from incrowd.query.typed import Field
from incrowd.query.windows.window_functions import MOST_TILES, window_column
from tests.backends.houses import catalog_of, engine_of, public_fields

ROWS: dict[str, list[Any]] = {
    "n": [1, 2, 3, 4, 5],
    "x": [3, None, 3, 7, -5],
    "b": [True, None, False, True, True],
}


def tree_of(sql: str) -> tuple[exp.Select, World]:
    world = World(catalog_of("user"), public_fields(engine_of("user")))
    tree = rewrite(parse(sql).tree, world)
    assert isinstance(tree, exp.Select)
    return tree, world


def field_of(function: str, words: str = "ORDER BY ts") -> Field:
    tree, world = tree_of(f"SELECT {function} OVER (PARTITION BY user_id {words}) AS w FROM visits")
    window = tree.find(exp.Window)
    assert window is not None
    return window_column(window, sources(tree, world))[1]


def values(function: str, words: str = "ORDER BY n", rows: int = 5) -> list[Any]:
    """A window over the first rows of one person, in the order of n."""
    select = f"SELECT user_id, n, {function} OVER (PARTITION BY user_id {words}) AS w FROM visits"
    sql = select_rows(*tree_of(select)).sql.sql("duckdb")
    types = {"n": pa.int64(), "x": pa.int64(), "b": pa.bool_()}
    table = {name: pa.array(column[:rows], types[name]) for name, column in ROWS.items()}
    with duckdb.connect(":memory:") as engine:
        engine.register("visits", pa.table({"user_id": pa.array([1] * rows, pa.int64()), **table}))
        return [row[0] for row in engine.execute(f"SELECT w FROM ({sql}) ORDER BY n").fetchall()]


ALL = "ORDER BY n ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"


@pytest.mark.parametrize(
    ("function", "words", "wanted"),
    [
        ("ROW_NUMBER()", "ORDER BY n DESC", [5, 4, 3, 2, 1]),
        ("RANK()", "ORDER BY x", [2, 5, 2, 4, 1]),
        ("DENSE_RANK()", "ORDER BY x", [2, 4, 2, 3, 1]),
        ("RANK()", "ORDER BY x NULLS FIRST", [3, 1, 3, 5, 2]),
        ("NTILE(2)", "ORDER BY n", [1, 1, 1, 2, 2]),
        ("NTILE(1000000)", "ORDER BY n", [1, 2, 3, 4, 5]),
        ("LAG(x)", "ORDER BY n", [None, 3, None, 3, 7]),
        ("LEAD(x, 2)", "ORDER BY n", [3, 7, -5, None, None]),
        ("LAG(x, 0)", "ORDER BY n", [3, None, 3, 7, -5]),
        ("LAG(x, 1000000)", "ORDER BY n", [None] * 5),
        ("LAG(x, 1, 9)", "ORDER BY n", [9, 3, None, 3, 7]),
        ("LEAD(x, 1, NULL)", "ORDER BY n", [None, 3, 7, -5, None]),
        ("LAG(7)", "ORDER BY n", [None, 7, 7, 7, 7]),
        ("FIRST_VALUE(x)", "ORDER BY n", [3] * 5),
        ("LAST_VALUE(x)", ALL, [-5] * 5),
        ("NTH_VALUE(x, 2)", ALL, [None] * 5),
        ("NTH_VALUE(x, 6)", ALL, [None] * 5),
        ("COUNT(*)", "", [5] * 5),
        ("COUNT(x)", "ORDER BY n", [1, 1, 2, 3, 4]),
        ("COUNT_IF(b)", "ORDER BY n", [1, 1, 1, 2, 3]),
        ("COUNT(*) FILTER (WHERE x > 3)", "", [1] * 5),
        ("MIN(x)", "ORDER BY n", [3, 3, 3, 3, -5]),
        ("MAX(x) FILTER (WHERE x < 0)", "", [-5] * 5),
        ("MAX(x) FILTER (WHERE x > 99)", "", [None] * 5),
    ],
)
def test_a_function_has_the_values_worked_out_by_hand(function: str, words: str, wanted: list[Any]) -> None:
    assert values(function, words) == wanted


@pytest.mark.parametrize("function", ["RANK()", "LAG(x, 1, 9)", "NTILE(3)", "COUNT(x)", "MIN(x)"])
def test_one_row_alone_and_none_at_all_are_as_in_the_engine(function: str) -> None:
    wanted = {"RANK()": 1, "LAG(x, 1, 9)": 9, "NTILE(3)": 1, "COUNT(x)": 1, "MIN(x)": 3}[function]
    assert values(function, rows=1) == [wanted] and values(function, rows=0) == []


@pytest.mark.parametrize(
    ("function", "facts"),
    [
        ("ROW_NUMBER()", ("integer", 1, None, False)),
        ("DENSE_RANK()", ("integer", 1, None, False)),
        ("NTILE(4)", ("integer", 1, 4, False)),
        ("LAG(x)", ("integer", -5, 20, True)),
        ("LAG(x, 1, 50)", ("integer", -5, 50, True)),
        ("FIRST_VALUE(f)", ("float", -2.5, 7.5, True)),
        ("COUNT(*)", ("integer", 0, None, False)),
        ("MAX(x)", ("integer", -5, 20, True)),
        ("LEAD(t)", ("text", None, None, True)),
    ],
)
def test_what_is_known_of_a_function_holds_for_every_row(function: str, facts: Any) -> None:
    field = field_of(function)
    assert (field.kind, field.low, field.high, field.nullable) == facts and field.weight == 1


def test_tiles_and_values_of_a_column_are_listed() -> None:
    assert field_of(f"NTILE({MOST_TILES})").values == tuple(range(1, 101))
    assert field_of(f"NTILE({MOST_TILES + 1})").values is None
    assert field_of("LAG(cat)").values == (1, 2, 3)
    assert field_of("LEAD(city)").domain == "cities.city"
    assert not field_of("LEAD(city, 1, 'elsewhere')").domain


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("RANK() FILTER (WHERE b)", "takes no FILTER; write CASE WHEN inside it."),
        ("LAG(x IGNORE NULLS)", "leave the rows out by WHERE x IS NOT NULL in a sub-query below."),
        ("NTILE(1000001)", "NTILE needs a whole number from 1 to 1,000,000, such as 1."),
        ("NTH_VALUE(x, 0)", "NTH_VALUE needs a whole number from 1 to 1,000,000, such as 1."),
        ("LEAD(x, -1)", "LEAD needs a whole number from 0 to 1,000,000, such as 1."),
        ("LAG(NULL)", "is always NULL; name a column in it."),
        ("COUNT(DISTINCT x)", "count in a sub-query that groups by the person, and JOIN it on the person."),
        ("AVG(x)", "compute it in a sub-query that groups by the person, and JOIN that on the person."),
        ("STDDEV(x)", "is not possible over one person's rows; use ROW_NUMBER, RANK, LAG, LEAD, FIRST_VALUE"),
    ],
)
def test_refusals_say_what_to_write(function: str, said: str) -> None:
    with pytest.raises(QueryError) as refusal:
        field_of(function)
    assert said in str(refusal.value)
