"""The three selection mechanisms: exact probabilities against their claims, accuracy, mutants."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.errors import InvalidInput
from incrowd.mechanisms import Exponential, PermuteAndFlip, ReportNoisyMax
from incrowd.noise import discrete_laplace_pmf, discrete_laplace_sf

from .checks import FAILURE, smallest_epsilon, surprise

ALL = (Exponential, PermuteAndFlip, ReportNoisyMax)
scores = st.lists(st.integers(-6, 6), min_size=1, max_size=5)
epsilons = st.sampled_from([0.1, 0.5, 1.0, 2.0, Fraction(7, 3)])


def neighbour(draw, utilities, sensitivity, monotone):
    if monotone:
        sign = draw(st.sampled_from([-1, 1]))
        return [u + sign * draw(st.integers(0, sensitivity)) for u in utilities]
    return [u + draw(st.integers(-sensitivity, sensitivity)) for u in utilities]


@pytest.mark.parametrize("kind", ALL)
@settings(max_examples=60, deadline=None)
@given(epsilons, scores, st.integers(1, 3), st.booleans(), st.data())
def test_the_ratio_is_never_above_epsilon(kind, epsilon, utilities, sensitivity, monotone, data):
    m = kind(epsilon, sensitivity=sensitivity, monotone=monotone)
    moved = neighbour(data.draw, utilities, sensitivity, monotone)
    p, q = m.probabilities(utilities), m.probabilities(moved)
    assert p.sum() == pytest.approx(1, abs=1e-9)
    assert smallest_epsilon(p, q) <= m.privacy.epsilon() * (1 + 1e-9) + 1e-9


@settings(max_examples=60)
@given(epsilons, scores, st.integers(1, 3), st.booleans(), st.data())
def test_the_exponential_mechanism_is_bounded_range(epsilon, utilities, sensitivity, monotone, data):
    m = Exponential(epsilon, sensitivity=sensitivity, monotone=monotone)
    moved = neighbour(data.draw, utilities, sensitivity, monotone)
    ratio = np.log(m.probabilities(utilities)) - np.log(m.probabilities(moved))
    assert ratio.max() - ratio.min() <= float(epsilon) * (1 + 1e-9) + 1e-12


def test_the_range_of_the_exponential_mechanism_is_reached():
    m = Exponential(1.0)
    ratio = np.log(m.probabilities([0, 0])) - np.log(m.probabilities([1, -1]))
    assert ratio.max() - ratio.min() == pytest.approx(1.0, rel=1e-9)
    up = Exponential(1.0, monotone=True)
    ratio = np.log(up.probabilities([0, 0])) - np.log(up.probabilities([1, 0]))
    assert ratio.max() - ratio.min() == pytest.approx(1.0, rel=1e-9)


def test_epsilon_is_reached_where_the_theorem_is_tight():
    # Rare candidates: P(i) is nearly proportional to its own weight, and a rival rises while i falls.
    for kind in (Exponential, PermuteAndFlip):
        m = kind(1.0)
        worst = smallest_epsilon(m.probabilities([0, 60]), m.probabilities([-1, 61]))
        assert worst == pytest.approx(1.0, rel=1e-9)
    m = ReportNoisyMax(1.0)
    far = smallest_epsilon(m.probabilities([0, 30]), m.probabilities([-1, 31]))
    assert 0.94 < far <= 1.0 + 1e-9


def test_permute_and_flip_is_not_bounded_range():
    m = PermuteAndFlip(1.0)
    ratio = np.log(m.probabilities([0, 1, -30])) - np.log(m.probabilities([1, 0, -31]))
    assert ratio.max() - ratio.min() > 1.05


@given(st.floats(0.1, 4), st.lists(st.floats(-5, 5), min_size=1, max_size=5))
def test_all_coins_at_once_is_the_sequential_definition(epsilon, utilities):
    """Average over every order of the candidates, as McKenna and Sheldon define it."""
    m = PermuteAndFlip(epsilon)
    best = max(utilities)
    heads = [math.exp(-float(m.rate) * (best - u)) for u in utilities]
    chances = np.zeros(len(heads))
    orders = list(itertools.permutations(range(len(heads))))
    for order in orders:
        reached = 1.0
        for i in order:
            chances[i] += reached * heads[i] / len(orders)
            reached *= 1 - heads[i]
    assert np.allclose(chances, m.probabilities(utilities), atol=1e-12)


def test_permute_and_flip_of_many_candidates_sums_to_one():
    utilities = np.linspace(0, 30, 400)
    assert PermuteAndFlip(1.0).probabilities(utilities).sum() == pytest.approx(1, abs=1e-12)


@given(st.floats(0.1, 4), st.lists(st.floats(-5, 5), min_size=2, max_size=6))
def test_permute_and_flip_is_never_worse_than_the_exponential_mechanism(epsilon, utilities):
    u = np.array(utilities)
    flipped = PermuteAndFlip(epsilon).probabilities(utilities) @ u
    assert flipped >= Exponential(epsilon).probabilities(utilities) @ u - 1e-12


@settings(max_examples=40, deadline=None)
@given(st.floats(0.3, 4), st.lists(st.integers(-4, 4), min_size=2, max_size=4))
def test_noisy_max_probabilities_are_those_of_a_random_order_drawn_beforehand(epsilon, utilities):
    """Brute force over orders: ties go to the earliest; summed on the lattice."""
    m = ReportNoisyMax(epsilon)
    reach = int(m.scale * 40) + 10
    y = np.arange(-reach, reach + 1)
    masses = [discrete_laplace_pmf(y - u, m.scale_in_steps) for u in utilities]
    below = [np.cumsum(p) - p for p in masses]
    chances = np.zeros(len(utilities))
    orders = list(itertools.permutations(range(len(utilities))))
    for order in orders:
        for place, i in enumerate(order):
            product = masses[i].copy()
            for other_place, j in enumerate(order):
                if j != i:
                    product *= below[j] if other_place < place else below[j] + masses[j]
            chances[i] += product.sum() / len(orders)
    assert np.allclose(chances, m.probabilities(utilities), atol=1e-9)


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("utilities", [[0, 1, 1, 3], [2, 2], [-5, 0, 4, 4, 4, 1]])
def test_choices_follow_the_stated_probabilities(kind, utilities):
    """Fails by chance below 1e-7."""
    m = kind(1.5)
    chosen = [m.release(utilities) for _ in range(4_000)]
    assert surprise(chosen, m.probabilities(utilities)) > FAILURE


@pytest.mark.statistical
@pytest.mark.parametrize(
    "utilities",
    [
        [2**62, 2**62 - 1, -(2**62), 2**62 - 3],
        [1e300, 1e300, -1e300, 0.0],
        [0.0, -1.999999999, -2.0, -2.000000001, -40.0, -1e9],
    ],
)
def test_coins_in_two_parts_are_the_same_coins(utilities):
    """Large, far and nearly whole gaps. Fails by chance below 1e-7."""
    m = PermuteAndFlip(2.0)
    chosen = [m.release(utilities) for _ in range(4_000)]
    assert surprise(chosen, m.probabilities(utilities)) > FAILURE


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ALL)
def test_choices_among_real_utilities_follow_the_stated_probabilities(kind):
    """Fails by chance below 1e-7."""
    utilities = [0.25, 1.125, -0.7, 2.0]
    m = kind(1.5, sensitivity=0.5, grid=0.125) if kind is ReportNoisyMax else kind(1.5, sensitivity=0.5)
    chosen = [m.release(utilities) for _ in range(4_000)]
    assert surprise(chosen, m.probabilities(utilities)) > FAILURE


@pytest.mark.parametrize("kind", ALL)
def test_a_mutant_that_forgets_the_factor_two_is_caught(kind):
    """The bug: the monotone rate used for utilities that move both ways."""
    mutant = kind(1.0, monotone=True)
    worst = smallest_epsilon(mutant.probabilities([0, 20]), mutant.probabilities([-1, 21]))
    assert worst > 1.5
    honest = kind(1.0)
    assert smallest_epsilon(honest.probabilities([0, 20]), honest.probabilities([-1, 21])) <= 1 + 1e-9


def test_a_mutant_that_throws_in_the_winning_value_is_caught():
    """The bug: the noisy maximum is released beside its name, at no charge (Dwork and Roth, section 3.3)."""
    m = ReportNoisyMax(1.0)

    def index_and_value(utilities):
        y = np.arange(-60, 61)
        at = [discrete_laplace_pmf(y - u, m.scale_in_steps) for u in utilities]
        below = [1 - discrete_laplace_sf(y - u - 1, m.scale_in_steps) for u in utilities]
        return at[0] * below[1] * below[2] * below[3]

    assert smallest_epsilon(index_and_value([0, 0, 0, 0]), index_and_value([-1, 1, 1, 1])) > 1.9
    assert smallest_epsilon(m.probabilities([0, 0, 0, 0]), m.probabilities([-1, 1, 1, 1])) <= 1


@pytest.mark.statistical
def test_a_mutant_that_prefers_the_first_of_the_tied_is_told_apart():
    """argmax returns the first: private, but not the stated law. Fails by chance below 1e-7."""
    m = ReportNoisyMax(8.0)
    rng = np.random.default_rng(5)
    q = math.exp(-1 / m.scale)
    noise = rng.geometric(1 - q, (4_000, 3)) - rng.geometric(1 - q, (4_000, 3))
    assert surprise(noise.argmax(axis=1), m.probabilities([0, 0, 0])) < 1e-12


@pytest.mark.parametrize("kind", ALL)
@settings(max_examples=30, deadline=None)
@given(st.floats(0.2, 3), st.integers(2, 6), st.sampled_from([0.5, 0.9, 0.99]), st.data())
def test_the_halfwidth_is_kept(kind, epsilon, many, confidence, data):
    m = kind(epsilon)
    h = m.halfwidth(confidence, many)
    utilities = np.array(data.draw(st.lists(st.integers(-40, 0), min_size=many, max_size=many)))
    worst = np.array([0] + [-math.ceil(h + 1e-9) if h < 2**30 else -(2**30)] * (many - 1))
    for u in (utilities, worst):
        far = u < u.max() - h
        assert m.probabilities(u)[far].sum() <= 1 - confidence + 1e-9


def test_one_candidate_is_always_chosen():
    for kind in ALL:
        assert kind(0.1).release([5]) == 0
        assert kind(0.1).halfwidth(0.99, 1) in (0, 0.0) or kind is ReportNoisyMax


def test_the_pumpkin_auction():
    """Bids 1, 1, 1 and 3, capped at 3: the price is chosen, and a price no one can pay is rare."""
    prices = [1.0, 1.01, 2.0, 3.0, 3.01]
    bids = [1, 1, 1, 3]

    def revenue(people):
        return [price * sum(bid >= price for bid in people) for price in prices]

    m = Exponential(epsilon=6, sensitivity=3, monotone=True)
    p = m.probabilities(revenue(bids))
    assert p.argmax() == 0 and p[0] > 0.8 and p[4] < 1e-3
    for left_out in range(4):
        fewer = bids[:left_out] + bids[left_out + 1 :]
        assert smallest_epsilon(p, m.probabilities(revenue(fewer))) <= 6
    assert PermuteAndFlip(6, sensitivity=3, monotone=True).probabilities(revenue(bids)) @ revenue(
        bids
    ) > p @ revenue(bids)


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize(
    "given",
    [
        {"epsilon": 0},
        {"epsilon": -1},
        {"epsilon": float("nan")},
        {"epsilon": "1"},
        {"epsilon": None},
        {"epsilon": 1, "sensitivity": 0},
        {"epsilon": 1, "sensitivity": -0.5},
        {"epsilon": 1, "sensitivity": float("inf")},
        {"epsilon": 1, "sensitivity": "1"},
        {"epsilon": 1, "monotone": 1},
    ],
)
def test_bad_parameters_get_one_sentence(kind, given):
    with pytest.raises(InvalidInput) as caught:
        kind(**given)
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize(
    "utilities",
    [
        [],
        3,
        "abc",
        ["a", "b"],
        [1, None],
        [[1, 2], [3, 4]],
        [[1], [2, 3]],
        [True, False],
        np.ma.masked_array([1, 2], mask=[0, 1]),
    ],
)
def test_bad_utilities_get_one_sentence(kind, utilities):
    m = kind(1.0, sensitivity=1.0)
    for call in (m.release, m.probabilities):
        with pytest.raises(InvalidInput) as caught:
            call(utilities)
        assert str(caught.value).endswith(".") and "\n" not in str(caught.value)
    with pytest.raises(InvalidInput):
        m.halfwidth(1.5, 3)
    with pytest.raises(InvalidInput):
        m.halfwidth(0.5, 0)
