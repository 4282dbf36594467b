"""One spelling for rows that mean the same, and never for rows that do not."""

from __future__ import annotations

import itertools

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp, parse_one

from incrowd.query.spelling import names_of, renamed, spelled

ATOMS = ["v.x > 3", "v.y = 2", "v.x <> v.y", "v.x IN (1, 2)", "v.z = 'a, b'", "v.z = 'AND(a, b)'"]
CONDITIONS = st.recursive(
    st.sampled_from(ATOMS),
    lambda inner: st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(
        lambda parts: f"({parts[0]}) {parts[1]} ({parts[2]})"
    ),
    max_leaves=6,
)


def one_spelling(sql: str) -> str:
    rows = parse_one(sql, read="duckdb")
    assert isinstance(rows, exp.Query)
    return spelled(rows, names_of(rows))


def where(condition: str) -> str:
    return one_spelling(f"SELECT v.x FROM t AS v WHERE {condition}")


def meaning(condition: str) -> tuple[bool | None, ...]:
    """What a condition says about rows that make each of its parts true, false and NULL."""
    cells = itertools.product((None, 1, 4), (None, 2, 4), ("'a, b'", "'AND(a, b)'", "NULL"))
    rows = ", ".join(f"({x or 'NULL'}, {y or 'NULL'}, {z})" for x, y, z in cells)
    sql = f"SELECT {condition} FROM (VALUES {rows}) AS v(x, y, z)"
    return tuple(row[0] for row in duckdb.execute(sql).fetchall())


@settings(max_examples=60, deadline=None)
@given(CONDITIONS, CONDITIONS)
def test_what_is_spelled_alike_means_the_same(one: str, two: str) -> None:
    if where(one) == where(two):
        assert meaning(one) == meaning(two)


@settings(max_examples=60, deadline=None)
@given(CONDITIONS, CONDITIONS, st.sampled_from(["AND", "OR", "=", "<>"]))
def test_order_and_brackets_make_no_difference(one: str, two: str, between: str) -> None:
    assert where(f"({one}) {between} ({two})") == where(f"(({two})) {between} ({one})")


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("v.x = 1 AND (v.y = 2 OR v.x = 3)", "(v.x = 1 AND v.y = 2) OR v.x = 3"),
        ("v.x - v.y = 1", "v.y - v.x = 1"),
        ("v.x < v.y", "v.y < v.x"),
        ("NOT (v.x = 1 AND v.y = 2)", "NOT v.x = 1 AND v.y = 2"),
        ("v.z = 'a' AND v.z = 'b, c'", "v.z = 'a, b' AND v.z = 'c'"),
    ],
)
def test_other_meanings_are_spelled_otherwise(one: str, two: str) -> None:
    assert where(one) != where(two)


def test_names_of_tables_are_counted_through() -> None:
    spellings = {
        one_spelling(f"SELECT {one}.x FROM t AS {one} JOIN u AS {two} ON {two}.y = {one}.x")
        for one, two in (("a", "b"), ("b", "a"), ('"\x010"', "c"), ("c", '"\x010"'))
    }
    assert len(spellings) == 1
    other = one_spelling("SELECT b.x FROM t AS a JOIN u AS b ON b.y = a.x")
    assert other not in spellings


def test_only_names_before_a_dot_are_renamed() -> None:
    text = '"v"."v" || \'"v".x\' || "a""v"."b"'
    assert renamed(text, {"v": "w", 'a"v': "u"}) == '"w"."v" || \'"v".x\' || "u"."b"'
