"""The ledger's tables, the same on every database.

Amounts are whole numbers of any size and therefore kept as decimal text; no database does arithmetic on them.
Entries and answers are append-only: the database itself refuses to change or delete them, against accidents;
against intent there is the chain.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import (
    DDL,
    BigInteger,
    CheckConstraint,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    event,
)

VERSION = 3
"""The stored format. A ledger written by a newer version is refused, never guessed at."""

metadata = MetaData()
_NUMBER = BigInteger().with_variant(Integer(), "sqlite")  # there an INTEGER key is the row itself

head = Table(
    "incrowd_head",
    metadata,
    Column("id", Integer, CheckConstraint("id = 1"), primary_key=True, autoincrement=False),
    Column("version", Integer, nullable=False),
    Column("ledger", Text, nullable=False),
    Column("seq", _NUMBER, nullable=False),
    Column("hash", Text, nullable=False),
    # The latest day seen, so that a clock set back does not open a spent day again.
    Column("day", Text, nullable=False),
    # The caps that the last budget entry states, as a hash.
    Column("caps", Text, nullable=False),
)

entries = Table(
    "incrowd_entries",
    metadata,
    Column("seq", _NUMBER, primary_key=True, autoincrement=False),
    Column("at", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("analyst", Text, nullable=False),
    Column("question", Text, nullable=False),
    Column("data_version", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("previous", Text, nullable=False),
    Column("hash", Text, nullable=False),
)

sums = Table(
    "incrowd_sums",
    metadata,
    Column("cap", Text, primary_key=True),
    Column("day", Text, nullable=False),
    Column("spent", Text, nullable=False),
)

answers = Table(
    "incrowd_answers",
    metadata,
    Column("seq", _NUMBER, primary_key=True, autoincrement=False),
    Column("reservation", _NUMBER, nullable=False, unique=True),
    Column("analyst", Text, nullable=False),
    Column("question", Text, nullable=False),
    Column("data_version", Text, nullable=False),
    Column("payload", LargeBinary, nullable=False),
    Index("incrowd_answers_by_question", "question", "data_version"),
)

claims = Table(
    "incrowd_claims",
    metadata,
    Column("reservation", _NUMBER, primary_key=True, autoincrement=False),
    Column("analyst", Text, nullable=False),
    Column("question", Text, nullable=False),
    Column("data_version", Text, nullable=False),
    Column("holder", Text, nullable=False),
    Column("since", Text, nullable=False),
    Column("drawn", Integer, nullable=False),
    UniqueConstraint("analyst", "question", "data_version"),
)
"""Who is at work on a paid question (`claims`): no part of the account, and left out of backups."""


def _when_created(table: Table, dialect: str, statement: str) -> None:
    ddl = DDL(statement)  # type: ignore[no-untyped-call]
    event.listen(table, "after_create", ddl.execute_if(dialect=dialect))


@dataclass(frozen=True)
class Guard:
    """A trigger that refuses to change or delete the rows of a table."""

    name: str
    table: str
    statements: tuple[str, ...]
    """What makes it; the last one creates the trigger itself."""


def guards(dialect: str) -> tuple[Guard, ...]:
    """The triggers of a ledger in a kind of database."""
    made = _sqlite_guards if dialect == "sqlite" else _postgres_guards
    return tuple(guard for table in (entries, answers) for guard in made(table.name))


def _sqlite_guards(table: str) -> Iterator[Guard]:
    for action in ("UPDATE", "DELETE"):
        name = f"{table}_no_{action.lower()}"
        body = f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
        yield Guard(name, table, (f"CREATE TRIGGER {name} BEFORE {action} ON {table} {body}",))


def _postgres_guards(table: str) -> Iterator[Guard]:
    name, body = f"{table}_append_only", f"BEGIN RAISE EXCEPTION '{table} is append-only'; END"
    function = f"CREATE OR REPLACE FUNCTION {table}_refuse() RETURNS trigger LANGUAGE plpgsql AS $$ {body} $$"
    trigger = f"CREATE TRIGGER {name} BEFORE UPDATE OR DELETE OR TRUNCATE ON {table}"
    calls = f"{trigger} FOR EACH STATEMENT EXECUTE FUNCTION {table}_refuse()"
    yield Guard(name, table, (function, calls))


for _dialect in ("sqlite", "postgresql"):
    for _guard in guards(_dialect):
        for _statement in _guard.statements:
            _when_created(metadata.tables[_guard.table], _dialect, _statement)
