"""Amplification: chance that the mechanism does not see, or cannot attribute, makes a guarantee stronger.

Three theorems, each a function from a guarantee to a guarantee, rounded outwards: Poisson sampling
(`poisson`, exact, for one release under add/remove), sampling a fixed number without replacement, and
shuffling the reports of many people who each randomise their own. None sees data; each states the relation
under which it holds.

Sampling without replacement (Balle, Barthe, Gaboardi 2018, Theorem 9). Let M satisfy delta(epsilon) when
one record of its input is *replaced*, and run it on m of n records, every subset as likely, n public. Then
replacing one of the n is (ln(1 + (m/n)(e^epsilon - 1)), (m/n) delta(epsilon))-DP, for every epsilon. M may
be a whole plan run on the one sample. Tight: some M attains it at every epsilon.

Shuffling (Feldman, McMillan, Talwar 2022). n people each send the output of an epsilon0-DP local randomiser;
a trusted shuffler permutes the reports uniformly. The figure is computed from the pair behind the theorem
(see `shuffling`), which is five times below the paper's closed formula. The randomiser may be chosen from
earlier reports, as long as it is epsilon0-DP each time and does not know who is asked. Pure guarantees only:
a delta of the local randomiser would count n times.
"""

from __future__ import annotations

import math
from fractions import Fraction

from incrowd.errors import InvalidInput
from incrowd.noise.readings import shown
from incrowd.privacy import conversions, events, shuffling
from incrowd.privacy.amounts import Real, read, read_count, read_probability
from incrowd.privacy.guarantee import Guarantee, approximate, poisson, pure, read_guarantee

__all__ = ["poisson", "shuffled", "without_replacement"]

# Local epsilons for which shuffling is worked out; others it leaves as they are.
_LEAST_EPSILON, _MOST_LOCAL, _LEAST_DELTA = Fraction(1, 10**6), 100, Fraction(1, 10**200)


def without_replacement(guarantee: Guarantee, sample: int, population: int, delta: Real = 0.0) -> Guarantee:
    """What `guarantee` becomes when it is run on a uniform sample of a fixed size.

    Condition: `guarantee` holds when one record is replaced (one that holds for add/remove is given as
    `guarantee.group(2)`), and so does the result; the sizes are public. One release keeps its whole curve, so
    that many of them, each on a fresh sample, compose tightly. For a plan of several on one sample the pure
    epsilon is taken, or with `delta` the point of the curve that ends at this delta.

    >>> from incrowd.privacy import gaussian, pure
    >>> round(without_replacement(pure(1.0), 100, 10_000).epsilon(), 6)
    0.017037
    >>> round((without_replacement(gaussian(1.0), 100, 10_000) * 1000).epsilon(1e-6), 3)
    2.513
    """
    read_guarantee(guarantee)
    size, total = read_count(sample, "sample", 1), read_count(population, "population", 1)
    if size > total:
        raise InvalidInput(f"sample must be at most the population of {shown(total)}, not {shown(size)}.")
    rate = Fraction(size, total)
    slack = read_probability(delta, "delta")
    if slack == 0 and len(guarantee.events) == 1 and guarantee.events[0][1] == 1:
        whole = _sampled(guarantee.events[0][0], rate)
        if whole is not None:
            return Guarantee([(whole, 1)])
    # (m/n) delta(epsilon) <= slack where delta(epsilon) <= slack / rate
    inner = guarantee.epsilon(min(Fraction(1), slack / rate))
    if not math.isfinite(inner):
        raise InvalidInput(
            "This guarantee has no pure epsilon: give delta= the delta that the sampled release may have."
            if slack == 0
            else "This guarantee has no epsilon at so small a delta: give a larger delta=."
        )
    return approximate(conversions.amplified(read(inner, "epsilon"), rate), slack)


def _sampled(event: events.Event, rate: Fraction) -> events.Event | None:
    """One event on the sample, its whole curve kept; None where only a point of it is known."""
    if rate == 1:
        return event
    match event:
        case events.BoundedRange():
            return events.WithoutReplacement(events.Pure(event.epsilon), rate)
        case events.Threshold():
            return events.Threshold(rate * event.delta)
        case events.Approximate():
            return events.Approximate(conversions.amplified(event.epsilon, rate), rate * event.delta)
    return events.WithoutReplacement(event, rate) if isinstance(event, events.Sampled) else None


def shuffled(guarantee: Guarantee, reports: int, delta: Real) -> Guarantee:
    """What a pure local guarantee becomes when `reports` people's reports are shuffled.

    It holds when one person's value is replaced. Two-way randomized response hides better than other
    randomisers of its epsilon. Where shuffling helps by less than a hundredth, the result is the pure
    epsilon0, which it cannot weaken.

    >>> from incrowd.privacy import pure, randomized_response
    >>> round(shuffled(pure(1.0), 1_000_000, 1e-6).epsilon(1e-6), 5)
    0.00434
    >>> round(shuffled(randomized_response(1.0), 1_000_000, 1e-6).epsilon(1e-6), 5)
    0.00351
    """
    read_guarantee(guarantee)
    count, slack = read_count(reports, "reports", 1), read_probability(delta, "delta")
    if slack == 0:
        raise InvalidInput("delta must be above 0: shuffling amplifies a guarantee only up to a delta.")
    local = guarantee.epsilon()
    if not math.isfinite(local):
        raise InvalidInput(
            "Shuffling is accounted for local reports with a pure epsilon, such as randomized response."
        )
    epsilon0 = read(local, "epsilon")
    if not _LEAST_DELTA < slack < 1 or not _LEAST_EPSILON <= epsilon0 <= _MOST_LOCAL:
        return pure(epsilon0)
    top = local * (1 + 1e-15)
    coin = guarantee.events == ((events.RandomizedResponse(epsilon0, 2), 1),)
    share = 2 / (1 + math.exp(top)) if coin else math.exp(-top)
    amplified = shuffling.least_epsilon(top, share, count, float(slack) * (1 - 2.0**-50))
    return pure(epsilon0) if amplified > 0.99 * local else approximate(amplified, slack)
