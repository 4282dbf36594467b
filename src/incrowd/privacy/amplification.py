"""Amplification: chance that the mechanism does not see, or cannot attribute, makes a guarantee stronger.

Three theorems, each a function from a guarantee to a guarantee, rounded outwards: Poisson sampling
(`poisson`, exact, for one release under add/remove), sampling a fixed number without replacement, and
shuffling the reports of many people who each randomise their own. None sees data; each states the relation
under which it holds.

Sampling without replacement (Balle, Barthe, Gaboardi 2018, Theorem 9). Let M satisfy delta(epsilon) when
one record of its input is *replaced*, and run it on m of n records, every subset as likely, n public. Then
replacing one of the n is (ln(1 + (m/n)(e^epsilon - 1)), (m/n) delta(epsilon))-DP, for every epsilon. M may
be a whole plan run on the one sample. Tight: some M attains it at every epsilon.

Shuffling (Feldman, McMillan, Talwar 2022, Theorem 3.1). n people each send the output of an epsilon0-DP local
randomiser; a trusted shuffler permutes the reports uniformly. For delta in (0, 1] and epsilon0 <= ln(n / (16
ln(4/delta))) replacing one person's value is (epsilon, delta)-DP with

    epsilon = ln(1 + (e^epsilon0 - 1)/(e^epsilon0 + 1) (8 sqrt(e^epsilon0 ln(4/delta) / n) + 8 e^epsilon0 /
    n)).

(The paper asks for ln(2/delta) in the condition; the stricter one is that of its authors' own program.) The
randomiser may be chosen from earlier reports, as long as it is epsilon0-DP each time and does not know who is
asked. Pure guarantees only: a delta of the local randomiser would count n times.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

from incrowd.errors import InvalidInput
from incrowd.privacy.amounts import Real, precisely, read, read_count, read_probability
from incrowd.privacy.guarantee import Guarantee, approximate, poisson, pure

__all__ = ["poisson", "shuffled", "without_replacement"]

_MOST_EPSILON = 10000
# Beyond these the formula for shuffling would cancel more digits than `precisely` makes up for.
_LEAST_EPSILON, _MOST_REPORTS = Fraction(1, 10**9), 10**18


def without_replacement(guarantee: Guarantee, sample: int, population: int, delta: Real = 0.0) -> Guarantee:
    """What `guarantee` becomes when it is run on a uniform sample of a fixed size.

    Condition: `guarantee` holds when one record is replaced (one that holds for add/remove is given as
    `guarantee.group(2)`), and so does the result; the sizes are public. With `delta` the point of the curve
    that ends at this delta is taken; with 0 the pure epsilon.

    >>> from incrowd.privacy import gaussian, pure
    >>> round(without_replacement(pure(1.0), 100, 10_000).epsilon(), 6)
    0.017037
    >>> round(without_replacement(gaussian(0.5), 100, 10_000, delta=1e-6).epsilon(1e-6), 4)
    0.0437
    """
    size, total = read_count(sample, "sample", 1), read_count(population, "population", 1)
    if size > total:
        raise InvalidInput(f"sample must be at most the population of {total}, not {size}.")
    rate = Fraction(size, total)
    slack = read_probability(delta, "delta")
    # (m/n) delta(epsilon) <= slack where delta(epsilon) <= slack / rate
    inner = guarantee.epsilon(min(Fraction(1), slack / rate))
    if not math.isfinite(inner):
        raise InvalidInput(
            "This guarantee has no pure epsilon: give delta= the delta that the sampled release may have."
            if slack == 0
            else "This guarantee has no epsilon at so small a delta: give a larger delta=."
        )
    return approximate(_amplified(read(inner, "epsilon"), rate), slack)


def shuffled(guarantee: Guarantee, reports: int, delta: Real) -> Guarantee:
    """What a pure local guarantee becomes when `reports` people's reports are shuffled.

    Condition: epsilon0 <= ln(reports / (16 ln(4 / delta))); where the theorem gives no less than epsilon0,
    the result is the pure epsilon0, which shuffling cannot weaken.

    >>> from incrowd.privacy import pure
    >>> round(shuffled(pure(1.0), 1_000_000, 1e-6).epsilon(1e-6), 5)
    0.0235
    """
    count, slack = read_count(reports, "reports", 1), read_probability(delta, "delta")
    if slack == 0:
        raise InvalidInput("delta must be above 0: shuffling amplifies a guarantee only up to a delta.")
    local = guarantee.epsilon()
    if not math.isfinite(local):
        raise InvalidInput(
            "Shuffling is accounted for local reports with a pure epsilon, such as randomized response."
        )
    epsilon0 = read(local, "epsilon")
    if epsilon0 < _LEAST_EPSILON:
        return pure(epsilon0)
    if epsilon0 > _MOST_EPSILON or _least_reports(epsilon0, slack) > count:
        raise InvalidInput(
            f"Shuffling {count:,} reports of epsilon {local:g} is not shown to help at this delta: it takes "
            "an epsilon of at most ln(reports / (16 ln(4 / delta))), so shuffle more, or use a smaller "
            "epsilon or a larger delta."
        )

    def bound(e0: Decimal, n: Decimal, d: Decimal) -> Decimal:
        grown = e0.exp()
        spread = 8 * (grown * (4 / d).ln() / n).sqrt() + 8 * grown / n
        return (1 + (grown - 1) / (grown + 1) * spread).ln()

    # Fewer reports than there are is a weaker statement, and so true.
    found = precisely(bound, epsilon0, Fraction(min(count, _MOST_REPORTS)), slack)
    return pure(epsilon0) if found >= epsilon0 else approximate(found, slack)


def _least_reports(epsilon: Fraction, delta: Fraction) -> Fraction:
    """16 e^epsilon ln(4 / delta), rounded up."""
    return precisely(lambda e, d: 16 * e.exp() * (4 / d).ln(), epsilon, delta)


def _amplified(epsilon: Fraction, rate: Fraction) -> Fraction:
    """ln(1 + rate (e^epsilon - 1)), rounded up; never above epsilon."""
    if rate == 1 or epsilon == 0 or epsilon > _MOST_EPSILON:
        return epsilon
    if rate * epsilon < Fraction(1, 10**18):
        # The formula would cancel too many digits, but ln(1 + x) <= x and e^epsilon - 1 <= epsilon e^epsilon.
        return min(epsilon, precisely(lambda e, q: q * e * e.exp(), epsilon, rate))
    return min(epsilon, precisely(lambda e, q: (1 + q * (e.exp() - 1)).ln(), epsilon, rate))
