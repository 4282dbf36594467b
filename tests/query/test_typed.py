"""Facts of columns, and values as SQL: what the owner declares is what is known, to the bit."""

from __future__ import annotations

import datetime as dt
import math

import duckdb
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sqlglot import exp

from incrowd.catalog import catalog_for
from incrowd.catalog.loading import check
from incrowd.errors import QueryError
from incrowd.query.typed import (
    ENUMERABLE,
    LARGE,
    Field,
    Typed,
    double,
    enumerated,
    field_of,
    guarded,
    literal,
    lookup_in,
    said,
)
from tests.query.one_table import LOOKUP, computed, corner_rows, tree_of, typed

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=9),
    st.dates(),
    st.datetimes(),
)


@given(VALUES)
@example(math.inf)
@example("'; --")
def test_a_value_as_sql_is_the_value(value: object) -> None:
    ((result,),) = duckdb.execute(f"SELECT {literal(value).sql('duckdb')}").fetchall()
    assert result == value and type(result) is type(value)


@given(st.floats(allow_nan=False))
def test_a_float_as_sql_is_the_float_to_the_bit(value: float) -> None:
    ((result,),) = duckdb.execute(f"SELECT {double(value).sql('duckdb')}").fetchall()
    assert math.copysign(1, result) == math.copysign(1, value) and result == value


def test_a_guard_lets_through_what_passes_and_nulls_the_rest() -> None:
    assert computed(guarded(tree_of("x > 3"), tree_of("x")), corner_rows("x")) == [None, 20, None, None, None]


@given(st.integers(-(10**6), 10**6), st.integers(0, 2 * ENUMERABLE))
@example(0, ENUMERABLE - 1)
@example(0, ENUMERABLE)
def test_whole_numbers_and_days_between_narrow_bounds_are_counted_through(low: int, span: int) -> None:
    numbers = enumerated(Field("integer", low, low + span, limits=(low, low + span)))
    assert numbers == (tuple(range(low, low + span + 1)) if span < ENUMERABLE else None)
    first = dt.date(1990, 1, 1)
    days = enumerated(Field("date", limits=(first, first + dt.timedelta(span))))
    assert (days is None) == (span >= ENUMERABLE)
    assert days is None or (days[0], days[-1], len(days)) == (first, first + dt.timedelta(span), span + 1)


def test_a_listed_domain_comes_first_and_floats_are_never_counted() -> None:
    assert enumerated(Field("integer", values=(3, 1), limits=(1, 3))) == (3, 1)
    assert enumerated(Field("integer", domain="c.x", limits=(1, 3))) is None
    assert enumerated(Field("float", limits=(1, 3))) is None
    assert enumerated(Field("integer")) is None


def test_facts_are_those_that_the_owner_declares() -> None:
    columns = {
        "a": {"type": "decimal", "bounds": ["-1.5", 3], "nullable": False},
        "b": {"type": "integer", "domain": [1, 2], "contribution": 4},
        "c": {"type": "text", "domain": {"from": "p.c"}},
        "e": {"type": "decimal", "domain": ["0.1", "0.25"]},
        "d": {"type": "date", "bounds": ["2020-01-01", "2020-01-05"]},
    }
    tables = {
        "t": {"unit": "row", "columns": columns},
        "p": {"private": False, "columns": {"c": {"type": "text"}}},
    }
    catalog = check({"sources": {"s": {"frame": "s"}}, "tables": tables, "budget": {"epsilon": 1.0}})
    facts = {name: field_of("t", name, column) for name, column in catalog.tables["t"].columns.items()}
    assert (facts["a"].kind, facts["a"].low, facts["a"].high, facts["a"].nullable) == (
        "float",
        -1.5,
        3.0,
        False,
    )
    assert (facts["b"].values, facts["b"].contribution, facts["b"].nullable) == ((1, 2), 4.0, True)
    assert (facts["c"].domain, facts["c"].values, facts["c"].name) == ("p.c", None, "t.c")
    assert facts["e"].values == (0.1, 0.25) and all(type(value) is float for value in facts["e"].values or ())
    assert (facts["d"].low, facts["d"].high) == (None, None)
    assert facts["d"].limits == (dt.date(2020, 1, 1), dt.date(2020, 1, 5))
    plain = catalog_for({"t": {"x": "integer"}}).tables["t"].columns["x"]
    assert (field_of("t", "x", plain).low, field_of("t", "x", plain).contribution) == (None, None)


def test_a_column_resolves_to_its_facts_or_belongs_elsewhere() -> None:
    facts = LOOKUP(exp.column("x", table="t"))
    assert (facts.kind, facts.low, facts.high, facts.integral, facts.size) == ("integer", -5, 20, True, 64)
    assert (
        LOOKUP(exp.column("f", table="t")).size == LARGE and not LOOKUP(exp.column("f", table="t")).integral
    )
    scope = {"q": {"z": Field("integer", floating=True), "e": Field("float", size=70), "v": Field("null")}}
    assert not lookup_in(scope)(exp.column("z", table="q")).integral
    assert lookup_in(scope)(exp.column("e", table="q")).size == 70
    assert isinstance(lookup_in(scope)(exp.column("v", table="q")).sql, exp.Null)
    for column in (exp.column("x", table="other"), exp.column("nosuch", table="t")):
        with pytest.raises(
            QueryError, match="belongs to another SELECT; a sub-query cannot look at the rows around it"
        ):
            LOOKUP(column)


def test_a_constant_is_one_number_that_is_always_there() -> None:
    assert typed("7").constant == 7.0 and typed("2.5").constant == 2.5
    assert [typed(sql).constant for sql in ("'a'", "x", "k", "TRUE", "NULL")] == [None] * 5
    assert Typed(exp.null(), "integer", values=(1,), nullable=True).constant is None
    assert typed("x").bounded and not typed("n").bounded
    assert not typed("LENGTH(s)").bounded and not typed("LEAST(n, 3)").bounded


def test_an_expression_is_said_without_our_aliases_and_in_few_words() -> None:
    assert said(tree_of('"x" + "my col"')) == 'x + "my col"'
    long = said(tree_of(" + ".join(["x"] * 60)))
    assert len(long) == 80 and long.endswith("...")
    exact = "x" * 80
    assert said(exp.column(exact)) == exact
