"""A tree becomes text in one place, and the text reads as the tree does."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp, parse_one

from incrowd.backends.totality.walk import Keys
from incrowd.backends.trees import (
    applied,
    column,
    constant,
    distinct_values,
    joined,
    own,
    quoted,
    table_rows,
    text_of,
)
from incrowd.query.typed import double

_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod)
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)


def numbers() -> st.SearchStrategy[exp.Expr]:
    """Any arithmetic without parentheses."""
    leaves = st.sampled_from([column("a"), column("b"), double(0.5), exp.Literal.number(3)]).map(
        lambda leaf: leaf.copy()
    )

    def above(below: st.SearchStrategy[exp.Expr]) -> st.SearchStrategy[exp.Expr]:
        two = st.tuples(st.sampled_from(_ARITHMETIC), below, below)
        return st.one_of(
            two.map(lambda parts: joined(*parts)),
            below.map(lambda operand: applied(exp.Neg, operand)),
            st.tuples(below, below, below).map(
                lambda operands: exp.Case(
                    ifs=[exp.If(this=joined(exp.LT, operands[0], operands[1]), true=own(operands[2]))]
                )
            ),
        )

    return st.recursive(leaves, above, max_leaves=12)


def conditions() -> st.SearchStrategy[exp.Expr]:
    """Any condition without parentheses."""
    compared = st.tuples(st.sampled_from(_COMPARISONS), numbers(), numbers()).map(
        lambda parts: joined(*parts)
    )
    between = st.tuples(numbers(), numbers(), numbers()).map(
        lambda operands: exp.Between(this=own(operands[0]), low=own(operands[1]), high=own(operands[2]))
    )

    def above(below: st.SearchStrategy[exp.Expr]) -> st.SearchStrategy[exp.Expr]:
        two = st.tuples(st.sampled_from([exp.And, exp.Or, exp.EQ]), below, below)
        return st.one_of(
            two.map(lambda parts: joined(*parts)),
            below.map(lambda condition: applied(exp.Not, condition)),
            below.map(lambda condition: joined(exp.Is, condition, exp.Null())),
        )

    return st.recursive(st.one_of(compared, between), above, max_leaves=8)


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
def test_text_reads_as_the_tree_however_operators_are_nested(dialect: str) -> None:
    @settings(max_examples=150, deadline=None, derandomize=True, database=None)
    @given(st.one_of(numbers(), conditions()))
    def reads(tree: exp.Expr) -> None:
        for division in tree.find_all(exp.Div):
            division.set("typed", dialect == "postgres")
        if dialect == "postgres" and tree.find(exp.IntDiv):
            return
        keys, read = Keys(), parse_one(text_of(tree, dialect), read=dialect)
        for division in read.find_all(exp.Div):
            division.set("safe", None)
        assert keys.of(read) == keys.of(tree), text_of(tree, dialect)

    reads()


def test_writing_a_tree_leaves_it_as_it_is() -> None:
    tree = joined(exp.Mul, joined(exp.Add, column("a"), column("b")), column("c"))
    before = repr(tree)
    assert text_of(tree) == text_of(tree) == "(a + b) * c"
    assert repr(tree) == before


def test_a_node_that_stands_somewhere_is_copied() -> None:
    node = column("a")
    first, second = applied(exp.Abs, node), applied(exp.Abs, node)
    assert first.this is node and second.this is not node and second.this == node


@pytest.mark.parametrize("name", ["a", "a b", 'a"b', "a`b", "select", "ä;--"])
def test_names_and_texts_of_any_letters_are_read_back(name: str) -> None:
    for dialect in ("duckdb", "postgres", "spark"):
        read = parse_one(f"SELECT {constant(name, dialect)} AS {quoted(name, dialect)}", read=dialect)
        assert (read.expressions[0].alias, read.expressions[0].this.name) == (name, name)
    (table,) = table_rows(name).find_all(exp.Table)
    assert table.name == name


def test_listing_a_domain_leaves_it_to_its_key() -> None:
    domain = exp.select("v").from_("t")
    assert text_of(distinct_values(domain)) == text_of(distinct_values(domain))
    assert domain.parent is None
