"""Which groups an answer says are hidden, held to how often they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom

from incrowd import Curator
from incrowd.curator.request import Request
from incrowd.curator.showing import sentences, shown_sizes

COUNTED = "SELECT place, COUNT(DISTINCT id) AS n FROM t GROUP BY place"
SUMMED = "SELECT place, SUM(x) AS n FROM t GROUP BY place"
ROWS = "SELECT place, COUNT(*) AS n FROM t GROUP BY place"
CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "rows": ("row", ROWS, {}),
    "one group": ("id", COUNTED, {"groups": 1}),
    "one row": ("id", ROWS, {"contribution": 1}),
    "many groups": ("id", COUNTED, {"groups": 30}),
    "weights": ("id", SUMMED, {"contribution": 1}),
    "selection": ("row", SUMMED, {}),
}


def crowd(size: int, groups: int) -> pa.Table:
    """Groups of one size, whose people are in no other group."""
    people = np.arange(size * groups)
    places = [f"p{group:04}" for group in people // size]
    return pa.table({"id": people, "place": places, "x": np.zeros(len(people))})


def curator(table: pa.Table, unit: str) -> Curator:
    return Curator.from_tables(t=table, unit=unit, bounds={"x": (0, 1)}, budget=(1e6, 0.5))


@pytest.mark.statistical
@pytest.mark.parametrize("name", CASES)
def test_groups_are_shown_as_often_as_is_said(name: str) -> None:
    """1,600 groups of the sizes that are named, and one less; fails by chance below 1e-6."""
    unit, sql, options = CASES[name]
    with curator(crowd(1, 1), unit) as small:
        question = small.prepare(Request(sql, 3.0, delta=1e-4, **options))
        price = small.price_of(question)
        (leaf,) = question.plan.leaves
        (line,) = (line for line in price.lines if line.delta)
        half, usual = shown_sizes(leaf, line)
    assert f"fewer than {half:,} units" in price.notes[-1] and f"{usual:,} is shown 95%" in price.notes[-1]
    sizes = ((half, 0.5, 0.97), (half - 1, 0.05, 0.5), (usual, 0.95, 1.0), (usual - 1, 0.5, 0.95))
    for size, low, high in sizes:
        with curator(crowd(size, 200), unit) as large:
            question = large.prepare(Request(sql, 3.0, delta=1e-4, **options))
            exact = large.execute(question, large.choose_caps(question, price))
            shown = sum(large.noise(exact, price)[0].table.num_rows for _ in range(8))
        assert binom.cdf(shown, 1_600, low) > 1e-7 and binom.sf(shown - 1, 1_600, high) > 1e-7, size


def test_an_answer_says_which_groups_are_hidden_once_the_cap_is_known() -> None:
    with curator(crowd(300, 4), "id") as asked:
        price = asked.price(COUNTED, 1.0, delta=1e-6)
        assert price.notes[-1] == "Small groups are hidden; below which size is known with the answer."
        answer = asked.ask(COUNTED, 1.0, delta=1e-6)
        (said,) = sentences(answer.plan, price.lines, answer.released)
        assert said in answer.notes and said in str(answer)
        assert said.startswith("Small groups are hidden: one of fewer than")


@pytest.mark.parametrize(
    ("name", "last"),
    [
        ("weights", "A unit in several groups counts for less in each."),
        ("many groups", "A unit in more than 2,048 groups counts in none."),
        ("rows", "is shown 95% of the time."),
    ],
)
def test_what_becomes_of_units_in_many_groups_is_said(name: str, last: str) -> None:
    unit, sql, options = CASES[name]
    with curator(crowd(3, 3), unit) as asked:
        assert asked.price(sql, 1.0, delta=1e-6, **options).notes[-1].endswith(last)


def test_where_keys_are_public_nothing_is_hidden() -> None:
    with curator(crowd(3, 3), "id") as asked:
        price = asked.price("SELECT COUNT(DISTINCT id) AS n FROM t", 1.0)
        assert not any("hidden" in note for note in price.notes)
