"""Ranges, means, variances and covariances: what one record moves, exactly; accuracy; mutants; bad input."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.errors import InvalidInput
from incrowd.mechanisms import Covariance, Mean, PrivateRange, Variance
from incrowd.mechanisms.additive import covariance
from incrowd.mechanisms.additive.mean import UNIT
from incrowd.mechanisms.additive.variance import STEPS, scatter
from incrowd.mechanisms.selection.private_range import CODES, RADII, codes_of, questions, value_of, within
from incrowd.noise import SeededSource

from .checks import smallest_epsilon

numbers = st.floats(allow_nan=False) | st.floats(-10, 10) | st.sampled_from([0.0, 1.0, -1.0, 2.5])
columns = st.lists(numbers, max_size=8)
RELATIONS = ("add-remove", "replace")


@given(numbers, numbers)
def test_codes_keep_the_order_and_come_back_to_a_millionth(one, other):
    low, high = codes_of(np.array(sorted([one, other]))).tolist()
    assert -CODES <= low <= high <= CODES
    if 2.0**-64 <= abs(one) < 2.0**64:
        code = int(codes_of(np.array([one]))[0])
        assert value_of(code) == pytest.approx(one, rel=2.0**-20)
        assert int(codes_of(np.array([value_of(code)]))[0]) == code


def test_codes_partition_the_floats_in_order():
    """At every power of two and beside it, from the least float to the infinities."""
    edges = np.ldexp(1.0, np.arange(-1074, 1024))
    ends = np.concatenate(([0.0, np.inf], edges, np.nextafter(edges, 0.0), np.nextafter(edges, np.inf)))
    ordered = np.unique(np.concatenate((-ends, ends)))
    codes = codes_of(ordered)
    assert (np.diff(codes) >= 0).all() and codes[0] == -CODES and codes[-1] == CODES
    assert (codes_of(-ordered) == -codes).all()
    for code in np.unique(codes).tolist():
        assert int(codes_of(np.array([value_of(code)]))[0]) == code
        inside = ordered[codes == code]
        assert value_of(code) <= inside.min() if code > 0 else code == 0 or value_of(code) >= inside.max()


@given(columns, numbers, numbers, st.floats(-20, 20) | st.sampled_from([-(2.0**63), 2.0**-64, 0.0, 2.0**63]))
def test_questions_about_the_radius_move_together_by_at_most_one(values, one, other, centre):
    plain, more, moved = (
        np.array(questions(np.array(x, float), centre)) for x in (values, [*values, one], [*values, other])
    )
    assert set(np.unique(more - plain)) <= {0, -1}
    assert set(np.unique(moved - more)) <= {0, 1} or set(np.unique(moved - more)) <= {0, -1}
    assert (np.diff(plain) >= 0).all() and (np.diff(RADII) > 0).all()


@settings(max_examples=15, deadline=None)
@given(st.lists(st.sampled_from([0.0, 0.3, 1.0, 5.0, -2.0]), max_size=5), st.sampled_from([0.0, 5.0, 1e9]))
def test_the_search_for_the_radius_costs_no_more_than_its_share(values, extra):
    """The exact probabilities of stopping at each of the radii that matter, given a centre."""
    m = PrivateRange(1.0)
    budget = m.search.privacy.epsilon()
    laws = []
    for data in (values, [*values, extra]):
        asked = questions(np.array(data, float), 0.0)[200:330:8]
        laws.append(
            [m.search.probability(asked[: k + 1], [False] * k + [True]) for k in range(len(asked))]
            + [m.search.probability(asked, [False] * len(asked))]
        )
    assert sum(laws[0]) == pytest.approx(1, abs=1e-6)
    assert smallest_epsilon(*laws) <= budget * (1 + 1e-6)
    assert budget == 0.75 and m.privacy.epsilon() == 1.0


def test_a_mutant_whose_range_ends_at_the_largest_value_is_caught():
    """The bug: the radius is the data's own, so one far record shows in what can come out at all."""
    calm, far = np.linspace(0, 1, 50), np.append(np.linspace(0, 1, 50), 1e6)
    inside = [
        [0 <= Mean(1.0, low=float(x.min()), high=float(x.max())).release(x) <= 1 for _ in range(60)]
        for x in (calm, far)
    ]
    assert all(inside[0]) and not all(inside[1])
    # The honest search asks questions that the far record moves by one.
    asked = [np.array(questions(x, 0.5)) for x in (calm, far)]
    assert np.abs(asked[0] - asked[1]).max() == 1


def change(m, one, other, *where):
    return np.abs(np.array(m.sums(one, *where)) - np.array(m.sums(other, *where))).sum()


KINDS = [
    lambda relation: Mean(1.0, relation=relation),
    lambda relation: Mean(1.0, low=-1, high=1, relation=relation),
    lambda relation: Variance(1.0, relation=relation),
    lambda relation: Variance(1.0, low=-1, high=1, relation=relation),
]


@pytest.mark.parametrize("kind", KINDS)
@given(values=columns, one=numbers, other=numbers, centre=st.floats(-5, 5), radius=st.floats(1e-3, 100))
def test_one_record_moves_the_sums_by_at_most_what_they_are_calibrated_for(
    kind, values, one, other, centre, radius
):
    plain, more, moved = (np.array(x, float) for x in (values, [*values, one], [*values, other]))
    added, replaced = kind("add-remove"), kind("replace")
    assert change(added, plain, more, centre, radius) <= added.noise.sensitivity_in_steps
    if replaced.noise is not None:
        assert change(replaced, more, moved, centre, radius) <= replaced.noise.sensitivity_in_steps
    elif more.size > 1:
        one, two = (scatter(x, centre, radius) for x in (more, moved))
        assert one[1] == two[1] and abs(one[0] - two[0]) <= STEPS
        assert replaced.privacy.epsilon() == 1.0


@pytest.mark.parametrize("kind", KINDS)
def test_the_calibration_is_reached(kind):
    plain, top, bottom = np.zeros(3), np.array([0.0, 0, 0, 1]), np.array([0.0, 0, 0, -1])
    added, replaced = kind("add-remove"), kind("replace")
    assert change(added, plain, top, 0.0, 1.0) == added.noise.sensitivity_in_steps
    if isinstance(replaced, Mean):
        assert change(replaced, top, bottom, 0.0, 1.0) == replaced.noise.sensitivity_in_steps
    elif replaced.noise is None:
        one, two = (scatter(np.array(x), 0.0, 1.0)[0] for x in ([-1.0] * 9, [-1.0] * 8 + [1.0]))
        assert abs(one - two) == pytest.approx(STEPS, rel=1e-4)


def test_a_mutant_that_forgets_the_count_is_caught():
    """The bug: a count is released for free beside a sum, as if the number of records were public."""
    m = Mean(1.0)
    moved = change(m, np.zeros(3), np.array([0.0, 0, 0, 1]), 0.0, 1.0)
    assert UNIT < moved <= m.noise.sensitivity_in_steps


def test_a_mutant_with_the_sensitivity_of_a_mean_square_is_caught():
    """The bug: a variance is given the noise of a mean of squares around a fixed centre, a quarter of it."""
    one, two = (scatter(np.array(x), 0.0, 1.0)[0] for x in ([-1.0] * 9, [-1.0] * 8 + [1.0]))
    assert abs(one - two) > STEPS / 4


@given(
    st.integers(1, 4),
    st.data(),
    st.sampled_from(RELATIONS),
)
def test_one_row_moves_all_entries_together_by_at_most_the_joint_bound(d, data, relation):
    row = st.lists(numbers, min_size=d, max_size=d)
    rows = data.draw(st.lists(row, max_size=4))
    one, other = data.draw(row), data.draw(row)
    m = Covariance(
        1.0, columns=d, bounds=data.draw(st.sampled_from([[(-1, 1)] * d, None])), relation=relation
    )
    if relation == "add-remove":
        pair = (np.array(rows, float).reshape(-1, d), np.array([*rows, one], float))
    else:
        pair = (np.array([*rows, one], float), np.array([*rows, other], float))
    apart = np.abs(np.subtract(*(m.sums(x, [(0.0, 1.0)] * d) for x in pair))).astype(float)
    l1, l2_squared = covariance.sensitivity(d, relation, m.count, m.place)
    assert apart.sum() <= l1 and (apart**2).sum() <= l2_squared
    assert l1 == m.noise.sensitivity_in_steps
    if relation == "add-remove":
        reached = np.abs(m.sums(np.ones((1, d)), [(0.0, 1.0)] * d)).astype(float)
        assert reached.sum() == l1 and (reached**2).sum() == l2_squared


def test_a_mutant_calibrated_to_one_entry_is_caught():
    """The bug: every entry gets noise for its own sensitivity, as if it were released alone."""
    m = Covariance(1.0, columns=3, bounds=[(-1, 1)] * 3)
    moved = np.abs(m.sums(np.ones((1, 3)), m.ranges))
    assert moved.sum() > 6 * moved.max()
    assert covariance.sensitivity(3, "add-remove", m.count, m.place)[0] == moved.sum()


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_parts_of_the_budget_add_up_to_what_was_asked(relation):
    for m in (
        Mean(0.7, relation=relation),
        Mean(0.7, low=0, high=5, relation=relation),
        Variance(0.7, relation=relation),
        Variance(0.7, low=0, high=5, relation=relation),
        Covariance(0.7, columns=3, bounds=[(0, 1)] * 3, relation=relation),
        Covariance(0.7, columns=3, relation=relation),
    ):
        assert m.privacy.epsilon() == pytest.approx(0.7, rel=1e-12) and m.privacy.epsilon() <= 0.7
    both = Covariance(1.0, 1e-6, columns=3, relation=relation)
    assert both.privacy.epsilon(1e-6) <= 1.0


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(("centre", "scale"), [(0.0, 1.0), (1e6, 3.0), (-40.0, 1e-3), (5e12, 1e9)])
def test_means_and_variances_are_found_at_every_magnitude(relation, centre, scale):
    values = np.random.default_rng(5).normal(centre, scale, 20_000)
    mean = Mean(2.0, relation=relation).release(values)
    assert mean == pytest.approx(values.mean(), abs=0.02 * scale)
    variance = Variance(2.0, relation=relation).release(values)
    assert variance == pytest.approx(values.var(), rel=0.1)


@pytest.mark.parametrize("delta", [None, 1e-6])
@pytest.mark.parametrize("relation", RELATIONS)
def test_a_covariance_is_found_with_and_without_bounds(delta, relation):
    rng = np.random.default_rng(6)
    mixing = np.array([[1.0, 0, 0], [0.5, 2, 0], [0.2, -1, 1]])
    table = rng.normal(0, 1, (20_000, 3)) @ mixing.T + [100, 0, -7]
    truth = np.cov(table.T, bias=True)
    for bounds in (None, [(90, 110), (-15, 15), (-20, 6)]):
        m = Covariance(4.0, delta, columns=3, bounds=bounds, relation=relation)
        released = m.release(table)
        assert np.allclose(released, released.T) and np.linalg.eigvalsh(released).min() >= -1e-9
        assert np.abs(released - truth).max() < 0.4


@pytest.mark.statistical
@pytest.mark.parametrize("relation", RELATIONS)
def test_errors_stay_within_the_stated_halfwidth(relation):
    """Each of 3 x 60 errors exceeds its bound with probability 0.05 at most; 40 of 60 do below 1e-9."""
    rng = np.random.default_rng(7)
    values = rng.uniform(0, 10, 500)
    table = rng.uniform(0, 10, (500, 2))
    mean, variance = (kind(1.0, low=0, high=10, relation=relation) for kind in (Mean, Variance))
    joint = Covariance(1.0, columns=2, bounds=[(0, 10)] * 2, relation=relation)
    off = [
        sum(abs(mean.release(values) - values.mean()) > mean.halfwidth(0.95, 500) + 1e-5 for _ in range(60)),
        sum(
            abs(variance.release(values) - values.var()) > variance.halfwidth(0.95, 500) + 1e-4
            for _ in range(60)
        ),
        sum(
            np.abs(joint.release(table) - np.cov(table.T, bias=True)).max()
            > 25 * joint.halfwidth(0.95, 500) * 2 + 1e-4
            for _ in range(60)
        ),
    ]
    assert max(off) < 20
    assert mean.halfwidth(0.95, 1) == math.inf or relation == "replace"
    assert Mean(1.0).halfwidth(0.95, 1000, radius=2) > 0 and joint.halfwidth(0.95, 10**6) < 1e-3


@pytest.mark.statistical
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("part", [0.2499, 0.4999, 0.3751])
def test_the_halfwidth_counts_the_rounding_of_every_record(relation, part):
    """Records that are all rounded the same way, with hardly any noise.

    Each of 20 errors exceeds its bound with probability 0.001 at most; 5 of 20 do below 1e-10.
    """
    n = 50_000
    value = (5_555_555 + part) / UNIT
    values, table = np.full(n, value), np.full((n, 2), value)
    mean, variance = (kind(100_000.0, low=0, high=1, relation=relation) for kind in (Mean, Variance))
    joint = Covariance(100_000.0, columns=2, bounds=[(0, 1)] * 2, relation=relation)
    wide = [mean.halfwidth(0.999, n), variance.halfwidth(0.999, n), joint.halfwidth(0.999, n) / 4]
    off = [0, 0, 0]
    for _ in range(20):
        off[0] += abs(mean.release(values) - value) > wide[0]
        off[1] += variance.release(values) > wide[1]
        off[2] += np.abs(joint.release(table)).max() > 2 * wide[2]  # projecting at most doubles it here
    assert max(off) < 5
    # Not wider than rounding, a few steps of 2^-23, 2^-20 and 2^-20, asks for.
    assert wide[0] < 1.2 / UNIT and wide[1] < 4 / 2**20 and wide[2] < 4 / 2**20


@pytest.mark.statistical
def test_the_halfwidth_of_a_mean_is_no_wider_than_it_must_be():
    """Where one number is released the bound is exact: 5% of 4,000 errors lie outside, 134 to 270 of them.

    A binomial variable with mean 200 leaves that with probability below 1e-6.
    """
    values = np.linspace(0, 1, 101)
    m = Mean(1.0, low=0, high=1, relation="replace")
    wide = m.halfwidth(0.95, 101)
    off = sum(abs(m.release(values) - 0.5) > wide for _ in range(4_000))
    assert 134 <= off <= 270


def test_empty_constant_and_infinite_data():
    for kind in (Mean, Variance):
        for data in ([], [3.0], [7.0] * 3000, [math.inf] * 50, [-math.inf, math.inf] * 50, [1.7e308] * 9):
            for relation in RELATIONS:
                assert math.isfinite(kind(1.0, relation=relation).release(data))
                assert math.isfinite(kind(1.0, low=-1, high=1, relation=relation).release(data))
    assert Mean(1.0).release([7.0] * 3000) == pytest.approx(7, abs=1e-3)
    assert Mean(1.0, low=0, high=1).release([True, False] * 4000) == pytest.approx(0.5, abs=0.02)
    assert np.isfinite(Covariance(1.0, columns=2).release([])).all()
    assert np.isfinite(Covariance(1.0, columns=2).release([[math.inf, 1]] * 30)).all()
    assert within(np.array([-math.inf, 5e300]), 0.0, 2.0**-64).tolist() == [-1.0, 1.0]


def test_squares_of_many_records_do_not_wrap_around():
    steps, length = scatter(np.tile([-1.0, 1.0], 5_000_000), 0.0, 1.0)
    assert steps * length == pytest.approx((10**7 * 2**20) ** 2, rel=1e-6)


def test_the_same_bits_give_the_same_answer():
    values = list(range(1000))
    assert Mean(1.0).release(values, SeededSource(3)) == Mean(1.0).release(values, SeededSource(3))
    assert Variance(1.0).then(math.sqrt).release(values, SeededSource(3)) > 0


@pytest.mark.parametrize(
    "call",
    [
        lambda: PrivateRange(0),
        lambda: PrivateRange(1, share=1),
        lambda: PrivateRange(1, relation="swap"),
        lambda: PrivateRange(1).release(["1"]),
        lambda: PrivateRange(1).release([[1, 2]]),
        lambda: Mean(0),
        lambda: Mean(1, low=0),
        lambda: Mean(1, low=2, high=1),
        lambda: Mean(1, low=0, high=math.inf),
        lambda: Mean(1, low=-(10**300), high=10**300),
        lambda: Mean(1, share=0),
        lambda: Mean(1, relation="swap"),
        lambda: Mean(1).release(["x", 987]),
        lambda: Mean(1).release("abc"),
        lambda: Mean(1).release(np.ma.array([1.0, 2.0], mask=[0, 1])),
        lambda: Mean(1).halfwidth(0.95, 0),
        lambda: Mean(1).halfwidth(0.95, 10),
        lambda: Variance(1, high=4),
        lambda: Variance(1).release([1j]),
        lambda: Variance(1, low=0, high=1).release([[1]]),
        lambda: Covariance(1, columns=0),
        lambda: Covariance(1, 0, columns=2),
        lambda: Covariance(1, columns=2, bounds=[(0, 1)]),
        lambda: Covariance(1, columns=2, bounds=[0, 1]),  # type: ignore[list-item]
        lambda: Covariance(1, columns=2, share=2),
        lambda: Covariance(1, columns=2).release([[1, 2, 3]]),
        lambda: Covariance(1, columns=2).release([1, 2]),
        lambda: Covariance(1, columns=2).release([["a", "b"]]),
        lambda: Covariance(1, columns=2).release([[1, 2], [3]]),
    ],
)
def test_bad_input_gets_one_sentence(call):
    with pytest.raises(InvalidInput) as caught:
        call()
    assert (
        str(caught.value).endswith(".") and "\n" not in str(caught.value) and "987" not in str(caught.value)
    )


def test_the_share_of_the_range_is_a_fraction_of_the_whole():
    m = Mean(1.0, share=0.25)
    assert m.search is not None and m.search.epsilon == Fraction(1, 4)
    assert m.noise.epsilon == pytest.approx(0.75)
