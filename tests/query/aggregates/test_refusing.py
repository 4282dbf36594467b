"""What is not released is refused for the right reason, and what the sentence says instead can be asked."""

from __future__ import annotations

import pytest

from incrowd.errors import QueryError
from incrowd.query.rules.name_aggregates import NAMES
from tests.backends.houses import plan_of

# The aggregate; why not; what the sentence says to write; a question that does.
REFUSALS = [
    ("BOOL_AND(x > 3)", "one person alone may decide it", "AVG(CASE WHEN x > 3 THEN 1 ELSE 0 END)", ""),
    ("EVERY(b)", "one person alone", "AVG(CASE WHEN b THEN 1 ELSE 0 END)", ""),
    ("BOOL_OR(b)", "one person alone", "AVG(CASE WHEN b THEN 1 ELSE 0 END)", ""),
    ("ANY_VALUE(city)", "the value of a row", "COUNT(*) with GROUP BY city", "COUNT(*) BY city"),
    ("ANY_VALUE(city)", "the value of a row", "MODE(city)", ""),
    ("FIRST(city ORDER BY x)", "the value of a row", "COUNT(*) with GROUP BY city", "COUNT(*) BY city"),
    ("LAST(city)", "the value of a row", "COUNT(*) with GROUP BY city", "COUNT(*) BY city"),
    ("ARBITRARY(city)", "the value of a row", "COUNT(*) with GROUP BY city", "COUNT(*) BY city"),
    ("STRING_AGG(city, ',')", "publish values of rows", "COUNT(*) and GROUP BY city", "COUNT(*) BY city"),
    ("ARRAY_AGG(DISTINCT city ORDER BY city)", "publish values", "GROUP BY city", "COUNT(*) BY city"),
    ("LIST(city)", "publish values", "GROUP BY city", "COUNT(*) BY city"),
    ("JSON_GROUP_ARRAY(city)", "publish values", "GROUP BY city", "COUNT(*) BY city"),
    ("MAP_AGG(city, x)", "publish values", "GROUP BY city", "COUNT(*) BY city"),
    ("BIT_OR(cat)", "one person alone", "COUNT_IF(cat // 4 % 2 = 1)", ""),
    ("BIT_XOR(cat)", "one person alone", "COUNT_IF(cat // 4 % 2 = 1)", ""),
    ("PRODUCT(x)", "one person alone", "SUM(LN(GREATEST(x, 1)))", ""),
    ("PRODUCT(x)", "one person alone", "GEOMEAN(GREATEST(x, 1))", ""),
    ("MAD(x)", "no noisy sums", "(QUANTILE_CONT(x, 0.75) - QUANTILE_CONT(x, 0.25)) / 2", ""),
    ("ENTROPY(city)", "follows from counts", "COUNT(*) AS n with GROUP BY city", "COUNT(*) BY city"),
    ("ARG_MAX(city, x)", "one person alone", "MODE(city) with WHERE x > 1", "MODE(city)"),
    ("MAX(x, 3)", "values of several rows", "QUANTILE_CONT(x, 0.99)", ""),
    ("RANK(1) WITHIN GROUP (ORDER BY x)", "one person alone", "COUNT_IF(x < 1) / COUNT(*)", ""),
    ("SUM(DISTINCT x)", "whether a value is there", "SUM(x)", ""),
    ("AVG(DISTINCT x)", "whether a value is there", "AVG(x)", ""),
    ("STDDEV(DISTINCT x)", "whether a value is there", "STDDEV(x)", ""),
]


@pytest.mark.parametrize(("aggregate", "why", "remedy", "written"), REFUSALS)
def test_the_reason_is_right_and_the_remedy_works_when_typed(
    aggregate: str, why: str, remedy: str, written: str
) -> None:
    with pytest.raises(QueryError) as refusal:
        plan_of(f"SELECT {aggregate} AS z FROM visits", "user")
    said = str(refusal.value)
    assert why in said and remedy in said and said.endswith(".") and '"' not in said
    asked, _, key = (written or remedy).partition(" BY ")
    by = f" GROUP BY {key}" if key else ""
    assert plan_of(f"SELECT {asked} AS z FROM visits{by}", "user").leaves


@pytest.mark.parametrize("name", sorted(NAMES))
def test_no_aggregate_of_the_list_fails_in_the_dark(name: str) -> None:
    """Each of one column is answered, or refused in a sentence about itself."""
    try:
        plan_of(f"SELECT {name}(x) AS z FROM visits", "user")
    except QueryError as error:
        assert name in str(error) and "understood" not in str(error)


def test_what_is_not_on_the_list_is_refused_with_what_there_is() -> None:
    with pytest.raises(QueryError, match="is not an aggregate that can be released; use COUNT, SUM"):
        plan_of("SELECT APPROX_TOP_SUM(x, f, 3) AS z FROM visits", "user")
