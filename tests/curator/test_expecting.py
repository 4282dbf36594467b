"""What a price says about widths that depend on the data, beside the widths of answers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from incrowd import Curator
from incrowd.curator.caveats import Expected
from incrowd.curator.expecting import ROWS
from incrowd.curator.piloting import halfwidths

KINDS = ("AVG(x)", "VAR_POP(x)", "STDDEV(x)", "COVAR_POP(x, y)")


def curator(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Curator:
    table = pa.table({"id": np.arange(len(values)), "x": values, "y": values[::-1] / 10})
    return Curator.from_tables(t=table, bounds={"x": (0, 100), "y": (0, 10)}, budget=(19.0, 0.0))


def shapes() -> list[np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """Values spread evenly, at both bounds, over the upper quarter, and around 80."""
    even = np.random.default_rng(3).permutation(np.linspace(0, 100, ROWS))
    return [even, np.where(even < 50, 0.0, 100.0), 75 + even / 4, 60 + even * 0.4]


@pytest.mark.parametrize("aggregate", KINDS)
def test_the_width_in_a_group_of_1000_rows_is_the_widest_that_answers_have(aggregate: str) -> None:
    """By 1.3 at most, for an answer's own numbers are noisy, by a part in 40; and not far above them."""
    sql = f"SELECT {aggregate} AS a FROM t"
    widths = []
    for values in shapes():
        with curator(values) as made:
            stated = made.price(sql, 8.0).expected["a"]
            widths.append(halfwidths(made.ask(sql, 8.0))["a"])
    assert stated.rows == ROWS and not stated.ranks
    assert 0.5 * stated.halfwidth <= max(widths) <= 1.3 * stated.halfwidth, (stated, widths)


def test_a_correlation_is_stated_for_values_that_are_spread_evenly() -> None:
    sql = "SELECT CORR(x, y) AS a FROM t"
    with curator(shapes()[0]) as made:
        stated = made.price(sql, 10.0).expected["a"].halfwidth
        assert halfwidths(made.ask(sql, 10.0))["a"] == pytest.approx(stated, rel=0.5)


@pytest.mark.parametrize("ranks", [(0.5,), (0.1, 0.25, 0.5, 0.9)])
def test_a_quantile_is_stated_in_ranks(ranks: tuple[float, ...]) -> None:
    """Values are ranks here: 20,000 rows from 0 to 100, 200 of them in 1. Ends lie at powers of two."""
    sql = "SELECT " + ", ".join(f"QUANTILE_CONT(x, {rank}) AS q{round(rank * 100)}" for rank in ranks)
    with curator(np.linspace(0, 100, 20_000)) as made:
        stated = made.price(f"{sql} FROM t", 0.5).expected["q50"]
        width = halfwidths(made.ask(f"{sql} FROM t", 0.5))["q50"]
    assert stated.ranks and stated.rows is None
    assert stated.halfwidth / 4 <= 200 * width <= 4 * stated.halfwidth, (stated, width)


def test_nothing_is_said_of_what_is_bought_from_the_data() -> None:
    table = pa.table({"id": [1, 1, 2], "x": [1.0, 2.0, 3.0]})
    with Curator.from_tables(t=table, unit="id", bounds={"x": (0, 100)}, budget=(1.0, 0.0)) as made:
        assert made.price("SELECT AVG(x) AS a, SUM(x) AS s FROM t", 0.5).expected == {}
        assert set(made.price("SELECT AVG(x) AS a FROM t", 0.5, contribution=3).expected) == {"a"}


def test_it_is_one_short_sentence() -> None:
    assert str(Expected(3.14159, 1_000)) == "± 3.14 in a group of 1,000 rows"
    assert str(Expected(1234.5, ranks=True)) == "± 1,234 ranks"
    assert str(Expected(12.0, 5_432.0, ranks=True)) == "± 12 ranks of about 5,400 in a group"
