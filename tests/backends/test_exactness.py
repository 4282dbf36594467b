"""Noise switched off, no unit beyond its cap: the statement's integers are the answers of plain DuckDB."""

from __future__ import annotations

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.backends.exactness import check_exactness
from tests.backends.grammar import Asked, questions
from tests.backends.houses import plan_of, tables_from
from tests.backends.test_integrity import QUESTIONS, SETTINGS


@settings(SETTINGS, max_examples=QUESTIONS // 2)
@given(asked=questions(), seed=st.integers(0, 10_000))
def test_the_integers_are_the_plain_answer_where_no_unit_exceeds_its_cap(asked: Asked, seed: int) -> None:
    # The first has a small declared contribution; the second is a key that fixed-point sums round otherwise.
    assume("SUM(s.w)" not in asked.sql and "p.fs AS key" not in asked.sql)
    plan = plan_of(asked.sql, asked.mode, rows=1000, groups=1000)
    (leaf,) = plan.leaves
    # Where nobody declared bounds, a cap is chosen for what one row may be.
    assume(not leaf.uncapped)
    check_exactness(asked, leaf, tables_from(seed, wild=False))
