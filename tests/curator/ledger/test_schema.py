"""The ledger's tables: what the database itself refuses, and statements for both databases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Connection, create_engine, create_mock_engine, delete, insert, make_url, select, update
from sqlalchemy.exc import IntegrityError

from incrowd.curator.ledger import schema

ENTRY = dict.fromkeys(("at", "kind", "analyst", "question", "data_version", "body", "previous", "hash"), "")
ANSWER = {"analyst": "ana", "question": "q", "data_version": "v", "payload": b"noisy"}
HEAD = {"version": schema.VERSION, "ledger": "", "seq": 0, "hash": "", "day": "", "caps": ""}


@pytest.fixture
def connection() -> Iterator[Connection]:
    engine = create_engine("sqlite://")
    schema.metadata.create_all(engine)
    with engine.connect() as opened:
        yield opened
    engine.dispose()


def test_the_tables_are_these() -> None:
    assert set(schema.metadata.tables) == {
        "incrowd_head",
        "incrowd_entries",
        "incrowd_sums",
        "incrowd_answers",
        "incrowd_claims",
    }


@pytest.mark.parametrize(
    ("table", "row"),
    [(schema.entries, {"seq": 1, **ENTRY}), (schema.answers, {"seq": 1, "reservation": 1, **ANSWER})],
    ids=["entries", "answers"],
)
def test_a_written_row_is_neither_changed_nor_deleted(connection: Connection, table: Any, row: Any) -> None:
    connection.execute(insert(table).values(row))
    for statement in (update(table).values(analyst="eve"), delete(table)):
        with pytest.raises(IntegrityError, match=f"{table.name} is append-only"):
            connection.execute(statement)
    assert connection.execute(select(table)).mappings().one() == row


def test_sums_and_head_are_changed(connection: Connection) -> None:
    connection.execute(insert(schema.head).values(id=1, **HEAD))
    connection.execute(update(schema.head).values(seq=2**53 + 1))
    assert connection.execute(select(schema.head.c.seq)).scalar() == 2**53 + 1
    connection.execute(insert(schema.sums).values(cap="dataset", day="", spent="1"))
    connection.execute(update(schema.sums).values(spent=str(2**200)))
    assert connection.execute(select(schema.sums.c.spent)).scalar() == str(2**200)


def test_there_is_one_head_and_one_answer_for_a_reservation(connection: Connection) -> None:
    with pytest.raises(IntegrityError):
        connection.execute(insert(schema.head).values(id=2, **HEAD))
    connection.execute(insert(schema.answers).values(seq=5, reservation=4, **ANSWER))
    connection.execute(insert(schema.answers).values(seq=7, reservation=6, **ANSWER))
    with pytest.raises(IntegrityError):
        connection.execute(insert(schema.answers).values(seq=8, reservation=4, **ANSWER))


def statements_for(url: str) -> str:
    dialect = make_url(url).get_dialect()()
    statements: list[str] = []
    engine = create_mock_engine(
        url, lambda statement, *_: statements.append(str(statement.compile(dialect=dialect)))
    )
    schema.metadata.create_all(engine, checkfirst=False)
    return "\n".join(statements)


def test_each_database_gets_triggers_of_its_own() -> None:
    sqlite, postgres = statements_for("sqlite://"), statements_for("postgresql+psycopg://")
    for name in ("incrowd_entries", "incrowd_answers"):
        for action in ("UPDATE", "DELETE"):
            assert f"CREATE TRIGGER {name}_no_{action.lower()} BEFORE {action} ON {name}" in sqlite
        assert f"BEFORE UPDATE OR DELETE OR TRUNCATE ON {name} FOR EACH STATEMENT" in postgres
    assert "plpgsql" not in sqlite and "RAISE(ABORT" not in postgres
    assert "seq BIGINT" in postgres and "seq INTEGER" in sqlite
