"""Replays a release and compares its exact numbers, before noise, with and without one unit.

A *transcript* is the list of all random steps of a release: which mechanism drew, from which exact numbers,
and what came out. The release is run on x, then on x' with the very answers of x in the place of every draw.
So both runs see the same earlier answers, whatever depends on them (ranges found, caps chosen), and the exact
numbers of each step can be compared. What a step loses at most, over all that it might have answered:

- Laplace noise of scale b: the L1 distance of the two vectors over b.
- Gaussian noise of deviation s: mu = the L2 distance over s.
- A choice with weights exp(utility): the largest log ratio of a candidate's two probabilities.
- A sparse vector that ends with its first hit: the largest log ratio over the place of the hit.

Theorem. Losses of adaptive steps add, mu by squares (composition), and everything else in a release is
post-processing. So if the sum fits the claim on every transcript and every pair of neighbours, the release
keeps it; and exact numbers that move further than declared are seen without any sampling. Two runs that
differ in the number, kind or noise of their steps count as an infinite loss.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.adversary.audit.proofs import NEGLIGIBLE, Pairs, Proof, proven
from incrowd.curator import quantiles
from incrowd.mechanisms import Gaussian, Laplace, Quantile, SparseVector, TruncatedLaplace
from incrowd.mechanisms.additive.grid import INTEGERS
from incrowd.mechanisms.selection import ranks
from incrowd.noise import discrete_laplace_pmf, discrete_laplace_sf
from incrowd.privacy import compose, gaussian, pure

Floats = NDArray[np.float64]
PATCHED: tuple[tuple[Any, str], ...] = (
    (Laplace, "release"),
    (TruncatedLaplace, "release"),
    (Gaussian, "release"),
    (Quantile, "release"),
    (SparseVector, "release"),
    (quantiles, "_draw"),
    (ranks, "draw"),
)


@dataclass(frozen=True)
class Step:
    """One draw: the mechanism (or the name of the choice), its exact inputs, and its answer."""

    mechanism: Any
    inputs: Any
    answer: Any


@dataclass
class Transcript:
    """The recorded steps of a release; with a script, its answers replace the draws."""

    script: Sequence[Step] | None = None
    steps: list[Step] = field(default_factory=list)
    inside: bool = False

    def step(self, mechanism: Any, inputs: Any, draw: Callable[[], Any]) -> Any:
        """Record a step; its answer is drawn, or taken from the script."""
        if self.inside:  # part of a step that is recorded as a whole
            return draw()
        if self.script is not None:
            if len(self.steps) >= len(self.script):
                raise DivergedError
            answer = self.script[len(self.steps)].answer
        else:
            self.inside = True
            try:
                answer = draw()
            finally:
                self.inside = False
        self.steps.append(Step(mechanism, inputs, answer))
        return answer


class DivergedError(Exception):
    """A replay takes more steps than the run whose answers it uses."""


@contextmanager
def recorded(script: Sequence[Step] | None = None) -> Iterator[Transcript]:
    """Record all draws inside the block; answer them from the script if there is one."""
    transcript = Transcript(script)
    originals = [getattr(owner, name) for owner, name in PATCHED]

    def wrapped(owner: Any, original: Any) -> Any:
        def release(self: Any, value: Any, source: Any = None) -> Any:
            if isinstance(self, Quantile) and not self.single:  # several choices, each a step
                return original(self, value, source)
            return transcript.step(self, value, lambda: original(self, value, source))

        def draw(*inputs: Any, **options: Any) -> Any:
            name = "cells" if owner is quantiles else "points"
            return transcript.step(name, inputs, lambda: original(*inputs, **options))

        return release if isinstance(owner, type) else draw

    try:
        for (owner, name), original in zip(PATCHED, originals, strict=True):
            setattr(owner, name, wrapped(owner, original))
        yield transcript
    finally:
        for (owner, name), original in zip(PATCHED, originals, strict=True):
            setattr(owner, name, original)


def losses(release: Callable[[Any], Any], x: Any, x_prime: Any) -> tuple[float, float]:
    """The largest loss of a transcript of x against x': a pure epsilon, and the mu of its Gaussian steps."""
    with recorded() as first:
        failed = _fails(release, x)
    with recorded(first.steps) as second:
        failed_too = _fails(release, x_prime)
    if failed != failed_too or len(first.steps) != len(second.steps):
        return math.inf, 0.0
    spent, squares = 0.0, 0.0
    for one, other in zip(first.steps, second.steps, strict=True):
        pure_loss, mu = _loss(one, other)
        spent, squares = spent + pure_loss, squares + mu**2
    return spent, math.sqrt(squares)


def _fails(release: Callable[[Any], Any], data: Any) -> str:
    try:
        release(data)
    except Exception as error:
        return type(error).__name__
    return ""


def _loss(one: Step, other: Step) -> tuple[float, float]:
    mechanism = one.mechanism
    if type(mechanism) is not type(other.mechanism):
        return math.inf, 0.0
    if mechanism != other.mechanism:
        return math.inf, 0.0
    if mechanism == "cells":
        return _between(_weights(*one.inputs), _weights(*other.inputs)), 0.0
    if mechanism == "points":
        return rank_loss(one.inputs, other.inputs), 0.0
    if isinstance(mechanism, Quantile):
        sides = [_ranked(mechanism, step.inputs) for step in (one, other)]
        return rank_loss(*sides), 0.0
    if isinstance(mechanism, SparseVector):
        laws = (first_hit(mechanism, step.inputs) for step in (one, other))
        return _between(*laws), 0.0
    lattice = INTEGERS if isinstance(mechanism, TruncatedLaplace) else mechanism.lattice
    vectors = [lattice.steps(step.inputs, "a replay").ravel().tolist() for step in (one, other)]
    if len(vectors[0]) != len(vectors[1]):
        return math.inf, 0.0
    moved = [abs(a - b) for a, b in zip(*vectors, strict=True)]
    if isinstance(mechanism, Laplace | TruncatedLaplace):
        return float(sum(moved) / mechanism.scale_in_steps), 0.0
    length = math.sqrt(sum(distance**2 for distance in moved))
    # Noise on a grid serves as noise that is narrower by a hair (see `Gaussian`); its mu says by how much.
    return 0.0, length * mechanism.mu / float(mechanism.sensitivity)


def _between(first: Floats, second: Floats) -> float:
    """The largest log ratio of two laws, over what is likelier than NEGLIGIBLE."""
    if first.shape != second.shape:
        return math.inf
    seen = np.maximum(first, second) > NEGLIGIBLE
    with np.errstate(divide="ignore"):
        return float(np.abs(np.log(first[seen]) - np.log(second[seen])).max(initial=0.0))


def _weights(edges: NDArray[Any], target: Fraction, rate: Fraction) -> Floats:
    """The law of a cell that is chosen by its rank (`curator.quantiles`)."""
    scaled = edges.astype(object) * target.denominator - target.numerator
    ranks_off = np.maximum(0, np.maximum(scaled[:-1], -scaled[1:])).astype(np.float64)
    exponents = -float(rate / target.denominator) * ranks_off
    weights = np.exp(exponents - exponents.max())
    return np.asarray(weights / weights.sum(), dtype=np.float64)


Ranked = tuple[NDArray[np.int64], Fraction, Fraction, int, int]
"""A choice by rank: records in order, the target rank, the rate, and the ends of the lattice."""


def _ranked(mechanism: Quantile, values: Any) -> Ranked:
    (share,) = mechanism.shares
    steps = np.sort(mechanism.interval.steps(values, "a replay", mechanism.relation != "add-remove"))
    ends = mechanism.interval.low, mechanism.interval.high
    return steps, share * steps.size, mechanism.rate(share), *ends


def rank_loss(first: Ranked, second: Ranked) -> float:
    """The largest log ratio of a point's two probabilities, on a lattice of any size."""
    if first[2:] != second[2:]:
        return math.inf
    sides = []
    for steps, target, rate, low, high in (first, second):
        runs = ranks.runs_of(steps, low, high)
        exponents = np.array([-float(rate * distance) for distance in runs.distances(target)])
        total = np.logaddexp.reduce(np.log(runs.length.astype(np.float64)) + exponents)
        sides.append((runs.first, exponents - total))
    points = np.unique(np.concatenate([starts for starts, _ in sides]))
    one, other = (logs[np.searchsorted(starts, points, side="right") - 1] for starts, logs in sides)
    return float(np.abs(one - other).max())


def first_hit(mechanism: SparseVector, questions: Sequence[Any]) -> Floats:
    """The probability that each question is the first hit, then that none is; for one hit without values."""
    reach = math.ceil(mechanism.threshold_scale * 45) + 5
    noise = np.arange(-reach, reach + 1)
    chance = np.asarray(discrete_laplace_pmf(noise, mechanism.threshold_scale))
    least = math.ceil(Fraction(mechanism.threshold) / mechanism.lattice.step)
    hits = []
    for question in mechanism.lattice.steps(list(questions), "a replay").tolist():
        over = np.asarray(discrete_laplace_sf(least + noise - question - 1, mechanism.question_scale))
        under = np.asarray(discrete_laplace_sf(question - least - noise, mechanism.question_scale))
        hits.append(float((chance * over).sum()))
        chance = chance * under
    return np.array([*hits, float(chance.sum())])


def replayed(release: Callable[[Any], Any], pairs: Pairs, epsilon: float, delta: float = 0.0) -> Proof:
    """The check of a release by its transcripts on pairs of neighbours.

    >>> from incrowd.mechanisms import Mean
    >>> proof = replayed(Mean(1.0, low=0, high=1).release, [([0.0], [0.0, 1.0]), ([], [0.3])], 1.0)
    >>> round(proof.share, 6), proof.pairs, proof.holds
    (1.0, 2, True)
    """
    kept: dict[tuple[float, float], float] = {}

    def share(x: Any, x_prime: Any) -> float:
        spent, mu = losses(release, x, x_prime)
        if not math.isfinite(spent):
            return math.inf
        if not mu:
            return spent / epsilon
        key = (round(spent, 9), round(mu, 9))
        if key not in kept:
            kept[key] = compose(gaussian(mu), pure(spent) if spent else gaussian(0)).epsilon(delta) / epsilon
        return kept[key]

    return proven("replayed", share, pairs)
