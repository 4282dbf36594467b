from __future__ import annotations

import math
import pickle
from fractions import Fraction
from statistics import NormalDist

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.errors import InvalidInput
from incrowd.privacy import (
    UNITS,
    Charge,
    Guarantee,
    approximate,
    bounded_range,
    compose,
    gaussian,
    laplace,
    poisson,
    pure,
    randomized_response,
    threshold,
    without_replacement,
    zcdp,
)

HEAD = '{"schema": "incrowd.guarantee", '
ALL = [
    pure(0.1),
    approximate(0.5, 1e-7),
    zcdp(0.01, 1e-9),
    gaussian(Fraction(1, 3)),
    laplace(0.25),
    laplace(Fraction(1, 7), steps=3),
    randomized_response(1.0, 5),
    bounded_range(0.2),
    threshold(1e-8),
    poisson(gaussian(1.5), Fraction(1, 300)),
    poisson(pure(1.5), Fraction(1, 300)).group(3),
    without_replacement(gaussian(1.5), 1, 300),
    without_replacement(laplace(0.5, steps=2), 1, 7).group(2),
]
plans = st.lists(st.tuples(st.sampled_from(ALL), st.integers(0, 5)), max_size=6).map(
    lambda items: compose(*(g * n for g, n in items))
)


@given(plans, plans, plans)
def test_composition_is_a_commutative_sum(a: Guarantee, b: Guarantee, c: Guarantee) -> None:
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert hash(a + b) == hash(b + a)
    assert a * 3 == a + a + a == 3 * a == sum([a, a, a])
    assert a + Guarantee() == a
    assert a * 0 == Guarantee()


@given(plans)
def test_json_and_pickle_keep_every_event(plan: Guarantee) -> None:
    assert Guarantee.from_json(plan.to_json()) == plan
    assert Guarantee.from_json(plan.to_json()).to_json() == plan.to_json()
    assert pickle.loads(pickle.dumps(plan)) == plan


@settings(deadline=None, max_examples=30)
@given(plans)
def test_charges_add_up_to_no_less_than_the_charge_of_the_sum(plan: Guarantee) -> None:
    whole, parts = plan.charge(), [(Guarantee([(e, 1)]).charge(), n) for e, n in plan.events]
    assert whole.delta <= sum(c.delta * n for c, n in parts)
    for name in ("epsilon", "rho", "mu2"):
        pieces = [getattr(c, name) for c, _ in parts]
        if None in pieces:
            assert getattr(whole, name) is None
        else:
            assert getattr(whole, name) <= sum(p * n for p, (_, n) in zip(pieces, parts, strict=True))


def test_nothing_is_free_and_never_shown_as_a_cost() -> None:
    for free in (
        pure(1.0) * 0,
        Guarantee(),
        pure(0),
        gaussian(0),
        threshold(0),
        poisson(pure(1), 0),
        zcdp(0),
    ):
        assert free == Guarantee()
        assert free.epsilon() == free.delta(0) == free.rho == free.renyi(2) == 0
        assert free.posterior(0.3) == pytest.approx((0.3, 0.3))
        assert repr(free) == "<Guarantee epsilon=0: nothing released>"
        assert "epsilon 0" in free._repr_html_()


def test_a_guarantee_never_changes() -> None:
    with pytest.raises(AttributeError, match="never changes"):
        pure(1.0).anything = 1  # type: ignore[attr-defined]


def test_it_tells_what_it_holds() -> None:
    plan = laplace(0.1) * 1000 + gaussian(0.5)
    assert repr(plan) == "<Guarantee rho=4.96242: gaussian(mu=0.5) + laplace(epsilon=0.1) x 1,000>"
    assert "<table>" in plan._repr_html_()
    assert "delta=1e-06" in plan._repr_html_()
    assert repr(pure(1.0)) == "<Guarantee epsilon=1: pure(epsilon=1)>"
    assert (
        repr(approximate(1.0, 1e-6))
        == "<Guarantee epsilon=1, delta=1e-06: approximate(epsilon=1, delta=1e-06)>"
    )
    assert repr(gaussian(1)).startswith("<Guarantee epsilon=4.88656 at delta=1e-06: gaussian")
    assert "<Guarantee an epsilon(delta) for every delta: poisson" in repr(poisson(gaussian(1), 0.01) * 1000)
    many = compose(*(pure(Fraction(i, 100)) for i in range(1, 20)))
    assert "14 more" in repr(many)


@given(st.fractions(min_value=Fraction(1, 10**9), max_value=10**9))
def test_a_printed_figure_is_never_below_the_truth(epsilon: Fraction) -> None:
    shown = Fraction(repr(pure(epsilon)).partition("epsilon=")[2].partition(":")[0])
    assert epsilon <= shown <= epsilon * (1 + Fraction(1, 10**5))


@pytest.mark.parametrize("times", [-1, 1.5, True, "2", None])
def test_repeats_are_whole_numbers(times: object) -> None:
    with pytest.raises(InvalidInput, match="number of repeats"):
        pure(1.0) * times  # type: ignore[operator]


def test_only_guarantees_add() -> None:
    with pytest.raises(TypeError):
        pure(1.0) + 1.0  # type: ignore[operator]
    with pytest.raises(InvalidInput, match="made of events"):
        Guarantee([("laplace", 1)])  # type: ignore[list-item]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1.0, "1", None])
def test_bad_parameters_are_named(bad: object) -> None:
    for make, name in (
        (pure, "epsilon"),
        (zcdp, "rho"),
        (gaussian, "mu"),
        (laplace, "epsilon"),
        (threshold, "delta"),
    ):
        with pytest.raises(InvalidInput, match=name):
            make(bad)  # type: ignore[operator]
    with pytest.raises(InvalidInput, match="delta"):
        pure(1.0).epsilon(bad)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="epsilon"):
        pure(1.0).delta(bad)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="alpha"):
        pure(1.0).renyi(bad)  # type: ignore[arg-type]


def test_moments_and_rho_are_those_of_the_pair() -> None:
    assert gaussian(1.0).renyi(3.0) == pytest.approx(1.5)
    assert zcdp(0.1).renyi(3.0) == pytest.approx(0.3)
    e = 0.7
    rr = math.log((math.exp(2 * e) + math.exp(-e)) / (1 + math.exp(e)))
    assert pure(e).renyi(2) == pytest.approx(rr)
    assert (pure(e) * 3 + gaussian(1)).renyi(2) == pytest.approx(3 * rr + 1)
    assert gaussian(1.0).rho == 0.5
    assert zcdp(0.3).rho == 0.3
    assert (pure(1.0) + threshold(1e-9)).rho == math.inf
    assert (pure(1.0) + threshold(1e-9)).renyi(2) == math.inf
    # Sampled, by the binomial sum for order 2: 1 + q^2 (e^(mu^2) - 1).
    assert poisson(gaussian(1.0), 0.1).renyi(2) == pytest.approx(math.log1p(0.01 * math.expm1(1.0)), rel=1e-9)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "5", "NaN", '{"schema": "x"}', HEAD + '"version": 99, "events": []}']
)
def test_what_is_no_guarantee_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(InvalidInput):
        Guarantee.from_json(text)


@pytest.mark.parametrize(
    "event",
    [
        '{"kind": "magic"}',
        '{"kind": "pure"}',
        '{"kind": {}, "epsilon": 1}',
        '{"kind": "pure", "epsilon": "1/0", "count": 1}',
        '{"kind": "pure", "epsilon": "1e999999999", "count": 1}',
        '{"kind": "pure", "epsilon": -1, "count": 1}',
        '{"kind": "pure", "epsilon": 1, "count": -1}',
        '{"kind": "pure", "epsilon": 1, "count": 1, "more": 1}',
        "7",
    ],
)
def test_damaged_events_are_refused_in_a_sentence(event: str) -> None:
    with pytest.raises(InvalidInput):
        Guarantee.from_json(HEAD + f'"version": 1, "events": [{event}]}}')


def test_json_is_plain_and_exact() -> None:
    text = (laplace(0.1) * 2 + pure(Fraction(1, 3))).to_json()
    assert text == (
        '{"events":[{"count":2,"epsilon":0.1,"kind":"laplace"},{"count":1,"epsilon":"1/3","kind":"pure"}],'
        '"schema":"incrowd.guarantee","version":1}'
    )


def test_charges_add_and_what_has_no_figure_keeps_none() -> None:
    whole, part = Charge(1, 2, 3, 4), Charge(10, 20, 30, 40)
    assert whole + part == part + whole == Charge(11, 22, 33, 44)
    assert isinstance(whole + part, Charge)
    nothing = Charge(None, None, 5, None)
    assert whole + nothing == nothing + whole == Charge(None, None, 8, None)
    assert Charge.nothing() + whole == whole
    assert Charge.from_dict(nothing.to_dict()) == nothing
    with pytest.raises(InvalidInput, match="delta"):
        Charge.from_dict({"epsilon": 1, "rho": 1, "delta": None, "mu2": 1})


def test_a_charge_is_the_sum_of_its_releases_in_each_currency() -> None:
    assert (gaussian(2) * 3).charge() == Charge(None, 6 * UNITS, 0, 12 * UNITS)
    assert (gaussian(2) + threshold(0.25)).charge() == Charge(None, 2 * UNITS, UNITS // 4, 4 * UNITS)
    assert (zcdp(0.5, 0.125) * 2).charge() == Charge(None, UNITS, UNITS // 4, None)
    two = (pure(2) + approximate(2, 0.125) * 2).charge()
    assert (two.epsilon, two.delta, two.mu2) == (6 * UNITS, UNITS // 4, None)
    # rho of a pure release of 2 is 2 tanh(1).
    assert two.rho == pytest.approx(3 * 2 * math.tanh(1) * UNITS, rel=1e-14)


def test_a_plan_charged_as_one_release_takes_the_least_of_each_currency() -> None:
    noise = gaussian(0.5)
    one = noise.charge(1e-6)
    assert one.epsilon is not None
    assert Fraction(one.epsilon, UNITS) >= Fraction(noise.epsilon(1e-6))
    assert one.epsilon / UNITS == pytest.approx(noise.epsilon(1e-6), rel=1e-12)
    # Its rho of 1/8 is less than that of one pure release of that epsilon, and stays.
    assert (one.rho, one.delta, one.mu2) == (UNITS // 8, UNITS // 10**6, UNITS // 4)
    assert noise.charge() == Charge(None, UNITS // 8, 0, UNITS // 4)
    # On a sample, one release of the accountant's epsilon has less rho than the noise without sampling.
    rare = poisson(gaussian(1), 0.01)
    epsilon = rare.epsilon(1e-3)
    joint = rare.charge(1e-3)
    assert (joint.delta, joint.mu2) == (UNITS // 10**3, UNITS)
    assert joint.epsilon is not None and joint.rho is not None
    assert joint.epsilon / UNITS == pytest.approx(epsilon, rel=1e-12)
    assert joint.rho / UNITS == pytest.approx(epsilon * math.tanh(epsilon / 2), rel=1e-9)
    assert rare.charge() == Charge(None, UNITS // 2, 0, UNITS)
    assert (laplace(0.1) * 1000).charge(1e-6) == (laplace(0.1) * 1000).charge()
    # A delta no larger than that of the plan itself buys nothing.
    assert approximate(1, 1e-6).charge(1e-6) == approximate(1, 1e-6).charge()
    assert (threshold(1e-3) + gaussian(1)).charge(1e-4) == (threshold(1e-3) + gaussian(1)).charge()


@pytest.mark.parametrize("event", [gaussian(1), zcdp(0.5)])
def test_a_threshold_beside_noise_without_an_epsilon_grows_step_by_step(event: Guarantee) -> None:
    # Two units: delta + F(delta), and F(x) is the power at level x: Phi(Phi^-1(x) + 1) for Gaussian noise.
    level = NormalDist()
    power = level.cdf(level.inv_cdf(1e-6) + 1)
    grown = {e.name: e for e, _ in (event + threshold(1e-6)).group(2).events}["threshold"].delta
    assert 1e-6 + power <= grown <= 1e-6 + 40 * power
    assert (event + threshold(1e-6)).group(1) == event + threshold(1e-6)
    more = {e.name: e for e, _ in (event + threshold(1e-6)).group(3).events}["threshold"].delta
    assert grown + level.cdf(level.inv_cdf(1e-6) + 2) <= more < 1


def test_a_threshold_grows_by_sums_of_powers_beside_pure_noise_and_to_one_at_most() -> None:
    def mass(plan: Guarantee) -> Fraction:
        return {e.name: e for e, _ in plan.events}["threshold"].delta

    assert float(mass((pure(1) + threshold(1e-6)).group(3))) == pytest.approx(
        1e-6 * (1 + math.e + math.e**2), rel=1e-12
    )
    assert mass(threshold(0.25).group(3)) == Fraction(3, 4)
    assert mass(threshold(0.25).group(5)) == 1
    assert mass((gaussian(1) + threshold(0.25)).group(60)) == 1
    # Beyond 64 units one bound stands for all steps: k times the power against k^2 rho.
    assert mass((gaussian(1e-3) + threshold(1e-9)).group(65)) < Fraction(1, 10**6)
    assert mass((gaussian(1e-3) + threshold(1e-9)).group(65)) >= Fraction(65, 10**9)
    assert mass((gaussian(1) + threshold(1e-9)).group(10**6)) == 1


def test_sums_begin_at_zero_and_at_nothing_else() -> None:
    assert sum([pure(1), pure(1)]) == pure(1) * 2
    with pytest.raises(TypeError):
        1 + pure(1)  # type: ignore[operator]
    assert pure(1) != 1
    assert pure(1) != pure(2)
    assert Guarantee({pure(1).events[0][0]: 2}) == pure(1) * 2


def test_the_least_order_of_renyi() -> None:
    with pytest.raises(InvalidInput, match="alpha must be above 1, but is 1"):
        pure(1).renyi(1)
    assert gaussian(2).renyi(1.5) == pytest.approx(3.0, rel=1e-12)
    assert gaussian(2).renyi(1.5) >= 3.0


def test_summaries_round_up_and_name_what_there_is() -> None:
    assert Guarantee().summary() == "epsilon=0"
    assert (approximate(1, 0.6) * 2).summary() == "epsilon=2, delta=1"
    assert zcdp(0.25, 0.125).summary() == "rho=0.25, delta=0.125"
    assert (zcdp(0.25) + poisson(gaussian(1), 0.5)).summary() == "an epsilon(delta) for every delta"
    assert (gaussian(1) + threshold(0.1)).summary() == "rho=0.5, delta=0.1"
    assert repr(pure(1) * 1000) == "<Guarantee epsilon=1000: pure(epsilon=1) x 1,000>"
    six = compose(*(pure(Fraction(i, 10)) for i in range(1, 7)))
    assert "more" not in repr(six)
    assert "2 more" in repr(six + pure(0.7))
    assert "epsilon=1</p>" in pure(1)._repr_html_()
    assert "epsilon=inf at delta=1e-06" in threshold(0.1)._repr_html_()


@pytest.mark.parametrize(
    ("plan", "free"),
    [
        (approximate(0, 0), True),
        (approximate(0, 0.1), False),
        (approximate(0.1, 0), False),
        (poisson(gaussian(1), 0), True),
        (poisson(gaussian(0), 0.5), True),
        (poisson(gaussian(1), 0.5), False),
        (laplace(0, 3), True),
        (bounded_range(0), True),
    ],
)
def test_what_says_nothing_is_left_out(plan: Guarantee, free: bool) -> None:
    assert (plan == Guarantee()) is free


def test_beliefs_move_within_the_odds_unless_a_delta_is_granted() -> None:
    low, high = pure(1.0).posterior(0.3)
    odds = 0.3 / 0.7
    assert (low, high) == pytest.approx(
        (odds / math.e / (1 + odds / math.e), odds * math.e / (1 + odds * math.e))
    )
    assert pure(1.0).posterior(0.3, 0.0) == (low, high)
    wider = gaussian(1.0).posterior(0.3, 1e-6)
    assert wider[0] < gaussian(1.0).posterior(0.3, 1e-2)[0] <= 0.3
