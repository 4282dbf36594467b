"""The auditor: a lower confidence bound on epsilon from samples alone, whatever the mechanism is.

Theorem. Let the runs on x be independent with one law P, the runs on x' with one law Q, and let E be any set
of outputs that was fixed before the tested runs were seen. Of n tested runs on either side let K fall into
E on the one and L on the other. With the Clopper-Pearson bounds p (lower, from K) and q (upper, from L), each
at an error of (1 - confidence) / 2,

    bound = ln((p - delta) / q)

exceeds the least epsilon for which P and Q are (epsilon, delta)-indistinguishable with probability at most
1 - confidence. So a mechanism that keeps its claim is accused with at most that probability, whatever its
outputs are and however E was learned.

Proof. P(E) >= p and Q(E) <= q both hold but for a chance of 1 - confidence (Clopper, Pearson 1934; union
bound). Then (epsilon, delta) requires p <= P(E) <= e^epsilon Q(E) + delta <= e^epsilon q + delta, that is,
epsilon >= ln((p - delta) / q). The direction (x over x' or the reverse) is part of what was learned.

E is learned on the first half of the runs (`distinguishers`) and tested on the second; a search over pairs
chooses the pair on pilot runs, and both halves are fresh. So there is one test, and nothing to correct for.

Conditions: runs are independent. A mechanism with state (a cache, a session) must be started anew in each.
The bound says nothing about pairs and events that were not tried: "consistent" is not a proof.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from incrowd.adversary.audit.binomial import at_least, at_most
from incrowd.adversary.audit.distinguishers import Event, Objective, learn
from incrowd.adversary.audit.outputs import Outputs, read
from incrowd.adversary.audit.runs import Progress, Runner, Watched, runner_of
from incrowd.errors import InvalidInput

Floats = NDArray[np.float64]
LEAST_SAMPLES = 40
PILOT = 0.2
"""The share of the samples that a search over pairs may use up, all pairs together."""
Verdict = Literal["violates", "consistent"]


@dataclass(frozen=True)
class Tested:
    """An event and how often it happened in the tested runs."""

    event: str
    likelier: Literal["x", "x'"]
    """The data on which it was expected more often."""
    hits: tuple[int, int]
    """Runs of x and of x' in the event."""
    runs: int
    """Tested runs on either side."""

    @property
    def counts(self) -> tuple[int, int]:
        """Hits where the event is likelier, then where it is not."""
        return self.hits if self.likelier == "x" else (self.hits[1], self.hits[0])


@dataclass(frozen=True)
class Audit:
    """What an audit found."""

    epsilon: float
    """The claimed epsilon."""
    delta: float
    """The claimed delta."""
    bound: float
    """Lower bound on epsilon at the claimed delta, with the stated confidence."""
    estimate: float
    """Epsilon computed from the observed frequencies; not a bound."""
    tested: Tested
    delta_interval: tuple[float, float]
    """P(E) - e^epsilon P'(E) of the event that was learned for delta, with the stated confidence (by itself).
    Its lower end is a lower bound on the delta that the mechanism has at the claimed epsilon."""
    delta_tested: Tested
    samples: int
    """Runs on either neighbour, those for learning and testing; a search's pilot runs come on top."""
    confidence: float
    pair: tuple[Any, Any]
    """The neighbours that were told apart."""

    @property
    def verdict(self) -> Verdict:
        """Whether the samples prove that the claim is false."""
        return "violates" if self.bound > self.epsilon else "consistent"

    @property
    def closeness(self) -> float:
        """The bound as a share of the claim; above 1 it violates."""
        return self.bound / self.epsilon if self.epsilon else (math.inf if self.bound > 0 else 0.0)

    @property
    def event(self) -> str:
        """The event that was tested, in words."""
        return self.tested.event

    def to_dict(self) -> dict[str, Any]:
        """The audit as plain values, without the data."""
        told = asdict(self)
        del told["pair"]
        return {**told, "verdict": self.verdict, "closeness": self.closeness}

    def __str__(self) -> str:
        """The audit in two sentences."""
        first, second = (hits / self.tested.runs for hits in self.tested.hits)
        extra = f", delta {self.delta:g}" if self.delta else ""
        return (
            f"{self.verdict}: epsilon is at least {self.bound:.4g} (claimed: {self.epsilon:g}{extra}; "
            f"{self.closeness:.0%} of it) with {self.confidence:.7g} confidence. In {first:.4%} of "
            f"{self.tested.runs:,} runs on x and in {second:.4%} of those on x', {self.tested.event}."
        )


def audit(
    mechanism: Any,
    x: Any = None,
    x_prime: Any = None,
    *,
    epsilon: float,
    delta: float = 0.0,
    samples: int = 20_000,
    confidence: float = 0.999,
    search: Iterable[tuple[Any, Any]] | None = None,
    progress: Progress | None = None,
) -> Audit:
    """Run a mechanism `samples` times on either of two neighbouring data sets, and bound its epsilon below.

    The mechanism is a callable of the data, one of ours (its `release` is called), a `Batch`, a command line
    (a list of texts, or a `Command`) or an HTTP address (a text, or an `Endpoint`). Give x and x_prime, or in
    their place `search`, pairs of neighbours of which the most telling one is audited (see `neighbours`).
    `progress` is called with the runs done and those to do, of both sides and without a search's pilot.

    >>> from incrowd.mechanisms import RandomizedResponse
    >>> coin = RandomizedResponse(truth=0.75)
    >>> result = audit(coin, True, False, epsilon=0.7)
    >>> result.verdict, result.event in ("the output is at least 1", "the output is at most 0")
    ('violates', True)
    >>> audit(coin, True, False, epsilon=1.0987).verdict
    'consistent'
    """
    run = runner_of(mechanism)
    _check(epsilon, delta, samples, confidence)
    error = 1 - confidence
    half = samples // 2
    objectives = [_epsilon_promise(delta, error, samples - half), _delta_promise(epsilon)]
    if search is not None:
        if x is not None or x_prime is not None:
            raise InvalidInput("Give an audit one pair, x and x_prime, or a search over pairs, not both.")
        x, x_prime = _most_telling(run, list(search), delta, error, samples)
    elif x is None and x_prime is None:
        raise InvalidInput("Give an audit two neighbouring data sets, x and x_prime, or a search over pairs.")
    if progress is not None:
        run = Watched(run, 2 * samples, progress)
    events = learn(run(x, half), run(x_prime, half), objectives)
    tested = read(run(x, samples - half)), read(run(x_prime, samples - half))
    first, second = (_test(event, *tested) for event in events)
    return Audit(
        epsilon=float(epsilon),
        delta=float(delta),
        bound=max(0.0, _bound(first, delta, error)),
        estimate=_estimate(first, delta),
        tested=first,
        delta_interval=_delta_interval(second, epsilon, error),
        delta_tested=second,
        samples=samples,
        confidence=confidence,
        pair=(x, x_prime),
    )


def _check(epsilon: float, delta: float, samples: int, confidence: float) -> None:
    if not (epsilon >= 0 and math.isfinite(epsilon)):
        raise InvalidInput(f"The claimed epsilon must be a number of 0 or more, not {epsilon}.")
    if not 0 <= delta < 1:
        raise InvalidInput(f"The claimed delta must be 0 or more and below 1, not {delta}.")
    if not 0.5 <= confidence < 1:
        raise InvalidInput(f"confidence must be at least 0.5 and below 1, not {confidence}.")
    if isinstance(samples, bool) or not isinstance(samples, int) or samples < LEAST_SAMPLES:
        raise InvalidInput(
            f"samples must be a whole number of at least {LEAST_SAMPLES}; half are for learning an event."
        )


def _epsilon_bound(hits: Any, of: int, others: Any, of_others: int, delta: float, error: float) -> Floats:
    """ln((p - delta) / q) from the bounds of the theorem; far below 0 where p does not exceed delta."""
    low, high = at_least(hits, of, error / 2), at_most(others, of_others, error / 2)
    return np.asarray(np.log(np.maximum(low - delta, 1e-300)) - np.log(high))


def _bound(tested: Tested, delta: float, error: float) -> float:
    hits, others = tested.counts
    return float(_epsilon_bound(hits, tested.runs, others, tested.runs, delta, error))


def _epsilon_promise(delta: float, error: float, runs: int) -> Objective:
    """The bound to expect from a test of `runs` runs.

    Frequencies are taken one standard deviation worse than seen: the best of many events was also lucky.
    """

    def promise(hits: Any, of: int, others: Any, of_others: int) -> Floats:
        expected = np.maximum(hits - np.sqrt(hits), 0) * (runs / of)
        unwanted = np.minimum((others + np.sqrt(others) + 1) * (runs / of_others), runs)
        return _epsilon_bound(expected, runs, unwanted, runs, delta, error)

    return promise


def _delta_promise(epsilon: float) -> Objective:
    """P(E) - e^epsilon P'(E), estimated from the frequencies."""
    factor = math.exp(min(epsilon, 700.0))

    def promise(hits: Any, of: int, others: Any, of_others: int) -> Floats:
        return np.asarray(hits / of - factor * others / of_others)

    return promise


def _delta_interval(tested: Tested, epsilon: float, error: float) -> tuple[float, float]:
    """Both ends of P(E) - e^epsilon P'(E): four Clopper-Pearson bounds at a quarter of the error each."""
    factor = math.exp(min(epsilon, 700.0))
    hits, others = tested.counts
    low = at_least(hits, tested.runs, error / 4) - factor * at_most(others, tested.runs, error / 4)
    high = at_most(hits, tested.runs, error / 4) - factor * at_least(others, tested.runs, error / 4)
    return max(0.0, float(low)), min(1.0, max(0.0, float(high)))


def _estimate(tested: Tested, delta: float) -> float:
    hits, others = (count / tested.runs for count in tested.counts)
    if hits <= delta:
        return 0.0
    return max(0.0, math.log((hits - delta) / others)) if others else math.inf


def _test(event: Event, x: Outputs, x_prime: Outputs) -> Tested:
    hits = int(event.holds(x).sum()), int(event.holds(x_prime).sum())
    return Tested(event.words, "x" if event.forward else "x'", hits, x.size)


def _most_telling(
    run: Runner, pairs: list[tuple[Any, Any]], delta: float, error: float, samples: int
) -> tuple[Any, Any]:
    """The pair with the highest bound on pilot runs; half of them learn the event, half test it."""
    if not pairs:
        raise InvalidInput("The search holds no pair of neighbours: give at least one.")
    runs = max(LEAST_SAMPLES, int(PILOT * samples) // len(pairs))
    objective = _epsilon_promise(delta, error, runs - runs // 2)

    def promise(pair: tuple[Any, Any]) -> float:
        sides = [run(side, runs) for side in pair]
        (event,) = learn(sides[0][: runs // 2], sides[1][: runs // 2], [objective])
        return _bound(_test(event, *(read(outputs[runs // 2 :]) for outputs in sides)), delta, error)

    return max(pairs, key=promise)
