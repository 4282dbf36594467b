"""What is declared can be asked for nothing: no row is read, nothing paid; unknown analysts get nothing."""

from __future__ import annotations

import pyarrow as pa
import pytest

from incrowd import Curator, NotPermitted

PEOPLE = pa.table({"id": [1, 2, 3], "age": [20, 30, 40]})


@pytest.mark.parametrize(
    "sql", ["SHOW TABLES", "DESCRIBE people", "SUMMARIZE people", "SELECT * FROM people LIMIT 0"]
)
def test_a_description_is_free_and_shows_itself(sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    curator = Curator.from_tables(
        people=PEOPLE, unit="id", bounds={"people.age": (18, 90)}, budget=(1.0, 0.0)
    )
    monkeypatch.setattr(Curator, "rows_of", None)
    before = curator.budget()
    price, answer = curator.price(sql), curator.ask(sql)
    assert price.free and price.epsilon == 0 and answer.paid == (0.0, 0.0) and curator.budget() == before
    assert answer.cost.epsilon() == 0 and "no row was read" in answer.notes[0]
    assert answer.to_arrow(True).equals(answer.to_arrow()) and "(free)" in repr(answer)
    assert str(price) and answer._repr_html_() and answer.to_csv() is not None and answer.numbers() == ()


def test_a_description_has_the_declared_bounds_and_types() -> None:
    curator = Curator.from_tables(
        people=PEOPLE, unit="id", bounds={"people.age": (18, 90)}, budget=(1.0, 0.0)
    )
    (age,) = [row for row in curator.ask("SUMMARIZE people") if row["column_name"] == "age"]
    assert (age["column_type"], age["min"], age["max"]) == ("BIGINT", "18", "90")
    assert curator.ask("SELECT age FROM people LIMIT 0").to_arrow().schema == pa.schema([("age", pa.int64())])


def test_an_unknown_analyst_is_told_nothing() -> None:
    curator = Curator.from_tables(
        people=PEOPLE, unit="id", budget=(1.0, 0.0), analysts={"ana": {"epsilon": 0.5}}
    )
    with pytest.raises(NotPermitted):
        curator.ask("SHOW TABLES", analyst="eve")
