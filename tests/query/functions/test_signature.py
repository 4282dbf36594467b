"""What functions check of their arguments: one, a number, a text, a constant whole number."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query.functions.signature import LONGEST_TEXT, as_number, as_text, name_of, one, whole_constant
from tests.query.one_table import tree_of, typed

CALL = exp.Left(this=exp.column("s"), expression=exp.Literal.number(1))


def test_a_function_is_named_as_it_is_written() -> None:
    assert name_of(CALL) == "LEFT"
    assert name_of(exp.Anonymous(this="date_part")) == "DATE_PART"
    assert name_of(exp.DPipe(this=exp.column("a"), expression=exp.column("b"))) == "DPIPE"


@pytest.mark.parametrize("count", [0, 2, 3])
def test_one_argument_is_one(count: int) -> None:
    assert one(CALL, [typed("s")]) == typed("s")
    with pytest.raises(QueryError, match=r"LEFT takes one argument here\."):
        one(CALL, [typed("s")] * count)


@given(st.integers(-(2**40), 2**40) | st.floats(allow_nan=False, allow_infinity=False))
def test_a_place_is_a_whole_number_of_modest_size(value: float) -> None:
    given_value = typed("1").but(values=(value,))
    if float(value).is_integer() and abs(value) <= LONGEST_TEXT:
        assert whole_constant(CALL, given_value, "The place") == value
    else:
        with pytest.raises(QueryError, match=r"The place of LEFT must be a constant whole number\."):
            whole_constant(CALL, given_value, "The place")


@pytest.mark.parametrize("edge", [LONGEST_TEXT, -LONGEST_TEXT])
def test_the_largest_place_is_allowed(edge: int) -> None:
    assert whole_constant(CALL, typed(str(edge)), "The place") == edge
    with pytest.raises(QueryError):
        whole_constant(CALL, typed(str(edge + (1 if edge > 0 else -1))), "The place")


def test_text_is_text_and_null_may_be() -> None:
    assert as_text(CALL, typed("s")).kind == "text"
    null = as_text(CALL, typed("NULL"))
    assert (null.kind, null.sql.sql("duckdb")) == ("text", "CAST(NULL AS TEXT)")
    for sql in ("x", "d", "b"):
        with pytest.raises(QueryError, match="LEFT needs text, but"):
            as_text(CALL, typed(sql))
    assert as_number(tree_of("ABS(x)"), typed("x")).sql.sql("duckdb") == 'CAST("t".x AS DOUBLE)'
