"""What a price says about errors before anything is paid."""

from __future__ import annotations

import pyarrow as pa
import pytest

from incrowd import Curator
from incrowd.curator.caveats import Expected, caveats
from incrowd.curator.request import Request

KEPT, DENSE, ROWS, CAPS = "Other ranks", "A quantile's interval", "The error of averages", "How much one unit"


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT COUNT(*) AS n FROM t", []),
        ("SELECT AVG(x) AS a FROM t", [ROWS]),
        ("SELECT MEDIAN(x) AS a FROM t", [DENSE, KEPT]),
        ("SELECT MEDIAN(x) AS a, AVG(x) AS b, VAR_POP(x) AS c FROM t", [ROWS, DENSE]),
        ("SELECT COUNT(*) AS n FROM u", [CAPS]),
    ],
)
def test_each_sentence_is_said_once_and_where_it_is_true(sql: str, said: list[str]) -> None:
    table = pa.table({"x": [1.0, 2.0], "id": [1, 2]})
    name, unit = sql[-1], "row" if sql.endswith("t") else "id"
    with Curator.from_tables(tables={name: table}, unit=unit, bounds={"x": (0, 9)}, budget=1) as curator:
        notes = caveats(curator.prepare(Request(sql, 0.5)).plan)
    assert [note[: len(start)] for note, start in zip(notes, said, strict=True)] == said


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        (Expected(1.2345, 2_000), "± 1.23 in a group of 2,000 rows"),
        (Expected(12.4, ranks=True), "± 12 ranks"),
        (Expected(0.2, 1_234, ranks=True), "± 1 ranks of about 1,200 in a group"),
    ],
)
def test_widths_are_said_in_values_or_ranks(expected: Expected, said: str) -> None:
    assert str(expected) == said
