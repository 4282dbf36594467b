"""The heart: on every aggregate and clause, one unit moves the exact numbers by no more than is stated, and
nothing raises.

The third property, that the numbers are right where no unit exceeds its cap, is in test_exactness.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.backends.grammar import Asked, questions
from tests.backends.houses import check_leaf, plan_of, tables_from
from tests.sweep import sized

QUESTIONS = int(os.environ.get("INCROWD_QUESTIONS", sized(60, 300)))
"""How many questions are generated; more by hand: INCROWD_QUESTIONS=5000 INCROWD_NEIGHBOURS=99."""
NEIGHBOURS = int(os.environ.get("INCROWD_NEIGHBOURS", "2"))
SETTINGS = settings(
    max_examples=QUESTIONS,
    phases=[Phase.explicit, Phase.generate],
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=True,
    database=None,
)


@SETTINGS
@given(
    asked=questions(),
    relation=st.sampled_from(["add-remove", "replace"]),
    seed=st.integers(0, 10_000),
    wild=st.sampled_from([True, True, False]),
    cells=st.sampled_from([0, 1, 2, 5, 21, 24, 45]),
    generous=st.sampled_from([0, 1, 5]),
    rows=st.sampled_from([None, None, 1, 3]),
    groups=st.sampled_from([None, None, 1, 2]),
    l2=st.booleans(),
)
def test_one_unit_moves_every_number_by_at_most_its_sensitivity(
    asked: Asked,
    relation: str,
    seed: int,
    wild: bool,
    cells: int,
    generous: int,
    rows: int | None,
    groups: int | None,
    l2: bool,
) -> None:
    plan = plan_of(asked.sql, asked.mode, relation, rows=rows, groups=groups)
    assert plan.leaves[0].distance == (2 if relation == "replace" else 1)
    for leaf in plan.leaves:
        if l2 and leaf.units and leaf.keys:
            leaf = leaf.in_l2()
        check_leaf(leaf, asked.mode, relation, tables_from(seed, wild), cells, generous, NEIGHBOURS)
