"""PARTITION BY, ORDER BY and frames: what is written out, which rows it holds, and what is refused."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
import pytest
from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query import parse
from incrowd.query.ownership import World, select_rows, sources
from incrowd.query.rules import rewrite
from incrowd.query.windows.window_frames import MOST_OFFSET, Over, over_of, whole_offset
from tests.backends.houses import catalog_of, engine_of, public_fields

FIRST, HERE, LAST = ("UNBOUNDED", "PRECEDING"), ("CURRENT ROW", ""), ("UNBOUNDED", "FOLLOWING")


def tree_of(sql: str, mode: str = "user") -> tuple[exp.Select, World]:
    world = World(catalog_of(mode), public_fields(engine_of(mode)))
    tree = rewrite(parse(sql).tree, world)
    assert isinstance(tree, exp.Select)
    return tree, world


def over(words: str, source: str = "visits", mode: str = "user") -> Over:
    tree, world = tree_of(f"SELECT COUNT(x) OVER ({words}) AS w FROM {source}", mode)
    window = tree.find(exp.Window)
    assert window is not None
    return over_of(window, sources(tree, world))


def values(function: str, words: str, xs: list[Any]) -> list[Any]:
    """A window over the rows of one person, in the order of x and then of the window."""
    select = f"SELECT user_id, x, {function} OVER (PARTITION BY user_id {words}) AS w FROM visits"
    sql = select_rows(*tree_of(select)).sql.sql("duckdb")
    with duckdb.connect(":memory:") as engine:
        engine.register("visits", pa.table({"user_id": [1] * len(xs), "x": pa.array(xs, pa.int64())}))
        return [row[0] for row in engine.execute(f"SELECT w FROM ({sql}) ORDER BY x, w").fetchall()]


@pytest.mark.parametrize(
    ("words", "frame"),
    [
        ("", ("RANGE", FIRST, LAST)),
        ("ORDER BY x", ("RANGE", FIRST, HERE)),
        ("RANGE CURRENT ROW", ("RANGE", FIRST, LAST)),
        ("ORDER BY 1", ("RANGE", FIRST, LAST)),
        ("ORDER BY x ROWS 2 PRECEDING", ("ROWS", ("2", "PRECEDING"), HERE)),
        (
            "ORDER BY x ROWS BETWEEN 1 FOLLOWING AND 3 FOLLOWING",
            ("ROWS", ("1", "FOLLOWING"), ("3", "FOLLOWING")),
        ),
        ("ORDER BY x RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING", ("RANGE", HERE, LAST)),
        (f"ORDER BY x ROWS {MOST_OFFSET} PRECEDING", ("ROWS", (f"{MOST_OFFSET}", "PRECEDING"), HERE)),
    ],
)
def test_every_frame_is_written_out(words: str, frame: Any) -> None:
    found = over(f"PARTITION BY user_id {words}")
    assert (found.kind, found.start, found.end) == frame


@pytest.mark.parametrize(
    ("words", "counts", "least"),
    [
        # x is 1, 3, 3, 8, NULL in this order; the two 3s are peers, listed by what the window gives them.
        ("", [4] * 5, [1] * 5),
        ("ORDER BY x", [1, 3, 3, 4, 4], [1] * 5),
        ("ORDER BY x RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING", [4, 3, 3, 1, 0], [1, 3, 3, 8, None]),
        ("ORDER BY x ROWS BETWEEN 1 PRECEDING AND CURRENT ROW", [1, 2, 2, 2, 1], [1, 1, 3, 3, 8]),
        ("ORDER BY x ROWS BETWEEN 2 FOLLOWING AND 3 FOLLOWING", [2, 0, 1, 0, 0], [3, 8, None, None, None]),
        ("ORDER BY x ROWS BETWEEN CURRENT ROW AND 1000000 FOLLOWING", [4, 2, 3, 1, 0], [1, 3, 3, 8, None]),
    ],
)
def test_a_frame_holds_the_rows_worked_out_by_hand(
    words: str, counts: list[int], least: list[int | None]
) -> None:
    xs = [3, None, 1, 8, 3]
    assert values("COUNT(x)", words, xs) == counts
    assert values("MIN(x)", words, xs) == least
    assert values("COUNT(x)", words, []) == []


def test_constants_order_nothing_and_every_other_column_breaks_ties() -> None:
    found = over("PARTITION BY user_id, 'all' ORDER BY 7, x DESC, NULL")
    assert [key.name for key in found.partition] == ["user_id"]
    assert [(key.this.name, key.args["desc"]) for key in found.order] == [("x", True)]
    ties = [key.this.find(exp.Column).name for key in found.ties]
    assert set(ties) == {"day", "f", "n", "p", "cat", "city", "b", "grp", "t", "d", "ts"}
    assert len(ties) == len(set(ties))


def test_zeros_of_both_signs_are_in_one_partition_and_tie() -> None:
    for words in ("PARTITION BY user_id, f", "PARTITION BY user_id ORDER BY f"):
        sql = over(words).peers(exp.Rank()).sql("duckdb")
        with duckdb.connect(":memory:") as engine:
            engine.register("visits", pa.table({"user_id": [1, 1, 1], "f": [0.0, -0.0, None]}))
            ranks = sorted(row[0] for row in engine.execute(f"SELECT {sql} FROM visits").fetchall())
        assert ranks == ([1, 1, 1] if "ORDER" not in words else [1, 1, 3])


def test_a_function_of_single_rows_has_the_ties_and_one_of_peers_has_not() -> None:
    found = over("PARTITION BY user_id ORDER BY x")
    for window, keys in (
        (found.peers(exp.Rank()), 1),
        (found.ordered(exp.RowNumber()), 1 + len(found.ties)),
        (found.framed(exp.Count(this=exp.Star())), 1),
    ):
        assert len(window.args["order"].expressions) == keys
    with pytest.raises(QueryError, match="would take one of several rows that tie; write ROWS BETWEEN"):
        found.row(exp.LastValue(this=exp.column("x")), first=False)
    assert found.row(exp.FirstValue(this=exp.column("x")), first=True).args["spec"].args["kind"] == "ROWS"


@pytest.mark.parametrize(
    ("written", "least", "number"),
    [("0", 0, 0), ("1", 1, 1), ("1000000", 0, 1_000_000), ("007", 0, 7)],
)
def test_an_offset_is_a_whole_number(written: str, least: int, number: int) -> None:
    assert whole_offset(exp.Literal.number(written), "LAG", least) == number
    assert whole_offset(None, "LAG", least, default=1) == 1


@pytest.mark.parametrize(
    "node",
    [
        None,
        exp.Literal.number("0"),
        exp.Literal.number("1000001"),
        exp.Literal.number("1" * 400),
        exp.Literal.number("1.0"),
        exp.Literal.number("1e3"),
        exp.Literal.number("²"),
        exp.Literal.string("1"),
        exp.Neg(this=exp.Literal.number("1")),
        exp.column("x"),
        exp.null(),
    ],
)
def test_any_other_offset_is_refused(node: exp.Expr | None) -> None:
    with pytest.raises(QueryError) as refusal:
        whole_offset(node, "NTILE", least=1)
    assert "NTILE needs a whole number from 1 to 1,000,000, such as 1." in str(refusal.value)


@pytest.mark.parametrize(
    ("words", "source", "mode", "said"),
    [
        ("PARTITION BY x", "visits", "user", "begin its window with PARTITION BY user_id, or put it over"),
        ("PARTITION BY user_id", "visits", "per", "begin its window with PARTITION BY user_id, day, or"),
        ("", "visits", "row", "each row is a person of its own here. Aggregate with GROUP BY"),
        ("", "(SELECT x FROM visits) AS v", "user", "select the column of the protected unit in each sub-"),
        (
            "PARTITION BY user_id ORDER BY x RANGE BETWEEN 1 PRECEDING AND CURRENT ROW",
            "visits",
            "user",
            "has a frame measured in values",
        ),
        ("PARTITION BY user_id ROWS 1000001 PRECEDING", "visits", "user", "A frame needs a whole number"),
        ("PARTITION BY user_id ROWS BETWEEN 1 FOLLOWING AND CURRENT ROW", "visits", "user", "ends before it"),
        ("PARTITION BY user_id GROUPS 1 PRECEDING", "visits", "user", "has a frame that not every engine"),
    ],
)  # fmt: skip
def test_refusals_say_what_to_write(words: str, source: str, mode: str, said: str) -> None:
    with pytest.raises(QueryError) as refusal:
        over(words, source, mode)
    assert said in str(refusal.value)
