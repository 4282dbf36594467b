"""The rules against the engines themselves: what is proven total raises on no extreme row. Much of what is
refused does raise, so the rules do not refuse for nothing.

Slower sweeps by hand: INCROWD_TREES=100000.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
from sqlglot import exp

from incrowd.backends import postgres_sql, spark_sql
from incrowd.backends.spark_session import open_session
from incrowd.backends.totality import Prover
from incrowd.backends.translation import Dialect, translate
from incrowd.backends.trees import text_of
from incrowd.errors import BackendError
from tests.backends.engines import _postgres_values
from tests.backends.parsing import tree
from tests.backends.spark_houses import LOCAL
from tests.backends.totality.trees import COLUMNS, Trees

TREES = int(os.environ.get("INCROWD_TREES", "400"))
BATCH = 40
_FAR = 1_800_000_000
EXTREMES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "i": (
        pa.int64(),
        [None, 0, 1, -1, 2, 10, 2**31, -(2**31), 2**53 + 1, 2**62, 2**63 - 1, -(2**63), -(2**63) + 1],
    ),
    "j": (pa.int32(), [None, 0, 1, -1, 2**31 - 1, -(2**31)]),
    "f": (
        pa.float64(),
        [
            *(
                None,
                0.0,
                -0.0,
                1.0,
                -1.0,
                0.5,
                -2.5,
                float("nan"),
                float("inf"),
                -float("inf"),
                5e-324,
                -5e-324,
            ),
            *(
                1.7976931348623157e308,
                -1.7976931348623157e308,
                1e300,
                1e-300,
                2.0**63,
                -(2.0**63),
                709.7,
                709.8,
            ),
            *(
                -745.0,
                -746.0,
                9223372036854774784.0,
                2.0**63 + 2048,
                1e60,
                1e-61,
                2147483647.5,
                0.1,
                600.0,
                1e154,
            ),
        ],
    ),
    "t": (
        pa.string(),
        [
            None,
            "",
            "a",
            "ab" * 2000,
            "2020-02-30",
            "2020-01-01",
            "12",
            "1e999",
            "\\",
            "%",
            "ßİıǅΣς",
            "👩‍👧",
            "x" * 20000,
        ],
    ),
    "d": (pa.date32(), [None, 0, -719162, -719163, 2932896, 2932897, 2**31 - 1, -(2**31) + 1, _FAR, -700000]),
    "s": (
        pa.timestamp("us"),
        [
            None,
            0,
            2**63 - 1,
            -(2**63) + 1,
            10**18,
            -62135596800_000000,
            -62135596800_000001,
            253402300799_999999,
        ],
    ),
    "b": (pa.bool_(), [None, True, False]),
}


def extreme_rows(rows: int = 160) -> pa.Table:
    """Every extreme of every column at least once, beside random others."""
    rng = random.Random(5)
    columns = {}
    for name, (kind, values) in EXTREMES.items():
        picked = [values[row] if row < len(values) else rng.choice(values) for row in range(rows)]
        rng.shuffle(picked)
        plain = {pa.date32(): pa.int32(), pa.timestamp("us"): pa.int64()}.get(kind, kind)
        columns[name] = pa.array(picked, plain).cast(kind)
    return pa.table(columns)


def asked(count: int, seed: int) -> list[str]:
    """SELECTs of one expression each, over rows or over groups."""
    trees = Trees(seed)
    selects = [f"SELECT {trees.expression()} AS x FROM t" for _ in range(count)]
    selects += [f"SELECT {trees.aggregate()} AS x FROM t GROUP BY b" for _ in range(count // 6)]
    return list(dict.fromkeys(selects))


def split(
    prover: Prover, statements: Sequence[exp.Query], dialect: str = "duckdb"
) -> tuple[list[str], list[str]]:
    """The texts of those that are proven, and of those that are not."""
    kept: list[str] = []
    refused: list[str] = []
    for statement in statements:
        inner = exp.Subquery(this=statement.copy(), alias=exp.TableAlias(this=exp.to_identifier("q")))
        try:
            prover.prove(exp.select(exp.alias_(exp.Count(this=exp.column("x", "q")), "n")).from_(inner))
            kept.append(text_of(statement, dialect))
        except BackendError:
            refused.append(text_of(statement, dialect))
    return kept, refused


def raising(statements: list[str], run: Callable[[str], object], error: type[Exception]) -> list[str]:
    """The statements that raise."""
    failing = []
    for statement in statements:
        try:
            run(statement)
        except error:
            failing.append(statement)
    return failing


def raising_together(
    statements: list[str], run: Callable[[str], object], error: type[Exception]
) -> list[str]:
    """The same, many at a time: one of them stands for all if all is well."""
    failing = []
    for start in range(0, len(statements), BATCH):
        chunk = statements[start : start + BATCH]
        joined = " UNION ALL ".join(f"SELECT COUNT(x) AS n FROM ({statement}) AS q" for statement in chunk)
        try:
            run(joined)
        except error:
            failing += raising(chunk, run, error)
    return failing


def test_what_is_proven_never_raises_on_duckdb() -> None:
    connection = duckdb.connect()
    connection.register("t", extreme_rows())
    prover = Prover("duckdb", {"t": COLUMNS})

    def run(sql: str) -> object:
        return connection.sql(sql).to_arrow_table()

    kept, refused = split(prover, [tree(sql) for sql in asked(TREES, 1)])
    assert raising(kept, run, duckdb.Error) == []
    # Not all is refused, and what is refused is so for a reason.
    assert len(kept) > TREES / 5
    assert len(raising(refused[:100], run, duckdb.Error)) > 15


def translated(statements: list[str], dialect: Dialect, origin: exp.Table) -> list[exp.Query]:
    """The same in another engine's words; what a dialect does not know is left out."""
    queries = []
    reads = {"t": exp.select(*(exp.column(name, quoted=True) for name in COLUMNS)).from_(origin)}
    for statement in statements:
        try:
            queries.append(translate(tree(statement), dialect, reads))
        except BackendError:
            continue
    return queries


POSTGRES = {
    "BIGINT": "bigint",
    "INTEGER": "integer",
    "DOUBLE": "double precision",
    "VARCHAR": "text",
    "DATE": "date",
    "TIMESTAMP": "timestamp without time zone",
    "BOOLEAN": "boolean",
}


def test_what_is_proven_never_raises_on_postgres(postgres_database: str) -> None:
    types = {name: POSTGRES[kind] for name, kind in COLUMNS.items()}
    origin = exp.Table(this=exp.to_identifier("t", quoted=True), db=exp.to_identifier("public", quoted=True))
    statements = translated(asked(TREES // 3, 2), postgres_sql.DIALECT, origin)
    prover = Prover("postgres", {"public.t": types})
    kept, refused = split(prover, statements, "postgres")
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute(
            f"CREATE TABLE t ({', '.join(f'{name} {kind}' for name, kind in types.items())})".encode()
        )
        table = extreme_rows()
        with connection.cursor().copy("COPY t FROM STDIN") as copy:
            for row in zip(*(_postgres_values(column) for column in table.columns), strict=True):
                copy.write_row(row)

        def run(sql: str) -> object:
            return connection.execute(
                f"SELECT COUNT(x) FROM ({sql}) AS q".encode() if " AS n " not in sql else sql.encode()
            )

        assert raising_together(kept, run, psycopg.Error) == []
        assert len(kept) > len(statements) / 6
        assert len(raising(refused[:60], run, psycopg.Error)) > 15


SPARK = {**POSTGRES, "VARCHAR": "string", "DOUBLE": "double", "INTEGER": "int", "TIMESTAMP": "timestamp_ntz"}


def test_what_is_proven_never_raises_on_spark(tmp_path: Path) -> None:
    session = open_session(LOCAL, spark_sql.SETTINGS)
    pq.write_table(extreme_rows(), tmp_path / "t.parquet")
    session.read.parquet(str(tmp_path / "t.parquet")).createOrReplaceTempView("extremes")
    statements = translated(
        asked(TREES // 20, 3), spark_sql.DIALECT, exp.Table(this=exp.to_identifier("extremes", quoted=True))
    )
    types = {name: SPARK[kind] for name, kind in COLUMNS.items()}
    kept, _ = split(Prover("spark", {"extremes": types}), statements, "spark")
    assert len(kept) > len(statements) / 6
    for start in range(0, len(kept), BATCH):
        counts = [
            f"SELECT COUNT(x) AS n FROM ({statement}) AS q" for statement in kept[start : start + BATCH]
        ]
        session.sql(" UNION ALL ".join(counts)).collect()
