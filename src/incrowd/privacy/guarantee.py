"""A guarantee: what a fixed plan of releases costs together, as an object with arithmetic.

Behind one lies a multiset of events, so `guarantee * 10_000` costs no more to store or to evaluate than
`guarantee`. The privacy parameters of the plan must not depend on answers; for analysts who decide as they
go, `Filter` holds the budget. Every figure is rounded outwards: an epsilon printed is never below the truth.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple, Self

import numpy as np

from incrowd.errors import InvalidInput
from incrowd.noise.readings import (
    items_of,
    shown,
)
from incrowd.privacy import accountant, amounts, conversions, events, grouping, interchange, renyi
from incrowd.privacy import odds as meaning
from incrowd.privacy.amounts import Real, float_up, units_up

_FEW = 64
_LARGEST_EXPONENT = 700
_USUAL_DELTA = 1e-6
_SAMPLED = (events.PoissonSubsampled, events.PoissonGroup, events.PoissonUnits, events.WithoutReplacement)
# A filter adds two of these for every ask, so they are made without the named constructor.
_make_charge = tuple.__new__


class Charge(NamedTuple):
    """What a guarantee takes from a filter, in whole units (`amounts.UNITS`), each rounded up.

    `epsilon` is None where no pure epsilon holds, `rho` where no rho does, `mu2` (mu squared) where a release
    is not Gaussian. `epsilon`, `rho` and `mu2` are each sound together with `delta` beside them. Charges add.
    """

    epsilon: int | None
    rho: int | None
    delta: int
    mu2: int | None

    @classmethod
    def nothing(cls) -> Self:
        """The charge of no release at all."""
        return cls(0, 0, 0, 0)

    def __add__(self, other: Charge) -> Charge:  # type: ignore[override]
        epsilon, rho, delta, mu2 = self
        more_epsilon, more_rho, more_delta, more_mu2 = other
        return _make_charge(
            Charge,
            (
                None if epsilon is None or more_epsilon is None else epsilon + more_epsilon,
                None if rho is None or more_rho is None else rho + more_rho,
                delta + more_delta,
                None if mu2 is None or more_mu2 is None else mu2 + more_mu2,
            ),
        )

    def to_dict(self) -> dict[str, int | None]:
        """Plain whole numbers."""
        return {"epsilon": self.epsilon, "rho": self.rho, "delta": self.delta, "mu2": self.mu2}

    @classmethod
    def from_dict(cls, state: Mapping[str, int | None]) -> Self:
        """The charge that `to_dict` wrote."""
        names = ("epsilon", "rho", "delta", "mu2")
        if not isinstance(state, Mapping) or not set(names) <= set(state):
            raise InvalidInput("A charge is read from what to_dict wrote: epsilon, rho, delta and mu2.")
        values = {
            name: None if state[name] is None and name != "delta" else amounts.read_count(state[name], name)
            for name in names
        }
        return cls(**values)  # type: ignore[arg-type]


class Guarantee:
    """The privacy of a fixed plan of releases, composed.

    >>> from incrowd.privacy import gaussian, pure
    >>> (pure(0.5) + pure(0.25) * 2).epsilon()
    1.0
    >>> round((gaussian(0.1) * 100).epsilon(1e-6), 4)
    4.8866
    """

    __slots__ = ("_charge", "_counts", "_hash")

    def __init__(self, counts: Mapping[events.Event, int] | Iterable[tuple[events.Event, int]] = ()) -> None:
        complaint = "A guarantee is made of events, each with the number of times that it occurs."
        merged: dict[events.Event, int] = {}
        for pair in items_of(counts.items() if isinstance(counts, Mapping) else counts, complaint):
            if not isinstance(pair, tuple) or len(pair) != 2 or type(pair[0]) not in events.EVENTS.values():
                raise InvalidInput(complaint)
            event, count = pair
            times = amounts.read_count(count, "the number of times")
            if times and not _is_free(event):
                merged[event] = merged.get(event, 0) + times
        ordered = sorted(merged.items(), key=lambda item: interchange.sort_key(item[0]))
        object.__setattr__(self, "_counts", dict(ordered))
        object.__setattr__(self, "_hash", hash(tuple(ordered)))
        object.__setattr__(self, "_charge", None)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("A guarantee never changes; compose a new one with + or *.")

    def __reduce__(self) -> tuple[type[Guarantee], tuple[list[tuple[events.Event, int]]]]:
        return Guarantee, (list(self._counts.items()),)

    _counts: dict[events.Event, int]
    _hash: int
    _charge: Charge | None

    @property
    def events(self) -> tuple[tuple[events.Event, int], ...]:
        """Each event with the number of times it was run, in a fixed order."""
        return tuple(self._counts.items())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Guarantee) and self._counts == other._counts

    def __hash__(self) -> int:
        return self._hash

    def __add__(self, other: Guarantee) -> Guarantee:
        if not isinstance(other, Guarantee):
            return NotImplemented
        return Guarantee([*self._counts.items(), *other._counts.items()])

    def __radd__(self, other: object) -> Guarantee:
        if other == 0:  # so that sum() works
            return self
        return NotImplemented

    def __mul__(self, times: int) -> Guarantee:
        repeats = amounts.read_count(times, "the number of repeats")
        return Guarantee([(event, count * repeats) for event, count in self._counts.items()])

    __rmul__ = __mul__

    def epsilon(self, delta: Real = 0.0) -> float:
        """The least epsilon (rounded up) such that the plan is (epsilon, delta)-DP; inf where none is."""
        return accountant.epsilon(self._counts, amounts.read_probability(delta, "delta"))

    def delta(self, epsilon: Real) -> float:
        """The least delta (rounded up) such that the plan is (epsilon, delta)-DP."""
        return accountant.delta(self._counts, amounts.read_amount(epsilon, "epsilon"))

    def group(self, k: int) -> Guarantee:
        """The guarantee for k units together (a household, or a person with k records).

        Events are grouped one by one, but for thresholds. A threshold is often the delta of a release whose
        noise is another event: the chance that it shows what one of two neighbours alone could show. Let S be
        what P_0 could show and P_k could not, at the ends of a chain of k neighbours P_0, ..., P_k. Outside S
        the noise is that of k units. As to S, let F(x) be the most that the other events let the probability
        of any event grow to from x. One step says P_i(S) <= F(P_(i+1)(S)) + delta, and P_k(S) =
        0. F is concave and F(0) = 0, so F(x + y) <= F(x) + F(y), and therefore

            P_0(S) <= delta + F(delta) + F(F(delta)) + ...,    k terms.

        With more events than the release's own F only grows, so it need not be known whose noise it is.
        """
        size = amounts.read_count(k, "the size of a group")
        masses = {event: n for event, n in self._counts.items() if isinstance(event, events.Threshold)}
        others = Guarantee({event: n for event, n in self._counts.items() if event not in masses})
        grouped = [(grouping.group(event, size), n) for event, n in others._counts.items()]
        grown = [(events.Threshold(others._grown(event.delta, size)), n) for event, n in masses.items()]
        return Guarantee([*grouped, *grown])

    def _grown(self, mass: Fraction, k: int) -> Fraction:
        """The sum of F^j(mass) for j from 0 to k - 1, rounded up and at most 1."""
        if not self._counts or k <= 1:
            return min(Fraction(1), k * mass)
        pure = self._sum(conversions.pure_epsilon)
        if pure is not None:
            return grouping.grown_delta(pure, mass, k)
        if k > _FEW:
            rho = self._sum(conversions.rho)
            if rho is None:
                return Fraction(1)
            # F^j grows with j, and k steps of rho-zCDP are k^2 rho-zCDP.
            last = Guarantee([(events.ZeroConcentrated(k * k * rho), 1)])._lifted(mass)
            return min(Fraction(1), k * last)
        total = step = mass
        for _ in range(k - 1):
            step = self._lifted(step)
            total += step
        return min(Fraction(1), total)

    def _lifted(self, mass: Fraction) -> Fraction:
        """A bound on F(mass): F(x) <= e^epsilon x + delta wherever the plan is (epsilon, delta)-DP."""
        best = Fraction(1)
        for power in range(-2, 40):
            slack = mass * Fraction(4) ** power
            if slack >= best:
                break
            epsilon = self.epsilon(slack)
            if epsilon < _LARGEST_EXPONENT:
                lift = amounts.precisely(lambda e: e.exp(), amounts.read(epsilon, "epsilon"))
                best = min(best, amounts.short_up(lift * mass + slack))
        return best

    @property
    def rho(self) -> float:
        """The rho of zCDP (rounded up); inf where a release has a delta."""
        if any(conversions.delta_mass(event) for event in self._counts):
            return math.inf
        total = self._sum(conversions.rho)
        return math.inf if total is None else float_up(total)

    def renyi(self, alpha: Real) -> float:
        """The Renyi divergence of order alpha > 1 (rounded up); inf where a release has a delta."""
        order = amounts.read(alpha, "alpha")
        if order <= 1:
            raise InvalidInput(f"alpha must be above 1, but is {shown(alpha)}.")
        if order > 10**300:
            raise InvalidInput(f"alpha must be at most 1e+300, not {shown(alpha)}.")
        if any(conversions.delta_mass(event) for event in self._counts):
            return math.inf
        c = np.array([float(order - 1)])
        return float(accountant.cumulant(self._counts, c)[0] / c[0] * (1 + renyi.ROUNDING))

    def posterior(self, prior: Real, delta: Real = 0.0) -> tuple[float, float]:
        """Where an attacker's belief in one fact about one unit can move to from `prior`.

        With delta = 0 it always stays within; with delta above 0, each end holds except with that
        probability (see `meaning`).

        >>> from math import log
        >>> from incrowd.privacy import pure
        >>> [round(p, 12) for p in pure(log(3)).posterior(0.5)]
        [0.25, 0.75]
        """
        return meaning.posterior(self, prior, delta)

    def posterior_shift(self) -> float:
        """The factor by which any probability in a whole posterior can differ with and without one unit."""
        return meaning.posterior_shift(self)

    def charge(self, delta: Real = 0.0) -> Charge:
        """What a filter is charged for this fixed plan as one ask.

        The sum of its parts; with `delta` above 0 the plan may instead be charged as one (epsilon, delta)
        release at the accountant's figure, where that takes less rho or where its parts have no pure epsilon:
        Gaussian noise then still fits a budget by plain sums, with `delta` beside it.
        """
        slack = amounts.read_probability(delta, "delta")
        if not slack and self._charge is not None:
            return self._charge
        epsilon, rho, mu = (self._sum(f) for f in (conversions.pure_epsilon, conversions.rho, _squared_mu))
        mass = sum((conversions.delta_mass(e) * n for e, n in self._counts.items()), Fraction(0))
        if slack > mass:
            single = accountant.epsilon(self._counts, slack)
            if math.isfinite(single):
                whole = amounts.read(single, "epsilon")
                joint = conversions.rho(events.Pure(whole))
                cheaper = joint is not None and (rho is None or joint < rho)
                if cheaper or epsilon is None:
                    # Each currency is sound by itself with the larger delta beside it: each takes its least.
                    epsilon = whole if epsilon is None else min(epsilon, whole)
                    rho, mass = joint if cheaper else rho, slack
        charge = Charge(
            None if epsilon is None else units_up(epsilon),
            None if rho is None else units_up(rho),
            units_up(mass),
            None if mu is None else units_up(mu),
        )
        if slack == 0:
            object.__setattr__(self, "_charge", charge)
        return charge

    def _sum(self, worth: Any) -> Fraction | None:
        total = Fraction(0)
        for event, count in self._counts.items():
            amount = worth(event)
            if amount is None:
                return None
            total += amount * count
        return total

    def to_json(self) -> str:
        """The events as JSON with a versioned schema (see docs/events.md)."""
        return interchange.dumps(self._counts)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The guarantee that `to_json` wrote."""
        return cls(interchange.loads(text))

    def summary(self) -> str:
        """The guarantee in a few figures, those that take no time to work out, each rounded up.

        Epsilon and delta are the sums over all releases; `epsilon(delta)` is often far lower. Gaussian noise
        alone has its epsilon at a delta of 1e-6, and other releases without a pure epsilon have their rho.
        Releases on samples have neither: their rho is that without sampling, and so far too high.
        """
        if not self._counts:
            return "epsilon=0"
        if all(isinstance(event, events.Gaussian) for event in self._counts):
            return f"epsilon={_figure(self.epsilon(_USUAL_DELTA))} at delta={_USUAL_DELTA:g}"
        mass = min(
            Fraction(1), sum((conversions.delta_mass(e) * n for e, n in self._counts.items()), Fraction(0))
        )
        delta = f", delta={interchange.figure(mass)}" if mass else ""
        if (epsilon := self._sum(conversions.pure_epsilon)) is not None:
            return f"epsilon={interchange.figure(epsilon)}{delta}"
        rho = self._sum(conversions.rho)
        if rho is None or any(isinstance(event, _SAMPLED) for event in self._counts):
            return "an epsilon(delta) for every delta"
        return f"rho={interchange.figure(rho)}{delta}"

    def __repr__(self) -> str:
        if not self._counts:
            return "<Guarantee epsilon=0: nothing released>"
        parts = [
            interchange.describe(event) + (f" x {count:,}" if count > 1 else "")
            for event, count in self._counts.items()
        ]
        told = parts if len(parts) <= 6 else [*parts[:5], f"{len(parts) - 5} more"]
        return f"<Guarantee {self.summary()}: {' + '.join(told)}>"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(interchange.describe(event))}</td><td>{count:,}</td></tr>"
            for event, count in self._counts.items()
        )
        if not rows:
            return "<em>epsilon 0: nothing released</em>"
        figures = (
            self.summary()
            if math.isfinite(self.epsilon())
            else (f"epsilon={_figure(self.epsilon(_USUAL_DELTA))} at delta={_USUAL_DELTA:g}")
        )
        return f"<table><tr><th>release</th><th>times</th></tr>{rows}</table><p>{figures}</p>"


def _figure(value: float) -> str:
    """A float with at most six digits, rounded up."""
    return interchange.figure(Fraction(repr(value))) if math.isfinite(value) else str(value)


def _squared_mu(event: events.Event) -> Fraction | None:
    mu = conversions.mu(event)
    if mu is None:
        return Fraction(0) if isinstance(event, events.Threshold) else None
    return mu**2


def _is_free(event: events.Event) -> bool:
    """Whether an event says nothing at all."""
    match event:
        case events.Gaussian():
            return event.mu == 0
        case events.ZeroConcentrated():
            return event.rho == 0
        case events.Threshold():
            return event.delta == 0
        case events.Approximate():
            return event.epsilon == 0 and event.delta == 0
        case _ if isinstance(event, _SAMPLED):
            return event.rate == 0 or _is_free(event.event)
        case _:
            return event.epsilon == 0


def pure(epsilon: Real) -> Guarantee:
    """Any epsilon-DP release."""
    return Guarantee([(events.Pure(amounts.read_amount(epsilon, "epsilon")), 1)])


def approximate(epsilon: Real, delta: Real) -> Guarantee:
    """Any (epsilon, delta)-DP release."""
    mass = amounts.read_probability(delta, "delta")
    if mass == 0:
        return pure(epsilon)
    return Guarantee([(events.Approximate(amounts.read_amount(epsilon, "epsilon"), mass), 1)])


def zcdp(rho: Real, delta: Real = 0.0) -> Guarantee:
    """Any rho-zCDP release, or delta-approximate rho-zCDP: the same with probability 1 - delta."""
    return Guarantee([(events.ZeroConcentrated(amounts.read_amount(rho, "rho")), 1)]) + threshold(delta)


def gaussian(mu: Real) -> Guarantee:
    """Any mu-GDP release: Gaussian noise of standard deviation (L2 sensitivity) / mu."""
    return Guarantee([(events.Gaussian(amounts.read_amount(mu, "mu")), 1)])


def laplace(epsilon: Real, steps: int | None = None) -> Guarantee:
    """Laplace noise: of an L1 sensitivity of `steps` grid steps, or continuous where steps is None."""
    amount = amounts.read_amount(epsilon, "epsilon")
    if steps is None:
        return Guarantee([(events.Laplace(amount), 1)])
    return Guarantee([(events.DiscreteLaplace(amount, steps), 1)])


def randomized_response(epsilon: Real, categories: int = 2) -> Guarantee:
    """k-ary randomized response."""
    return Guarantee([(events.RandomizedResponse(amounts.read_amount(epsilon, "epsilon"), categories), 1)])


def bounded_range(epsilon: Real) -> Guarantee:
    """An epsilon-bounded-range release such as the exponential mechanism."""
    return Guarantee([(events.BoundedRange(amounts.read_amount(epsilon, "epsilon")), 1)])


def threshold(delta: Real) -> Guarantee:
    """A release that differs between neighbours with probability at most delta."""
    return Guarantee([(events.Threshold(amounts.read_probability(delta, "delta")), 1)])


def read_guarantee(guarantee: object) -> Guarantee:
    """A guarantee; InvalidInput for anything else."""
    if not isinstance(guarantee, Guarantee):
        raise InvalidInput("guarantee must be a guarantee, such as pure(1.0) or a mechanism's privacy.")
    return guarantee


def poisson(guarantee: Guarantee, rate: Real) -> Guarantee:
    """One release run on a Poisson sample of the units, under the add/remove relation."""
    read_guarantee(guarantee)
    share = amounts.read_probability(rate, "rate")
    return Guarantee([(grouping.sampled(event, share), 1) for event in grouping.single(guarantee.events)])


def compose(*guarantees: Guarantee) -> Guarantee:
    """All of them together."""
    return sum(map(read_guarantee, guarantees), Guarantee())
