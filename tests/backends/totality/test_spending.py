"""What is refused costs nothing."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from sqlglot import exp

from incrowd import Curator
from incrowd.backends import measures
from incrowd.errors import BackendError


@pytest.mark.parametrize("contribution", [None, 1])
def test_a_statement_that_may_raise_is_refused_before_anything_is_spent(
    monkeypatch: pytest.MonkeyPatch, contribution: int | None
) -> None:
    steps = measures.steps_of

    def unguarded(measure: Any, exponent: int) -> exp.Expr:
        tree = steps(measure, exponent)
        for branch in tree.find_all(exp.If):
            branch.set("this", exp.Or(this=exp.true(), expression=branch.this))
        return tree

    rows = pa.table({"id": [1, 2], "x": [1.0, float("nan")]})
    with Curator.from_tables(t=rows, unit="id", bounds={"x": [0, 9]}, budget=(5.0, 0.0)) as curator:
        before = curator.budget()
        monkeypatch.setattr("incrowd.backends.statement.steps_of", unguarded)
        with pytest.raises(BackendError, match="not known to be safe"):
            curator.ask("SELECT SUM(x) AS s FROM t", epsilon=1.0, contribution=contribution)
        assert curator.budget() == before
        monkeypatch.undo()
        assert curator.ask("SELECT SUM(x) AS s FROM t", epsilon=1.0, contribution=contribution) is not None
