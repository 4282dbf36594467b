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
    Capacity,
    Charge,
    Filter,
    Guarantee,
    Remaining,
    affordable,
    approximate,
    bounded_range,
    capacity,
    fits,
    gaussian,
    gdp,
    laplace,
    least_sigma,
    poisson,
    pure,
    randomized_response,
    refusal,
    remaining,
    renyi,
    threshold,
    zcdp,
)
from incrowd.privacy.amounts import from_units
from incrowd.privacy.filters import Kind, price

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
    only = Filter(1.0, 1e-6, kind="gdp")
    assert only.fits(gaussian(0.1))
    assert only.fits(poisson(gaussian(0.1), 0.5) + threshold(1e-8))
    assert not only.fits(zcdp(0.001))
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


ONE = Charge(1, 2, 3, 4)


@pytest.mark.parametrize(
    ("kind", "asked", "fitting"),
    [
        # Eleven of each were spent of twenty: nine more fit, ten do not.
        ("pure", Charge(9, None, 0, None), True),
        ("pure", Charge(10, None, 0, None), False),
        ("pure", Charge(9, None, 1, None), False),
        ("zcdp", Charge(None, 9, 0, None), True),
        ("zcdp", Charge(None, 10, 0, None), False),
        ("zcdp", Charge(19, 10, 0, None), True),
        ("zcdp", Charge(20, 10, 0, None), False),
        ("zcdp", Charge(19, None, 0, None), True),
        ("zcdp", Charge(None, 9, 4, None), True),
        ("zcdp", Charge(1, 9, 5, None), False),
        ("zcdp", Charge(None, None, 0, 1), False),
        ("gdp", Charge(None, None, 4, 9), True),
        ("gdp", Charge(None, 1, 0, 10), False),
        ("gdp", Charge(19, 1, 0, None), True),
    ],
)
def test_either_sum_must_stay_within_and_delta_always(kind: Kind, asked: Charge, fitting: bool) -> None:
    limit = Capacity(kind, 20, 0 if kind == "pure" else 15, 20 if kind == "pure" else 30)
    spent = Charge(11, 11, 0 if kind == "pure" else 11, 11)
    assert fits(limit, spent, asked) is fitting


def test_a_charge_is_priced_in_the_currency_of_its_filter() -> None:
    assert price("pure", ONE) is None
    assert price("pure", Charge(1, 2, 0, 4)) == 1
    assert price("zcdp", ONE) == 2
    assert price("gdp", ONE) == 4


def test_a_release_of_another_kind_leaves_only_the_other_rule() -> None:
    limit = Capacity("zcdp", 20, 15, 30)
    assert fits(limit, Charge(None, 11, 0, None), Charge(None, 9, 0, None))
    assert not fits(limit, Charge(None, 11, 0, None), Charge(1, 10, 0, None))
    assert fits(limit, Charge(11, None, 0, None), Charge(19, 1, 0, None))
    assert not fits(limit, Charge(11, None, 0, None), Charge(None, 1, 0, None))


def test_what_is_left_is_never_below_zero() -> None:
    limit = Capacity("zcdp", 20 * UNITS, 1 * UNITS, 30 * UNITS)
    half = UNITS // 2
    assert remaining(limit, Charge(half, 4 * half, half, None)) == Remaining("zcdp", 18.0, 0.5, 29.5)
    assert remaining(limit, Charge(31 * UNITS, 21 * UNITS, 2 * UNITS, None)) == Remaining(
        "zcdp", 0.0, 0.0, 0.0
    )
    assert remaining(limit, Charge(None, None, 0, None)) == Remaining("zcdp", 0.0, 1.0, 0.0)


@pytest.mark.parametrize(
    ("left", "words"),
    [
        (Remaining("pure", 1.0, 0.0, 1.0), "epsilon 1"),
        (Remaining("zcdp", 0.25, 0.0, 1.0), "epsilon 1 or rho 0.25"),
        (Remaining("zcdp", 0.25, 1e-6, 0.0), "rho 0.25 and delta 1e-06"),
        (Remaining("gdp", 0.25, 1e-6, 2.0), "epsilon 2 or mu^2 0.25 and delta 1e-06"),
        (Remaining("gdp", 0.0, 0.0, 2.0), "epsilon 2"),
        (Remaining("zcdp", 0.0, 0.0, 0.0), "epsilon 0"),
    ],
)
def test_what_is_left_in_words(left: Remaining, words: str) -> None:
    assert str(left) == words


def test_capacities_round_down_and_are_nearly_the_budget() -> None:
    assert capacity(1, 0) == Capacity("pure", UNITS, 0, UNITS)
    zcdp_limit = capacity(1.0, 1e-6)
    assert (zcdp_limit.kind, zcdp_limit.epsilon, zcdp_limit.delta) == ("zcdp", UNITS, UNITS // (4 * 10**6))
    rho = renyi.zcdp_rho(1.0, 7.5e-7)
    assert rho * (1 - 1e-13) <= zcdp_limit.main / UNITS <= rho
    gdp_limit = capacity(1.0, 1e-6, kind="gdp", threshold_share=0.2)
    # mu of (1, 8e-7): the analytic calibration.
    assert gdp_limit.main / UNITS == pytest.approx(1 / least_sigma(1.0, 8e-7) ** 2, rel=1e-9)
    assert gdp_limit.delta == UNITS // (5 * 10**6)
    assert from_units(gdp_limit.main) <= 1 / Fraction(least_sigma(1.0, 8e-7)) ** 2 * (1 + Fraction(1, 10**12))
    assert capacity(2, 1e-6, threshold_share=1) == Capacity("zcdp", 0, UNITS // 10**6, 2 * UNITS)


@pytest.mark.parametrize("kind", ["zcdp", "gdp"])
def test_budgets_become_floats_inwards(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    def noted(epsilon: float, delta: float) -> float:
        asked.extend((epsilon, delta))
        return 0.5

    monkeypatch.setattr(renyi, "zcdp_rho", noted)
    monkeypatch.setattr(gdp, "largest_mu", noted)
    limit = capacity(3, 1e-6, kind=kind)
    assert limit.main == (UNITS // 2 if kind == "zcdp" else UNITS // 4)
    assert asked == pytest.approx([3, 7.5e-7], rel=1e-14)
    assert asked[0] < 3
    assert Fraction(asked[1]) < Fraction(3, 4 * 10**6)


def test_refusals_say_what_was_asked_and_what_is_left() -> None:
    limit = Capacity("zcdp", UNITS // 4, UNITS // 10, UNITS)
    third = Charge(2 * UNITS, UNITS // 3, 0, None)
    said = refusal(limit, Charge.nothing(), third)
    assert str(said) == (
        "This budget has epsilon 1 or rho 0.25 and delta 0.1 left, but epsilon 2 or rho 0.333333 was asked; "
        "ask for less or wait for more budget."
    )
    assert (said.asked, said.left) == ("epsilon 2 or rho 0.333333", "epsilon 1 or rho 0.25 and delta 0.1")
    other = refusal(limit, Charge.nothing(), Charge(None, None, 0, 1), "Your budget")
    assert str(other) == "Your budget takes only releases with a finite rho; ask for one of those."
    assert other.asked == "a release of another kind"
    pure_limit = Capacity("pure", UNITS, 0, UNITS)
    assert "finite epsilon and delta = 0" in str(refusal(pure_limit, Charge.nothing(), Charge(1, 1, 1, None)))
    assert "epsilon 2 was asked" in str(refusal(pure_limit, Charge.nothing(), Charge(2 * UNITS, 1, 0, None)))
    gdp_limit = Capacity("gdp", UNITS, 0, UNITS)
    assert "epsilon 2 was asked" in str(refusal(gdp_limit, Charge.nothing(), Charge(2 * UNITS, 1, 0, None)))
    assert "Gaussian releases" in str(refusal(gdp_limit, Charge.nothing(), Charge(None, 1, 0, None)))


def test_the_largest_release_that_fits_by_either_rule() -> None:
    # rho 1/8 holds epsilon 0.508... (epsilon tanh(epsilon / 2) = 1/8), more than the quarter left by sums.
    limit = Capacity("zcdp", UNITS // 8, 0, UNITS // 4)
    most = affordable(limit, Charge.nothing())
    assert most * math.tanh(most / 2) == pytest.approx(0.125, rel=1e-9)
    assert affordable(Capacity("zcdp", UNITS // 8, 0, 2 * UNITS), Charge.nothing()) == 2.0
    # A large rho: tanh is nearly 1.
    big = affordable(Capacity("zcdp", 50 * UNITS, 0, 0), Charge.nothing())
    assert big == pytest.approx(50.0, rel=1e-9)
    assert affordable(Capacity("gdp", UNITS, 0, UNITS // 2), Charge.nothing()) == 0.5
    assert affordable(Capacity("zcdp", UNITS, 0, UNITS // 2), Charge(0, None, 0, None)) == 0.5
    assert affordable(Capacity("zcdp", UNITS, 0, UNITS // 2), Charge(0, 0, 1, None)) == 0.0
    assert affordable(Capacity("pure", UNITS, 0, UNITS), Charge(UNITS // 4, 0, 0, None)) == 0.75


def test_a_saved_filter_keeps_the_capacity_that_was_promised() -> None:
    saved = Filter(1.0, 1e-6).to_dict()
    saved["capacity"]["main"] -= 7
    loaded = Filter.from_dict(saved)
    assert loaded.capacity.main == saved["capacity"]["main"]
    assert loaded.to_dict() == saved
    with pytest.raises(InvalidInput, match="newer version"):
        Filter.from_dict({**saved, "version": 2})
    with pytest.raises(InvalidInput, match="not a saved filter"):
        Filter.from_dict({**saved, "epsilon": "1/0"})
