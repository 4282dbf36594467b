"""One rule for names: two names are one exactly where DuckDB takes them for one."""

from __future__ import annotations

import duckdb
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from incrowd.catalog import Catalog
from incrowd.catalog.loading import check
from incrowd.catalog.names import fold, same_but_for_case, spelling_of
from incrowd.errors import CatalogError, QueryError
from incrowd.query import bound, parse

LETTERS = "aAkKsSiIzZ_\N{KELVIN SIGN}ßẞſİıÄäΣσςǅ"
APART = [
    ("straße", "STRASSE"),
    ("\N{KELVIN SIGN}", "k"),
    ("İ", "i"),
    ("ı", "I"),
    ("ſ", "s"),
    ("Ä", "ä"),
    ("Σ", "σ"),
    ("ǅ", "ǆ"),
]
NAMES = st.text(LETTERS, min_size=1, max_size=4)


def one_in_duckdb(left: str, right: str) -> bool:
    try:
        duckdb.execute(f'SELECT "{right}" FROM (SELECT 1 AS "{left}") AS t').fetchall()
    except duckdb.BinderException:
        return False
    return True


@settings(max_examples=200, deadline=None)
@given(NAMES, NAMES)
@example("straße", "STRAßE")
@example("straße", "STRASSE")
@example("\N{KELVIN SIGN}", "K")
def test_two_names_are_one_where_duckdb_takes_them_for_one(left: str, right: str) -> None:
    one = one_in_duckdb(left, right)
    assert (fold(left) == fold(right)) is one
    assert (same_but_for_case([left, right]) is not None) is one
    assert spelling_of(right, [left]) == (left if one else None)


@given(st.text(max_size=9))
def test_folding_twice_is_folding_once_and_keeps_the_length(name: str) -> None:
    assert fold(fold(name)) == fold(name) and len(fold(name)) == len(name)
    assert not name.isascii() or fold(name) == name.lower()


def catalog_of(tables: list[str], columns: list[str]) -> Catalog:
    declared = {"id": {"type": "integer"}} | {
        name: {"type": "integer", "bounds": [0, place + 1]} for place, name in enumerate(columns)
    }
    made = {name: {"source": "s", "unit": "id", "columns": declared} for name in tables}
    return check({"sources": {"s": {"frame": "s"}}, "tables": made, "budget": {"epsilon": 1.0}})


@pytest.mark.parametrize(("left", "right"), APART)
def test_names_that_are_held_apart_never_answer_for_each_other(left: str, right: str) -> None:
    both = catalog_of([left, right], [f"c{left}", f"c{right}"])
    for name in (left, right):
        assert both.find(name) == name and both.tables[name].find(f"C{name}") == f"c{name}"
    for place, name in enumerate((left, right)):
        (leaf,) = bound(parse(f'SELECT SUM("c{name}") AS z FROM "{name}"'), both).leaves
        assert leaf.tables == (name,) and [measure.high for measure in leaf.measures.values()] == [place + 1]
    alone = catalog_of([left], [f"c{left}"])
    assert alone.find(right) is None and alone.tables[left].find(f"c{right}") is None
    for sql in (f'SELECT COUNT(*) AS n FROM "{right}"', f'SELECT SUM("c{right}") AS n FROM "{left}"'):
        with pytest.raises(QueryError, match="There is no"):
            bound(parse(sql), alone)


@pytest.mark.parametrize(("one", "two"), [("Visits", "VISITS"), ("straße", "STRAßE")])
def test_names_that_are_one_cannot_both_be_declared(one: str, two: str) -> None:
    with pytest.raises(CatalogError, match=f"{one} and {two} are one name in SQL; rename one"):
        catalog_of([one, two], ["x"])
    with pytest.raises(CatalogError, match=f"{one} and {two} are one name in SQL; rename one"):
        catalog_of(["t"], [one, two])


def test_a_partition_is_another_column_than_the_unit() -> None:
    unit = {"column": "straße", "per": "STRASSE"}
    columns = {"straße": {"type": "integer"}, "STRASSE": {"type": "integer"}}
    spec = {
        "sources": {"s": {"frame": "s"}},
        "tables": {"t": {"unit": unit, "columns": columns}},
        "budget": {"epsilon": 1.0},
    }
    assert check(spec).tables["t"].unit is not None
    spec["tables"] = {"t": {"unit": {"column": "id", "per": "ID"}, "columns": {"id": {"type": "integer"}}}}
    with pytest.raises(CatalogError, match="the partition must be another column than the unit"):
        check(spec)


@pytest.mark.parametrize(
    "clause",
    [
        "WıTH DIFFERENTIAL_PRIVACY",
        "WITH DıFFERENTIAL_PRIVACY",
        "WITH DIFFERENTIAL_PRIVACY OPTıONS(epsilon=1)",
    ],
)
def test_keywords_are_ascii_too(clause: str) -> None:
    with pytest.raises(QueryError):
        parse(f"SELECT {clause} COUNT(*) FROM t")
