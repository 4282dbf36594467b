"""Intervals of spreads hold as often as they say, from both sides, and fall back on the box."""

from __future__ import annotations

import math

import numpy as np
import pytest

from incrowd.curator import moments
from incrowd.curator.estimates import Span, column
from incrowd.query import Aggregate, Measure
from incrowd.query.plan import AggregateKind

RELEASES = 20_000
# A binomial of 20,000 tries is below 93.6% at 95% truth, or above 99.4% at 99%, with probability < 1e-15.


def measures(kind: AggregateKind) -> dict[str, Measure]:
    def measure(name: str, low: float, high: float, centre: float = 0.0) -> Measure:
        return Measure(name, "row", "rows", None, None, low, high, centre, False)

    if kind == "var":
        parts = [measure("s", -50, 50), measure("q", 0, 2500, 100.0), measure("n", 0, 1)]
    elif kind == "covar":
        parts = [measure(name, -50, 50) for name in "st"] + [measure("p", -2500, 2500), measure("n", 0, 1)]
    elif kind in ("slope", "intercept"):
        parts = [measure(name, -50, 50) for name in "st"] + [measure("q", 0, 2500, 100.0)]
        parts += [measure("p", -2500, 2500), measure("n", 0, 1)]
    else:
        parts = [measure(name, -50, 50) for name in "st"]
        parts += [measure(name, 0, 2500, 100.0) for name in "qr"]
        parts += [measure("p", -2500, 2500), measure("n", 0, 1)]
    return {part.name: part for part in parts}


def truth(kind: AggregateKind, rows: float, mean: float) -> dict[str, float]:
    """Sums over rows with a variance of 150 each, a correlation of 0.6, and a mean for both columns."""
    square = rows * (150 + mean**2 - 100)
    sums = {"s": rows * mean, "t": rows * mean, "q": square, "r": square, "n": rows}
    return sums | {"p": rows * (0.6 * 150 + mean**2)}


@pytest.mark.parametrize("noise", ["laplace", "normal"])
@pytest.mark.parametrize("mean", [0.0, 12.0])
@pytest.mark.parametrize("kind", ["var", "covar", "corr", "slope", "intercept"])
@pytest.mark.parametrize("rows", [400.0, 20_000.0])
def test_an_interval_holds_as_often_as_it_says(
    kind: AggregateKind, mean: float, noise: str, rows: float
) -> None:
    rng = np.random.default_rng(41)
    facts, exact = measures(kind), truth(kind, rows, mean)
    aggregate = Aggregate("a0", kind, "a", tuple(facts))
    deviations = {"s": 60.0, "t": 60.0, "q": 900.0, "r": 900.0, "p": 900.0, "n": 6.0}
    draw = rng.laplace if noise == "laplace" else rng.normal
    shrink = math.sqrt(2) if noise == "laplace" else 1.0
    sums = {name: exact[name] + draw(0, deviations[name] / shrink, RELEASES) for name in aggregate.measures}
    reach = {name: 4 * deviations[name] for name in sums}
    box = column(aggregate, facts, {name: Span.around(sums[name], reach[name]) for name in sums})
    span = moments.interval(aggregate, facts, sums, deviations, box, 0.95)
    about = {"var": 150.0, "covar": 90.0, "corr": 0.6, "slope": 0.6, "intercept": 0.4 * mean}[kind]
    held = np.mean((span.low <= about) & (about <= span.high))
    assert 0.936 < held < 0.994, held
    assert (span.low <= span.value).all() and (span.value <= span.high).all()
    assert np.mean(span.high - span.low) < 0.75 * np.mean(box.high - box.low)


def test_a_deviation_has_the_root_of_its_variances_interval() -> None:
    facts = measures("var")
    sums = {name: np.array([value]) for name, value in truth("var", 5_000, 3).items() if name in facts}
    deviations = {"s": 60.0, "q": 900.0, "n": 6.0}
    box = {name: Span.around(sums[name], 4 * deviations[name]) for name in facts}
    plain, rooted = (
        moments.interval(asked, facts, sums, deviations, column(asked, facts, box), 0.95)
        for asked in (
            Aggregate("a0", "var", "a", tuple(facts)),
            Aggregate("a0", "var", "a", tuple(facts), root=True),
        )
    )
    for one, two in zip(
        (plain.value, plain.low, plain.high), (rooted.value, rooted.low, rooted.high), strict=True
    ):
        assert two == pytest.approx(np.sqrt(one), rel=1e-12)


@pytest.mark.parametrize("root", [False, True])
def test_where_a_count_is_near_its_noise_the_box_is_kept(root: bool) -> None:
    facts = measures("var")
    aggregate = Aggregate("a0", "var", "a", tuple(facts), root=root)
    sums = {"s": np.array([5.0]), "q": np.array([70.0]), "n": np.array([moments.FAR * 6.0])}
    spans = {name: Span.around(value, 4.0) for name, value in sums.items()}
    box = column(aggregate, facts, spans)
    span = moments.interval(aggregate, facts, sums, {"s": 60.0, "q": 900.0, "n": 6.0}, box, 0.95)
    assert span.low == pytest.approx(box.low) and span.high == pytest.approx(box.high)


@pytest.mark.parametrize(("variance", "root"), [(0.0, False), (0.05, False), (0.05, True)])
def test_a_variance_that_noise_made_negative_has_the_interval_of_the_box(variance: float, root: bool) -> None:
    """The estimate is 0, and so are its slopes; the truth is a little above."""
    rng = np.random.default_rng(43)
    facts, rows = measures("var"), 2_000.0
    aggregate = Aggregate("a0", "var", "a", tuple(facts), root=root)
    exact = {"s": 0.0, "q": rows * (variance - 100.0), "n": rows}
    deviations = {"s": 60.0, "q": 900.0, "n": 6.0}
    sums = {name: exact[name] + rng.laplace(0, deviations[name] / math.sqrt(2), RELEASES) for name in facts}
    spans = {name: Span.around(sums[name], 4 * deviations[name]) for name in facts}
    span = moments.interval(aggregate, facts, sums, deviations, column(aggregate, facts, spans), 0.95)
    truth = math.sqrt(variance) if root else variance
    assert np.mean((span.low <= truth) & (truth <= span.high)) > 0.936
    # Where noise is beyond the box, which is 4 deviations wide here, in one draw of 500.
    assert np.mean(span.high > 0) > 0.99
