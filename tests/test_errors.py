"""A message is one line of few words, whatever names it holds."""

from __future__ import annotations

import pytest

from incrowd.errors import BudgetExceeded, IncrowdError, QueryError


@pytest.mark.parametrize("kind", [IncrowdError, QueryError, BudgetExceeded])
def test_a_message_is_one_line_and_no_word_of_it_is_endless(kind: type[IncrowdError]) -> None:
    told = str(kind("There is no column a\n  b\u2028c " + "x" * 100_000 + "."))
    assert told.startswith("There is no column a b c xxx") and told.endswith("xx.")
    assert "\n" not in told and len(told) < 400


def test_an_ordinary_message_stays_as_it_is() -> None:
    said = "There is no file /home/" + "a/" * 150 + "b; name  another."
    assert str(IncrowdError(said)) == said and str(IncrowdError()) == ""
