"""What is proven is what is run: an engine's parser reads the text of a tree as the tree that was proven."""

from __future__ import annotations

import os

import pytest
from sqlglot import exp

from incrowd.backends.totality.reading import as_read
from incrowd.backends.totality.walk import Keys
from incrowd.backends.trees import text_of
from tests.backends.parsing import plain, tree
from tests.backends.totality.corpus import final, fixed, generated, rows
from tests.sweep import sized

ENGINES = ("duckdb", "postgres", "spark")
STATEMENTS = int(os.environ.get("INCROWD_STATEMENTS", sized(3, 6)))
"""How many questions of each list are read again on each engine; by hand: INCROWD_STATEMENTS=1000."""


def check(engine: str, mode: str, statement: exp.Query) -> None:
    proven = final(engine, mode, statement)
    read = tree(text_of(proven, engine), engine)
    assert plain(read, engine) == plain(as_read(proven, engine), engine), text_of(proven, engine)


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
