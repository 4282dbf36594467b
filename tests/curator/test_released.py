"""What a leaf released: bytes and back, intervals from the noise, and the factor that undoes shrinking."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from incrowd.curator.rank_tree import Shape, Tree
from incrowd.curator.ratios import Noise, interval
from incrowd.curator.released import Noisy, Released, Stated, pack, unpack
from incrowd.mechanisms import Gaussian, Laplace
from incrowd.query import Aggregate, Leaf, Measure

SCALES = st.fractions(min_value=Fraction(1, 1000), max_value=2**40)
NOISY = st.builds(
    Noisy, st.sampled_from(["laplace", "gaussian"]), SCALES, st.sampled_from([2.0**-30, 1.0, 8.0])
)
STATED = st.builds(Stated, st.floats(0, 1e30), st.integers(0, 2**62), st.floats(0, 1e60))
INTEGERS = st.integers(-(2**63), 2**63 - 1)


@st.composite
def releases(draw: st.DrawFn) -> Released:
    size = draw(st.integers(0, 4))
    keys = draw(st.lists(st.none() | st.text(max_size=5), min_size=size, max_size=size))
    values = draw(st.lists(INTEGERS, min_size=size, max_size=size))
    return Released(
        pa.table({"k0": pa.array(keys, pa.string()), "m0": pa.array(values, pa.int64())}),
        {"m0": draw(NOISY)},
        draw(st.dictionaries(st.text(max_size=5), st.floats(0, 1e30), max_size=2)),
        draw(st.dictionaries(st.just("m0"), st.tuples(INTEGERS, INTEGERS, NOISY, NOISY))),
        draw(st.dictionaries(st.just("m0"), STATED)),
        draw(st.floats(0.01, 0.99)),
    )


@given(NOISY)
def test_noise_comes_back_from_json(noise: Noisy) -> None:
    assert Noisy.from_json(noise.to_json()) == noise


@given(releases())
def test_a_release_comes_back_from_bytes(released: Released) -> None:
    assert Released.from_bytes(released.to_bytes()) == released


@given(st.lists(releases(), max_size=3))
@settings(max_examples=30)
def test_releases_come_back_in_order(released: list[Released]) -> None:
    assert unpack(pack(released)) == tuple(released)


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_a_halfwidth_is_that_of_the_noise_times_the_step(confidence: float) -> None:
    scale = Fraction(700)
    laplace, gaussian = Noisy("laplace", scale, 0.25), Noisy("gaussian", scale, 4.0)
    assert laplace.halfwidth(confidence) == Laplace(scale=scale).halfwidth(confidence) * 0.25
    assert gaussian.halfwidth(confidence) == Gaussian(scale=scale).halfwidth(confidence) * 4
    assert laplace.halfwidth(confidence) == pytest.approx(-700 * np.log(1 - confidence) / 4, rel=0.01)


def measure(name: str, **changes: object) -> Measure:
    plain = Measure(name, "row", "own", None, exp.column("x"), -8.0, 8.0, cap=8.0)
    return replace(plain, **changes)  # type: ignore[arg-type]


def leaf(*aggregates: Aggregate, **measures: Measure) -> Leaf:
    return Leaf(exp.select("1"), ("u0",), False, (), measures, aggregates, 1, ("t",))


SUM = Aggregate("a0", "sum", "SUM(x)", ("m0",))
NOISE = Noisy("laplace", Fraction(1000), 0.5)


def test_a_column_is_in_values_and_its_interval_that_of_its_noise() -> None:
    released = Released(pa.table({"m0": [100, -40]}), {"m0": NOISE})
    span = released.columns(leaf(SUM, m0=measure("m0")), 0.9)["a0"]
    assert span.value.tolist() == [50.0, -20.0]
    assert (span.high - span.value).tolist() == [NOISE.halfwidth(0.9)] * 2
    assert (span.value - span.low).tolist() == [NOISE.halfwidth(0.9)] * 2


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_a_deviation_is_that_of_the_noise_times_the_step(kind: str) -> None:
    noise = Noisy(kind, Fraction(50), 0.25)
    draws = (Laplace if kind == "laplace" else Gaussian)(scale=Fraction(50)).release(np.zeros(200_000, int))
    # The deviation of 200,000 draws is within 1% of the true one but for a chance below 1e-6.
    assert noise.deviation == pytest.approx(draws.std() * 0.25, rel=0.01)
    assert noise.in_values == Noise(kind, 12.5)


AVERAGE = Aggregate("a0", "avg", "AVG(x)", ("m0", "m1"))


def test_an_average_over_a_sure_count_is_as_wide_as_the_noise_of_its_sum() -> None:
    count = Noisy("laplace", Fraction(1, 10**6))
    released = Released(pa.table({"m0": [0], "m1": [10_000]}), {"m0": NOISE, "m1": count})
    measures = {"m0": measure("m0", weighing="rows"), "m1": measure("m1", value=None)}
    span = released.columns(leaf(AVERAGE, **measures), 0.9)["a0"]
    assert span.high[0] == pytest.approx(NOISE.halfwidth(0.9) / 10_000, rel=1e-3)
    assert span.low[0] == -span.high[0] and span.value[0] == 0


def test_an_average_is_wider_where_its_count_is_noisy_too() -> None:
    """4,000 over 1,000 rows: the noises of the sum, and of 4 times the count, are alike."""
    released = Released(
        pa.table({"m0": [8_000], "m1": [1_000]}), {"m0": NOISE, "m1": Noisy("laplace", Fraction(125))}
    )
    measures = {"m0": measure("m0", weighing="rows"), "m1": measure("m1", value=None)}
    span = released.columns(leaf(AVERAGE, **measures), 0.9)["a0"]
    low, high = interval(
        np.array([4_000.0]),
        np.array([1_000.0]),
        (Noise("laplace", 500.0), Noise("laplace", 125.0)),
        (-8, 8),
        0.9,
    )
    assert (span.low[0], span.value[0], span.high[0]) == (low[0], 4.0, high[0])
    alone = NOISE.halfwidth(0.9) / 1_000
    assert 1.1 * 2 * alone < high[0] - low[0] < 2 * 2 * alone


def test_an_average_is_shifted_back_by_its_centre() -> None:
    exact = Noisy("laplace", Fraction(1, 10**9))
    released = Released(pa.table({"m0": [30, -90], "m1": [10, 10]}), {"m0": exact, "m1": exact})
    measures = {"m0": measure("m0", weighing="rows", low=0.0, high=16.0, centre=8.0)}
    measures["m1"] = measure("m1", value=None)
    span = released.columns(leaf(AVERAGE, **measures), 0.9)["a0"]
    assert span.value.tolist() == pytest.approx([11.0, 0.0], abs=1e-6)
    assert span.low.tolist() == pytest.approx([11.0, 0.0], abs=1e-6)
    assert span.high.tolist() == pytest.approx([11.0, 0.0], abs=1e-6)


@pytest.mark.parametrize(("rows", "nearer"), [(10**6, 0.0), (1_000, 0.5), (-50, 1.0)])
def test_an_average_in_a_ball_goes_to_its_centre_where_its_count_is_noise(rows: int, nearer: float) -> None:
    """Sums of 3 a row around 5, counts with a deviation of 1,000."""
    count = Noisy("gaussian", Fraction(1_000))
    released = Released(pa.table({"m0": [6 * rows], "m1": [rows]}), {"m0": NOISE, "m1": count})
    joint = {"weighing": "joint", "low": -90.0, "high": 100.0}
    measures = {"m0": measure("m0", centre=5.0, factors=("x0",), **joint)}
    measures["m1"] = measure("m1", value=None, factors=(), **joint)
    span = released.columns(leaf(AVERAGE, **measures), 0.9)["a0"]
    assert span.value[0] == pytest.approx(8.0 - 3.0 * nearer, abs=1e-5)
    assert (span.low[0], span.high[0]) == (-90.0, 100.0) or rows == 10**6


@pytest.mark.parametrize(("rows", "confidence"), [(10_000, 0.9), (2, 0.975)])
def test_numbers_that_share_a_column_share_its_failure(rows: int, confidence: float) -> None:
    """A covariance of four noisy numbers, of which one is noisy: exact where its count is large.

    Where it is near its noise, each of them is needed at 97.5%, so that all are at 90%.
    """
    covariance = Aggregate("a0", "covar", "COVAR_POP(x, y)", ("m0", "m1", "m2", "m3"))
    sure = Noisy("laplace", Fraction(1, 10**6))
    noise = {"m0": sure, "m1": sure, "m2": NOISE, "m3": Noisy("laplace", Fraction(1, 4))}
    released = Released(pa.table({"m0": [0], "m1": [0], "m2": [0], "m3": [rows]}), noise)
    measures = {name: measure(name, low=-1e6, high=1e6, weighing="rows") for name in noise}
    span = released.columns(leaf(covariance, **measures), 0.9)["a0"]
    least = rows - noise["m3"].halfwidth(0.975) if rows == 2 else rows
    assert span.high[0] == pytest.approx(NOISE.halfwidth(confidence) / max(least, 1), rel=0.02)


def test_a_cap_of_rows_that_was_chosen_privately_leaves_an_averages_bounds_alone() -> None:
    average = Aggregate("a0", "avg", "AVG(x)", ("m0", "m1"))
    measures = {
        "m0": measure("m0", weighing="rows", cap=None),
        "m1": measure("m1", value=None, weighing="rows", cap=None),
    }
    asked = leaf(average, **measures)
    noise = {"m0": NOISE, "m1": NOISE}
    released = Released(pa.table({"m0": [0], "m1": [1]}), noise, dict.fromkeys(("m0", "m1"), 2.0))
    span = released.columns(asked, 0.9)["a0"]
    assert (span.low[0], span.high[0]) == (-8.0, 8.0)


EXACT = Noisy("laplace", Fraction(1, 10**9))


@pytest.mark.parametrize(
    ("small", "large", "value"),
    [(100, 150, 1.5), (100, 80, 1.0), (100, 900, 4.0), (-5, 40, 4.0), (-5, -7, 1.0)],
)
def test_a_factor_is_the_ratio_of_totals_between_one_and_four(small: int, large: int, value: float) -> None:
    released = Released(pa.table({"m0": [1]}), {"m0": EXACT}, {}, {"m0": (small, large, EXACT, EXACT)})
    assert released.factor("m0").value == value


def test_a_factor_is_in_values_with_the_noise_of_both_totals() -> None:
    small, large = Noisy("laplace", Fraction(10), 0.5), Noisy("laplace", Fraction(40), 2.0)
    released = Released(
        pa.table({"m0": [1]}),
        {"m0": NOISE},
        {},
        {"m0": (1000, 750, small, large)},
        {"m0": Stated(8.0, 2, 9.0)},
    )
    factor = released.factor("m0")
    assert (factor.small, factor.large, factor.cut_squares) == (500.0, 1500.0, 9.0)
    assert factor.small_deviation == pytest.approx(2**0.5 * 10 * 0.5)
    assert factor.large_deviation == pytest.approx(2**0.5 * 40 * 2)
    assert replace(released, stated={}).factor("m0").cut_squares == 0.0


def test_a_scaled_column_has_the_interval_of_its_factor() -> None:
    factors = {"m0": (2000, 3000, NOISE, NOISE)}
    released = Released(pa.table({"m0": [400, 600]}), {"m0": NOISE}, {}, factors, {"m0": Stated(8.0, 2, 1e4)})
    span = released.columns(leaf(SUM, m0=measure("m0")), 0.9)["a0"]
    expected = released.factor("m0").scaled(np.array([200.0, 300.0]), NOISE.halfwidth(0.9), 0.9)
    assert span.value.tolist() == expected.value.tolist() == [300.0, 450.0]
    assert span.low.tolist() == expected.low.tolist()
    assert span.high.tolist() == expected.high.tolist()


def test_the_interval_of_a_count_under_a_chosen_cap_is_rounded_outwards() -> None:
    """Cut units count for parts, so a noisy 0 with a half-width below 1 may stand for 0.3 of a row."""
    noise = Noisy("laplace", Fraction(3, 10))
    released = Released(pa.table({"m0": [0, 5]}), {"m0": noise}, {}, {}, {"m0": Stated(8.0, 2)})
    count = Aggregate("a0", "count", "COUNT(*)", ("m0",), whole=True)
    span = released.columns(leaf(count, m0=measure("m0", value=None)), 0.5)["a0"]
    assert noise.halfwidth(0.5) < 1
    assert span.low[1] < 5 < span.high[1] and span.high[0] >= 1
    declared = replace(released, stated={}).columns(leaf(count, m0=measure("m0", value=None)), 0.5)["a0"]
    assert declared.low[1] == 5 == declared.high[1]


def test_only_sums_and_counts_are_scaled_back_up() -> None:
    factors = {"m0": (100, 200, EXACT, EXACT)}
    released = Released(pa.table({"m0": [40], "m1": [10]}), {"m0": EXACT, "m1": EXACT}, {}, factors)
    average = Aggregate("a1", "avg", "AVG(x)", ("m0", "m1"))
    spans = released.columns(leaf(SUM, average, m0=measure("m0"), m1=measure("m1", value=None)), 0.95)
    assert spans["a0"].value[0] == 80.0 and spans["a1"].value[0] == 4.0


QUANTILE = Aggregate("a0", "quantile", "MEDIAN(x)", ("m0",), (0.5,))


def test_a_quantile_is_its_cell_and_beyond_its_confidence_only_the_bounds_are_sure() -> None:
    table = pa.table({"m0@0.5": [6], "m0@0.5_low": [4], "m0@0.5_high": [8]})
    asked = leaf(QUANTILE, m0=measure("m0", buckets=16, whole=False))
    released = Released(table, {}, confidence=0.9)
    for confidence in (0.5, 0.9):
        span = released.columns(asked, confidence)["a0"]
        assert (span.low[0], span.value[0], span.high[0]) == (-4.0, -1.5, 1.0)
    span = released.columns(asked, 0.91)["a0"]
    assert (span.low[0], span.value[0], span.high[0]) == (-8.0, -1.5, 8.0)


def test_other_ranks_and_more_confidence_are_read_from_the_tree_on_record() -> None:
    """16 cells in one level, 1,000 steps in each, with noise of next to nothing."""
    row = 1 << -measure("m0", buckets=16, whole=False).exponent
    tree = Tree(Shape(16, 1), 1.0, (np.full((1, 16), 1_000 * row, dtype=np.int64),))
    table = pa.table({"m0@0.5": [6], "m0@0.5_low": [4], "m0@0.5_high": [8]})
    released = Released.from_bytes(Released(table, {}, confidence=0.9, trees={"m0": tree}).to_bytes())
    other = Aggregate("a0", "quantile", "QUANTILE(x, 0.9)", ("m0",), (0.9,))
    span = released.columns(leaf(other, m0=measure("m0", buckets=16, whole=False)), 0.99)["a0"]
    assert (span.low[0], span.value[0], span.high[0]) == (6.0, 6.5, 7.0)
    asked = leaf(QUANTILE, m0=measure("m0", buckets=16, whole=False))
    span = released.columns(asked, 0.91)["a0"]
    # Half of the weight lies at 0, the edge of two cells; the point stays what it was.
    assert (span.low[0], span.value[0], span.high[0]) == (-2.0, -1.5, 1.0)


def test_rows_are_sorted_by_all_keys() -> None:
    table = pa.table({"k0": ["b", "a", "b", "a"], "k1": [1, 2, 0, 1], "m0": [1, 2, 3, 4]})
    released = Released(table, {})
    assert released.sorted_by_keys(2).table.column("m0").to_pylist() == [4, 2, 3, 1]
    assert released.sorted_by_keys(0) is released


def test_trees_are_sorted_with_their_groups() -> None:
    tree = Tree(Shape(2, 1), 1.0, (np.array([[1, 2], [3, 4]]),))
    released = Released(pa.table({"k0": ["b", "a"]}), {}, trees={"m0": tree}).sorted_by_keys(1)
    assert released.trees["m0"].levels[0].tolist() == [[3, 4], [1, 2]]


def test_a_release_is_for_95_percent_unless_it_says_otherwise() -> None:
    released = Released(pa.table({"m0": [1]}), {})
    assert (released.confidence, released.caps, released.factors, released.stated) == (0.95, {}, {}, {})
