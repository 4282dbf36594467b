"""One event into another: what it says of k units together, and of a Poisson sample.

Proofs are by chains of neighbours. Any pure event: k steps of epsilon are `DiscreteLaplace(k epsilon, k)`
(see there). Laplace and Gaussian noise: the sensitivity of k units is k times that of one. zCDP: k^2 rho
(Bun, Steinke 2016, Prop. 27). Approximate: (k epsilon, (1 + e^epsilon + ... + e^((k-1) epsilon)) delta).
Bounded range: ranges of log-ratios add. Poisson sampling: `PoissonUnits`. Without replacement:
more records. Where only the chance that some unit is in the sample is known, it grows k times at most.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction

from incrowd.errors import InvalidInput
from incrowd.privacy import conversions, events
from incrowd.privacy.amounts import precisely, short_up


def group(event: events.Event, k: int) -> events.Event:
    """What `event` says of k units together."""
    if k == 1:
        return event
    if k == 0:
        return events.Pure(Fraction(0))
    match event:
        case events.Pure() | events.RandomizedResponse():
            return events.DiscreteLaplace(k * event.epsilon, k)
        case events.DiscreteLaplace():
            return events.DiscreteLaplace(k * event.epsilon, k * event.steps)
        case events.Laplace():
            return events.Laplace(k * event.epsilon)
        case events.BoundedRange():
            return events.BoundedRange(k * event.epsilon)
        case events.Gaussian():
            return events.Gaussian(k * event.mu)
        case events.ZeroConcentrated():
            return events.ZeroConcentrated(k * k * event.rho)
        case events.Threshold():
            return events.Threshold(min(Fraction(1), k * event.delta))
        case events.Approximate():
            return events.Approximate(k * event.epsilon, grown_delta(event.epsilon, event.delta, k))
        case events.PoissonSubsampled():
            return events.PoissonUnits(event.event, event.rate, k)
        case events.PoissonUnits():
            return events.PoissonUnits(event.event, event.rate, k * event.units)
        case events.WithoutReplacement():
            return events.WithoutReplacement(event.event, event.rate, k * event.records)
        case events.PoissonGroup():
            base = group(event.event, k)
            assert isinstance(base, events.Sampled)
            return events.PoissonGroup(base, min(Fraction(1), k * event.rate))


def as_group(event: events.PoissonUnits | events.WithoutReplacement) -> events.PoissonGroup:
    """The bound that knows no more than that some unit is in the sample."""
    rate = event.rate
    if isinstance(event, events.WithoutReplacement):
        return events.PoissonGroup(conversions.whole(event), min(Fraction(1), event.records * rate))
    k = event.units
    exact = k * rate if k > 1000 else short_up(1 - (1 - rate) ** k)
    return events.PoissonGroup(conversions.whole(event), min(Fraction(1), exact))


def grown_delta(epsilon: Fraction, delta: Fraction, k: int) -> Fraction:
    """(1 + e^epsilon + ... + e^((k-1) epsilon)) delta, rounded up and at most 1."""
    if delta == 0:
        return delta
    if epsilon * (k - 1) > 800:
        return Fraction(1)
    if epsilon < Fraction(1, 10**12):
        top = precisely(lambda e: e.exp(), epsilon * (k - 1))
        return min(Fraction(1), short_up(k * top * delta))

    def total(e: Decimal, d: Decimal) -> Decimal:
        return ((e * k).exp() - 1) / (e.exp() - 1) * d

    return min(Fraction(1), precisely(total, epsilon, delta))


def single(composed: Sequence[tuple[events.Event, int]]) -> Iterator[events.Event]:
    """The one event of a plan that has only one, or none."""
    if len(composed) > 1 or any(count > 1 for _, count in composed):
        raise InvalidInput(
            "Poisson sampling is accounted for one release on one fresh sample: sample each release by "
            "itself and add the results."
        )
    yield from (event for event, _ in composed)


def sampled(event: events.Event, rate: Fraction) -> events.Event:
    """`event` on a Poisson sample of the units."""
    match event:
        case events.BoundedRange():
            return events.PoissonSubsampled(events.Pure(event.epsilon), rate)
        case events.Threshold():
            return events.Threshold(rate * event.delta)
        case events.Approximate():
            inner = conversions.pure_epsilon(events.PoissonSubsampled(events.Pure(event.epsilon), rate))
            assert inner is not None
            return events.Approximate(inner, rate * event.delta)
        case events.PoissonSubsampled():
            return events.PoissonSubsampled(event.event, rate * event.rate)
        case _:
            return events.PoissonSubsampled(event, rate)  # type: ignore[arg-type]  # it refuses the rest
