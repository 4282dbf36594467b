"""The list of functions: each listed one has a total form, others are refused by name."""

from __future__ import annotations

import pytest
from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query.functions import FUNCTIONS, by_name
from tests.query.one_table import computed, corner_rows, typed


def test_functions_that_the_parser_has_no_node_for_are_found_by_name() -> None:
    row = corner_rows("d")[2:3]
    assert (
        computed(typed("DATE_PART('month', d)").sql, row)
        == computed(typed("datepart('month', d)").sql, row)
        == [2]
    )
    with pytest.raises(QueryError, match="NOSUCH is not among the functions that are safe over private rows"):
        by_name(exp.Anonymous(this="nosuch"), [])


def test_every_listed_function_is_a_function_of_the_parser() -> None:
    assert all(issubclass(node, exp.Expr) for node in FUNCTIONS)
    assert {exp.Lower, exp.Abs, exp.Least, exp.Extract} <= FUNCTIONS.keys()
    assert exp.Sum not in FUNCTIONS and exp.Rand not in FUNCTIONS
