"""An aggregate whose operand has no bounds: what lacks them, and a remedy that works as it is typed."""

from __future__ import annotations

import re

import pytest

from incrowd.errors import QueryError
from tests.backends.houses import plan_of


@pytest.mark.parametrize(
    ("aggregate", "said"),
    [
        ("AVG(x / f)", "AVG needs bounds for x / f: x and f have bounds, but not their ratio, for f may be"),
        ("SUM(LN(f))", "SUM needs bounds for LN(f): f has bounds, but what is computed has none."),
        ("AVG(LENGTH(city))", "AVG needs bounds for LENGTH(city): city is no number with bounds."),
    ],
)
def test_what_lacks_bounds_is_named(aggregate: str, said: str) -> None:
    with pytest.raises(QueryError) as refusal:
        plan_of(f"SELECT {aggregate} AS z FROM visits", "user")
    assert said in str(refusal.value)


@pytest.mark.parametrize("aggregate", ["AVG(x / f)", "SUM(LN(f))", "AVG(LENGTH(city))", "MEDIAN(LN(x))"])
def test_every_remedy_is_answered_as_it_is_written(aggregate: str) -> None:
    with pytest.raises(QueryError) as refusal:
        plan_of(f"SELECT {aggregate} AS z FROM visits", "user")
    said = str(refusal.value)
    written = re.search(r"Write (.*\)), with what", said)
    assert written is not None
    remedies = [written[1], *re.findall(r"or (SUM\(.*\)) for the ratio", said)]
    assert len(remedies) == (2 if aggregate == "AVG(x / f)" else 1)
    for remedy in remedies:
        assert plan_of(f"SELECT {remedy} AS z FROM visits", "user").leaves


def test_a_product_of_bounded_columns_has_bounds() -> None:
    assert plan_of("SELECT SUM(x * f) AS z FROM visits", "user").leaves
