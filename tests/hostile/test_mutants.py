"""The property has teeth: each mend that an attack made necessary, taken away again, is missed at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pyarrow as pa
import pyarrow.csv
import pytest
from sqlglot import exp

from incrowd.backends import duckdb as engine
from incrowd.backends import (
    duckdb_columns,
    duckdb_database,
    duckdb_files,
    duckdb_pieces,
    frames,
    postgres,
    postgres_reading,
    postgres_relations,
    postgres_session,
    postgres_snapshot,
    sources,
    spark,
    spark_columns,
    spark_files,
    spark_tables,
    strict_csv,
)
from incrowd.backends.duckdb_pieces import Piece, described
from incrowd.backends.totality import Prover
from incrowd.backends.trees import constant, text_of
from incrowd.catalog.types import SQL_TYPES
from incrowd.errors import BackendError
from incrowd.query import per_unit
from incrowd.query.typed import Typed
from tests import servers
from tests.hostile import known, known_postgres, known_spark
from tests.hostile.neighbour import Broken
from tests.hostile.postgres_stores import Database

Patch = pytest.MonkeyPatch
TURNS = 6
"""Rows that are drawn anew show their fault in four statements of ten, and an attack has six or more of them:
the probability that such a mutant escapes every turn is below 0.6^36 < 1e-6.
"""


def nothing(*_: Any, **__: Any) -> None:
    """What a check does that is gone."""


def nothing_is_proven(patch: Patch) -> None:
    """The proof refuses such a question on both sides, which would hide the fault."""
    patch.setattr(Prover, "prove", nothing)


def constant_keys_are_cast(patch: Patch) -> None:
    def by(key: Typed, below: Any) -> exp.Expr:
        return key.sql if key.sql.find(exp.Column) else exp.cast(exp.paren(key.sql), SQL_TYPES[key.kind])

    patch.setattr(per_unit, "_by", by)
    nothing_is_proven(patch)


def collations_are_kept(patch: Patch) -> None:
    patch.setattr(duckdb_pieces, "reading", lambda collated, made=duckdb_columns.reading: made(False))


def collated_units_are_kept(patch: Patch) -> None:
    collations_are_kept(patch)
    patch.setattr(duckdb_database, "_refuse_collated_units", nothing)


def csv_is_read_by_the_engine(patch: Patch) -> None:
    def piece(connection: Any, catalog: Any, copies: Any, files: Sequence[str], table: str) -> Piece:
        names = strict_csv.read_header(files[0], table).names
        columns = ", ".join(f"{constant(name)}: 'VARCHAR'" for name in names)
        listed = ", ".join(constant(file) for file in files)
        options = "auto_detect = false, header = true, quote = '\"', escape = '\"', ignore_errors = true"
        origin = f"read_csv([{listed}], {options}, columns = {{{columns}}})"
        return Piece(origin, described(connection, origin))

    patch.setattr(engine, "csv_piece", piece)


def moments_are_left_to_the_engine(patch: Patch) -> None:
    for module in (frames, duckdb_files):
        patch.setattr(module, "readable", lambda column: column)
    patch.setattr(engine.DuckDB, "_readable", lambda *_: True)


def units_may_merge(patch: Patch) -> None:
    patch.setattr(sources, "refuse_merging", nothing)


def decimal_ids_are_rounded(patch: Patch) -> None:
    exact = duckdb_columns._decimal
    patch.setattr(
        duckdb_columns, "_decimal", lambda column, engine, kind, _: exact(column, engine, kind, False)
    )


def views_are_read_twice(patch: Patch) -> None:
    patch.setattr(duckdb_database, "_refuse_view", nothing)
    patch.setattr(engine.DuckDB, "_view", lambda self, name, path, piece: piece)


def the_parser_cuts_blocks(patch: Patch) -> None:
    def batches(path: str, header: strict_csv.Header, table: str) -> Iterator[pa.RecordBatch]:
        reader = pa.csv.open_csv(
            path,
            pa.csv.ReadOptions(block_size=strict_csv.BLOCK),
            pa.csv.ParseOptions(newlines_in_values=True),
            pa.csv.ConvertOptions(column_types=dict.fromkeys(header.names, pa.string())),
        )
        yield from reader

    patch.setattr(strict_csv, "batches", batches)


def names_are_patterns(patch: Patch) -> None:
    patch.setattr(duckdb_files, "_literal", lambda connection, file: file)


def old_moments_are_microseconds(patch: Patch) -> None:
    patch.setattr(duckdb_files, "_nanoseconds", lambda file: {})


def folders_are_typed(patch: Patch) -> None:
    def piece(connection: Any, files: Sequence[str], folders: Sequence[str]) -> Piece:
        everywhere = sorted({path for file in files for path in Path(file).parent.parent.glob("*/*.parquet")})
        listed = ", ".join(constant(str(path)) for path in everywhere)
        origin = f"read_parquet([{listed}], hive_partitioning = true, hive_types_autocast = true)"
        return Piece(origin, described(connection, origin), tuple(files))

    patch.setattr(duckdb_files, "_schema", lambda *_: "")
    patch.setattr(duckdb_files, "_parquet_piece", piece)


def footers_are_trusted(patch: Patch) -> None:
    patch.setattr(duckdb_files, "_OPTIONS", "hive_partitioning = false")


def old_footers_are_trusted(patch: Patch) -> None:
    patch.setattr(engine, "misleading", lambda connection, files: set())


def one_schema_speaks_for_all(patch: Patch) -> None:
    patch.setattr(duckdb_files, "_schema", lambda *_: "")
    patch.setattr(engine.DuckDB, "_readable", lambda *_: True)


def engine_words_are_kept(patch: Patch) -> None:
    def run(self: Any, tree: Any, progress: Any = None, seen: Any = None) -> pa.Table:
        try:
            return self._connection.sql(text_of(tree)).to_arrow_table()
        except duckdb.Error as error:
            raise BackendError(
                f"The database could not finish the question ({type(error).__name__})."
            ) from None

    patch.setattr(engine.DuckDB, "run", run)
    patch.setattr(engine.DuckDB, "_run", run)


DUCKDB_MUTANTS: tuple[tuple[Callable[[Patch], None], Callable[[Path], None]], ...] = (
    (constant_keys_are_cast, known.constant_keys),
    (collations_are_kept, known.collations),
    (collated_units_are_kept, known.collated_units),
    (csv_is_read_by_the_engine, known.csv_blocks),
    (csv_is_read_by_the_engine, known.csv_lines),
    (the_parser_cuts_blocks, known.csv_borders),
    (moments_are_left_to_the_engine, known.calendar),
    (units_may_merge, known.exact_units),
    (decimal_ids_are_rounded, known.exact_units),
    (views_are_read_twice, known.volatile),
    (views_are_read_twice, known.raising_views),
    (old_moments_are_microseconds, known.exact_units),
    (folders_are_typed, known.hive_types),
    (names_are_patterns, known.wildcard_names),
    (footers_are_trusted, known.nan_statistics),
    (old_footers_are_trusted, known.signed_statistics),
    (one_schema_speaks_for_all, known.file_schemas),
    (engine_words_are_kept, known.quoted_rows),
)


def _named(case: Any) -> str:
    return f"{case[0].__name__}-{case[1].__name__}"


@pytest.mark.parametrize("case", DUCKDB_MUTANTS, ids=_named)
def test_on_duckdb_each_mend_is_missed(case: Any, monkeypatch: Patch, tmp_path: Path) -> None:
    mutant, attack = case
    mutant(monkeypatch)
    with pytest.raises(Broken):
        for turn in range(TURNS):
            attack(tmp_path / str(turn))


# PostgreSQL.


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    with servers.postgres().database() as url:
        made = Database(url)
        yield made
        made.close()


def long_texts_are_kept(patch: Patch) -> None:
    patch.setattr(postgres_reading, "_cut", lambda text: text)
    nothing_is_proven(patch)


def numerics_are_rounded(patch: Patch) -> None:
    whole = postgres_reading._whole
    patch.setattr(postgres_reading, "_whole", lambda column, _: whole(column, False))


def policies_are_read_twice(patch: Patch) -> None:
    checked = postgres_relations.checked
    patch.setattr(postgres_relations, "fault", nothing)
    patch.setattr(postgres, "checked", lambda *given: replace(checked(*given), once=False))


def views_may_raise(patch: Patch) -> None:
    patch.setattr(postgres_relations, "fault", nothing)


def relations_may_change(patch: Patch) -> None:
    for module in (postgres, postgres_snapshot):
        patch.setattr(module, "unchanged", lambda *_: True)


def collated_units_are_read(patch: Patch) -> None:
    patch.setattr(postgres, "refuse_alike", nothing)


def settings_are_the_roles(patch: Patch) -> None:
    patch.setattr(postgres_session, "_RESET", "SELECT %(speed)s::text, %(fixed)s::text[]")


def server_words_are_kept(patch: Patch) -> None:
    views_may_raise(patch)
    run = postgres.Postgres.run

    def kept(self: Any, tree: Any, progress: Any = None) -> pa.Table:
        try:
            with self._moments.checking() as connection:
                connection.execute(self.statement(tree).encode())
        except psycopg.Error:
            raise BackendError("The database could not finish the question.") from None
        return run(self, tree, progress)

    patch.setattr(postgres.Postgres, "run", kept)


POSTGRES_MUTANTS: tuple[tuple[Callable[[Patch], None], Callable[[Database, Path], None]], ...] = (
    (long_texts_are_kept, known_postgres.long_texts),
    (numerics_are_rounded, known_postgres.exact_numerics),
    (policies_are_read_twice, known_postgres.volatile),
    (views_may_raise, known_postgres.raising_views),
    (relations_may_change, known_postgres.swapped),
    (collated_units_are_read, known_postgres.collations),
    (settings_are_the_roles, known_postgres.settings),
    (server_words_are_kept, known_postgres.raising_views),
)


@pytest.mark.parametrize("case", POSTGRES_MUTANTS, ids=_named)
def test_on_postgresql_each_mend_is_missed(
    case: Any, monkeypatch: Patch, database: Database, tmp_path: Path
) -> None:
    mutant, attack = case
    mutant(monkeypatch)
    with pytest.raises(Broken):
        for turn in range(TURNS):
            attack(database, tmp_path / str(turn))


# Spark.


def folders_are_guessed(patch: Patch) -> None:
    name = "spark.sql.sources.partitionColumnTypeInference.enabled"
    patch.setattr(spark, "SETTINGS", {**spark.SETTINGS, name: "true"})


def moments_are_left_to_spark(patch: Patch) -> None:
    def read(column: exp.Column, engine_type: str, kind: str, identifies: bool) -> tuple[exp.Expr, Any]:
        return column, "timestamp"

    def stored_as(kind: str) -> str:
        return "timestamp_ntz" if kind.startswith("timestamp[") else kind

    patch.setattr(spark_tables, "stored_as", stored_as)
    patch.setattr(spark_tables, "read", read)


def first_file_speaks_for_all(patch: Patch) -> None:
    def agreed(self: Any, name: str, listed: Any) -> Any:
        self._footers.update(spark_tables.footers(self._session, listed.files, self._footers))
        return self._footers[listed.files[0]]

    patch.setattr(spark_tables.SparkTables, "_agreed", agreed)
    files_are_not_read_before_questions(patch)


def files_are_read_twice(patch: Patch) -> None:
    patch.setattr(spark_files, "_once", lambda table, files: tuple(files))


def files_are_not_read_before_questions(patch: Patch) -> None:
    patch.setattr(spark.Spark, "_read_whole", lambda self, new, listed: None)


def decimals_are_rounded_on_spark(patch: Patch) -> None:
    exact = spark_columns._decimal
    patch.setattr(spark_columns, "_decimal", lambda column, kind, _: exact(column, kind, False))


SPARK_MUTANTS: tuple[tuple[Callable[[Patch], None], Callable[[Path], None]], ...] = (
    (folders_are_guessed, known_spark.partition_folders),
    (moments_are_left_to_spark, known_spark.calendar),
    (first_file_speaks_for_all, known_spark.file_schemas),
    (files_are_read_twice, known_spark.twice_named),
    (files_are_not_read_before_questions, known_spark.unreadable),
    (decimals_are_rounded_on_spark, known_spark.exact_units),
)


@pytest.mark.parametrize("case", SPARK_MUTANTS, ids=_named)
def test_on_spark_each_mend_is_missed(case: Any, monkeypatch: Patch, tmp_path: Path) -> None:
    mutant, attack = case
    mutant(monkeypatch)
    tmp_path.chmod(0o755)
    with pytest.raises(Broken):
        attack(tmp_path)
