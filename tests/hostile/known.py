"""Known attacks: for each way in which a row once decided more than a number, a small pair that shows it.

Each raises `Broken` where its attack succeeds, which `test_mutants.py` wants once a mend is taken away.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from shutil import copyfile
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from incrowd import Curator
from incrowd.backends import open_backend
from incrowd.catalog.loading import check
from incrowd.curator.ledger import Ledger
from tests.backends.parsing import tree
from tests.hostile.neighbour import Broken, Limits, attempt, check_opening, check_question, check_silence
from tests.hostile.values import MARK, array

COUNTS = ("SELECT COUNT(*) AS n FROM t", "SELECT COUNT(DISTINCT id) AS n FROM t")
CONSTANT_KEYS = (
    *("ROUND(1e300)", "FLOOR(-1e300)", "CEIL(1e19)", "ABS(9223372036854775807)", "TRUNC(1e300)", "1 / 0"),
    *("CAST('x' AS INTEGER)", "CAST('9999-99-99' AS DATE)", "LN(0)", "EXP(1e9)", "9223372036854775807 + 1"),
)
DATA = Path(__file__).parent / "data"
"""Two Parquet files with the fields `min` and `max` alone in their footers, as writers had it before 2018."""
Opening = Callable[[], Curator]


def declaration(source: Mapping[str, Any], columns: Mapping[str, Any], **table: Any) -> dict[str, Any]:
    """An owner's file with one table."""
    declared = {name: {"type": kind} if isinstance(kind, str) else kind for name, kind in columns.items()}
    tables = {"t": {"unit": "id", "columns": declared, **table}}
    return {"sources": {"s": dict(source)}, "tables": tables, "budget": {"epsilon": 1e6, "delta": 0.01}}


def by_file(folder: Path, declared: Mapping[str, Any]) -> Opening:
    """A curator to be opened from a file in a folder."""
    file = folder / "curator.yaml"
    file.write_text(json.dumps(declared))
    return lambda: Curator.open(file, new_ledger=not (folder / "curator.ledger").exists())


def by_frame(frame: Any, columns: Mapping[str, Any], **table: Any) -> Opening:
    """A curator to be opened over a frame."""

    def opened() -> Curator:
        catalog = check(declaration({"frame": "t"}, columns, **table))
        return Curator(catalog, open_backend(catalog, {"t": frame}), Ledger.open(None, catalog))

    return opened


def compare(
    without: Opening,
    hostile: Opening,
    questions: Sequence[str],
    *,
    secrets: Sequence[str] = (MARK,),
    broken: bool = False,
    limits: Sequence[Limits] = (Limits(rows=1, groups=1), Limits()),
    whole: bool = False,
) -> int:
    """The property on some questions; how many were accepted."""
    one, two = attempt(without), attempt(hostile)
    try:
        if not check_opening(one, two, secrets, broken):
            return 0
        pair = (one.value, two.value)
        return sum(check_question(pair, sql, limit, secrets, whole) for sql in questions for limit in limits)
    finally:
        for outcome in (one, two):
            if outcome.value is not None:
                outcome.value.close()


def folders(folder: Path) -> tuple[Path, Path]:
    """A folder for each side."""
    homes = folder / "without", folder / "hostile"
    for home in homes:
        home.mkdir(parents=True)
    return homes


def constant_keys(folder: Path) -> None:
    """A constant key of a sub-query per unit that could raise, and only if a row passes WHERE."""
    base = {"id": [f"person {i}" for i in range(8)], "k": ["flu"] * 8}
    mine = {"id": [*base["id"], "ann"], "k": [*base["k"], "hiv"]}
    asked = []
    for key in CONSTANT_KEYS:
        where = "FROM t WHERE id = 'ann' AND k = 'hiv'"
        asked.append(f"SELECT COUNT(*) AS n FROM (SELECT DISTINCT id, {key} AS c {where})")
        asked.append(
            f"SELECT COUNT(*) AS n FROM (SELECT id, {key} AS c, COUNT(*) AS m {where} GROUP BY id, {key})"
        )
    columns = {"id": "text", "k": "text"}
    sides = [by_frame(pa.table(rows), columns) for rows in (base, mine)]
    compare(*sides, asked, limits=[Limits(rows=1, groups=1)], whole=True)


def _database(folder: Path, *statements: str) -> dict[str, Any]:
    with duckdb.connect(str(folder / "t.duckdb")) as made:
        for statement in statements:
            made.execute(statement)
    return {"duckdb": "t.duckdb"}


def collations(folder: Path) -> None:
    """A column whose collation takes FLU for flu: one spelling stands for everybody's."""
    for number, collation in enumerate(("NOCASE", "NFC", "NOCASE.NOACCENT")):
        for unit in ("BIGINT", f"VARCHAR COLLATE {collation}"):
            homes = folders(folder / f"{number}{unit[0]}")
            sides = []
            for home, rows in zip(homes, ((), ("FLU", "FLÜ", "ﬂu", "flu\u0308")), strict=True):
                made = f"CREATE TABLE t (id {unit}, k VARCHAR COLLATE {collation})"
                mine = [f"INSERT INTO t VALUES ('77', '{spelling}')" for spelling in rows]
                spelled = "CASE WHEN range % 2 = 0 THEN 'flu' ELSE 'flü' END"
                others = f"INSERT INTO t SELECT CAST(range AS VARCHAR), {spelled} FROM range(20)"
                source = _database(home, made, *mine, others)
                kind = "integer" if unit == "BIGINT" else "text"
                domain = {"type": "text", "domain": ["flu", "FLU"]} if number == 0 else "text"
                sides.append(by_file(home, declaration(source, {"id": kind, "k": domain})))
            asked = [
                "SELECT k, COUNT(*) AS n FROM t GROUP BY k",
                "SELECT COUNT(*) AS n FROM t WHERE k = 'flu'",
                "SELECT COUNT(*) AS n FROM t WHERE k IN ('FLU', 'x')",
                "SELECT COUNT(*) AS n FROM (SELECT DISTINCT id, k FROM t)",
                "SELECT CASE k WHEN 'flu' THEN 1 ELSE 2 END AS c, COUNT(*) AS n FROM t GROUP BY 1",
            ]
            compare(*sides, asked, limits=[Limits(rows=1, groups=1)])


def collated_units(folder: Path) -> None:
    """A unit column whose collation makes one person of two ids."""
    homes = folders(folder)
    sides = []
    for home, mine in zip(homes, ("", "INSERT INTO t SELECT 'ANN', 'b' FROM range(9)"), strict=True):
        made = [
            "CREATE TABLE t (id VARCHAR COLLATE NOCASE, k VARCHAR)",
            "INSERT INTO t VALUES ('ann', 'a')",
            mine,
        ]
        source = _database(home, *filter(None, made))
        sides.append(by_file(home, declaration(source, {"id": "text", "k": "text"})))
    compare(*sides, ["SELECT k, COUNT(*) AS n FROM t GROUP BY k", *COUNTS])


def csv_blocks(folder: Path) -> None:
    """A quoted text with line breaks that lies across the end of a reader's block of 8,000,000 bytes."""
    homes = folders(folder)
    lines = [f"{number},{'x' * 90}\n" for number in range(100_000)]
    text = '"' + "".join(f"{number},y\n" for number in range(500_000, 540_000)) + '"'
    place = (8_000_000 - len(text) // 2) // len(lines[-1])
    sides = []
    for home, mine in zip(homes, ("", f"7777777,{text}\n"), strict=True):
        content = "id,k\n" + "".join(lines[:place]) + mine + "".join(lines[place:])
        (home / "t.csv").write_text(content, newline="")
        sides.append(by_file(home, declaration({"csv": "t.csv"}, {"id": "integer", "k": "text"})))
    compare(*sides, COUNTS, limits=[Limits(rows=1, groups=1)])


def csv_borders(folder: Path) -> None:
    """Texts full of CRLF where blocks of 16 MiB end, after a text with a NUL: a row shifts all ends."""
    for number, mine in enumerate(('7777,"\0""\n1,2\n"\n', "77777,ab\n")):
        homes = folders(folder / str(number))
        field = '"' + "\r\n" * 4096 + '"'
        lines = [f"{person:06},{field}\n" for person in range(2100)]
        sides = []
        for home, extra in zip(homes, ("", mine), strict=True):
            (home / "t.csv").write_text("id,k\n" + extra + "".join(lines), newline="")
            sides.append(by_file(home, declaration({"csv": "t.csv"}, {"id": "text", "k": "text"})))
        asked = ["SELECT k, COUNT(*) AS n FROM t GROUP BY k", COUNTS[1]]
        compare(*sides, asked, limits=[Limits(rows=1, groups=1)])


WELL_FORMED_LINES = (
    "7777,a\x00b\n",
    '7777,"\x00""\n\x00"\n',
    "7777,zqSecretxj\r\n",
    '7777,"zqSecretxj"\r\n',
    '7777,"a\r\nb"\n',
    '7777,"a\rb"\n',
    '7777,"a\nb"\r\n',
    '7777,"a""b"\n',
    '7777,"\n"\n',
    "7777,\n",
    '7777,""\n',
    "7777,a\u2028b\n",
    "7777,a\x85b\n",
    "7777,'a\n",
    "7777,a;b|c\td\n",
    "7777,#a\n",
    "7777,\\\n",
    '7777,"\\"\n',
    "7777,NULL\n",
    "7777,é\n",
    "7777," + "x" * 3_000_000 + "\n",
)
# fmt: off
BROKEN_LINES = (
    '7777,"a"b\n', '7777,"zqSecretxj\n', '7777,a"b\n', '7777,"a" \n', "7777,a\rb\n", "7777,zqSecretxj\r",
    "7777\n", "7777,a,zqSecretxj\n", "\n", "\r\n", ",\n", '"7777""\n', "7777,a\udcff\n",
)
# fmt: on


def csv_lines(folder: Path) -> None:
    """One line of a CSV file: other line ends, quotes in odd places, bytes that are not UTF-8."""
    for number, line in enumerate((*WELL_FORMED_LINES, *BROKEN_LINES)):
        for end in ("\n", "\r\n") if number % 3 == 0 else ("\n",):
            homes = folders(folder / f"{number}{len(end)}")
            sides = []
            for home, mine in zip(homes, ("", line), strict=True):
                lines = [f"{person},flu{end}" for person in range(300)]
                content = f"id,k{end}" + "".join([*lines[:150], mine, *lines[150:]])
                (home / "t.csv").write_bytes(content.encode("utf-8", "surrogateescape"))
                sides.append(by_file(home, declaration({"csv": "t.csv"}, {"id": "integer", "k": "text"})))
            asked = ["SELECT k, COUNT(*) AS n, COUNT(DISTINCT id) AS m FROM t GROUP BY k"]
            compare(*sides, asked, broken=line in BROKEN_LINES, limits=[Limits(rows=1, groups=1)])


CALENDAR = (
    (pa.timestamp("ms"), 1_577_836_800_000_000_000),
    (pa.timestamp("us", "UTC"), -(2**63)),
    (pa.timestamp("us"), 2**63 - 1),
    (pa.timestamp("s"), 2**62),
    (pa.timestamp("s", "UTC"), 9_223_372_036_855),
    (pa.timestamp("ns"), -(2**63)),
    (pa.date32(), 2**31 - 1),
    (pa.timestamp("ms", "Asia/Kathmandu"), -(2**63) + 1),
)


def calendar(folder: Path) -> None:
    """A moment beyond the calendar, in a frame and in Parquet."""
    for number, (kind, moment) in enumerate(CALENDAR):
        homes = folders(folder / str(number))
        frames, files = [], []
        for home, more in zip(homes, ([], [moment]), strict=True):
            ids = pa.array([*range(5), *([77] if more else [])])
            table = pa.table({"id": ids, "d": array([0, 1, 2, 3, 4, *more], kind)})
            columns = {"id": "integer", "d": "date" if kind == pa.date32() else "timestamp"}
            frames.append(by_frame(table, columns))
            if not (kind.__class__ is pa.TimestampType and kind.unit == "s"):
                pq.write_table(table, home / "t.parquet")
                files.append(by_file(home, declaration({"parquet": "t.parquet"}, columns)))
        asked = ["SELECT d, COUNT(*) AS n FROM t WHERE YEAR(d) > 1960 GROUP BY d"]
        for sides in filter(None, (frames, files)):
            compare(*sides, asked, limits=[Limits(rows=1, groups=1)])


EXACT_UNITS: tuple[tuple[pa.DataType, Any, Any, str], ...] = (
    (pa.decimal128(38, 0), Decimal("100000000000000001"), Decimal("100000000000000003"), "decimal"),
    (pa.decimal128(38, 30), Decimal("1e-30"), Decimal("2e-30"), "decimal"),
    (pa.decimal128(38, 2), Decimal("7.25"), Decimal("7.26"), "integer"),
    (pa.decimal128(38, 0), Decimal(2**63), Decimal(2**63 + 1), "integer"),
    (pa.decimal128(38, 0), Decimal("100000000000000001"), Decimal("100000000000000003"), "text"),
    (pa.uint64(), 2**64 - 1, 2**64 - 2, "integer"),
    (pa.uint64(), 2**64 - 1, 2**64 - 2, "decimal"),
    (pa.int64(), 2**53, 2**53 + 1, "decimal"),
    (pa.timestamp("ns"), 1_577_836_800_000_000_001, 1_577_836_800_000_000_002, "timestamp"),
    (pa.timestamp("ns"), 1_577_836_800_000_000_001, 1_577_836_800_000_000_002, "timestamp"),
    (pa.timestamp("us"), 1_577_836_800_000_000, 1_577_836_800_000_001, "date"),
    (pa.float32(), 16777216.0, 16777218.0, "text"),
    (pa.float64(), 0.1, 0.2, "integer"),
    (pa.string(), "a", "A", "text"),
    (pa.string(), "a", "a ", "text"),
)


def exact_units(folder: Path) -> None:
    """Two ids that a lossy cast takes for one: the neighbour's rows push out somebody else's."""
    for number, (kind, theirs, mine, declared) in enumerate(EXACT_UNITS):
        homes = folders(folder / str(number))
        frames, files = [], []
        for home, more in zip(homes, (0, 9), strict=True):
            table = pa.table({"id": array([theirs, *[mine] * more], kind), "k": ["a", *"b" * more]})
            columns = {"id": declared, "k": "text"}
            frames.append(by_frame(table, columns))
            old = pa.types.is_timestamp(kind) and number % 2 == 1
            pq.write_table(table, home / "t.parquet", use_deprecated_int96_timestamps=old)
            files.append(by_file(home, declaration({"parquet": "t.parquet"}, columns)))
        for sides in (frames, files):
            compare(*sides, ["SELECT k, COUNT(*) AS n FROM t GROUP BY k"], limits=[Limits(rows=1, groups=1)])


VOLATILE = (
    ("CREATE VIEW t AS SELECT * FROM r USING SAMPLE 40%",),
    ("CREATE VIEW t AS SELECT * FROM r WHERE random() < 0.4",),
    ("CREATE VIEW t AS SELECT id, CASE WHEN random() < 0.5 THEN k ELSE 'z' END AS k FROM r",),
    ("CREATE TABLE t (id BIGINT, h TEXT, k TEXT AS (CASE WHEN random() < 0.5 THEN h ELSE 'z' END) VIRTUAL)",
     "INSERT INTO t SELECT id, k FROM r"),
    ("CREATE TABLE t (id BIGINT, h TEXT, k TEXT AS (h || CAST(CAST(random() * 9 AS INT) AS TEXT)) VIRTUAL)",
     "INSERT INTO t SELECT id, k FROM r"),
    ("CREATE MACRO chance() AS random()", "CREATE VIEW t AS SELECT id, k FROM r WHERE chance() < 0.5"),
    ("CREATE VIEW t AS SELECT id, k FROM r TABLESAMPLE reservoir(8 ROWS)",),
)  # fmt: skip


def volatile(folder: Path) -> None:
    """Rows that differ each time they are read: one unit alone must stay within its bound in each draw."""
    for number, statements in enumerate(VOLATILE):
        homes = folders(folder / str(number))
        sides = []
        for home, many in zip(homes, (0, 40), strict=True):
            picked = "SELECT CAST(1 AS BIGINT) AS id, CAST(range % 5 AS VARCHAR) AS k"
            rows = f"CREATE TABLE r AS {picked} FROM range({many})"
            sides.append(
                by_file(home, declaration(_database(home, rows, *statements), {"id": "integer", "k": "text"}))
            )
        asked = ["SELECT k, COUNT(*) AS n FROM t WHERE k < '3' GROUP BY k"]
        asked += ["SELECT k, COUNT(DISTINCT id) AS n FROM t WHERE k <> 'z' GROUP BY k"]
        asked += [
            "SELECT m, COUNT(*) AS n FROM (SELECT id, k, COUNT(*) AS m FROM t GROUP BY id, k) GROUP BY m"
        ]
        compare(*sides, asked, limits=[Limits(rows=1, groups=1), Limits(rows=3, groups=2, l2=True)])


RAISING = (
    "SELECT r.id, CAST(r.k AS INTEGER) AS k FROM r JOIN s USING (id)",
    "SELECT id, CAST(k AS INTEGER) AS k FROM r WHERE id IN (SELECT id FROM s)",
    "SELECT id, error(k) AS k FROM r SEMI JOIN s USING (id)",
    "SELECT id, CAST(CASE WHEN id < 70 THEN k END AS INTEGER) AS k FROM r",
    "SELECT id, CAST(MAX(k) AS INTEGER) AS k FROM r WHERE id < 70 GROUP BY id",
)


def raising_views(folder: Path) -> None:
    """A view that fails on a row that it leaves out: once a filter is pushed below what leaves it out."""
    for number, view in enumerate(RAISING):
        sides = []
        for home, mine in zip(folders(folder / str(number)), ("1", MARK), strict=True):
            made = (
                "CREATE TABLE r AS SELECT range AS id, '1' AS k FROM range(50)",
                "CREATE TABLE s AS SELECT range AS id FROM range(40)",
                f"INSERT INTO r VALUES (77, '{mine}')",
                f"CREATE VIEW t AS {view}",
            )
            source = _database(home, *made)
            sides.append(by_file(home, declaration(source, {"id": "integer", "k": "integer"})))
        asked = [f"SELECT COUNT(*) AS n FROM t WHERE {test}" for test in ("k > 0", "k = 1 AND id = 77")]
        compare(*sides, [*asked, *COUNTS], broken=True, limits=[Limits(rows=1, groups=1)])


def hive_types(folder: Path) -> None:
    """Folders that say a column's value: one person's own folder turns everybody's numbers into text."""
    for number, (others, mine, kind) in enumerate(
        (
            ("01234", "A1", "text"),
            ("2020-01-01 10:00:00", "x", "date"),
            ("7", "007", "text"),
            ("1", "x", "integer"),
        )
    ):
        homes = folders(folder / str(number))
        sides = []
        for home, extra in zip(homes, (False, True), strict=True):
            places = [(others, list(range(20)))] + ([(mine, [77])] if extra else [])
            for word, ids in places:
                (home / "t" / f"zip={word}").mkdir(parents=True)
                pq.write_table(pa.table({"id": pa.array(ids)}), home / "t" / f"zip={word}" / "0.parquet")
            columns = {"id": "integer", "zip": kind}
            sides.append(by_file(home, declaration({"parquet": "t/*/*.parquet"}, columns)))
        written = others if kind == "integer" else f"'{others[:10]}'"
        asked = [
            "SELECT zip, COUNT(*) AS n FROM t GROUP BY zip",
            f"SELECT COUNT(*) AS n FROM t WHERE zip = {written}",
        ]
        compare(*sides, asked, limits=[Limits(rows=1, groups=1)])


def wildcard_names(folder: Path) -> None:
    """A folder named by the neighbour's value, which the engine takes for a wildcard."""
    for number, name in enumerate(("*", "?", "[a-z]", "{a,b}", "[!x]", "a]b[")):
        sides = []
        for home, folded in zip(folders(folder / str(number)), (("a", "b"), ("a", "b", name)), strict=True):
            for word in folded:
                (home / f"k={word}").mkdir()
                mine = {"id": [77] if word == name else [1, 2, 3]}
                pq.write_table(pa.table(mine), home / f"k={word}" / "0.parquet")
            columns = {"id": "integer", "k": "text"}
            sides.append(by_file(home, declaration({"parquet": "k=*/*.parquet"}, columns)))
        compare(*sides, ["SELECT k, COUNT(*) AS n FROM t GROUP BY k", *COUNTS])


def nan_statistics(folder: Path) -> None:
    """Footers whose minimum and maximum leave NaN out: one more value decides what is below it."""
    sides = []
    for home, more in zip(folders(folder), ([], [2.0]), strict=True):
        held = [*[float("nan")] * 12, 0.5, *more]
        table = pa.table({"id": list(range(len(held))), "w": pa.array(held, pa.float64())})
        pq.write_table(table, home / "t.parquet")
        columns = {"id": "integer", "w": {"type": "float", "bounds": [0, 1]}}
        sides.append(by_file(home, declaration({"parquet": "t.parquet"}, columns)))
    tests = ("w < 1.0", "w > 1.0", "NOT w <= 0.75", "w BETWEEN 0 AND 1", "w = 0.5")
    asked = [f"SELECT COUNT(*) AS n FROM t WHERE {test}" for test in tests]
    asked += ["SELECT MEDIAN(w) AS m FROM t", "SELECT w < 1.0 AS k, COUNT(*) AS n FROM t GROUP BY 1"]
    compare(*sides, asked, limits=[Limits(rows=1, groups=1)])


def signed_statistics(folder: Path) -> None:
    """Footers of old writers, in whose order `é` is below `b`: one such row hides everybody's `b`."""
    sides = []
    for home, side in zip(folders(folder), ("without", "with"), strict=True):
        copyfile(DATA / f"signed_order_{side}.parquet", home / "t.parquet")
        declared = declaration({"parquet": "t.parquet"}, {"id": "integer", "k": "text"})
        sides.append(by_file(home, declared))
    tests = ("k = 'b'", "k >= 'a'", "k IN ('b', 'c')", "NOT k <> 'b'")
    asked = [f"SELECT COUNT(*) AS n FROM t WHERE {test}" for test in tests]
    compare(*sides, [*asked, "SELECT k, COUNT(*) AS n FROM t GROUP BY k"], limits=[Limits(rows=1, groups=1)])


def file_schemas(folder: Path) -> None:
    """Files of one table with other types, columns or order of columns: the neighbour's own file."""
    odd = (
        {"id": pa.array([77]), "k": pa.array([5])},
        {"id": pa.array([MARK]), "k": pa.array(["b"])},
        {"k": pa.array(["b"]), "id": pa.array([77])},
        {"id": pa.array([77])},
        {"id": pa.array([77]), "k": pa.array(["b"]), "more": pa.array([1])},
        {"id": pa.array([77], pa.int8()), "k": pa.array([b"b"])},
        {"ID": pa.array([77]), "K": pa.array(["b"])},
    )
    for number, mine in enumerate(odd):
        for name in ("0", "z"):
            homes = folders(folder / f"{number}{name}")
            sides = []
            for home, extra in zip(homes, (False, True), strict=True):
                pq.write_table(pa.table({"id": list(range(20)), "k": ["a"] * 20}), home / "5.parquet")
                if extra:
                    pq.write_table(pa.table(mine), home / f"{name}.parquet")
                sides.append(
                    by_file(home, declaration({"parquet": "*.parquet"}, {"id": "integer", "k": "text"}))
                )
            compare(
                *sides,
                ["SELECT k, COUNT(*) AS n FROM t GROUP BY k"],
                broken=True,
                limits=[Limits(rows=1, groups=1)],
            )


def quoted_rows(folder: Path) -> None:
    """An engine's own message quotes the row at fault; ours, with everything behind it, does not."""
    frame = pa.table({"id": [1, 2], "k": [MARK, MARK]})
    with by_frame(frame, {"id": "integer", "k": "text"})() as curator:
        for cast in ("CAST(k AS INTEGER)", "CAST(k AS DATE)", "CAST(CAST(k AS UUID) AS VARCHAR)"):
            outcome = attempt(lambda cast=cast: curator._backend.run(tree(f"SELECT {cast} AS v FROM t")))  # type: ignore[misc]
            if outcome.error is None:
                raise Broken("a cast that raises did not", cast)
            check_silence(outcome, (MARK,))


DUCKDB_ATTACKS: tuple[Callable[[Path], None], ...] = (
    constant_keys,
    collations,
    collated_units,
    csv_blocks,
    csv_borders,
    csv_lines,
    calendar,
    exact_units,
    volatile,
    raising_views,
    hive_types,
    wildcard_names,
    nan_statistics,
    signed_statistics,
    file_schemas,
    quoted_rows,
)
