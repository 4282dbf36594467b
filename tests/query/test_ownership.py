"""Ownership: every row of a private relation belongs to one unit, and the relation says which.

The model is DuckDB: the columns that a relation carries for the unit hold, on every row, the id of the
person whose rows it was computed from.
"""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest
from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query import parse
from incrowd.query.ownership import ROW, UNIT, Relation, World, carry_units, select_rows, sources, unit_parts
from incrowd.query.rules import rewrite
from tests.backends.houses import catalog_of, cities, engine_of, public_fields, tables_from


def world(mode: str = "user") -> World:
    return World(catalog_of(mode), public_fields(engine_of(mode)))


def select_of(sql: str, mode: str = "user") -> exp.Select:
    tree = rewrite(parse(sql).tree, world(mode))
    assert isinstance(tree, exp.Select)
    return tree


def rows_of(sql: str, mode: str = "user", numbered: bool = False) -> Relation:
    return select_rows(select_of(sql, mode), world(mode), numbered)


def run(relation: Relation, seed: int = 3) -> pa.Table:
    tables = {**tables_from(seed, wild=False), "cities": cities()}
    with duckdb.connect(":memory:") as engine:
        for name, table in tables.items():
            engine.register(name, table)
        return engine.sql(relation.sql.sql("duckdb")).to_arrow_table()


OWNED = [
    "SELECT user_id AS who, x FROM visits",
    "SELECT user_id AS who FROM visits WHERE x > 0",
    "SELECT v.user_id AS who, s.m FROM visits AS v JOIN steps AS s ON v.user_id = s.user_id",
    "SELECT v.user_id AS who FROM visits AS v LEFT JOIN steps AS s ON s.user_id = v.user_id AND s.m > 3",
    "SELECT v.user_id AS who FROM visits AS v JOIN steps AS s ON (v.user_id = s.user_id) AND (v.x > s.m)",
    "SELECT v.user_id AS who, c.region FROM visits AS v JOIN cities AS c ON v.city = c.city",
    "SELECT v.user_id AS who FROM cities AS c JOIN visits AS v ON v.city = c.city",
    "SELECT v.user_id AS who FROM visits AS v CROSS JOIN cities AS c",
    (
        "SELECT q.who FROM (SELECT user_id AS who, COUNT(*) AS n FROM visits GROUP BY user_id) AS q "
        "WHERE q.n > 1"
    ),
    "SELECT DISTINCT user_id AS who FROM visits",
    "SELECT s.user_id AS who FROM visits AS v RIGHT JOIN steps AS s ON v.user_id = s.user_id AND v.x > s.m",
    (
        "SELECT w.user_id AS who FROM visits AS v JOIN steps AS s ON v.user_id = s.user_id RIGHT JOIN visits "
        "AS w ON w.user_id = s.user_id AND w.x > s.m"
    ),
    (
        "SELECT COALESCE(s.user_id, v.user_id) AS who FROM visits AS v FULL JOIN steps AS s ON s.user_id = "
        "v.user_id AND v.x > s.m"
    ),
    "SELECT v.user_id AS who FROM visits AS v FULL JOIN cities AS c ON c.city = v.city",
    "SELECT v.user_id AS who FROM cities AS c LEFT JOIN visits AS v ON c.city = v.city",
    "SELECT v.user_id AS who FROM cities AS c FULL JOIN visits AS v ON c.city = v.city",
    "SELECT v.user_id AS who FROM visits AS v, steps AS s WHERE v.user_id = s.user_id",
    "SELECT q.who FROM (SELECT user_id AS who FROM visits) AS q JOIN steps AS s ON q.who = s.user_id",
]


@pytest.mark.parametrize("sql", OWNED)
@pytest.mark.parametrize("seed", range(3))
def test_the_unit_that_a_row_carries_is_the_person_it_is_about(sql: str, seed: int) -> None:
    relation = rows_of(sql)
    assert relation.private and relation.units == (f"{UNIT}0",)
    table = run(relation, seed)
    assert table.column(f"{UNIT}0").to_pylist() == table.column("who").to_pylist()


def test_a_unit_per_day_is_carried_in_two_columns() -> None:
    relation = rows_of("SELECT user_id AS who, day AS at FROM visits", "per")
    table = run(relation)
    assert relation.units == (f"{UNIT}0", f"{UNIT}1")
    assert table.column(f"{UNIT}1").to_pylist() == table.column("at").to_pylist()
    joined = "SELECT v.user_id FROM visits AS v JOIN steps AS s ON v.user_id = s.user_id AND v.day = s.day"
    assert rows_of(joined, "per").units == (f"{UNIT}0", f"{UNIT}1")


def test_rows_that_are_units_are_numbered_before_they_are_multiplied() -> None:
    plain = rows_of("SELECT x FROM visits", "row")
    assert plain.units == () and not plain.materialize and plain.single
    joined = rows_of("SELECT v.x FROM visits AS v JOIN cities AS c ON TRUE", "row")
    assert joined.materialize and not joined.single and joined.units == (f"{UNIT}0",)
    table = run(joined)
    rows = tables_from(3, wild=False)["visits"].num_rows
    assert sorted(set(table.column(f"{UNIT}0").to_pylist())) == list(range(1, rows + 1))
    assert table.num_rows == rows * cities().num_rows
    numbered = rows_of("SELECT x FROM visits", "row", numbered=True)
    assert numbered.materialize and numbered.single and numbered.units == (f"{UNIT}0",)


def test_public_relations_belong_to_nobody() -> None:
    relation = rows_of("SELECT city AS place FROM cities WHERE size > 1")
    assert relation.units is None and not relation.private and relation.tables == ()
    assert run(relation).column_names == ["place"]
    assert rows_of("SELECT region, COUNT(*) AS n FROM cities GROUP BY region").units is None


@pytest.mark.parametrize(
    ("sql", "single"),
    [
        ("SELECT user_id, COUNT(*) AS n FROM visits GROUP BY user_id", True),
        ("SELECT user_id, cat, COUNT(*) AS n FROM visits GROUP BY user_id, cat", False),
        ("SELECT user_id FROM visits", False),
        ("SELECT q.user_id FROM (SELECT DISTINCT user_id FROM visits) AS q", True),
        (
            (
                "SELECT q.user_id FROM (SELECT DISTINCT user_id FROM visits) AS q JOIN (SELECT DISTINCT "
                "user_id FROM steps) AS r ON q.user_id = r.user_id"
            ),
            True,
        ),
        (
            (
                "SELECT q.user_id FROM (SELECT DISTINCT user_id FROM visits) AS q JOIN steps AS r ON "
                "q.user_id = r.user_id"
            ),
            False,
        ),
        ("SELECT q.user_id FROM (SELECT DISTINCT user_id FROM visits) AS q JOIN cities AS c ON TRUE", False),
    ],
)
def test_a_relation_knows_whether_a_unit_has_one_row(sql: str, single: bool) -> None:
    relation = rows_of(sql)
    assert relation.single is single
    if single:
        units = run(relation).column(f"{UNIT}0").to_pylist()
        assert len(units) == len(set(units))


def test_facts_travel_through_projections() -> None:
    fields = rows_of("SELECT x, x + 1 AS y, city, b, 7 AS k, n * 4096 AS w, f FROM visits").fields
    assert (fields["x"].low, fields["x"].high, fields["x"].name, fields["x"].floating) == (
        -5,
        20,
        "visits.x",
        False,
    )
    assert (fields["y"].low, fields["y"].high, fields["y"].limits, fields["y"].floating) == (
        -4,
        21,
        (-4, 21),
        True,
    )
    assert fields["y"].name == "y" and fields["y"].weight > 1 and fields["x"].weight == 1
    assert fields["city"].domain == "cities.city" and fields["k"].values == (7,) and not fields["k"].floating
    assert fields["w"].limits == (0, 2**52) and fields["f"].limits == (-2.5, 7.5)
    wide = rows_of("SELECT n * 8192 AS w, n * 16384 AS e FROM visits").fields
    assert wide["w"].limits == (0, 2**53) and wide["e"].limits is None
    left = rows_of(
        "SELECT s.m, s.user_id AS i FROM visits AS v LEFT JOIN steps AS s ON v.user_id = s.user_id"
    ).fields
    assert left["i"].nullable and left["i"].unit == "" and left["m"].nullable
    inner = rows_of("SELECT s.user_id AS i FROM visits AS v JOIN steps AS s ON v.user_id = s.user_id").fields
    assert not inner["i"].nullable and inner["i"].unit == "column"


def test_the_world_knows_declared_and_public_columns() -> None:
    fields = world().fields("cities")
    assert (fields["city"].domain, fields["size"].kind) == ("cities.city", "integer")
    assert (
        world().fields("visits")["user_id"].unit == "column"
        and world("per").fields("visits")["day"].unit == "partition"
    )
    assert world().fields("visits")["x"].domain is None
    assert world().private(parse("SELECT x FROM VISITS").tree) and not world().private(
        parse("SELECT x FROM cities").tree
    )
    assert not world().private(parse("SELECT x FROM nosuch").tree)
    assert unit_parts(None) == unit_parts(()) == unit_parts([ROW]) == ()
    assert unit_parts(["a"]) == ("column",) and unit_parts(["a", "b"]) == ("column", "partition")


def test_sources_know_their_tables_and_columns() -> None:
    below = sources(
        select_of(
            "SELECT COUNT(*) FROM visits AS v JOIN steps AS s ON v.user_id = s.user_id JOIN visits "
            "AS w ON w.user_id = v.user_id"
        ),
        world(),
    )
    assert (
        below.tables == ("visits", "steps")
        and below.parts == ("column",)
        and not below.materialize
        and not below.single
    )
    assert [unit.sql() for unit in below.units or ()] == ['"v"."user_id"']
    assert below.field(exp.column("m", table="s")).high == 9
    with pytest.raises(QueryError, match="belongs to another SELECT"):
        below.field(exp.column("x", table="nosuch"))
    public = sources(select_of("SELECT COUNT(*) FROM cities AS c JOIN visits AS v ON TRUE"), world())
    assert [unit.sql() for unit in public.units or ()] == ['"v"."user_id"']
    names, rows = carry_units(below.select(None), below)
    assert names == (f"{UNIT}0",) and len(rows.expressions) == 1
    alone = sources(select_of("SELECT COUNT(*) FROM cities AS c"), world())
    assert carry_units(alone.select(None), alone)[0] is None and alone.parts == ()


@pytest.mark.parametrize(
    ("mode", "sql", "said"),
    [
        ("user", "SELECT 1 AS x", "The question names no table; add FROM and a table of the catalog."),
        (
            "user",
            "SELECT v.x FROM visits AS v JOIN steps AS s ON v.x = s.m",
            (
                "Joining s would mix rows of different people; join private tables on the protected unit "
                "(v.user_id = s.user_id), with AND for more conditions."
            ),
        ),
        ("user", "SELECT v.x FROM visits AS v CROSS JOIN steps AS s", "would mix rows of different people"),
        (
            "user",
            "SELECT v.x FROM visits AS v JOIN steps AS s ON v.user_id = s.user_id OR v.x = 1",
            "would mix rows of different people",
        ),
        (
            "user",
            "SELECT v.x FROM visits AS v JOIN steps AS s ON v.user_id = s.user_id + 0",
            "would mix rows of different people",
        ),
        (
            "user",
            "SELECT v.x FROM visits AS v JOIN steps AS s ON v.user_id > s.user_id",
            "would mix rows of different people",
        ),
        (
            "user",
            "SELECT v.x FROM visits AS v JOIN steps AS s ON s.user_id = s.user_id",
            "would mix rows of different people",
        ),
        (
            "user",
            "SELECT v.x FROM visits AS v JOIN steps AS s ON v.user_id = s.m",
            "would mix rows of different people",
        ),
        (
            "user",
            "SELECT v.x FROM visits AS v JOIN steps AS s ON v.x = s.user_id",
            "would mix rows of different people",
        ),
        (
            "user",
            (
                "SELECT v.x FROM visits AS v JOIN steps AS s ON v.user_id = s.user_id JOIN steps AS t ON "
                "v.user_id = s.user_id"
            ),
            "Joining t would mix rows",
        ),
        (
            "user",
            (
                "SELECT v.x FROM visits AS v LEFT JOIN steps AS s ON v.user_id = s.user_id JOIN steps AS "
                "t ON s.user_id = t.user_id"
            ),
            "Joining t would mix rows",
        ),
        (
            "per",
            "SELECT v.x FROM visits AS v JOIN steps AS s ON v.user_id = s.user_id",
            "(v.user_id = v.day = s.user_id = s.day)",
        ),
        (
            "per",
            "SELECT v.x FROM visits AS v JOIN steps AS s ON v.day = s.day",
            "would mix rows of different people",
        ),
        (
            "per",
            "SELECT v.x FROM visits AS v JOIN steps AS s ON v.user_id = s.day AND v.day = s.user_id",
            "would mix rows of different people",
        ),
        (
            "row",
            "SELECT v.x FROM visits AS v JOIN steps AS s ON v.user_id = s.user_id",
            "each row is a unit of its own here and cannot be joined",
        ),
        (
            "user",
            (
                "SELECT v.x FROM cities AS c JOIN cities AS d ON d.size = c.size FULL JOIN visits AS v ON "
                "c.city = v.city"
            ),
            "Put the private table v first: FROM v LEFT JOIN the public tables, one by one.",
        ),
        (
            "user",
            "SELECT c.size FROM cities AS c FULL JOIN cities AS d ON c.city = d.city",
            "A FULL JOIN of public tables is not possible here; use JOIN or LEFT JOIN.",
        ),
        (
            "user",
            "SELECT v.x FROM visits AS v FULL JOIN steps AS s ON v.x = s.m",
            "Joining s would mix rows of different people",
        ),
        (
            "user",
            (
                "SELECT v.x FROM visits AS v FULL JOIN steps AS s ON v.user_id = s.user_id JOIN visits AS w "
                "ON w.user_id = v.user_id"
            ),
            "Joining w would mix rows of different people",
        ),
        (
            "user",
            "SELECT v.x FROM visits AS v RIGHT JOIN steps AS s ON v.x = s.m",
            "Joining v would mix rows of different people",
        ),
        (
            "user",
            "SELECT v.x FROM visits AS v SEMI JOIN cities AS c ON c.city = v.city",
            "A SEMI JOIN is not possible here; use JOIN ... ON or LEFT JOIN ... ON.",
        ),
        (
            "user",
            "SELECT v.x FROM visits AS v ANTI JOIN cities AS c ON c.city = v.city",
            "A ANTI JOIN is not possible here",
        ),
        ("user", "SELECT v.x FROM visits AS v ASOF JOIN cities AS c ON c.size >= v.x", "ASOF on "),
        (
            "user",
            "SELECT v.x FROM visits AS v TABLESAMPLE 10%",
            (
                "SAMPLE on v is not possible over private rows; use plain tables, sub-queries, JOIN ... "
                "ON and LEFT JOIN ... ON."
            ),
        ),
        (
            "user",
            "SELECT q.x FROM (SELECT x FROM visits UNION SELECT m FROM steps) AS q",
            "UNION compares rows of different people unless each part shows the protected unit",
        ),
        (
            "user",
            "SELECT q.x FROM (SELECT x FROM visits LIMIT 3) AS q",
            "LIMIT over private rows is not possible; use it on the released result, in an outer SELECT.",
        ),
        ("user", "SELECT q.x FROM (SELECT x FROM visits OFFSET 3) AS q", "OFFSET over private rows"),
        (
            "user",
            "SELECT x, f AS x FROM visits",
            "Two columns of a sub-query are called x; name one of them otherwise, with AS.",
        ),
        (
            "user",
            "SELECT DISTINCT ON (user_id) user_id FROM visits",
            "DISTINCT ON is not possible over private rows; use GROUP BY.",
        ),
        ("user", "SELECT x FROM visits QUALIFY TRUE", "QUALIFY over private rows is not possible"),
        (
            "user",
            "SELECT v.x FROM visits AS v JOIN cities AS c ON v.x",
            "JOIN ... ON needs a condition, but x is of type integer.",
        ),
        ("user", "SELECT x FROM visits WHERE x", "WHERE needs a condition"),
        ("user", "SELECT r FROM RANGE(3) AS t(r)", "catalog"),
    ],
)
def test_what_would_break_ownership_is_refused(mode: str, sql: str, said: str) -> None:
    with pytest.raises(QueryError) as refusal:
        rows_of(sql, mode)
    assert said in str(refusal.value)


def test_what_the_rules_did_not_see_is_refused_here_too() -> None:
    with pytest.raises(
        QueryError, match="There is no table nosuch in the catalog; it has cities, steps, visits"
    ):
        select_rows(exp.select("x").from_("nosuch"), world())
    with pytest.raises(
        QueryError, match="cannot stand in FROM here; name a table of the catalog or a sub-query"
    ):
        select_rows(
            exp.select("x").from_(exp.Values(expressions=[exp.Tuple(expressions=[exp.Literal.number(1)])])),
            world(),
        )
    aliased = parse("SELECT a FROM visits AS v(a)").tree
    assert isinstance(aliased, exp.Select)
    with pytest.raises(QueryError, match="Name the columns of v inside its SELECT, with AS"):
        select_rows(aliased, world())
