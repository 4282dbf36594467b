"""The people under attack: a real table; the attacker knows some columns and wants one bit about each person.

What she knows singles out the *targets*. Their bits are replaced by independent fair coins, so that nothing
but the release can tell them: guessing is right half of the time, and a guarantee's bound on telling two
equally likely secrets applies as it stands (`bounds.most_success`). All others keep their true bits. Knows
nothing of releases.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.backends.trees import constant, quoted
from incrowd.data import adult
from incrowd.errors import InvalidInput

KNOWN = ("age", "education", "occupation", "hours_per_week")
SECRET = "income = '>50K'"
HAS = "secret = 1"
"""The secret, in the SQL of the questions about a crowd."""


@dataclass(frozen=True)
class Crowd:
    """People by number (`person`), what is known of them, and their bits (`secret`: 1 or 0)."""

    table: pa.Table
    known: tuple[str, ...]
    targets: NDArray[np.int64]

    @property
    def bits(self) -> NDArray[np.bool_]:
        """The secret of each target."""
        return np.asarray(self.table["secret"].to_numpy()[self.targets] == 1, dtype=np.bool_)

    def where(self, person: int) -> str:
        """The SQL that fits this target and nobody else, from what is known."""
        row = self.table.slice(person, 1).to_pylist()[0]
        return "(" + " AND ".join(_equals(name, row[name]) for name in self.known) + ")"

    def paddings(self, generator: np.random.Generator) -> Iterator[str]:
        """Endless SQL conditions that anybody might ask about: a range or half of the values of a column."""
        domains = {name: self.table[name].unique().drop_null().to_pylist() for name in self.known}
        names = [name for name, values in domains.items() if len(values) > 1]
        if not names:
            raise InvalidInput("The columns that the attacker knows hold one value each: name others.")
        while True:
            name = names[int(generator.integers(len(names)))]
            values = domains[name]
            if isinstance(values[0], int | dt.date) and len(values) > 12:
                low, high = sorted(generator.choice(len(values), 2, replace=False))
                ends = sorted(values)
                yield f"{quoted(name)} BETWEEN {literal(ends[low])} AND {literal(ends[high])}"
            else:
                half = generator.permutation(len(values))[: (len(values) + 1) // 2]
                listed = ", ".join(literal(values[index]) for index in sorted(half))
                yield f"{quoted(name)} IN ({listed})"


def gather(
    table: Any = None,
    *,
    known: Sequence[str] = KNOWN,
    secret: str = SECRET,
    people: int = 1_000,
    targets: int | None = None,
    seed: int | None = None,
) -> Crowd:
    """A crowd of at most `people` people from a table, with at most `targets` targets among them.

    table: a frame (Arrow, pandas or polars), one row for each person; the bundled census unless given. known:
    the columns that the attacker knows. secret: SQL, true for those who have the secret.

    >>> crowd = gather(people=200, seed=1)
    >>> crowd.table.num_rows, crowd.table.column_names[-2:]
    (200, ['person', 'secret'])
    """
    generator = np.random.default_rng(seed)
    frame = adult() if table is None else _arrow(table)
    missing = [name for name in known if name not in frame.column_names]
    if missing or not known:
        raise InvalidInput(
            f"The attacker cannot know {', '.join(missing) or 'nothing'}: choose among the table's columns, "
            f"which are {', '.join(frame.column_names)}."
        )
    if {"person", "secret"} & set(known):
        raise InvalidInput("Columns named person or secret are the attack's own: rename the table's.")
    unfit = [name for name in known if not _can_be_written(frame.schema.field(name).type)]
    if unfit:
        raise InvalidInput(
            f"{', '.join(unfit)} cannot single anybody out in SQL: let the attacker know columns of text, "
            "whole numbers, dates or truth values."
        )
    if people < 2 or frame.num_rows < 2:
        raise InvalidInput("An attack needs at least two people.")
    chosen = np.sort(generator.permutation(frame.num_rows)[:people])
    drawn = frame.take(pa.array(chosen))
    rows = drawn.select(list(known)).append_column("person", pa.array(np.arange(len(chosen))))
    unique = _singled_out(rows, known)
    marked = np.sort(generator.permutation(unique)[:targets])
    bits = _secrets(drawn, secret)
    bits[marked] = generator.integers(0, 2, len(marked))
    return Crowd(rows.append_column("secret", pa.array(bits)), tuple(known), marked)


def _arrow(table: Any) -> pa.Table:
    # Through the engine, because Arrow cannot yet take rows of every type that frames come in.
    with duckdb.connect() as engine:
        try:
            engine.register("frame", table)
            arrow: pa.Table = engine.sql("FROM frame").to_arrow_table()
        except (TypeError, ValueError, duckdb.Error, pa.ArrowException) as error:
            raise InvalidInput("The table must be a frame: Arrow, pandas or polars.") from error
    plain = pa.schema(
        pa.field(column.name, column.type.value_type if pa.types.is_dictionary(column.type) else column.type)
        for column in arrow.schema
    )
    return arrow.cast(plain)


def _can_be_written(kind: pa.DataType) -> bool:
    tests = (pa.types.is_integer, pa.types.is_boolean, pa.types.is_date)
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or any(test(kind) for test in tests)


def _secrets(frame: pa.Table, secret: str) -> NDArray[np.int64]:
    with duckdb.connect() as engine:
        engine.register("people", frame)
        try:
            rows = engine.sql(f"SELECT CAST(({secret}) IS TRUE AS BIGINT) AS bit FROM people")
            return np.array(rows.fetchnumpy()["bit"], dtype=np.int64)
        except duckdb.Error as error:
            raise InvalidInput(
                f"The secret must be SQL that is true or false of a row, such as {SECRET}; not {secret}."
            ) from error


def _singled_out(rows: pa.Table, known: Sequence[str]) -> NDArray[np.int64]:
    alike = rows.group_by(list(known)).aggregate([("person", "count"), ("person", "min")])
    unique = alike["person_min"].to_numpy()[alike["person_count"].to_numpy() == 1]
    if not len(unique):
        raise InvalidInput("Nobody is singled out by what the attacker knows: let her know more columns.")
    # Grouping is parallel and its order not promised: a seed should mean the same crowd everywhere.
    return np.sort(unique)


def literal(value: Any) -> str:
    """A value in SQL.

    >>> literal("it's"), literal(3), literal(True)
    ("'it''s'", '3', 'TRUE')
    """
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return constant(value)
    assert isinstance(value, dt.date), "columns of other types are refused before"
    return f"DATE '{value.isoformat()}'"


def _equals(name: str, value: Any) -> str:
    return f"{quoted(name)} IS NULL" if value is None else f"{quoted(name)} = {literal(value)}"
