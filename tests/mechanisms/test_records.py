"""No record makes a release raise, and no record decides how another is read."""

from __future__ import annotations

import math
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from incrowd.errors import InvalidInput
from incrowd.mechanisms import (
    Covariance,
    DistanceToProperty,
    Exponential,
    Gaussian,
    Histogram,
    InterquartileRange,
    Laplace,
    Maximum,
    Mean,
    Minimum,
    PartitionSelection,
    PermuteAndFlip,
    PrivateRange,
    ProposeTestRelease,
    Quantile,
    RandomizedResponse,
    ReportNoisyMax,
    SmoothSensitivity,
    SparseVector,
    StableHistogram,
    StableMode,
    SubsampleAndAggregate,
    UnboundedQuantile,
    Variance,
    order_statistic,
)
from incrowd.mechanisms.additive.histogram import count_categories
from incrowd.mechanisms.records import read_column, read_records
from incrowd.noise import SeededSource

from .checks import FAILURE, surprise

INTEGERS = [0, 1, -1, 2**53 + 1, 2**61, 2**62, -(2**62), 2**63 - 1, -(2**63), 2**63, 2**64, -(2**70), 10**400]
REALS = [0.0, -0.0, 1.5, 5e-324, -5e-324, 2.0**-1000, 1e-300, 1e300, 1.7e308, -1.7e308]
EXTREMES = [
    *INTEGERS,
    *REALS,
    math.nan,
    math.inf,
    -math.inf,
    None,
    True,
    Fraction(1, 3),
    Fraction(10**400, 3),
    Decimal("NaN"),
    Decimal("sNaN"),
    Decimal("1e400"),
    np.float32("nan"),
    np.float16(2),
    np.int64(-(2**63)),
    np.uint64(2**64 - 1),
    np.bool_(False),
    pd.NA,
]
ARRAYS = [np.int8, np.uint8, np.int64, np.uint64, np.float16, np.float32, np.float64, np.bool_]

records = st.lists(st.sampled_from(EXTREMES), max_size=7)
typed = st.sampled_from(ARRAYS).map(
    lambda kind: np.array(
        [np.finfo(kind).max, np.finfo(kind).tiny, math.nan, -math.inf, math.inf, -0.0]
        if np.dtype(kind).kind == "f"
        else [True, False]
        if kind is np.bool_
        else [np.iinfo(kind).max, np.iinfo(kind).min, 0, 3],
        dtype=kind,
    )
)
BOTH = ("add-remove", "replace")
COLUMNS = {
    **{f"Quantile, {r}": Quantile(1.0, low=0, high=9, relation=r) for r in BOTH},
    **{f"Quantile, reals, {r}": Quantile(1.0, low=0.0, high=9.0, relation=r) for r in BOTH},
    "Quantile, coarse": Quantile(1.0, low=0.0, high=64.0, grid=4.0),
    "Quantile, far": Quantile(1.0, low=2**59, high=2**59 + 9),
    "Quantile, several": Quantile(1.0, q=[0.25, 0.5], low=0, high=9),
    "Maximum": Maximum(1.0, low=0, high=9),
    "Minimum": Minimum(1.0, low=0.0, high=9.0),
    **{f"UnboundedQuantile, {r}": UnboundedQuantile(1.0, relation=r) for r in BOTH},
    "UnboundedQuantile, reals": UnboundedQuantile(1.0, low=0.5, unit=0.25),
    **{f"PrivateRange, {r}": PrivateRange(1.0, relation=r) for r in BOTH},
    **{f"Mean, {r}": Mean(1.0, relation=r) for r in BOTH},
    **{f"Mean, bounds, {r}": Mean(1.0, low=0, high=9, relation=r) for r in BOTH},
    **{f"Variance, {r}": Variance(1.0, relation=r) for r in BOTH},
    **{f"Variance, bounds, {r}": Variance(1.0, low=0, high=9, relation=r) for r in BOTH},
}


@pytest.mark.parametrize("name", COLUMNS)
@settings(max_examples=25, deadline=None)
@given(values=records | typed)
@example(values=[])
@example(values=[0.0, 5e-324, 1.0])
@example(values=[2**62, 2**61 + 1, 1])
def test_no_record_of_a_column_makes_a_release_raise(name, values):
    released = COLUMNS[name].release(values, SeededSource(1))
    assert np.isfinite(np.asarray(released, dtype=np.float64)).all()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(EXTREMES), min_size=4, max_size=9), st.floats(1e-320, 5.0), st.data())
def test_no_record_makes_a_release_with_a_public_number_of_records_raise(values, beta, data):
    rank = data.draw(st.integers(1, len(values)))
    for low, high in ((0, 1), (0.0, 5e-324), (-1e308, 7e307), (1.0, 1.0 + 2.0**-52)):
        centre, bound = order_statistic(values, rank, low=low, high=high, beta=beta)
        assert low <= centre <= high and 0 < bound < math.inf
    SmoothSensitivity(1.0).release_rank(values, rank, low=0, high=1, source=SeededSource(1))
    InterquartileRange(1.0, 1e-3).release(values, SeededSource(1))


@pytest.mark.parametrize("value", [0.0, -sys.float_info.max, sys.float_info.max])
def test_no_record_makes_the_widest_range_raise(value):
    high = sys.float_info.max * (0.5 - 1e-9)
    centre, bound = order_statistic([value], 1, low=-high, high=high, beta=1e-3)
    assert bound < math.inf and abs(centre) <= high
    assert math.isfinite(SmoothSensitivity(1.0).release_rank([value], 1, low=-high, high=high))


def test_a_value_beyond_all_floats_is_released_like_others():
    for value in (10**400, -(10**400), Fraction(10**400)):
        assert math.isfinite(SmoothSensitivity(1.0).release((value, 1)))


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(*[st.sampled_from(EXTREMES)] * 2), max_size=5), st.sampled_from(BOTH))
def test_no_row_makes_a_covariance_raise(rows, relation):
    for bounds in (None, [(0, 1)] * 2):
        m = Covariance(1.0, columns=2, bounds=bounds, relation=relation)
        assert np.isfinite(m.release(rows, SeededSource(1))).all()
        assert np.isfinite(m.release(np.array(rows, dtype=object).reshape(-1, 2), SeededSource(1))).all()


def test_data_frames_are_tables():
    m = Covariance(1e9, columns=2, bounds=[(0, 4)] * 2)
    table = {"x": [1, 2, 3, None], "y": [0.0, 2.0, 4.0, 1.0]}
    for frame in (pd.DataFrame(table), pl.DataFrame(table), pd.DataFrame(table, dtype="Float64")):
        assert m.release(frame) == pytest.approx(np.array([[2, 4], [4, 8]]) / 3, abs=1e-5)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from([*EXTREMES, "a", "", ("x", 1), [1], ("x", [1])]), max_size=6))
def test_no_record_makes_a_histogram_or_a_survey_raise(values):
    numbers = [value for value in values if not isinstance(value, str | list | tuple)]
    assert Histogram(1.0).release(values, categories=["a", 1, None]).shape == (3,)
    assert Histogram(1.0).release(numbers, edges=[0, 1, math.inf]).shape == (2,)
    StableHistogram(1.0, 0.1).release(values)
    StableMode(1.0, 0.1).release({repr(value): 2**70 for value in values})
    assert ((reports := RandomizedResponse(1.0, categories=3).release(numbers)) >= 0).all() and (
        reports < 3
    ).all()
    for value in numbers:
        assert RandomizedResponse(1.0).release(value) in (0, 1)
    m = SubsampleAndAggregate(len, 1.0, blocks=2, low=0, high=5)
    assert sum(len(part) for part in m.partition(values, units=values)) == len(values)


whole = st.sampled_from([value for value in INTEGERS if type(value) is int])
floating = st.sampled_from([*REALS, math.nan, math.inf, -math.inf])


@settings(max_examples=50, deadline=None)
@given(st.lists(whole, min_size=1, max_size=4) | st.lists(floating, min_size=1, max_size=4))
def test_no_value_of_a_statistic_makes_a_release_raise(values):
    real = isinstance(values[0], float)
    reach = 1.0 if real else 1
    for m in (Laplace(1.0, sensitivity=reach, size=4), Gaussian(1.0, 1e-6, sensitivity=reach, size=4)):
        assert np.isfinite(m.release(values)).all()
        assert math.isfinite(m.release(values[0]))
    for kind in (Exponential, PermuteAndFlip, ReportNoisyMax):
        assert 0 <= kind(1.0, sensitivity=reach).release(values) < len(values)
    assert len(SparseVector(1.0, sensitivity=reach).release(values)) <= len(values)
    SparseVector(1.0, sensitivity=reach, values=0.5).release(values)
    ProposeTestRelease(1.0, 0.1, bound=reach).release((values[0], 10**30))
    if real:
        assert math.isfinite(SmoothSensitivity(1.0).release((values[0], 1.0)))
        SubsampleAndAggregate(len, 1.0, blocks=1, low=0, high=5).combine(values[:1])
        return
    counts = [abs(value) for value in values]
    assert PartitionSelection(1.0, 0.1).release(counts).shape == (len(counts),)
    assert StableHistogram(1.0, 0.1).release(dict(enumerate(counts))) is not None
    assert DistanceToProperty(1.0).release(counts[0]) >= 0
    Histogram(1.0).release(counts)


@given(records, st.sampled_from(EXTREMES), st.booleans())
def test_no_record_decides_how_another_is_read(values, extra, public):
    alone, beside = (read_records(x, "test", public).tolist() for x in (values, [*values, extra]))
    assert beside[: len(alone)] == alone and len(beside) - len(alone) <= 1
    alone, beside = (read_column(x, "test", public).tolist() for x in (values, [*values, extra]))
    assert beside[: len(alone)] == alone and len(beside) - len(alone) <= 1
    assert not public or len(beside) == len(values) + 1
    for m in (Quantile(1.0, low=2**59, high=2**59 + 99), Quantile(1.0, low=-1.0, high=1.0)):
        alone, beside = (
            m.interval.steps(x, "test", public).tolist()
            for x in (
                [2**59 + 1, 2**59 + 2, *values],
                [2**59 + 1, 2**59 + 2, *values, extra],
            )
        )
        assert beside[: len(alone)] == alone


def test_a_mutant_that_reads_a_list_as_one_type_is_caught():
    """The bug: NumPy's own type for the list, so that a float record rounds the integers of others."""
    values = [2**59 + 1, 2**59 + 3]
    m = Quantile(1.0, low=2**59, high=2**59 + 99)
    for extra in (0.5, None, 2**70):
        read = m.interval.steps([*values, extra], "test", public=True)[:2].tolist()
        assert read == values
    assert np.asarray([*values, 0.5]).tolist()[:2] != values


@pytest.mark.parametrize(
    "column", [pd.Series, pl.Series, pa.array, lambda x: pd.Series(x, dtype="Int64"), tuple, list]
)
def test_columns_of_every_library_are_read_alike(column):
    assert read_records(column([2**53 + 1, 7]), "test", public=False).tolist() == [2**53 + 1, 7]
    if column is not pd.Series:  # a gap makes a plain pandas column one of floats
        assert read_records(column([2**53 + 1, None]), "test", public=False).tolist() == [2**53 + 1]
        assert read_records(column([2**53 + 1, None]), "test", public=True).tolist() == [2**53 + 1, 0]


@pytest.mark.parametrize("values", [5, "12", None, [["1"]], ["1"], [1j], {"a": 1}, np.zeros((2, 2)), b"12"])
def test_what_holds_no_numbers_is_refused_whatever_the_rest(values):
    for read in (read_records, read_column):
        with pytest.raises(InvalidInput) as caught:
            read(values, "Mean", public=False)
        assert str(caught.value).endswith(".") and "Mean" in str(caught.value)


EQUAL: list[Any] = [
    [1, True, 1.0, np.int8(1), np.True_, Decimal("1.00"), Fraction(1), 1 + 0j],
    [0, 0.0, -0.0, False, Decimal("-0E+5"), np.float32(-0.0)],
    [0.5, np.float32(0.5), Decimal("0.50"), Fraction(1, 2)],
    [Decimal("0.1"), Decimal("0.100"), Fraction(1, 10)],
    [10.0**300, int(10.0**300), Decimal(10.0**300), np.float64(10.0**300)],
    [10**30 + 1, Decimal(10**30 + 1), Fraction(10**30 + 1)],
    [math.inf, Decimal("Infinity"), np.float32(math.inf)],
    [math.nan, float("nan"), np.float64("nan"), Decimal("NaN")],
    ["a", np.str_("a")],
    [b"a", np.bytes_(b"a")],
    [("x", 1), (np.str_("x"), True), ("x", 1.0)],
    [(math.nan, frozenset([1])), (float("nan"), frozenset([1.0]))],
]


@pytest.mark.parametrize("keys", EQUAL, ids=lambda keys: repr(keys[0]))
def test_equal_keys_are_counted_as_one_and_spelled_as_one(keys):
    """One record that spells a key in another way does not choose how the key of others is shown."""
    m = StableHistogram(60.0, 1e-6)
    many = 50 * len(keys)
    shown = {repr(m.release(made)) for made in ([key] * many for key in keys)}
    shown |= {repr(m.release(made)) for made in (keys * 50, keys[::-1] * 50)}
    shown |= {repr(m.release({key: many})) for key in keys}
    assert len(shown) == 1 and list(m.release(keys * 50).values()) == [many]


def test_keys_of_an_array_keep_the_type_that_the_program_chose():
    m = StableHistogram(60.0, 1e-6)
    assert repr(m.release(np.array([True] * 50))) == "{True: 50}"
    assert repr(m.release(np.array([2.0, -0.0, 0.0] * 50))) == "{0.0: 100, 2.0: 50}"
    assert repr(m.release(np.array([2.0, -0.0, 0.0] * 50, dtype=object))) == "{0: 100, 2: 50}"


def test_no_count_is_lost_where_objects_are_equal_beyond_their_type_and_text():
    noon = datetime(2020, 1, 1, 12, tzinfo=UTC)
    later = noon.astimezone(timezone(timedelta(hours=1)))
    assert noon == later
    assert StableHistogram(60.0, 1e-6).release([noon] * 50 + [later] * 30) == {noon: 80}


HUGE = [10**5000, Fraction(1, 10**5000), Decimal("1E+999999999"), Decimal("1E-999999999"), (10**5000,)]


@pytest.mark.parametrize("key", HUGE, ids=range(len(HUGE)))
def test_numbers_that_have_no_text_are_keys_like_others(key):
    """Python refuses to write an int of more than 4300 digits."""
    assert StableHistogram(60.0, 1e-6).release([key] * 50 + ["a"] * 40) == {key: 50, "a": 40}
    m = SubsampleAndAggregate(len, 1.0, blocks=2, low=0, high=5)
    assert sum(len(part) for part in m.partition([0, 0], units=[key, 1])) == 2


def plain(record):
    """A key as Python's own types have it: NumPy's scalars raise where they meet a Decimal."""
    record = record.item() if isinstance(record, np.generic) else record
    return math.nan if record != record else record


@given(st.lists(st.sampled_from([key for keys in EQUAL for key in keys]), max_size=30))
@example([Decimal("1.00"), np.int8(1)])
def test_keys_are_counted_as_python_finds_them_equal(records):
    m = StableHistogram(2000.0, 1e-6)  # noise 0, threshold 2
    assert m.threshold == 2
    wanted = Counter(plain(record) for record in records * 2)
    wanted = {key: count for key, count in wanted.items() if not isinstance(key, tuple) or key[0] == key[0]}
    released = m.release(records * 2)
    assert {key: count for key, count in released.items() if key in wanted} == wanted
    assert sum(released.values()) == 2 * len(records)


@given(st.sampled_from(EQUAL), st.sampled_from([key for keys in EQUAL for key in keys]), st.data())
@example(EQUAL[0], EQUAL[0][3], None)
def test_a_record_is_in_the_category_that_equals_it_whatever_their_types(keys, record, data):
    """A record never makes the release raise, even where Python's own comparison does."""
    category = Decimal("1.00") if data is None else data.draw(st.sampled_from(keys))
    inside = any(record is key for key in keys)
    assert count_categories([record], [category, "another"]).tolist() == [int(inside), 0]


def test_units_are_told_apart_by_two_records_alone():
    """One text or float among large integers merges no two units."""
    m = SubsampleAndAggregate(len, 1.0, blocks=1000, low=0, high=5)
    parts = m.partition([0] * 3, SeededSource(1), units=[2**53, 2**53 + 1, 0.5])
    assert max(len(part) for part in parts) == 1
    together = m.partition([0] * 3, SeededSource(1), units=["a", "a", 7])
    assert sorted(len(part) for part in together)[-2:] == [1, 2]


@pytest.mark.statistical
def test_what_is_no_answer_is_reported_uniformly():
    """Fails by chance below 1e-7."""
    m = RandomizedResponse(2.0, categories=3)
    for missing in (None, 7, -1, math.nan, 1.5, 2**70):
        assert surprise(m.release([missing] * 3_000), np.full(3, 1 / 3)) > FAILURE
    matrix = np.vstack([m.probabilities(), np.full(3, 1 / 3)])
    ratios = matrix[:, None, :] / matrix[None, :, :]
    assert ratios.max() <= math.exp(2.0) * (1 + 1e-12)
    assert m.release(np.array([True, False])).shape == (2,)
    assert RandomizedResponse(1.0).release([True, None]).dtype == np.int64
    assert RandomizedResponse(60.0).release([1.0, 0, True]).tolist() == [1, 0, 1]
