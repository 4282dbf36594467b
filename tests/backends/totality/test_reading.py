"""What is proven is what is run: an engine's parser reads the text of a tree as the tree that was proven."""

from __future__ import annotations

import os
from typing import Any

import pytest
from sqlglot import exp

from incrowd.backends.totality.reading import as_read
from incrowd.backends.totality.walk import Keys
from incrowd.backends.trees import text_of
from tests.backends.parsing import tree
from tests.backends.totality.corpus import final, fixed, generated, rows

ENGINES = ("duckdb", "postgres", "spark")
STATEMENTS = int(os.environ.get("INCROWD_STATEMENTS", "12"))
"""How many questions of each list are read again on each engine; by hand: INCROWD_STATEMENTS=1000."""
_SAME: dict[Any, Any] = {
    exp.DType.TIMESTAMPNTZ: exp.DType.TIMESTAMP,
    exp.DType.VARCHAR: exp.DType.TEXT,
    "DOW": "DAYOFWEEK",
}
"""Two spellings of one thing."""
_HINTS = {"quoted", "nested", "typed", "big_int", "ignore_nulls", "kind"}
"""What the parser notes, and neither the proof nor the text depends on."""


def plain(node: Any) -> Any:
    """A tree without what has no meaning to the proof: parentheses, defaults, hints of the parser."""
    if isinstance(node, exp.Paren):
        return plain(node.this)
    if isinstance(node, list):
        return tuple(plain(each) for each in node)
    if not isinstance(node, exp.Expr):
        return _SAME.get(node, node)
    parts = {name: plain(part) for name, part in node.args.items() if part and name not in _HINTS}
    # Spark's parser reads CAST as TRY_CAST without `safe`; and so does the proof.
    cast = isinstance(node, exp.TryCast) and not node.args.get("safe")
    return "cast" if cast else node.key, tuple(sorted(parts.items(), key=lambda each: each[0]))


def check(engine: str, mode: str, statement: exp.Query) -> None:
    proven = final(engine, mode, statement)
    read = tree(text_of(proven, engine), engine)
    assert plain(read) == plain(as_read(proven, engine)), text_of(proven, engine)


@pytest.mark.parametrize("engine", ENGINES)
def test_every_expression_is_run_as_it_is_proven(engine: str) -> None:
    for query in rows():
        check(engine, "user", query)


@pytest.mark.parametrize("engine", ENGINES)
def test_every_statement_is_run_as_it_is_proven(engine: str) -> None:
    for mode, statement in [*fixed(STATEMENTS), *generated(STATEMENTS)]:
        check(engine, mode, statement)


def test_a_tree_that_is_torn_apart_in_text_is_noticed() -> None:
    """Written without parentheses, (a + b) * c is read as another tree."""
    torn = exp.select(
        exp.Mul(this=exp.Add(this=exp.column("a"), expression=exp.column("b")), expression=exp.column("c"))
    )
    assert plain(tree(torn.sql("duckdb"))) != plain(torn)
    assert plain(tree(text_of(torn))) == plain(torn)
    keys = Keys()
    assert keys.of(tree(text_of(torn))) == keys.of(torn)
