"""Reports of attacks: intervals, when a guarantee counts as broken, plain values and pictures."""

from __future__ import annotations

import json

import pytest
from scipy import stats

from incrowd.adversary.attacks.outcome import Attempt, Rate, Report
from incrowd.errors import InvalidInput


def report(*attempts: Attempt, axis: str = "", logarithmic: bool = False) -> Report:
    return Report("trial", "A trial", "Nothing.", "Anything.", attempts, axis=axis, logarithmic=logarithmic)


@pytest.mark.parametrize("hits, trials", [(0, 10), (10, 10), (3, 10), (500, 1000)])
def test_the_interval_is_that_of_clopper_and_pearson(hits: int, trials: int) -> None:
    rate = Rate(hits, trials, 0.95)
    exact = stats.binomtest(hits, trials).proportion_ci(0.95, "exact")
    assert (rate.low, rate.high) == pytest.approx((exact.low, exact.high))
    assert rate.low <= rate.value <= rate.high


@pytest.mark.parametrize("hits, trials", [(0, 0), (-1, 5), (6, 5)])
def test_what_is_no_frequency_is_refused(hits: int, trials: int) -> None:
    with pytest.raises(InvalidInput, match="at least one trial"):
        Rate(hits, trials)


def test_a_guarantee_is_broken_only_beyond_one_chance_in_a_million() -> None:
    """An attack that reaches the bound is above it half of the time, which accuses nobody."""
    trials, allowed = 1000, 0.75
    least = int(stats.binom.isf(1e-6, trials, allowed)) + 1
    assert stats.binom.sf(least - 1, trials, allowed) <= 1e-6
    assert Attempt("x", Rate(760, trials), 0.5, allowed).holds is True
    assert Attempt("x", Rate(least, trials), 0.5, allowed).holds is False
    assert Attempt("x", Rate(least - 1, trials), 0.5, allowed).holds is True
    assert Attempt("x", Rate(trials, trials), 0.5).holds is None


def test_a_broken_guarantee_breaks_the_report_and_a_broken_claim_does_not() -> None:
    broken = Attempt("x", Rate(1000, 1000), 0.5, 0.75)
    claim = Attempt("y", Rate(1000, 1000), 0.5, 0.75, claimed=True)
    assert not report(broken).holds
    assert claim.holds is False and report(claim).holds


def test_a_report_is_plain_values() -> None:
    told = report(Attempt("x", Rate(3, 4), 0.5, 0.9, note="n")).to_dict()
    assert json.loads(json.dumps(told)) == told
    assert told["attempts"][0]["success"]["value"] == 0.75 and told["attempts"][0]["holds"]


@pytest.mark.parametrize("axis, logarithmic", [("", False), ("repeats", False), ("repeats", True)])
def test_a_report_is_drawn_with_all_its_releases(axis: str, logarithmic: bool) -> None:
    attempts = (Attempt("one", Rate(3, 4), 0.5, 0.9, x=1.0), Attempt("two", Rate(4, 4), 0.5, x=2.0))
    drawn = json.dumps(report(*attempts, axis=axis, logarithmic=logarithmic).plot().to_dict())
    assert '"one"' in drawn and '"two"' in drawn
    assert ('"log"' in drawn) is logarithmic
