"""What was run: the record behind a guarantee, and what the ledger keeps.

THE CONTRACT. An event states one fact about one randomised release: for every pair of neighbouring data
sets (under the relation that the mechanism declared) the two output distributions are dominated by the pair
written in the event's docstring. (P, Q) dominates another pair when it is at least as easy to tell apart:
its delta(epsilon) = sup over S of P(S) - e^epsilon Q(S) is nowhere smaller. The facts hold whatever was
answered before, so events of a fixed plan compose by multiplying their pairs (Zhu, Dong, Wang 2022).

Once released, the meaning of an event NEVER changes: not its name, not its parameters, not its pair. What
turns out wrong or too weak gets a new name. Parameters are exact rationals; where a mechanism cannot state
its parameter exactly it states a larger one (a float given here is read as its shortest decimal). An event
never holds data, results or names of people.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from incrowd.errors import InvalidInput
from incrowd.privacy.amounts import read_amount, read_count, read_probability


def _set(event: object, **values: object) -> None:
    for field, value in values.items():
        object.__setattr__(event, field, value)


@dataclass(frozen=True)
class Pure:
    """Any epsilon-DP release.

    Pair: two outcomes of log-ratio +epsilon and -epsilon, that is, randomized response (Kairouz, Oh,
    Viswanath 2015). Permute-and-flip and report-noisy-max state this event.
    """

    name: ClassVar[str] = "pure"
    epsilon: Fraction

    def __post_init__(self) -> None:
        _set(self, epsilon=read_amount(self.epsilon, "epsilon"))


@dataclass(frozen=True)
class Approximate:
    """Any (epsilon, delta)-DP release.

    Pair: with probability delta the outcome tells the two apart for sure; otherwise it is that of
    `Pure(epsilon)` (Kairouz, Oh, Viswanath 2015).
    """

    name: ClassVar[str] = "approximate"
    epsilon: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        _set(self, epsilon=read_amount(self.epsilon, "epsilon"), delta=read_probability(self.delta, "delta"))


@dataclass(frozen=True)
class ZeroConcentrated:
    """Any rho-zCDP release: Renyi divergence of order alpha at most rho * alpha, for every alpha > 1.

    It states a family of moments, not one pair (Bun, Steinke 2016).
    """

    name: ClassVar[str] = "zero-concentrated"
    rho: Fraction

    def __post_init__(self) -> None:
        _set(self, rho=read_amount(self.rho, "rho"))


@dataclass(frozen=True)
class Gaussian:
    """Any mu-GDP release. Pair: N(mu, 1) and N(0, 1) (Dong, Roth, Su 2022).

    The Gaussian mechanism of L2 sensitivity D and noise sigma has mu = D / sigma, in any dimension. Discrete
    Gaussian noise of sigma steps, sigma >= 2^20, states mu = D / sqrt(sigma^2 - r^2) with r its smoothing
    radius in steps, rounded up.
    """

    name: ClassVar[str] = "gaussian"
    mu: Fraction

    def __post_init__(self) -> None:
        _set(self, mu=read_amount(self.mu, "mu"))


@dataclass(frozen=True)
class Laplace:
    """Continuous Laplace noise, L1 sensitivity / scale = epsilon, in any dimension.

    Pair: Laplace noise of scale 1 around epsilon and around 0. It is the limit of `DiscreteLaplace` for ever
    finer steps and weaker than each: noise on a grid must state `DiscreteLaplace`.
    """

    name: ClassVar[str] = "laplace"
    epsilon: Fraction

    def __post_init__(self) -> None:
        _set(self, epsilon=read_amount(self.epsilon, "epsilon"))


@dataclass(frozen=True)
class DiscreteLaplace:
    """A chain of `steps` neighbours, each step (epsilon / steps)-DP.

    Discrete Laplace noise of scale b on integers whose vector changes by at most `steps` in L1 is one, with
    epsilon = steps / b: walk from one vector to the other in unit steps. So are `steps` people together under
    any pure guarantee.

    Pair: discrete Laplace noise around `steps` and around 0 on the integers, scale steps / epsilon. It
    dominates every such chain. Proof: let g map a test's level to the most power that an e-DP pair allows,
    g(a) = min(1, e^e a, 1 - e^-e (1 - a)); a chain of s steps allows g composed s times (Dong, Roth, Su 2022,
    Theorem 3). With a_t = P(X >= t) for discrete Laplace X of scale 1/e, g(a_t) = a_(t-1), hence
    g^s(a_t) = a_(t-s), the power of the test {X >= t} on the stated pair. g bends only at a_1, so g^s bends
    only at points a_t and is linear between them, like the pair's own power: the two agree everywhere.
    """

    name: ClassVar[str] = "discrete-laplace"
    epsilon: Fraction
    steps: int

    def __post_init__(self) -> None:
        _set(self, epsilon=read_amount(self.epsilon, "epsilon"), steps=read_count(self.steps, "steps", 1))


@dataclass(frozen=True)
class RandomizedResponse:
    """One of k categories, the truth kept with probability e^epsilon / (e^epsilon + k - 1), else uniform.

    Pair: the distributions of the report for two different truths.
    """

    name: ClassVar[str] = "randomized-response"
    epsilon: Fraction
    categories: int = 2

    def __post_init__(self) -> None:
        _set(
            self,
            epsilon=read_amount(self.epsilon, "epsilon"),
            categories=read_count(self.categories, "categories", 2, 10**300),
        )


@dataclass(frozen=True)
class BoundedRange:
    """An epsilon-bounded-range release: the log-ratio of the two probabilities varies by at most epsilon.

    The exponential mechanism with weights exp(epsilon u / (2 D)) is one, with exp(epsilon u / D) when the
    utility is monotone (Durfee, Rogers 2019). The event states a family of pairs, one for each t in
    [0, epsilon]: outcomes of log-ratio t and t - epsilon; an adversary may choose t after earlier answers.
    """

    name: ClassVar[str] = "bounded-range"
    epsilon: Fraction

    def __post_init__(self) -> None:
        _set(self, epsilon=read_amount(self.epsilon, "epsilon"))


@dataclass(frozen=True)
class Threshold:
    """A release whose two distributions differ by at most delta in total variation: (0, delta)-DP.

    Pair: with probability delta the outcome tells the two apart for sure, else it says nothing.
    """

    name: ClassVar[str] = "threshold"
    delta: Fraction

    def __post_init__(self) -> None:
        _set(self, delta=read_probability(self.delta, "delta"))


Sampled = Pure | Gaussian | Laplace | DiscreteLaplace | RandomizedResponse
"""The events that Poisson sampling may precede."""


@dataclass(frozen=True)
class PoissonSubsampled:
    """`event` run on a sample that holds each unit independently with probability `rate`; add or remove one.

    Pairs: with (P, Q) that of `event`, (1 - rate) Q + rate P against Q where a unit is removed, and the same
    swapped where one is added; the whole plan is taken in one direction, then in the other, and the worse
    counts (Zhu, Dong, Wang 2022, Theorem 11). Not valid where a unit is replaced: state `PoissonUnits` there.
    """

    name: ClassVar[str] = "poisson-subsampled"
    event: Sampled
    rate: Fraction

    def __post_init__(self) -> None:
        _check_sampled(self.event)
        _set(self, rate=read_probability(self.rate, "rate"))


@dataclass(frozen=True)
class PoissonGroup:
    """A release on a Poisson sample, for data sets that differ in several units, replaced ones included.

    With probability at most `rate` some unit that they do not share is in the sample; `event` is what the
    release guarantees for any two samples that then arise. The curve of the pair, in both directions and for
    epsilon >= 0, is rate * D(log(1 + (e^epsilon - 1) / rate)) with D that of `event`. Proof: given that no
    such unit is in the sample both sides have one distribution R, else m and m'. By advanced joint convexity
    (Balle, Barthe, Gaboardi 2018, Theorem 2) the divergence is rate times that of m from a mixture of R and
    m', which is convex in the mixture, and both (m, R) and (m, m') are mixtures of pairs within `event`.
    Pair: losses l > 0 have the masses of that curve, -l has e^-l times that of l, the rest is at 0.
    """

    name: ClassVar[str] = "poisson-group"
    event: Sampled
    rate: Fraction

    def __post_init__(self) -> None:
        _check_sampled(self.event)
        _set(self, rate=read_probability(self.rate, "rate"))


@dataclass(frozen=True)
class PoissonUnits:
    """`event` run on a Poisson sample, for data sets that differ in `units` units, each removed or added.

    A replaced unit counts as two. Pairs: for every r + s = units, the mixture over a ~ Binomial(r, rate) of
    the noise of `event` around +a units against the mixture over b ~ Binomial(s, rate) of it around -b units
    (proof in `mixtures`); the whole plan is taken at one split, then at the others. The noise of a unit is
    N(mu, 1), Laplace noise of scale 1 around epsilon, or discrete Laplace noise of scale steps / epsilon
    around `steps`, which is that of `Pure` and `RandomizedResponse` with one step.
    """

    name: ClassVar[str] = "poisson-units"
    event: Sampled
    rate: Fraction
    units: int

    def __post_init__(self) -> None:
        _check_sampled(self.event)
        _set(self, rate=read_probability(self.rate, "rate"), units=read_count(self.units, "units", 1))


@dataclass(frozen=True)
class WithoutReplacement:
    """`event` run on a uniform sample of a fixed size, the share `rate` of all, when `records` are replaced.

    `event` holds when one record of the sample is replaced. For one record, in both directions and for
    epsilon >= 0, the curve is rate * D(log(1 + (e^epsilon - 1) / rate)) with D that of `event` (Balle,
    Barthe, Gaboardi 2018, Theorem 9). Pair: as for `PoissonGroup`, losses l > 0 have the masses of that
    curve, -l has e^-l times that of l, the rest is at 0: it attains the curve, so it dominates.

    For k records the number of them in the sample is hypergeometric. Pair: the noise of `event` around +a of
    them against that around -b, a and b with that distribution each. Proof: that of `mixtures`, with R the
    release on a sample of the shared records only, which arises from any other by exchanging the a records in
    it for shared ones.
    """

    name: ClassVar[str] = "without-replacement"
    event: Sampled
    rate: Fraction
    records: int = 1

    def __post_init__(self) -> None:
        _check_sampled(self.event)
        _set(self, rate=read_probability(self.rate, "rate"), records=read_count(self.records, "records", 1))


def _check_sampled(event: object) -> None:
    if not isinstance(event, Sampled):
        raise InvalidInput(
            f"Poisson sampling of {getattr(event, 'name', event)} is not accounted: "
            "use a pure, Laplace, Gaussian or randomized-response release."
        )


Event = (
    Pure
    | Approximate
    | ZeroConcentrated
    | Gaussian
    | Laplace
    | DiscreteLaplace
    | RandomizedResponse
    | BoundedRange
    | Threshold
    | PoissonSubsampled
    | PoissonGroup
    | PoissonUnits
    | WithoutReplacement
)

OnSample = PoissonSubsampled | PoissonGroup | PoissonUnits | WithoutReplacement
"""The events that are run on a sample."""

EVENTS: dict[str, type[Event]] = {
    kind.name: kind
    for kind in (
        Pure,
        Approximate,
        ZeroConcentrated,
        Gaussian,
        Laplace,
        DiscreteLaplace,
        RandomizedResponse,
        BoundedRange,
        Threshold,
        PoissonSubsampled,
        PoissonGroup,
        PoissonUnits,
        WithoutReplacement,
    )
}
"""Every event by its name in JSON; names are never reused."""
