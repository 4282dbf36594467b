"""Small private tables full of trouble, for every kind of unit; and what a bounded statement makes of them.

A *house* is a catalog with an engine. Its tables are made from a seed: NULLs, NaN, infinities, numbers
beyond every bound, dates at the ends of calendars, a unit that owns most rows, rows that belong to nobody,
no rows at all.
"""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import pyarrow as pa

from incrowd.backends import (
    Backend,
    DuckDB,
    Statement,
    census_statement,
    range_statement,
    release_statement,
)
from incrowd.backends.statement import KEY_MASS, census_exponent, weight_cap
from incrowd.catalog import Catalog, column_type
from incrowd.catalog.loading import check
from incrowd.query import Centre, Contribution, Field, Leaf, Plan, bound, parse

MODES = ("row", "user", "per")
_INF_DAY = 2**31 - 1
_FAR_DAY = 1_800_000_000
DAYS = {
    "tame": [18262, 18321, 18400, 18500],
    "wild": [None, 0, -719162, 2932896, _INF_DAY, -_INF_DAY, _FAR_DAY],
}
INSTANTS = {
    "tame": [1_577_836_800_000_000, 1_583_000_000_000_000],
    "wild": [None, 2**63 - 1, -(2**63) + 1, 10**18],
}
WHOLES = {"tame": [-5, 0, 1, 3, 7, 20], "wild": [None, 21, -100, 2**63 - 1, -(2**63), 2**53 + 1]}
REALS = {
    "tame": [-2.5, 0.0, 0.1, 1.25, 3.3, 7.5],
    "wild": [None, -0.0, float("nan"), float("inf"), -float("inf"), 1e308, -1e308, 5e-324],
}
TEXTS = {
    "tame": ["a", "b", "abc"],
    "wild": [
        None,
        "",
        "A",
        "ä",
        "a" * 3000,
        "%",
        "12",
        " 12\n",
        "2020-01-01",
        "2020-02-30 10:00",
        "1e999",
        "-",
        "\\",
        "'",
        "ßİıǅΣς",
        "日本 語",
        "👩‍👧",
        "a\u0301",
        "\u00a0x ",
        "TRUE",
        "𐐀",
    ],
}
DECIMALS = {
    "tame": [Decimal("0.1"), Decimal("-2.5"), Decimal("7.123456789")],
    "wild": [None, Decimal("0E-9"), Decimal("12345678901.123456789"), Decimal("-99999999999.999999999")],
}
LARGE = {"tame": [0, 5, 10**9, 2**40], "wild": [None, -1, 2**41, 2**63 - 1]}
CITIES = ["bonn", "köln", "trier"]
_VISITS = {"x": WHOLES, "f": REALS, "n": LARGE, "grp": TEXTS, "t": TEXTS, "d": DAYS, "ts": INSTANTS}
_VISITS["p"] = DECIMALS


def _columns(unit: str) -> dict[str, dict[str, Any]]:
    return {
        "user_id": {"type": "integer"},
        "day": {"type": "integer"},
        "x": {"type": "integer", "bounds": [-5, 20]},
        "f": {"type": "float", "bounds": [-2.5, 7.5]},
        "n": {"type": "integer", "bounds": [0, 2**40]},
        "p": {"type": "decimal", "bounds": [-8, 8]},
        "cat": {"type": "integer", "domain": [1, 2, 3]},
        "city": {"type": "text", "domain": {"from": "cities.city"}},
        "b": {"type": "boolean"},
        "grp": {"type": "text"},
        "t": {"type": "text"},
        "d": {"type": "date", "bounds": ["1960-01-01", "2030-12-31"]},
        "ts": {"type": "timestamp", "bounds": ["1960-01-01 00:00:00", "2030-12-31 23:59:59"]},
    }


@functools.cache
def catalog_of(mode: str, relation: str = "add-remove") -> Catalog:
    """The catalog of a house: private visits and steps, public cities."""
    return _catalog(mode, relation, {name: {"frame": name} for name in ("visits", "steps", "cities")})


def catalog_at(url: str, mode: str) -> Catalog:
    """The same, with the tables in a database."""
    return _catalog(mode, "add-remove", {name: {"url": url} for name in ("visits", "steps", "cities")})


def _catalog(mode: str, relation: str, sources: dict[str, Any]) -> Catalog:
    unit: Any = {"row": "row", "user": "user_id", "per": {"column": "user_id", "per": "day"}}[mode]
    steps = {
        "user_id": {"type": "integer", "nullable": False},
        "day": {"type": "integer"},
        "m": {"type": "integer", "bounds": [0, 9]},
        "w": {"type": "float", "bounds": [0.0, 1.0], "contribution": 2.5},
    }
    private = {"private": True, "unit": unit, "relation": relation}
    return check(
        {
            "sources": sources,
            "tables": {
                "visits": {"source": "visits", **private, "columns": _columns(mode)},
                "steps": {"source": "steps", **private, "columns": steps},
                "cities": {"source": "cities", "private": False},
            },
            "budget": {"epsilon": 1.0},
        }
    )


def cities() -> pa.Table:
    """The public table."""
    return pa.table(
        {
            "city": [*CITIES, CITIES[0], None],
            "region": ["west", "west", None, "north", "east"],
            "size": pa.array([1, 2, 3, 4, None], pa.int64()),
        }
    )


def _pick(rng: random.Random, values: Mapping[str, list[Any]], wild: bool) -> Any:
    return rng.choice(values["wild"] if wild and rng.random() < 0.4 else values["tame"])


def tables_from(seed: int, wild: bool) -> dict[str, pa.Table]:
    """Private tables from a seed; tame ones hold nothing beyond bounds and no row without a unit."""
    rng = random.Random(seed)
    rows = rng.choice([0, 1, 4, 9, 14]) if wild else rng.choice([3, 8, 14])
    users = [1, 2, 3, 4] + ([None] if wild else [])
    heavy = rng.choice([0.0, 0.6])

    def user() -> int | None:
        return 1 if rng.random() < heavy else rng.choice(users)

    days = [7, 8] + ([None] if wild else [])
    types = {"d": pa.int32(), "grp": pa.string(), "t": pa.string(), "f": pa.float64()}
    types["p"] = pa.decimal128(20, 9)
    columns: dict[str, Any] = {
        "user_id": pa.array([user() for _ in range(rows)], pa.int64()),
        "day": pa.array([rng.choice(days) for _ in range(rows)], pa.int64()),
        "cat": pa.array(
            [rng.choice([1, 2, 3] + ([9, None] if wild else [])) for _ in range(rows)], pa.int64()
        ),
        "city": pa.array(
            [rng.choice(CITIES + (["ulm", None] if wild else [])) for _ in range(rows)], pa.string()
        ),
        "b": pa.array(
            [rng.choice([True, False] + ([None] if wild else [])) for _ in range(rows)], pa.bool_()
        ),
    }
    for name, values in _VISITS.items():
        columns[name] = pa.array([_pick(rng, values, wild) for _ in range(rows)], types.get(name, pa.int64()))
    columns["d"] = columns["d"].cast(pa.date32())
    columns["ts"] = columns["ts"].cast(pa.timestamp("us"))
    other = rng.choice([0, 2, 6]) if wild else 6
    steps = {
        "user_id": pa.array([user() for _ in range(other)], pa.int64()),
        "day": pa.array([rng.choice(days) for _ in range(other)], pa.int64()),
        "m": pa.array(
            [rng.choice([0, 3, 9] + ([None, 99] if wild else [])) for _ in range(other)], pa.int64()
        ),
        "w": pa.array(
            [rng.choice([0.25, 1.0] + ([None, -4.0] if wild else [])) for _ in range(other)], pa.float64()
        ),
    }
    return {"visits": pa.table(columns), "steps": pa.table(steps)}


@functools.cache
def engine_of(mode: str, relation: str = "add-remove") -> DuckDB:
    """An engine whose private tables are put in anew for each use."""
    frames = {**tables_from(0, True), "cities": cities()}
    return DuckDB(catalog_of(mode, relation), frames)


def public_fields(engine: DuckDB) -> dict[str, dict[str, Field]]:
    """The columns of the public table, as a curator reads them."""
    types = {name: column_type(kind) for name, kind in engine.public_types("cities").items()}
    return {"cities": {name: Field(kind, name=f"cities.{name}") for name, kind in types.items()}}  # type: ignore[arg-type]


def furnish(engine: DuckDB, tables: Mapping[str, pa.Table]) -> None:
    """Put other rows under the same names."""
    for name, table in tables.items():
        engine._connection.register(f"frame_{name}", table)


def plan_of(sql: str, mode: str, relation: str = "add-remove", **contribution: float | None) -> Plan:
    """The bounded plan of a question in a house."""
    catalog, engine = catalog_of(mode, relation), engine_of(mode, relation)
    return bound(parse(sql), catalog, public_fields(engine), Contribution(**contribution))


def without_each_unit(
    tables: Mapping[str, pa.Table], mode: str, used: tuple[str, ...]
) -> Iterator[dict[str, pa.Table]]:
    """The neighbours: all rows of one unit gone from all tables, or one row where rows are units."""
    if mode == "row":
        for name in used:
            table = tables[name]
            for index in range(table.num_rows):
                rest = pa.concat_tables([table.slice(0, index), table.slice(index + 1)])
                yield {**tables, name: rest}
        return
    names = ("user_id",) if mode == "user" else ("user_id", "day")
    units = {
        unit
        for table in tables.values()
        for unit in zip(*(table.column(name).to_pylist() for name in names), strict=True)
        if None not in unit
    }
    for unit in sorted(units):  # the heavy one first
        kept = {}
        for name, table in tables.items():
            rows = zip(*(table.column(column).to_pylist() for column in names), strict=True)
            kept[name] = table.filter(pa.array([row != unit for row in rows], pa.bool_()))
        yield kept


def with_a_unit_replaced(
    tables: Mapping[str, pa.Table], others: Mapping[str, pa.Table], mode: str
) -> dict[str, pa.Table]:
    """The first unit (or row) of the tables with the rows that it has in other tables instead."""
    if mode == "row":
        table, other = tables["visits"], others["visits"]
        rest = table.slice(1) if table.num_rows else table
        return {**tables, "visits": pa.concat_tables([rest, other.slice(0, min(1, table.num_rows))])}
    names = ("user_id",) if mode == "user" else ("user_id", "day")
    unit = (1,) if mode == "user" else (1, 7)
    made = {}
    for name in tables:
        parts = []
        for table, own in ((tables[name], False), (others[name], True)):
            rows = zip(*(table.column(column).to_pylist() for column in names), strict=True)
            parts.append(table.filter(pa.array([(row == unit) == own for row in rows], pa.bool_())))
        made[name] = pa.concat_tables(parts)
    return made


@dataclass(frozen=True)
class Numbers:
    """What a statement returned: for each (part, number), the integer of each (group, cell)."""

    statement: Statement
    values: Mapping[tuple[int, int], Mapping[tuple[Any, ...], int]]

    def moved(self, other: Numbers, part: int, place: int, norm: int = 1) -> int:
        """The distance of one column in L1 (or the square of that in L2), over all groups and cells; what is
        absent is 0.
        """
        one, two = self.values.get((part, place), {}), other.values.get((part, place), {})
        return sum(abs(one.get(key, 0) - two.get(key, 0)) ** norm for key in one.keys() | two.keys())


def run(engine: Backend, statement: Statement) -> Numbers:
    """A statement's numbers."""
    result = engine.run(statement.tree)
    keys = []
    for index in range(statement.keys):
        column = result.column(f"k{index}")
        if pa.types.is_date(column.type) or pa.types.is_timestamp(column.type):
            column = column.cast(pa.int32() if pa.types.is_date(column.type) else pa.int64())
        keys.append([_same_nan(value) for value in column.to_pylist()])
    parts, cells = result.column("part").to_pylist(), result.column("cell").to_pylist()
    values: dict[tuple[int, int], dict[tuple[Any, ...], int]] = {}
    width = sum(name[0] == "n" and name[1:].isdigit() for name in result.column_names)
    numbers = [result.column(f"n{place}").to_pylist() for place in range(width)]
    for row, part in enumerate(parts):
        key = (*(column[row] for column in keys), cells[row])
        for place in range(width):
            sums = values.setdefault((part, place), {})
            assert key not in sums, "one line per group"
            sums[key] = numbers[place][row] or 0
    return Numbers(statement, values)


def _same_nan(value: Any) -> Any:
    return "NaN" if isinstance(value, float) and value != value else value


def centred(leaf: Leaf, cells: int = 1) -> Leaf:
    """The leaf with some centre and spread for each of its values, the narrower the larger `cells` is."""
    centres = {
        name: Centre(
            value.low + (value.high - value.low) * (0.3 + cells / 100),
            (value.histogram.high - value.histogram.low) * 2.0 ** -min(cells, 16),
        )
        for name, value in leaf.values.items()
    }
    return leaf.with_centres(centres, {measure.ball: 2.0 / cells for measure in leaf.measures.values()})


def capped(leaf: Leaf, cells: int, generous: int) -> tuple[Leaf, dict[str, float]]:
    """The leaf with its open caps at 2^cells steps of the census, and generous ones above them."""
    leaf = centred(leaf, max(cells, 1))
    caps = {key: 2.0 ** census_exponent(measure) * 2.0**cells for key, measure in leaf.uncapped.items()}
    large = {
        measure.name: caps[measure.weigh_key] * 2.0**generous
        for measure in leaf.measures.values()
        if measure.cap is None and not measure.buckets and not measure.ball
    }
    return leaf.with_caps(caps), large


def check_sensitivity(
    leaf: Leaf, large: Mapping[str, float], before: Numbers, after: Numbers, times: int = 1
) -> None:
    """No number moves further than it is stated to when one unit goes; `times` 2 where it is replaced."""
    balls: dict[str, int] = {}
    for index, part in enumerate(before.statement.parts):
        for place, name in enumerate(part.columns):
            if name == "nothing":
                continue
            norm = leaf.norm if name == "keys" else leaf.measures[name].norm
            moved = before.moved(after, index, place, norm if part.kind != "totals" else 1)
            if part.kind == "totals":
                assert moved <= times * weight_cap(leaf.measures[name]), (part, moved)
                assert before.moved(after, index, 1) <= times * weight_cap(leaf.measures[name], large[name])
            elif name == "keys":
                assert moved <= (times * KEY_MASS) ** norm, (part, moved)
            else:
                # All measures of a ball move together by what one of them alone is stated to.
                ball = leaf.measures[name].ball
                if ball:
                    balls[ball] = moved = balls.get(ball, 0) + moved
                assert moved <= (times * leaf.measures[name].sensitivity_steps) ** norm, (
                    leaf.measures[name].label,
                    moved,
                )


def check_census(before: Numbers, after: Numbers, times: int = 1) -> None:
    """One unit is in one cell."""
    for index, _ in enumerate(before.statement.parts):
        places = sorted(place for part, place in before.values if part == index)
        one, two = (
            [next(iter(run.values[index, place].values()), 0) for place in places] for run in (before, after)
        )
        cells = [[a - b for a, b in zip(counts, [*counts[1:], 0], strict=True)] for counts in (one, two)]
        assert sum(abs(a - b) for a, b in zip(*cells, strict=True)) <= times


def check_leaf(
    leaf: Leaf, mode: str, relation: str, tables: Mapping[str, pa.Table], cells: int, generous: int, most: int
) -> None:
    """Both statements of a leaf: on the tables, on up to `most` neighbours, in another order, without
    nobody's rows.
    """
    engine = engine_of(mode, relation)
    bounded, large = capped(leaf, cells, generous)
    release = release_statement(bounded, large)
    furnish(engine, tables)
    before = run(engine, release)
    neighbours = list(itertools.islice(without_each_unit(tables, mode, leaf.tables), most))
    for neighbour in neighbours:
        furnish(engine, neighbour)
        check_sensitivity(bounded, large, before, run(engine, release))
    furnish(engine, _same_people(tables, mode))
    assert run(engine, release).values == before.values, (
        "the order of rows, or rows of nobody, moved a number"
    )
    if leaf.values and neighbours:
        ranges = range_statement(leaf)
        histograms = {name: value.histogram for name, value in leaf.values.items()}
        after = run(engine, ranges)
        furnish(engine, neighbours[0])
        check_sensitivity(replace(leaf, measures=histograms), {}, after, run(engine, ranges))
    if leaf.uncapped and neighbours:
        census = census_statement(centred(leaf))
        furnish(engine, neighbours[0])
        after = run(engine, census)
        furnish(engine, tables)
        check_census(run(engine, census), after)


def _same_people(tables: Mapping[str, pa.Table], mode: str) -> dict[str, pa.Table]:
    """The tables in reverse order, and without the rows that belong to nobody."""
    reordered = {
        name: table.take(pa.array(range(table.num_rows)[::-1], pa.int64())) for name, table in tables.items()
    }
    if mode == "row":
        return reordered
    names = ("user_id",) if mode == "user" else ("user_id", "day")
    for name, table in reordered.items():
        for column in names:
            table = table.filter(table.column(column).is_valid())
        reordered[name] = table
    return reordered
