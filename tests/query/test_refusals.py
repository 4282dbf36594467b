"""Fail closed: what is not understood, or would break ownership, is refused before it runs, in the user's own
words.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from incrowd.errors import QueryError
from tests.backends.houses import plan_of
from tests.query.test_rules import FIXTURES


def refusals() -> Iterator[tuple[str, str, str]]:
    lines = (FIXTURES / "refusals.sql").read_text(encoding="utf-8").splitlines()
    for question, verdict in zip(lines[1::2], lines[2::2], strict=True):
        mode, _, sql = question.partition(" ")
        yield mode.strip("{}"), sql, verdict.removeprefix("!! ")


@pytest.mark.parametrize(("mode", "sql", "expected"), list(refusals()))
def test_it_is_refused_with_a_sentence_that_says_why(mode: str, sql: str, expected: str) -> None:
    with pytest.raises(QueryError) as refusal:
        plan_of(sql, mode)
    said = str(refusal.value)
    assert expected in said
    assert said.endswith(".") and "\n" not in said
    assert '"' not in said and "__" not in said and "CAST(" not in said, "no internals"
