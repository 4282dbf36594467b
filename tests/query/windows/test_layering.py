"""Windows over one person's rows: what they compute, whose rows decide it, and what is refused."""

from __future__ import annotations

import itertools
import random
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query import parse
from incrowd.query.confining import upper_ends
from incrowd.query.ownership import Relation, World, select_rows
from incrowd.query.rules import rewrite
from tests.backends.houses import catalog_of, engine_of, plan_of, public_fields, tables_from
from tests.backends.windows_asked import KEYS, NUMBERS

EXACT = [window for window in (*NUMBERS, *KEYS) if "(p)" not in window and "BY p" not in window]


def planned(select: str, mode: str = "user") -> Relation:
    world = World(catalog_of(mode), public_fields(engine_of(mode)))
    tree = rewrite(parse(select).tree, world)
    assert isinstance(tree, exp.Select)
    return select_rows(tree, world)


def computed(sql: str, visits: pa.Table) -> list[Any]:
    with duckdb.connect(":memory:") as engine:
        engine.register("visits", visits)
        return sorted(map(repr, engine.execute(sql).fetchall()))


@pytest.mark.parametrize("window", EXACT)
def test_a_window_is_what_the_engine_computes_where_nothing_ties(window: str) -> None:
    rows = 40
    visits = tables_from(3, wild=False)["visits"].slice(0, 0)
    rng = random.Random(1)
    made: dict[str, list[Any]] = {field.name: [None] * rows for field in visits.schema}
    for name, values in {
        "x": range(rows), "f": [place / 8 for place in range(rows)], "n": range(rows),
        "d": range(18000, 18000 + rows),
        "t": [f"t{place:02}" for place in range(rows)], "grp": [f"g{place:02}" for place in range(rows)],
        "ts": [place * 10**12 for place in range(rows)],
    }.items():  # fmt: skip
        made[name] = rng.sample(list(values), rows)
    made |= {"user_id": [place % 3 for place in range(rows)], "b": [True] * rows, "cat": [1] * rows}
    table = pa.table({field.name: pa.array(made[field.name], field.type) for field in visits.schema})
    if window.startswith(
        ("ROW_NUMBER() OVER (PARTITION BY user_id)", "LAST_VALUE(f) OVER (PARTITION BY user_id)")
    ):
        window = window[:-1] + " ORDER BY f)"
    if "LAST_VALUE(f)" in window:
        window = window[:-1] + " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)"
    select = f"SELECT user_id, {window} AS w FROM visits"
    ours = planned(select).sql.sql("duckdb")
    assert computed(f"SELECT user_id, CAST(w AS VARCHAR) FROM ({ours})", table) == computed(
        f"SELECT user_id, CAST(w AS VARCHAR) FROM ({select})", table
    ) or computed(f"SELECT user_id, CAST(w AS DOUBLE) FROM ({ours})", table) == computed(
        f"SELECT user_id, CAST(w AS DOUBLE) FROM ({select})", table
    )


@pytest.mark.parametrize("seed", [1, 4])
def test_no_row_depends_on_other_people_or_on_where_rows_lie(seed: int) -> None:
    """Ties, zeros of both signs and NaN included: the rows of a unit are the same alone, and in any order."""
    visits = tables_from(seed, wild=True)["visits"]
    picked = ", ".join(f"{window} AS w{place}" for place, window in enumerate((*NUMBERS, *KEYS)))
    sql = planned(f"SELECT user_id, f, CAST(1 / f AS INTEGER) AS s, {picked} FROM visits").sql.sql("duckdb")
    order = list(range(visits.num_rows))
    random.Random(seed).shuffle(order)
    whole = computed(sql, visits)
    assert whole == computed(sql, visits.take(order))
    users = sorted({user for user in visits["user_id"].to_pylist() if user is not None})
    none = visits.filter(pa.compute.is_null(visits["user_id"]))
    alone = [computed(sql, visits.filter(pa.compute.equal(visits["user_id"], user))) for user in users]
    assert whole == sorted(itertools.chain(computed(sql, none), *alone))


def test_layers_read_what_is_named_and_keep_what_is_known() -> None:
    relation = planned(
        "SELECT user_id, ROW_NUMBER() OVER w AS nth, LAG(cat) OVER w AS c, LAG(city) OVER w AS city, "
        "LAG(d) OVER w AS d, COUNT(*) OVER w AS n, LAG(user_id) OVER w AS u, NTILE(3) OVER w AS tile "
        "FROM visits WINDOW w AS (PARTITION BY user_id ORDER BY ts)"
    )
    fields = relation.fields
    assert relation.units == ("__u0",) and fields["user_id"].unit == "column" and fields["u"].unit == ""
    assert (fields["nth"].low, fields["nth"].high, fields["nth"].nullable) == (1, None, False)
    assert fields["c"].values == (1, 2, 3) and fields["c"].nullable and fields["city"].domain == "cities.city"
    assert fields["d"].limits is not None and fields["n"].low == 0 and fields["tile"].values == (1, 2, 3)
    assert "t" not in relation.sql.sql("duckdb").split('"')


def test_an_order_ends_with_every_column_that_is_read() -> None:
    sql = planned(
        "SELECT user_id, x, t, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY x DESC) AS n FROM visits"
    )
    order = next(sql.sql.find_all(exp.Order))
    assert [key.this.name for key in order.expressions] == ["x", "t"]
    assert [bool(key.args.get("desc")) for key in order.expressions] == [True, False]


def test_windows_run_over_groups_of_one_person() -> None:
    visits = tables_from(3, wild=False)["visits"]
    select = (
        "SELECT user_id, cat, COUNT(*) AS n, RANK() OVER (PARTITION BY user_id ORDER BY COUNT(*)) AS place "
        "FROM visits GROUP BY user_id, cat HAVING COUNT(*) > 0 QUALIFY place <= 2"
    )
    assert computed(
        f"SELECT user_id, cat, n, place FROM ({planned(select).sql.sql('duckdb')})", visits
    ) == computed(select, visits)


def test_a_condition_outside_does_not_confine_what_windows_read() -> None:
    """LEAD reads rows that a condition on the outer select drops."""
    world = World(catalog_of("user"), public_fields(engine_of("user")))
    inner = "SELECT user_id, ts, {} AS w FROM visits"
    known = {}
    for what in ("x", "LEAD(x) OVER (PARTITION BY user_id ORDER BY ts)"):
        sql = f"SELECT COUNT(*) FROM ({inner.format(what)}) AS v WHERE v.ts < TIMESTAMP '2020-01-01 00:00:00'"
        tree = rewrite(parse(sql).tree, world)
        from incrowd.query import confining

        known[what] = [ends for _, ends in confining._scans(tree, {})]  # type: ignore[arg-type]
    plain, windowed = known.values()
    assert "ts" in plain[0] and windowed == [{}]
    assert upper_ends(tree, world) == {}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("select", "mode", "said"),
    [
        ("user_id, RANK() OVER (ORDER BY x) AS w", "user", "begin its window with PARTITION BY user_id"),
        ("user_id, RANK() OVER (PARTITION BY user_id + 0 ORDER BY x) AS w", "user", "several people"),
        ("user_id, RANK() OVER (PARTITION BY user_id ORDER BY x) AS w", "per", "PARTITION BY user_id, day"),
        ("x, RANK() OVER (PARTITION BY t ORDER BY x) AS w", "row", "each row is a person of its own"),
        ("user_id, SUM(x) OVER (PARTITION BY user_id) AS w", "user", "groups by the person"),
        ("user_id, COUNT(DISTINCT x) OVER (PARTITION BY user_id) AS w", "user", "not possible in a window"),
        ("user_id, MEDIAN(x) OVER (PARTITION BY user_id) AS w", "user", "use ROW_NUMBER, RANK, LAG"),
        ("user_id, LAG(x IGNORE NULLS) OVER (PARTITION BY user_id) AS w", "user", "WHERE x IS NOT NULL"),
        ("user_id, LAG(x, cat) OVER (PARTITION BY user_id) AS w", "user", "whole number from 0 to 1,000,000"),
        ("user_id, NTILE(0) OVER (PARTITION BY user_id) AS w", "user", "whole number from 1"),
        ("user_id, LAG(NULL) OVER (PARTITION BY user_id) AS w", "user", "always NULL"),
        ("user_id, RANK() OVER w AS w FROM visits WINDOW v AS () --", "user", "no window w"),
        (
            "user_id, MIN(x) OVER (PARTITION BY user_id ORDER BY x RANGE 1 PRECEDING) AS w",
            "user",
            "a frame measured in values",
        ),
        (
            "user_id, MIN(x) OVER (PARTITION BY user_id ORDER BY x GROUPS 1 PRECEDING) AS w",
            "user",
            "write it with ROWS BETWEEN",
        ),
        (
            "user_id, MIN(x) OVER (PARTITION BY user_id ROWS BETWEEN 1 FOLLOWING AND 1 PRECEDING) AS w",
            "user",
            "ends before it starts",
        ),
        ("user_id, LAST_VALUE(x) OVER (PARTITION BY user_id ORDER BY x) AS w", "user", "rows that tie"),
        ("user_id, LAG(RANK() OVER ()) OVER (PARTITION BY user_id) AS w", "user", "in another"),
        ("user_id, x + RANK() OVER (PARTITION BY user_id) = 'a' AS w", "user", "RANK"),
    ],
)  # fmt: skip
def test_refusals_say_what_to_write(select: str, mode: str, said: str) -> None:
    with pytest.raises(QueryError) as refusal:
        planned(f"SELECT {select} FROM visits" if "FROM visits" not in select else f"SELECT {select}", mode)
    assert said in str(refusal.value) and "__" not in str(refusal.value)


def test_a_window_beside_an_aggregate_of_people_is_refused_where_it_stands() -> None:
    with pytest.raises(QueryError, match="compute them in a sub-query of FROM"):
        plan_of("SELECT COUNT(*) FROM visits WHERE ROW_NUMBER() OVER (PARTITION BY user_id) = 1", "user")
