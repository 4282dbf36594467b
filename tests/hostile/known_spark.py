"""Known attacks on Spark: names of folders, moments, files of different kinds or named twice, text tables."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from tests.backends.spark_houses import LOCAL
from tests.hostile.attack import few
from tests.hostile.known import Opening, by_file, compare, declaration, folders
from tests.hostile.neighbour import Limits
from tests.hostile.spark_stores import session
from tests.hostile.values import MARK, array

ONE = (Limits(rows=1, groups=1),)
BY_KEY = "SELECT k, COUNT(*) AS n FROM t GROUP BY k"


def _opening(home: Path, columns: dict[str, Any], **place: Any) -> Opening:
    home.chmod(0o755)
    return by_file(home, declaration({"url": LOCAL}, columns, **place))


def partition_folders(folder: Path) -> None:
    """One person's own folder changes what everybody's folder names mean."""
    names = (("01234", "A1", "text", "k"), ("1", "x", "integer", "k"), ("7", "007", "text", "id"))
    for number, (others, mine, kind, key) in enumerate(few(names)):
        sides = []
        for home, extra in zip(folders(folder / str(number)), (False, True), strict=True):
            for word, rows in [(others, 20), (mine, 9)][: 1 + extra]:
                (home / "t" / f"{key}={word}").mkdir(parents=True)
                ids = list(range(rows)) if word == others else [77] * rows
                held = {"id": ids} if key == "k" else {"k": ["b" if word == mine else "a"] * rows}
                pq.write_table(pa.table(held), home / "t" / f"{key}={word}" / "0.parquet")
            columns = {"id": "integer", "k": kind} if key == "k" else {"id": kind, "k": "text"}
            sides.append(_opening(home, columns, path=str(home / "t")))
        wanted = others if kind == "integer" else f"'{others}'"
        compare(*sides, [f"SELECT k, COUNT(*) AS n FROM t WHERE {key} = {wanted} GROUP BY k"], limits=ONE)


MOMENTS = (
    (pa.timestamp("ms"), 1_577_836_800_000_000_000),
    (pa.timestamp("ms", "UTC"), -(2**63)),
    (pa.timestamp("us"), 2**63 - 1),
    (pa.timestamp("ns"), -(2**63)),
    (pa.date32(), 2**31 - 1),
)


def calendar(folder: Path) -> None:
    """A moment beyond what Spark counts in microseconds."""
    for number, (kind, moment) in enumerate(few(MOMENTS)):
        sides = []
        for home, more in zip(folders(folder / str(number)), ([], [moment]), strict=True):
            table = pa.table(
                {"id": [*range(5), *([77] if more else [])], "k": array([0, 1, 2, 3, 4, *more], kind)}
            )
            pq.write_table(table, home / "t.parquet")
            columns = {"id": "integer", "k": "date" if kind == pa.date32() else "timestamp"}
            sides.append(_opening(home, columns, path=str(home / "t.parquet")))
        compare(*sides, ["SELECT YEAR(k) AS y, COUNT(*) AS n FROM t GROUP BY 1"], limits=ONE)


def exact_units(folder: Path) -> None:
    """Two decimal ids that float64 takes for one."""
    ids = (
        (pa.decimal128(38, 2), Decimal("7.25"), Decimal("7.26"), "integer"),
        (pa.decimal128(38, 0), Decimal("100000000000000001"), Decimal("100000000000000003"), "decimal"),
        (pa.decimal128(38, 30), Decimal("1e-30"), Decimal("2e-30"), "decimal"),
    )
    for number, (kind, theirs, mine, declared) in enumerate(few(ids)):
        sides = []
        for home, more in zip(folders(folder / str(number)), (0, 9), strict=True):
            table = pa.table({"id": array([theirs, *[mine] * more], kind), "k": ["a", *"b" * more]})
            pq.write_table(table, home / "t.parquet")
            sides.append(_opening(home, {"id": declared, "k": "text"}, path=str(home / "t.parquet")))
        compare(*sides, [BY_KEY], limits=ONE)


def file_schemas(folder: Path) -> None:
    """Files of one table with different column types: refused at opening, or read alike."""
    odd: tuple[dict[str, Any], ...] = (
        {"id": pa.array([77]), "k": pa.array([5])},
        {"id": pa.array([MARK]), "k": pa.array(["b"])},
        {"id": pa.array([77])},
    )
    for number, mine in enumerate(few(odd)):
        for name in few(("0", "z")):
            sides = []
            for home, extra in zip(folders(folder / f"{number}{name}"), (False, True), strict=True):
                (home / "t").mkdir()
                pq.write_table(pa.table({"id": list(range(20)), "k": ["a"] * 20}), home / "t" / "5.parquet")
                if extra:
                    pq.write_table(pa.table(mine), home / "t" / f"{name}.parquet")
                sides.append(_opening(home, {"id": "integer", "k": "text"}, path=str(home / "t")))
            compare(*sides, [BY_KEY], broken=True, limits=ONE)


def twice_named(folder: Path) -> None:
    """Files that two patterns match, or that have a link beside them, where each row is somebody."""
    for way in few(("patterns", "links")):
        sides = []
        for home, rows in zip(folders(folder / way), (5, 6), strict=True):
            (home / "t").mkdir()
            for part in range(rows):
                pq.write_table(pa.table({"id": [part], "k": ["a"]}), home / "t" / f"a{part}.parquet")
                if way == "links":
                    (home / "t" / f"b{part}.parquet").symlink_to(home / "t" / f"a{part}.parquet")
            paths = [str(home / "t" / "*.parquet"), str(home / "t" / "a*.parquet")]
            sides.append(
                _opening(home, {"id": "integer", "k": "text"}, path=paths[: 1 + (way != "links")], unit="row")
            )
        compare(*sides, [BY_KEY], limits=ONE)


def unreadable(folder: Path) -> None:
    """A decimal of more digits than its column has, or pages in a codec that Spark lacks: refused at once."""
    for way in few(("digits", "codec")):
        sides = []
        for home, more in zip(folders(folder / way), (0, 1), strict=True):
            (home / "t").mkdir()
            theirs = pl.Series([Decimal(1)] * 20, dtype=pl.Decimal(38, 0))
            pl.DataFrame({"id": range(20), "k": theirs}).write_parquet(home / "t" / "0.parquet")
            if more:
                mine = pl.Series([Decimal("9" * 38)] * 2, dtype=pl.Decimal(38, 0))
                frame = pl.DataFrame({"id": [77, 77], "k": mine if way == "digits" else theirs[:2]})
                frame.group_by("id").agg(pl.col("k").sum()).write_parquet(
                    home / "t" / "1.parquet", compression="zstd" if way == "digits" else "brotli"
                )
            sides.append(_opening(home, {"id": "integer", "k": "decimal"}, path=str(home / "t")))
        compare(*sides, ["SELECT COUNT(*) AS n FROM t WHERE k > 3"], broken=True, limits=ONE)


TABLES = (
    "CREATE TABLE {t} (id BIGINT, k INT) USING csv OPTIONS (path '{p}', header 'true', mode 'FAILFAST')",
    "CREATE TABLE {t} (id BIGINT, k INT) USING csv OPTIONS (path '{p}', header 'true', mode 'DROPMALFORMED')",
    "CREATE TABLE {t} USING csv OPTIONS (path '{p}', header 'true', inferSchema 'true')",
)


def text_tables(folder: Path) -> None:
    """Tables over text files: a line that does not fit raises, or types are guessed from it."""
    for number, made in enumerate(few(TABLES)):
        sides = []
        for home, mine in zip(folders(folder / str(number)), ("", f"77,{MARK}\n"), strict=True):
            (home / "t").mkdir()
            (home / "t" / "0.csv").write_text(
                "id,k\n" + "".join(f"{person},1\n" for person in range(9)) + mine
            )
            name = f"t_{secrets.token_hex(6)}"
            attempted = made.replace("{t}", name).replace("{p}", str(home / "t"))
            session().sql(attempted)
            sides.append(_opening(home, {"id": "integer", "k": "integer"}, table=f"default.{name}"))
        compare(*sides, [BY_KEY], broken=True, limits=ONE)


def collations(folder: Path) -> None:
    """A column of a stored table whose collation takes FLU for flu, or A for a."""
    kinds = (
        ("BIGINT", "STRING COLLATE UTF8_LCASE", "integer"),
        ("STRING COLLATE UTF8_LCASE", "STRING", "text"),
    )
    for unit, kind, declared in few(kinds):
        sides = []
        theirs = [f"({person}, 'flu')" if declared == "integer" else "('a', 'flu')" for person in range(12)]
        me = "77" if declared == "integer" else "'A'"
        for home, more in zip(folders(folder / declared), ([], ["FLU", "b", "b", "c"]), strict=True):
            name = f"t_{secrets.token_hex(6)}"
            session().sql(f"CREATE TABLE {name} (id {unit}, k {kind}) USING parquet LOCATION '{home / 't'}'")
            rows = [*(f"({me}, '{word}')" for word in more), *theirs]
            session().sql(f"INSERT INTO {name} VALUES {', '.join(rows)}")
            sides.append(_opening(home, {"id": declared, "k": "text"}, table=f"default.{name}"))
        compare(*sides, ["SELECT k, COUNT(*) AS n FROM t WHERE k = 'flu' GROUP BY k"], limits=ONE)


SPARK_ATTACKS: tuple[Callable[[Path], None], ...] = (
    partition_folders,
    calendar,
    exact_units,
    file_schemas,
    twice_named,
    unreadable,
    text_tables,
    collations,
)
