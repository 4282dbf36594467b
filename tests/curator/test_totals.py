"""Totals and shares as they are asked for: what they cost, and that the numbers fit to each other."""

from __future__ import annotations

import pyarrow as pa
import pytest

from incrowd import Curator

SIZE = 900
PEOPLE = pa.table(
    {
        "id": range(SIZE),
        "ward": [["a", "b", "c"][i % 3 if i % 2 else 0] for i in range(SIZE)],
        "sex": [["f", "m"][i % 7 < 3] for i in range(SIZE)],
        "cost": [float(i % 100) for i in range(SIZE)],
    }
)
COUNTS = "SELECT ward, COUNT(*) AS n FROM people GROUP BY ward"


@pytest.fixture
def curator() -> Curator:
    return Curator.from_tables(
        people=PEOPLE,
        unit="id",
        bounds={"cost": (0, 100)},
        domains={"ward": ["a", "b", "c"], "sex": ["f", "m"]},
        budget=(1e4, 1e-3),
    )


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT ward, COUNT(*) AS n, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS s FROM people GROUP BY ward",
        f"SELECT ward, n, n * 1.0 / (SELECT SUM(n) FROM ({COUNTS})) AS s FROM ({COUNTS})",
        f"WITH t AS ({COUNTS}), u AS (SELECT SUM(n) AS m FROM t) SELECT ward, n, n * 1.0 / m AS s FROM t, u",
    ],
)
def test_a_share_costs_what_its_counts_cost(curator: Curator, sql: str) -> None:
    counts = curator.ask(COUNTS, epsilon=1.0).to_arrow().to_pydict()
    answer = curator.ask(sql, epsilon=1.0)
    table = answer.to_arrow(0.95).to_pydict()
    assert answer.recalled and answer.paid == (0, 0)
    assert dict(zip(table["ward"], table["n"], strict=True)) == dict(
        zip(counts["ward"], counts["n"], strict=True)
    )
    assert sum(table["s"]) == pytest.approx(1.0)
    assert all(
        low < s < high
        for low, s, high in zip(table["s_low"], table["s"], table["s_high"], strict=True)
        if s > 0.1
    )


def test_sub_queries_share_the_price_and_the_same_one_is_paid_once(curator: Curator) -> None:
    sql = "SELECT ward, COUNT(*) * 1.0 / (SELECT COUNT(*) FROM people) AS s FROM people GROUP BY ward"
    price = curator.price(sql, epsilon=1.0)
    assert sum(1 for line in price.lines if line.kind == "sum") == 2 and price.epsilon == 1.0
    twice = "SELECT (SELECT COUNT(*) FROM people) + (SELECT COUNT(*) FROM people) AS t"
    assert (
        curator.price(twice, epsilon=1.0).lines
        == curator.price("SELECT COUNT(*) FROM people", epsilon=1.0).lines
    )


def test_the_branches_of_a_union_add_up(curator: Curator) -> None:
    sql = (
        "SELECT 'a' AS w, COUNT(*) AS n FROM people WHERE cost < 50 "
        "UNION ALL SELECT 'b', COUNT(*) FROM people WHERE cost >= 20 ORDER BY n"
    )
    price = curator.price(sql, epsilon=1.0)
    for leaf in (0, 1):
        assert float(sum(line.epsilon for line in price.lines if line.leaf == leaf)) == 0.5
    table = curator.ask(sql, epsilon=1.0).to_arrow(0.95).to_pydict()
    assert list(table) == ["w", "n", "n_low", "n_high"] and table["w"] == ["a", "b"]
    assert all(
        low <= n <= high for low, n, high in zip(table["n_low"], table["n"], table["n_high"], strict=True)
    )


def test_ranks_say_that_they_have_no_interval(curator: Curator) -> None:
    answer = curator.ask(
        "SELECT ward, RANK() OVER (ORDER BY COUNT(*)) AS r FROM people GROUP BY ward", epsilon=1.0
    )
    assert answer.to_arrow(0.95).column_names == ["ward", "r"]
    assert any(note.startswith("r: ranks") for note in answer.notes)


def test_a_number_inside_a_condition_is_refused_with_a_remedy_that_works(curator: Curator) -> None:
    from incrowd import QueryError

    with pytest.raises(QueryError, match="ask for its number by itself first"):
        curator.ask("SELECT COUNT(*) FROM people WHERE cost > (SELECT AVG(cost) FROM people)", epsilon=1.0)
    (row,) = curator.ask("SELECT AVG(cost) AS a FROM people", epsilon=1.0).to_arrow().to_pylist()
    answer = curator.ask(f"SELECT COUNT(*) AS n FROM people WHERE cost > {row['a']}", epsilon=1.0)
    assert len(answer) == 1


def test_a_sub_query_over_no_rows_fails_into_null_and_not_into_an_error(curator: Curator) -> None:
    sql = "SELECT ward, COUNT(*) // (SELECT COUNT(*) FROM people WHERE cost > 99) FROM people GROUP BY 1"
    assert len(curator.ask(sql, epsilon=5.0)) == 4
