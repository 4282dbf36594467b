"""Which part of a table a question can read: the theorem, checked on rows."""

from __future__ import annotations

import datetime as dt

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.catalog import Catalog
from incrowd.query import bound, parse
from incrowd.query.confining import is_below

CATALOG = Catalog.model_validate(
    {
        "sources": {"main": {"duckdb": "d.db"}},
        "tables": {
            name: {
                "unit": "id",
                "contribution": 3,
                "columns": {"id": {"type": "integer"}, "day": {"type": "date"}, "k": {"type": "integer"}},
                **({"period": {"column": "day", "by": "day"}} if name == "t" else {}),
            }
            for name in ("t", "s")
        },
        "budget": {"epsilon": 1},
    }
)
NEW_YEAR = dt.date(2026, 1, 1)
DAYS = [None, *(NEW_YEAR + dt.timedelta(days=days) for days in (-2, -1, 0, 1))]

tests = st.sampled_from(
    [
        "{a}.day < DATE '2026-01-01'",
        "{a}.day <= '2025-12-31'",
        "{a}.day = '2025-12-31'",
        "{a}.day >= DATE '2025-12-31'",
        "NOT {a}.day < DATE '2025-12-31'",
        "{a}.day IS NULL",
        "{a}.k > 1",
        "{a}.day IN ('2025-12-30', '2025-12-31')",
        "{a}.day BETWEEN '2025-12-01' AND '2025-12-31'",
    ]
)


def conditions(*aliases: str) -> st.SearchStrategy[str]:
    """Conditions about some aliases, with AND, OR and NOT."""
    leaves = st.builds(lambda test, alias: test.format(a=alias), tests, st.sampled_from(aliases))
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds("({} AND {})".format, inner, inner),
            st.builds("({} AND {})".format, inner, inner),
            st.builds("({} OR {})".format, inner, inner),
            st.builds("(NOT {})".format, inner),
        ),
        max_leaves=4,
    )


selects = st.one_of(
    st.builds("SELECT COUNT(*) AS n FROM t AS a WHERE {}".format, conditions("a")),
    st.builds(
        "SELECT COUNT(*) AS n FROM {} AS a {} JOIN {} AS b ON a.id = b.id AND {} WHERE {}".format,
        st.sampled_from(["t", "s", "(SELECT * FROM t)"]),
        st.sampled_from(["", "LEFT", "RIGHT", "FULL"]),
        st.sampled_from(["t", "s", "(SELECT id, day, k FROM t WHERE day < '2026-01-01')"]),
        conditions("a", "b"),
        conditions("a", "b"),
    ),
    st.builds(
        "SELECT COUNT(*) AS n FROM (SELECT DISTINCT x.id, x.day, x.k FROM t AS x WHERE {}) AS a "
        "WHERE {}".format,
        conditions("x"),
        conditions("a"),
    ),
    st.builds(
        "SELECT COUNT(*) AS n FROM (SELECT x.id, x.day AS day, y.k FROM t AS x LEFT JOIN t AS y "
        "ON x.id = y.id AND {}) AS a WHERE {}".format,
        conditions("x", "y"),
        conditions("a"),
    ),
)
rows = st.lists(st.tuples(st.integers(1, 2), st.sampled_from(DAYS), st.integers(1, 2)), max_size=4)


def table(listed: list[tuple[int, dt.date | None, int]]) -> pa.Table:
    columns = list(zip(*listed, strict=True)) or [(), (), ()]
    kinds = {"id": pa.int64(), "day": pa.date32(), "k": pa.int64()}
    return pa.table(
        {name: pa.array(columns[place], kind) for place, (name, kind) in enumerate(kinds.items())}
    )


@settings(max_examples=120, deadline=None)
@given(selects, rows, rows, rows)
def test_rows_beyond_the_end_change_nothing_that_a_leaf_reads(
    sql: str,
    before: list[tuple[int, dt.date | None, int]],
    added: list[tuple[int, dt.date | None, int]],
    other: list[tuple[int, dt.date | None, int]],
) -> None:
    (leaf,) = bound(parse(sql), CATALOG).leaves
    end = leaf.until.get("t")
    if end is None or not is_below(end, dt.datetime(2026, 1, 1)):
        return
    later = [row for row in added if row[1] is None or row[1] >= NEW_YEAR]
    with duckdb.connect() as engine:
        engine.register("s", table(other))
        answers = []
        for held in (before, before + later):
            engine.register("t", table(held))
            answers.append(sorted(engine.sql(leaf.rows.sql("duckdb")).fetchall()))
        assert answers[0] == answers[1]


def test_the_largest_end_of_all_scans_counts() -> None:
    sql = (
        "SELECT COUNT(*) FROM t a JOIN t b ON a.id = b.id AND b.day <= '2025-05-01' "
        "WHERE a.day < '2025-06-01' AND a.day < '2025-07-01'"
    )
    (leaf,) = bound(parse(sql), CATALOG).leaves
    assert leaf.until == {"t": (dt.datetime(2025, 6, 1), True)}


@pytest.mark.parametrize("sql", ["SELECT COUNT(*) FROM s WHERE day < '2025-01-01'", "SELECT COUNT(*) FROM t"])
def test_a_table_without_periods_or_conditions_is_read_whole(sql: str) -> None:
    (leaf,) = bound(parse(sql), CATALOG).leaves
    assert not leaf.until
