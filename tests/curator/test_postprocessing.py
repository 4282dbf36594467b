"""The SQL above released numbers: refused before anything is paid, or answered whatever was released."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pytest

from incrowd import Curator, QueryError
from incrowd.curator import postprocessing
from incrowd.curator.sandbox import Sandbox, SandboxError

PEOPLE = pa.table({"id": range(40), "x": [float(i % 7) for i in range(40)], "g": [i % 2 for i in range(40)]})


@pytest.fixture
def curator() -> Curator:
    bounds = {"x": (0, 10), "g": (0, 1)}
    return Curator.from_tables(people=PEOPLE, unit="id", bounds=bounds, budget=(1e4, 1e-3))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT n, len(range(3000000000)) AS m FROM (SELECT COUNT(*) AS n FROM people)",
        "SELECT n, len(range(n * 1000000000)) AS m FROM (SELECT COUNT(*) AS n FROM people)",
        "SELECT n, no_such_function(n) AS m FROM (SELECT COUNT(*) AS n FROM people)",
        "SELECT n || 'x' + 1 AS m FROM (SELECT COUNT(*) AS n FROM people)",
    ],
)
def test_what_cannot_run_is_refused_before_it_is_paid(curator: Curator, sql: str) -> None:
    with pytest.raises(QueryError, match="cannot run"):
        curator.ask(sql, epsilon=1.0)
    assert curator.budget()[0].spent.epsilon == 0


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT CAST(COUNT(*) * 10 AS TINYINT) AS n FROM people", [None]),
        ("SELECT SQRT(SUM(x) - 500) AS n FROM people", [None]),
        ("SELECT COUNT(*) // 0 AS n FROM people", [None]),
        (f"SELECT {' * '.join('n' * 13)} AS n FROM (SELECT COUNT(*) AS n FROM people)", [None]),
        ("SELECT CAST(REPEAT('1', m) AS TINYINT) AS n FROM (SELECT COUNT(*) AS m FROM people)", [None]),
    ],
)
def test_what_is_paid_is_answered(curator: Curator, sql: str, expected: list[object]) -> None:
    answer = curator.ask(sql, epsilon=50.0, contribution=1)
    assert answer.to_arrow().column("n").to_pylist() == expected
    with_ends = answer.to_arrow(0.9)
    assert with_ends.column("n").to_pylist() == expected
    assert "nan" not in str(answer)
    again = curator.ask(sql, epsilon=50.0, contribution=1)
    assert again.recalled and again.to_arrow() == answer.to_arrow()


def test_what_fails_in_spite_of_all_has_its_columns_and_says_why(
    curator: Curator, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = "SELECT g, list_sum(list(n)) AS m FROM (SELECT g, COUNT(*) AS n FROM people GROUP BY g) GROUP BY g"
    answer = curator.ask(sql, epsilon=50.0, contribution=1)
    assert answer.to_arrow().num_rows == 3
    run = postprocessing._run

    def failing(query: object, tables: list[pa.Table], public: object) -> pa.Table:
        if tables[0].num_rows:
            raise SandboxError("Out of Range Error: too large")
        return run(query, tables, public)  # type: ignore[arg-type]

    monkeypatch.setattr(postprocessing, "_run", failing)
    again = replace(answer, _cache={})
    assert again.to_arrow().schema == answer.to_arrow().schema and len(again) == 0
    assert "failed" in again.notes[-1] and "too large" in again.notes[-1]


def test_ordinary_questions_need_no_child(curator: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_child() -> None:
        raise AssertionError("a child was started")

    monkeypatch.setattr(postprocessing, "sandbox", no_child)
    sql = "SELECT g, AVG(x) AS m, COUNT(*) AS n FROM people GROUP BY g HAVING COUNT(*) > 3 ORDER BY m LIMIT 2"
    assert curator.ask(sql, epsilon=50.0, contribution=1).to_arrow(0.95).num_rows == 2


def test_rows_that_multiply_go_to_the_child(curator: Curator) -> None:
    counts = "SELECT g, COUNT(*) AS n FROM people GROUP BY g"
    sql = f"SELECT COUNT(*) AS pairs FROM ({counts}) AS a, ({counts}) AS b"
    answer = curator.ask(sql, epsilon=50.0, contribution=1)
    assert not postprocessing._plain(answer.plan.outer)
    assert answer.to_arrow().to_pydict() == {"pairs": [9]}


COUNTS = "(SELECT g, COUNT(*) AS n, SUM(x) AS s FROM people GROUP BY g) AS q"


@pytest.fixture
def small_sandbox(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    small = Sandbox(memory=1 << 27, seconds=2)
    monkeypatch.setattr(postprocessing, "sandbox", lambda: small)
    yield
    small.close()


@pytest.mark.parametrize("of", ["g", "n", "s"])
@pytest.mark.usefixtures("small_sandbox")
def test_a_text_that_takes_all_memory_is_refused_before_it_is_paid(curator: Curator, of: str) -> None:
    with pytest.raises(QueryError, match=r"cannot run: it takes more than 128 MB of memory or 2 seconds"):
        curator.ask(f"SELECT g, rpad(CAST({of} AS TEXT), 2000000000, 'y') AS r FROM {COUNTS}", epsilon=1.0)
    assert curator.budget()[0].spent.epsilon == 0


@pytest.mark.usefixtures("small_sandbox")
def test_what_exhausts_the_sandbox_after_all_is_null_and_the_rest_is_kept(curator: Curator) -> None:
    # It is small on the numbers that it is tried on, and huge near the true ones.
    made = "rpad('', CASE WHEN n BETWEEN 15 AND 25 THEN 2000000000 ELSE 1 END, 'y')"
    answer = curator.ask(f"SELECT g, n, {made} AS r FROM {COUNTS} ORDER BY g", epsilon=50.0, contribution=1)
    rows = list(answer)
    assert len(rows) == 3 and {row["r"] for row in rows} == {None}
    assert all(abs(row["n"] - 20) < 5 for row in rows[:2])
    assert answer.notes[-1].startswith(
        "r could not be computed from the released numbers and is NULL: it takes"
    )
    assert answer.to_arrow(0.9).num_rows == 3


@pytest.mark.usefixtures("small_sandbox")
def test_the_released_numbers_can_always_be_read(curator: Curator) -> None:
    made = "length(rpad('', CASE WHEN n BETWEEN 15 AND 25 THEN 2000000000 ELSE 1 END, 'y')) > 0"
    answer = curator.ask(f"SELECT g, n FROM {COUNTS} WHERE {made}", epsilon=50.0, contribution=1)
    assert len(answer) == 0 and "answer.numbers() has the numbers" in answer.notes[-1]
    (numbers,) = answer.numbers()
    assert numbers.column_names == ["g", "COUNT(*)", "SUM(x)"] and numbers.num_rows == 3
    assert "COUNT(*)_low" in answer.numbers(0.9)[0].column_names


@pytest.mark.parametrize(
    "aggregate",
    [
        "PRODUCT(n)", "PRODUCT(n * 2) + 1", "SQRT(PRODUCT(ABS(n)))", "histogram(n)", "entropy(n)", "mad(s)",
        "geomean(ABS(s) + 1)", "fsum(s)", "favg(s)", "kahan_sum(s)", "sum_no_overflow(CAST(n AS INT))",
        "arbitrary(n)", "reservoir_quantile(s, 0.5)", "histogram_exact(n, [1, 2])", "arg_max_null(g, n)",
        "PRODUCT(n) FILTER (WHERE n > 1)", "approx_top_k(n, 2)", "any_value(n)", "regr_slope(s, n)",
    ],
)  # fmt: skip
def test_every_aggregate_of_the_engine_works_over_released_numbers(curator: Curator, aggregate: str) -> None:
    answer = curator.ask(f"SELECT {aggregate} AS v FROM {COUNTS}", epsilon=50.0, contribution=1)
    assert len(answer) == 1 and answer.notes == ()
    grouped = curator.ask(
        f"SELECT g, {aggregate} AS v FROM {COUNTS} GROUP BY g", epsilon=50.0, contribution=1
    )
    assert len(grouped) == 3


def test_windows_of_such_aggregates_work_too(curator: Curator) -> None:
    sql = f"SELECT g, PRODUCT(n) OVER (ORDER BY g) AS v FROM {COUNTS}"
    assert len(curator.ask(sql, epsilon=50.0, contribution=1)) == 3


def test_the_sql_above_reads_each_number_between_its_ends(curator: Curator) -> None:
    answer = curator.ask("SELECT SUM(x) AS s, COUNT(*) AS n FROM people", epsilon=0.5, contribution=1)
    (leaf,), (released,) = answer.plan.leaves, answer.released
    (row,) = postprocessing.released_table(leaf, released, 0.9).to_pylist()
    for aggregate in leaf.aggregates:
        low, value, high = (row[aggregate.name + suffix] for suffix in ("_low", "", "_high"))
        assert low <= value <= high and low < high
    plain = postprocessing.released_table(leaf, released, None)
    assert plain.column_names == [aggregate.name for aggregate in leaf.aggregates]


@pytest.mark.parametrize("unit", ["id", "row"])
def test_an_interval_of_a_huge_whole_sum_is_not_cut(unit: str) -> None:
    rows, value = 1_000, 2 * 10**18
    table = pa.table({"id": range(rows), "x": pa.array([value] * rows, pa.int64())})
    with Curator.from_tables(t=table, unit=unit, bounds={"x": (0, value)}, budget=(20.0, 0.0)) as curator:
        answer = curator.ask("SELECT SUM(x) AS s, COUNT(*) AS n FROM t", epsilon=20.0)
        (row,) = answer.to_arrow(intervals=0.999999).to_pylist()
        assert row["s_low"] < rows * value < row["s_high"] and row["s_low"] < row["s"] < row["s_high"]
        assert answer.to_arrow().schema.field("s").type == pa.float64()
        assert answer.to_arrow().schema.field("n").type == pa.int64()
