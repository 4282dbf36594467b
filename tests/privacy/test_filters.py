from __future__ import annotations

import json
import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.errors import BudgetExceeded, InvalidInput
from incrowd.privacy import (
    UNITS,
    Charge,
    Filter,
    Guarantee,
    approximate,
    bounded_range,
    capacity,
    fits,
    gaussian,
    laplace,
    poisson,
    pure,
    randomized_response,
    threshold,
    zcdp,
)
from incrowd.privacy.amounts import from_units

GUARANTEES = st.one_of(
    st.floats(0.001, 2).map(pure),
    st.floats(0.001, 1).map(gaussian),
    st.floats(0.001, 1).map(bounded_range),
    st.floats(0.001, 0.5).map(zcdp),
    st.tuples(st.floats(0.01, 1), st.floats(1e-9, 1e-6)).map(lambda pair: approximate(*pair)),
    st.floats(1e-9, 1e-6).map(threshold),
)


def test_ten_tenths_and_three_thirds_fill_a_budget_of_one() -> None:
    for ask, times in ((0.1, 10), (Fraction(1, 3), 3)):
        budget = Filter(1.0)
        for _ in range(times):
            budget.reserve(pure(ask))
        assert budget.remaining().main == 0
        with pytest.raises(BudgetExceeded):
            budget.reserve(pure(1e-20))


@settings(deadline=None, max_examples=60)
@given(st.lists(GUARANTEES, max_size=25), st.sampled_from([(1.0, 0.0), (3.0, 1e-6), (0.5, 1e-5)]))
def test_a_refusal_changes_nothing_and_sums_are_exact(
    asks: list[Guarantee], budget: tuple[float, float]
) -> None:
    state = Filter(*budget)
    spent = Charge.nothing()
    for ask in asks:
        before = state.to_dict()
        allowed = state.fits(ask)
        if allowed:
            state.reserve(ask)
            spent = spent + ask.charge()
        else:
            with pytest.raises(BudgetExceeded) as refused:
                state.reserve(ask)
            assert refused.value.asked
            assert refused.value.left
            assert state.to_dict() == before
        again = Filter.from_dict(json.loads(json.dumps(state.to_dict())))
        assert again.to_dict() == state.to_dict()
    assert state.spent.delta == spent.delta
    assert state.spent.epsilon == spent.epsilon


def test_an_expensive_refusal_does_not_close_the_budget() -> None:
    # A peer's filter is dead after one refusal.
    budget = Filter(1.0, 1e-6)
    with pytest.raises(BudgetExceeded):
        budget.reserve(pure(50))
    budget.reserve(pure(0.1))


def test_saved_state_keeps_what_was_spent_and_holds_no_data() -> None:
    # A peer's session starts anew when it is saved.
    budget = Filter(3.0, 1e-6)
    budget.reserve(gaussian(0.3))
    saved = budget.to_dict()
    assert Filter.from_dict(saved).remaining() == budget.remaining()
    flat = json.dumps(saved)
    assert all(key in flat for key in ("version", "epsilon", "delta", "threshold_share", "capacity", "spent"))


@pytest.mark.parametrize("damage", [{}, {"version": 2}, {"version": 1}, {"version": 1, "epsilon": "x"}, []])
def test_damaged_state_is_refused_in_a_sentence(damage: object) -> None:
    with pytest.raises(InvalidInput):
        Filter.from_dict(damage)  # type: ignore[arg-type]


@settings(deadline=None, max_examples=60)
@given(st.floats(0.05, 20), st.floats(1e-12, 1e-2))
def test_the_rho_of_a_budget_converts_back_within_it(epsilon: float, delta: float) -> None:
    limit = capacity(epsilon, delta, threshold_share=0)
    assert zcdp(from_units(limit.main)).epsilon(delta) <= epsilon * (1 + 1e-9)
    assert zcdp(from_units(limit.main)).delta(epsilon) <= delta
    assert zcdp(from_units(limit.main) * Fraction(1001, 1000)).epsilon(delta) > epsilon


def test_the_share_for_thresholds_is_kept_apart() -> None:
    budget = Filter(1.0, 1e-6, threshold_share=0.5)
    budget.reserve(threshold(5e-7))
    with pytest.raises(BudgetExceeded, match="delta"):
        budget.reserve(threshold(1e-12))
    budget.reserve(gaussian(0.01))
    assert Filter(1.0, 1e-6, threshold_share=1).capacity.main == 0


def test_which_release_a_budget_can_hold() -> None:
    for ask in (
        gaussian(0.01),
        zcdp(0.001),
        approximate(0.1, 1e-9),
        threshold(1e-9),
        poisson(gaussian(0.1), 0.1),
    ):
        assert not Filter(1.0).fits(ask)
        assert Filter(1.0, 1e-6).fits(ask)
    gdp = Filter(1.0, 1e-6, kind="gdp")
    assert gdp.fits(gaussian(0.1))
    assert gdp.fits(poisson(gaussian(0.1), 0.5) + threshold(1e-8))
    assert not gdp.fits(zcdp(0.001))
    mixed = Filter(1.0, 1e-6, kind="gdp")
    mixed.reserve(gaussian(0.1))
    with pytest.raises(BudgetExceeded):  # neither all Gaussian nor all pure
        mixed.reserve(pure(0.1))


def test_charges_are_rounded_up_and_cheaper_where_a_theorem_allows() -> None:
    assert pure(1).charge().epsilon == UNITS
    rho = bounded_range(1).charge().rho
    assert rho is not None and 0.1233 * UNITS < rho < UNITS // 8
    rhos = {
        name: g.charge().rho
        for name, g in (("pure", pure(1)), ("laplace", laplace(1)), ("range", bounded_range(1)))
    }
    assert rhos["range"] < rhos["laplace"] < rhos["pure"] < UNITS // 2  # type: ignore[operator]
    assert randomized_response(1, 50).charge().rho < pure(1).charge().rho  # type: ignore[operator]
    assert gaussian(1).charge() == Charge(None, UNITS // 2, 0, UNITS)


def test_a_fixed_plan_may_be_charged_as_one_release() -> None:
    training = poisson(gaussian(1.0), 0.01) * 1000
    whole = training.charge(delta=1e-6)
    parts = training.charge()
    assert whole.rho is not None and parts.rho is not None
    assert whole.rho < parts.rho / 100
    assert from_units(whole.delta) == Fraction(1, 10**6)
    cheap = laplace(0.1) * 3
    assert cheap.charge(delta=1e-9) == cheap.charge()


@settings(deadline=None, max_examples=40)
@given(st.lists(st.floats(0.01, 0.4), max_size=4), st.sampled_from([(1.0, 0.0), (1.0, 1e-6)]))
def test_what_is_affordable_fits_and_a_little_more_does_not(
    asks: list[float], budget: tuple[float, float]
) -> None:
    state = Filter(*budget)
    for ask in asks:
        if state.fits(pure(ask)):
            state.reserve(pure(ask))
    most = state.affordable()
    assert state.fits(pure(most))
    assert not state.fits(pure(most * (1 + 1e-9) + 1e-9))


def test_the_plain_function_agrees_with_the_filter() -> None:
    limit = capacity(1.0, 1e-6)
    assert fits(limit, Charge.nothing(), pure(1).charge())
    assert not fits(limit, pure(1).charge(), pure(1).charge())
    assert Charge.from_dict(pure(1).charge().to_dict()) == pure(1).charge()


@pytest.mark.parametrize(
    ("epsilon", "delta", "kind"),
    [
        (-1, 0, None),
        (math.nan, 0, None),
        (1, -1, None),
        (1, 1, None),
        (1, 1e-6, "pure"),
        (1, 0, "zcdp"),
        (1, 0, "rdp"),
    ],
)
def test_budgets_that_cannot_be_are_refused(epsilon: float, delta: float, kind: object) -> None:
    with pytest.raises(InvalidInput):
        Filter(epsilon, delta, kind=kind)  # type: ignore[arg-type]


def test_nothing_is_free_and_an_empty_budget_takes_nothing_else() -> None:
    empty = Filter(0.0)
    empty.reserve(Guarantee())
    assert not empty.fits(pure(1e-25))
    assert empty.affordable() == 0.0
    assert "left" in repr(empty)
