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

from incrowd.curator.released import Noisy, Released, pack, unpack
from incrowd.mechanisms import Gaussian, Laplace
from incrowd.query import Aggregate, Leaf, Measure

SCALES = st.fractions(min_value=Fraction(1, 1000), max_value=2**40)
NOISY = st.builds(
    Noisy, st.sampled_from(["laplace", "gaussian"]), SCALES, st.sampled_from([2.0**-30, 1.0, 8.0])
)
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


def test_numbers_that_share_a_column_share_its_failure() -> None:
    """An average of two noisy numbers at 90% needs each at 95%."""
    average = Aggregate("a0", "avg", "AVG(x)", ("m0", "m1"))
    count = Noisy("laplace", Fraction(1, 10**6))
    released = Released(pa.table({"m0": [0], "m1": [10_000]}), {"m0": NOISE, "m1": count})
    measures = {"m0": measure("m0", weighing="rows"), "m1": measure("m1", value=None)}
    span = released.columns(leaf(average, **measures), 0.9)["a0"]
    assert span.high[0] == pytest.approx(NOISE.halfwidth(0.95) / 10_000)


def test_a_cap_of_rows_that_was_chosen_privately_leaves_an_averages_bounds_alone() -> None:
    average = Aggregate("a0", "avg", "AVG(x)", ("m0", "m1"))
    measures = {
        "m0": measure("m0", weighing="rows", cap=None),
        "m1": measure("m1", value=None, weighing="rows", cap=None),
    }
    asked = leaf(average, **measures)
    noise = {"m0": NOISE, "m1": NOISE}
    released = Released(pa.table({"m0": [0], "m1": [1]}), noise, dict.fromkeys(asked.uncapped, 2.0))
    span = released.columns(asked, 0.9)["a0"]
    assert (span.low[0], span.high[0]) == (-8.0, 8.0)


EXACT = Noisy("laplace", Fraction(1, 10**9))


@pytest.mark.parametrize(
    ("small", "large", "value"), [(100, 150, 1.5), (100, 80, 1.0), (-5, 40, 40.0), (-5, -7, 1.0)]
)
def test_a_factor_is_the_ratio_of_totals_and_at_least_one(small: int, large: int, value: float) -> None:
    released = Released(pa.table({"m0": [1]}), {"m0": EXACT}, {}, {"m0": (small, large, EXACT, EXACT)})
    span = released.factor("m0", 0.95)
    assert (float(span.low), float(span.value), float(span.high)) == (value, value, value)


def test_a_factors_ends_come_from_both_totals() -> None:
    noise = Noisy("laplace", Fraction(10))
    width = noise.halfwidth(0.95)
    released = Released(pa.table({"m0": [1]}), {"m0": EXACT}, {}, {"m0": (1000, 3000, noise, noise)})
    span = released.factor("m0", 0.95)
    assert float(span.low) == pytest.approx((3000 - width) / (1000 + width))
    assert float(span.high) == pytest.approx((3000 + width) / (1000 - width))


def test_only_sums_and_counts_are_scaled_back_up() -> None:
    factors = {"m0": (100, 200, EXACT, EXACT)}
    released = Released(pa.table({"m0": [40], "m1": [10]}), {"m0": EXACT, "m1": EXACT}, {}, factors)
    average = Aggregate("a1", "avg", "AVG(x)", ("m0", "m1"))
    spans = released.columns(leaf(SUM, average, m0=measure("m0"), m1=measure("m1", value=None)), 0.95)
    assert spans["a0"].value[0] == 80.0 and spans["a1"].value[0] == 4.0


QUANTILE = Aggregate("a0", "quantile", "MEDIAN(x)", ("m0",), (0.5,))


def test_a_quantile_is_its_cell_and_beyond_its_confidence_only_the_bounds_are_sure() -> None:
    table = pa.table({"a0": [6], "a0_low": [4], "a0_high": [8]})
    asked = leaf(QUANTILE, m0=measure("m0", buckets=16, whole=False))
    released = Released(table, {}, confidence=0.9)
    for confidence in (0.5, 0.9):
        span = released.columns(asked, confidence)["a0"]
        assert (span.low[0], span.value[0], span.high[0]) == (-4.0, -1.5, 1.0)
    span = released.columns(asked, 0.91)["a0"]
    assert (span.low[0], span.value[0], span.high[0]) == (-8.0, -1.5, 8.0)


def test_rows_are_sorted_by_all_keys() -> None:
    table = pa.table({"k0": ["b", "a", "b", "a"], "k1": [1, 2, 0, 1], "m0": [1, 2, 3, 4]})
    released = Released(table, {})
    assert released.sorted_by_keys(2).table.column("m0").to_pylist() == [4, 2, 3, 1]
    assert released.sorted_by_keys(0) is released


def test_a_release_is_for_95_percent_unless_it_says_otherwise() -> None:
    released = Released(pa.table({"m0": [1]}), {})
    assert (released.confidence, released.caps, released.factors) == (0.95, {}, {})
