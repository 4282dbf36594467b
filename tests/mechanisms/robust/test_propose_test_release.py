"""Propose-test-release and its worked cases: exact (epsilon, delta), distances by brute force, mutants."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.errors import InvalidInput
from incrowd.mechanisms import DistanceToProperty, InterquartileRange, ProposeTestRelease, StableMode
from incrowd.mechanisms.robust.propose_test_release import Passed, _bin, leaving
from tests.mechanisms.checks import FAILURE, smallest_delta, surprise


def law(m, value, distance, span=300):
    """Refused, or released as one of the lattice values around 0."""
    passes = m.chance(distance)
    y = np.arange(-span, span + 1)
    return np.append(1 - passes, passes * m.noise.pmf(y, value))


@given(
    st.floats(0.2, 4), st.sampled_from([0.1, 1e-3, 1e-6]), st.integers(1, 4), st.integers(0, 60), st.data()
)
def test_calm_neighbours_cost_epsilon(epsilon, delta, bound, distance, data):
    """Within the bound the value moves by at most it and the distance by at most 1."""
    m = ProposeTestRelease(epsilon, delta, bound=bound)
    moved = data.draw(st.integers(-bound, bound))
    nearer = max(0, distance - data.draw(st.integers(0, 1)))
    p, q = law(m, 0, distance), law(m, moved, nearer)
    assert smallest_delta(p, q, epsilon) <= 1e-9
    for level in (0.0, epsilon / 2):
        assert smallest_delta(p, q, level) <= m.privacy.delta(level) + 1e-9


@given(st.floats(0.2, 4), st.sampled_from([0.3, 0.1, 1e-3, 1e-6]), st.sampled_from([0, 1, 3]))
def test_unstable_neighbours_cost_delta(epsilon, delta, bound):
    """Beyond the bound both distances are 0: whatever is released is released with probability delta."""
    m = ProposeTestRelease(epsilon, delta, bound=bound)
    assert m.chance(0) <= delta
    test = ProposeTestRelease(epsilon, delta, bound=bound)
    assert test.threshold == 1 or m.chance(1) * (1 + 1e-9) >= delta * math.exp(-float(m.test_epsilon))


def test_the_threshold_is_the_least_that_holds():
    for epsilon, delta in ((1.0, 1e-6), (0.1, 1e-3), (4.0, 0.01)):
        m = ProposeTestRelease(epsilon, delta)
        assert m.chance(0) <= delta < m.chance(1) * (1 + 1e-9)


def test_a_mutant_that_tests_without_noise_is_caught():
    """The bug: refuse exactly when the distance is below T; a neighbour across the line is told for sure."""
    m = ProposeTestRelease(1.0, 1e-3, bound=1)

    def mutant(value, distance):
        passes = float(distance >= m.threshold)
        return np.append(1 - passes, passes * m.noise.pmf(np.arange(-100, 101), value))

    assert smallest_delta(mutant(0, m.threshold), mutant(0, m.threshold - 1), 1.0) > 0.9
    assert smallest_delta(law(m, 0, m.threshold), law(m, 0, m.threshold - 1), 1.0) <= 1e-9


def test_a_mutant_whose_threshold_has_no_slack_is_caught():
    """The bug: pass when the noisy distance is above 0, so unstable data are released half of the time."""
    m = ProposeTestRelease(1.0, 1e-3, bound=1)
    above_zero = m.chance(m.threshold - 1)
    assert above_zero > 1e-3 >= m.chance(0)


@pytest.mark.statistical
def test_passes_and_values_follow_the_stated_law():
    """Fails by chance below 1e-7."""
    m = ProposeTestRelease(2.0, 0.05, bound=1)
    for distance in (0, 1, m.threshold, m.threshold + 3):
        seen = [m.release((0, distance)) for _ in range(2_500)]
        places = [0 if value is None else 1 + min(max(value, -30), 31) + 30 for value in seen]
        assert surprise(places, law(m, 0, distance, span=30)) > FAILURE


counts = st.dictionaries(st.sampled_from("abc"), st.integers(0, 6), min_size=1)


def lead(values):
    ordered = sorted(values, key=lambda key: (-values[key], repr(key)))
    second = values[ordered[1]] if len(ordered) > 1 else 0
    return ordered[0], max(0, values[ordered[0]] - second - 1)


@given(counts, st.sampled_from("abcd"))
def test_the_lead_is_a_distance_for_the_mode(values, extra):
    more = {**values, extra: values.get(extra, 0) + 1}
    (one, near), (other, far) = lead(values), lead(more)
    assert abs(near - far) <= 1
    assert one == other or near == far == 0


@settings(max_examples=50)
@given(st.floats(0.3, 3), st.sampled_from([0.2, 1e-3]), counts, st.sampled_from("abcd"))
def test_the_stable_mode_is_epsilon_delta_private(epsilon, delta, values, extra):
    m = StableMode(epsilon, delta).test
    names = ["a", "b", "c", "d"]

    def outcome(data):
        first, distance = lead(data)
        masses = np.zeros(5)
        masses[0], masses[1 + names.index(first)] = 1 - m.chance(distance), m.chance(distance)
        return masses

    more = {**values, extra: values.get(extra, 0) + 1}
    assert smallest_delta(outcome(values), outcome(more), epsilon) <= delta * (1 + 1e-9)
    assert smallest_delta(outcome(values), outcome(more), 0.0) <= m.privacy.delta(0.0) + 1e-9


def mode_law(m, data):
    """The exact law of what a stable mode with these counts releases: None, a, b, c or d."""
    ordered = sorted(data, key=lambda key: (-data[key], repr(key)))
    lead = data[ordered[0]] - (data[ordered[1]] if len(ordered) > 1 else 0)
    chance = m.test.chance(m.distance(lead))
    masses = np.zeros(5)
    masses[0], masses[1 + "abcd".index(ordered[0])] = 1 - chance, chance
    return masses


@settings(max_examples=150)
@given(
    st.floats(0.3, 8),
    st.sampled_from([0.2, 1e-3, 1e-6]),
    counts,
    st.sampled_from("abcd"),
    st.sampled_from("abcd"),
)
def test_the_stable_mode_is_epsilon_delta_private_where_a_unit_is_replaced(epsilon, delta, values, old, new):
    m = StableMode(epsilon, delta, relation="replace")
    one = {**values, old: values.get(old, 0) + 1}
    other = {**values, new: values.get(new, 0) + 1}
    p, q = mode_law(m, one), mode_law(m, other)
    assert smallest_delta(p, q, epsilon) <= delta * (1 + 1e-9)
    for level in (0.0, epsilon / 2):
        assert smallest_delta(p, q, level) <= m.privacy.delta(level) + 1e-9


def test_a_mutant_that_counts_replacing_as_two_halves_is_caught():
    """The bug: add-remove at half of epsilon and delta, where b leads by 2 and then a is level with it."""
    epsilon, delta = 3.0, 1e-3
    one, other = {"a": 4, "b": 6}, {"a": 5, "b": 5}
    mutant = StableMode(epsilon / 2, delta / 2)
    assert smallest_delta(mode_law(mutant, one), mode_law(mutant, other), epsilon) > 2 * delta
    mutant = StableMode(epsilon, delta)
    assert smallest_delta(mode_law(mutant, one), mode_law(mutant, other), epsilon) > 2 * delta
    honest = StableMode(epsilon, delta, relation="replace")
    assert smallest_delta(mode_law(honest, one), mode_law(honest, other), epsilon) <= delta


def test_the_lead_that_passes_is_the_least_where_a_unit_is_replaced():
    for relation, step in (("add-remove", 1), ("replace", 2)):
        m = StableMode(1.0, 1e-6, relation=relation)
        lead = m.halfwidth(0.95)
        assert m.test.chance(m.distance(lead)) >= 0.95
        assert m.distance(lead - 1) == m.distance(lead) - 1
        assert m.test.chance(m.distance(lead - 2 * step)) < 0.95
        assert m.release({"a": 3000, "b": 10}) == "a"


def test_a_mutant_that_uses_the_whole_lead_is_caught():
    """The bug: the lead itself as the distance, although a lead of 1 can already turn."""
    m = ProposeTestRelease(1.0, 1e-3)
    assert m.chance(1) > 1e-3


def test_modes_and_distances_come_out():
    m = StableMode(2.0, 1e-6)
    assert m.release({"x": 500, "y": 3}) == "x"
    assert m.release({"x": 500, "y": 500}) is None
    assert m.release({}) is None
    assert m.release({"only": m.halfwidth(0.999999) + 20}) == "only"
    d = DistanceToProperty(50.0)
    assert d.release(12) == 12 and d.release(0) == 0
    assert d.privacy.epsilon() == 50 and d.halfwidth(0.95) == 0


def exact_leaving(values, shifted):
    """The fewest replaced records that leave the bin, by trying all replacements from a rich set."""
    spots = sorted({*values, *(v + d for v in values for d in (-0.01, 0.01)), -100.0, 100.0})
    start = leaving(np.sort(np.array(values, float)), shifted)[0]
    for j in range(1, len(values)):
        for chosen in itertools.combinations(range(len(values)), j):
            rest = [v for i, v in enumerate(values) if i not in chosen]
            for new in itertools.combinations_with_replacement(spots, j):
                if leaving(np.sort(np.array(rest + list(new), float)), shifted)[0] != start:
                    return j - 1
    return len(values)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=5, max_size=6), st.booleans())
def test_the_distance_of_the_interquartile_range_is_that_of_brute_force(values, shifted):
    assert leaving(np.sort(np.array(values, float)), shifted)[1] == exact_leaving(
        [float(v) for v in values], shifted
    )


@settings(max_examples=200)
@given(st.lists(st.floats(-50, 50), min_size=4, max_size=20), st.floats(-1e6, 1e6), st.booleans(), st.data())
def test_the_interquartile_distance_moves_by_at_most_one(values, new, shifted, data):
    place = data.draw(st.integers(0, len(values) - 1))
    other = [*values[:place], new, *values[place + 1 :]]
    one, two = (leaving(np.sort(np.array(x, float)), shifted) for x in (values, other))
    assert abs(one[1] - two[1]) <= 1
    assert one[0] == two[0] or one[1] == two[1] == 0


@pytest.mark.parametrize("shifted", [False, True])
def test_the_bins_of_a_family_partition_the_numbers(shifted):
    """Each bin starts where the one before ends, from 0 to the largest difference of clamped numbers."""
    low, high = _bin(0.0, shifted)
    assert low == 0.0
    seen = 0
    while high <= 2.0**1001:
        last = math.nextafter(high, 0.0)
        assert _bin(low, shifted) == _bin(last, shifted) == (low, high)
        low, high = _bin(high, shifted)
        assert low == math.nextafter(last, math.inf)
        seen += 1
    assert seen >= 2000


@pytest.mark.parametrize("shifted", [False, True])
@pytest.mark.parametrize("power", [-1074, -1073, -1022, -1001, -1000, -999, -998, 0, 998, 999])
def test_the_interquartile_distance_holds_at_the_ends_of_floats(power, shifted):
    """Piles at 0, just below and just above each edge; a record goes from one to another."""
    edges = [factor * 2.0**power for factor in (0.5, 0.75, 1.0, 1.5)]
    for edge, z, p, r in itertools.product(edges, (3, 6, 11), (1, 3, 8), (1, 2, 7)):
        below, above = math.nextafter(edge * 0.9, 0.0), math.nextafter(edge * 1.1, math.inf)
        values = [0.0] * z + [below] * p + [edge] + [above] * r
        one = leaving(np.sort(np.array(values)), shifted)
        for old, new in itertools.permutations({0.0, below, edge, above}, 2):
            other = list(values)
            other[values.index(old)] = new
            two = leaving(np.sort(np.array(other)), shifted)
            assert abs(one[1] - two[1]) <= 1
            assert one[0] == two[0] or one[1] == two[1] == 0


def test_tiny_interquartile_ranges_are_not_told_apart():
    """A quarter of the records at 0.9 and a quarter at 1.1 times 2^-1000, and one that decides the quartile.

    Both ranges lie in [0, 1.5 * 2^-1000). With bins that overlap one was released for sure, the other never.
    """
    step = 2.0**-1000
    rest = [0.0] * 500 + [0.9 * step] * 249 + [1.1 * step] * 250
    one, two = (leaving(np.sort(np.array([*rest, x])), shifted=True) for x in (0.9 * step, 1.1 * step))
    assert one[0] == two[0] == (0.0, 1.5 * step)
    m = InterquartileRange(2.0, 1e-6)
    assert {m.release([*rest, x]) for x in (0.9 * step, 1.1 * step) for _ in range(20)} == {(0.0, 1.5 * step)}


def test_the_interquartile_range_is_found_without_bounds():
    rng = np.random.default_rng(1)
    m = InterquartileRange(2.0, 1e-6)
    for scale in (1e-3, 1.0, 1e6):
        values = rng.normal(0, scale, 4_000)
        interval = m.release(values)
        spread = float(np.subtract(*np.sort(values)[[4_000 - 1 - 1_000, 1_000]]))
        assert interval is not None and interval[0] <= spread < interval[1]
    assert m.release([1.0, 2.0, 3.0, 400.0]) is None
    assert m.release([5.0] * 1000) == (0.0, 2.0**-1000)
    assert m.release([-1.7e308] * 500 + [math.inf] * 500) == (2.0**1001, 2.0**1002)
    assert m.privacy.epsilon(1e-6) <= 2.0 * (1 + 1e-9)


def test_reals_and_kinds():
    m = ProposeTestRelease(100.0, 1e-3, bound=0.5)
    assert m.release((3.25, 1000)) == pytest.approx(3.25, abs=0.5)
    assert m.release((3.25, 0)) is None
    assert ProposeTestRelease(1.0, 1e-3).release((None, 1000)) == Passed(None)
    assert m.halfwidth(0.95) > 0 and ProposeTestRelease(1.0, 1e-3).halfwidth(0.95) == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda: ProposeTestRelease(0, 1e-3),
        lambda: ProposeTestRelease(1, 0),
        lambda: ProposeTestRelease(1, 1),
        lambda: ProposeTestRelease(1, 1e-3, bound=-1),
        lambda: ProposeTestRelease(1, 1e-3, bound="1"),
        lambda: ProposeTestRelease(1, 1e-3, share=1),
        lambda: ProposeTestRelease(1, 1e-3, bound=1).release(5),
        lambda: ProposeTestRelease(1, 1e-3, bound=1).release((5, -1)),
        lambda: ProposeTestRelease(1, 1e-3, bound=1).release((5, 1.5)),
        lambda: ProposeTestRelease(1, 1e-3, bound=1).release((5.5, 3)),
        lambda: ProposeTestRelease(1, 1e-3, bound=1).release((float("nan"), 3)),
        lambda: StableMode(0, 1e-3),
        lambda: StableMode(1, 2),
        lambda: StableMode(1, 1e-3, relation="swap"),
        lambda: StableMode(1, 1e-3).release(["a"]),
        lambda: StableMode(1, 1e-3).release({"a": -1}),
        lambda: StableMode(1, 1e-3).release({"a": 1.5}),
        lambda: DistanceToProperty(0),
        lambda: DistanceToProperty(1).release(-1),
        lambda: DistanceToProperty(1).release("3"),
        lambda: InterquartileRange(0, 1e-3),
        lambda: InterquartileRange(1, 1e-3).release([1, 2, 3]),
        lambda: InterquartileRange(1, 1e-3).release(["a"] * 5),
        lambda: InterquartileRange(1, 1e-3).release([[1, 2], [3, 4]]),
    ],
)
def test_bad_input_gets_one_sentence(call):
    with pytest.raises(InvalidInput) as caught:
        call()
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)


def test_messages_never_show_the_data():
    for call in (
        lambda: ProposeTestRelease(1, 1e-3, bound=1).release((5, -987)),
        lambda: StableMode(1, 1e-3).release({"a": -987}),
        lambda: DistanceToProperty(1).release(-987),
    ):
        with pytest.raises(InvalidInput) as caught:
            call()
        assert "987" not in str(caught.value)
