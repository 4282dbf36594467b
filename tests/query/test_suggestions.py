"""Unknown functions are told with what was meant, if anything is near."""

from __future__ import annotations

import pytest

from incrowd.errors import QueryError
from incrowd.query.suggestions import AGGREGATES, ELSEWHERE, meant
from tests.backends.houses import plan_of


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT AVERAGE(x) FROM visits", "There is no function AVERAGE here; did you mean AVG?"),
        ("SELECT SUMM(x) FROM visits", "did you mean SUM?"),
        ("SELECT varp(x) FROM visits", "did you mean VAR_POP?"),
        ("SELECT COUNTD(city) FROM visits", r"did you mean COUNT\(DISTINCT x\)?"),
        ("SELECT SUM(ROUNDD(x)) FROM visits", "There is no function ROUNDD here; did you mean ROUND?"),
        ("SELECT SUM(FOO(x)) FROM visits", "FOO is not among the functions that are safe"),
        ("SELECT FOO(x) FROM visits", "would show the rows of people"),
    ],
)
def test_a_refusal_says_what_was_meant(sql: str, said: str) -> None:
    with pytest.raises(QueryError, match=said):
        plan_of(sql, "user")


def test_only_what_is_near_was_meant() -> None:
    assert meant("NOSUCH", AGGREGATES) == "" and meant("avg", ()) == "AVG"
    assert all(name not in AGGREGATES for name in ELSEWHERE)
