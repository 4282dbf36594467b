"""Every type that SQL over released numbers can make is shown in every form, or as the engine's text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from incrowd import Curator
from incrowd.curator.answer import Answer
from incrowd.curator.held import contains, for_polars, rows_of

MADE = {
    "interval": "INTERVAL 1 MONTH * n",
    "days": "to_days(n)",
    "date": "DATE '2020-01-01' + CAST(n AS INT)",
    "infinite date": "CAST('infinity' AS DATE)",
    "far date": "DATE '290000-01-01'",
    "early date": "DATE '0044-01-01 (BC)'",
    "moment": "TIMESTAMP '2020-01-01'",
    "infinite moment": "CAST('-infinity' AS TIMESTAMP)",
    "far moment": "TIMESTAMP '200000-01-01'",
    "seconds": "CAST('2020-01-01' AS TIMESTAMP_S)",
    "nanoseconds": "CAST('2020-01-01' AS TIMESTAMP_NS)",
    "moment with zone": "TIMESTAMPTZ '2020-01-01'",
    "time": "TIME '10:00'",
    "time with zone": "CAST('10:00+01' AS TIMETZ)",
    "time in nanoseconds": "CAST('10:00:00.123456789' AS TIME_NS)",
    "truth": "n > 1",
    "small": "CAST(1 AS TINYINT)",
    "huge": "CAST(n AS HUGEINT) * 1000000000000000000000",
    "decimal": "CAST(1.5 AS DECIMAL(38, 10))",
    "float": "CAST(s AS FLOAT)",
    "infinite": "CAST('inf' AS DOUBLE)",
    "text": "CAST(n AS TEXT)",
    "bytes": "CAST('ab' AS BLOB)",
    "bits": "CAST('101' AS BIT)",
    "uuid": "uuid()",
    "enum": "CAST('a' AS ENUM('a', 'b'))",
    "list": "[n, n]",
    "empty list": "[]",
    "list of nothing": "[NULL]",
    "list of lists": "[[n]]",
    "array": "array_value(1, 2)",
    "struct": "{'a': n}",
    "map": "map([1], [n])",
    "map of structs": "map([{'a': 1}], [n])",
    "union": "union_value(num := n)",
    "json": "to_json(n)",
    "null": "NULL",
    "variant": "CAST(n AS VARIANT)",
    "list of intervals": "[INTERVAL 1 DAY]",
    "struct of intervals": "{'a': INTERVAL 1 DAY}",
    "list of far dates": "[DATE '290000-01-01']",
    "struct of enums": "{'e': CAST('a' AS ENUM('a', 'b'))}",
}
FORMS: dict[str, Callable[[Answer], Any]] = {
    "arrow": lambda answer: answer.to_arrow(),
    "pandas": lambda answer: repr(answer.to_pandas()),
    "pandas with ends": lambda answer: repr(answer.to_pandas(0.9)),
    "polars": lambda answer: repr(answer.to_polars()),
    "polars with ends": lambda answer: repr(answer.to_polars(True)),
    "csv": lambda answer: answer.to_csv(),
    "rows": list,
    "text": str,
    "repr": repr,
    "html": lambda answer: answer._repr_html_(),
    "length": len,
    "stream": pa.table,
    "plot": lambda answer: answer.plot(),
}


@pytest.fixture(scope="module")
def curator() -> Curator:
    people = pa.table({"id": range(40), "x": [float(i % 7) for i in range(40)]})
    return Curator.from_tables(people=people, unit="id", bounds={"x": (0, 10)}, budget=(1e4, 0.0))


@pytest.mark.parametrize("name", list(MADE))
def test_every_type_is_shown_in_every_form(curator: Curator, name: str) -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("polars")
    pytest.importorskip("altair")
    numbers = "SELECT COUNT(*) AS n, SUM(x) AS s FROM people"
    answer = curator.ask(f"SELECT n, {MADE[name]} AS v FROM ({numbers}) AS q", epsilon=50.0, contribution=1)
    for form in FORMS.values():
        assert form(answer) is not None
    assert len(answer) == 1 and answer.notes == ()


def test_what_is_not_held_is_the_engines_text(curator: Curator) -> None:
    numbers = "SELECT COUNT(*) AS n FROM people"
    made = "INTERVAL 1 MONTH * 2 AS i, CAST('infinity' AS DATE) AS d, [DATE '290000-01-01'] AS l"
    answer = curator.ask(f"SELECT n > 0 AS some, {made} FROM ({numbers}) AS q", epsilon=50.0, contribution=1)
    assert answer.to_polars().row(0) == (True, "2 months", "infinity", "[290000-01-01]")
    assert answer.to_pandas()["d"].tolist() == ["infinity"]
    assert [row["d"] for row in answer] == ["infinity"]
    assert str(answer.to_csv()).splitlines()[1].endswith(",infinity,[290000-01-01]")


def test_what_is_held_keeps_its_type() -> None:
    table = pa.table({"x": [1], "t": ["a"], "l": [[1.5]], "when": pa.array([0], pa.timestamp("us"))})
    assert for_polars(table).schema == table.schema
    assert rows_of(table)[0][:3] == (1, "a", [1.5])
    assert contains(pa.list_(pa.struct({"a": pa.float64()})), pa.types.is_floating)
