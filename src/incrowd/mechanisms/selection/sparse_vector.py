"""Sparse vector: a stream of questions of which only the few above a threshold are paid for.

Theorem (Dwork, Naor, Reingold, Rothblum, Vadhan 2009; this form Lyu, Su, Li 2017, Algorithm 7). Every
question is a whole number of steps that moves by at most s between neighbours; questions may depend on
earlier answers. Draw R once, discrete Laplace of scale s / e1. Answer question i with "above" when
q_i + V_i >= threshold + R, where V_i is fresh discrete Laplace noise of scale 2 c s / e2
(c s / e2 when monotone). Stop after c answers "above". The whole transcript is (e1 + e2)-differentially
private, however many questions fall below. A fresh noisy value of scale c s / e3 for each hit adds e3.

Proof. For given R the answers are independent, so a transcript has the probability

    sum over r of P(R = r) (product over "below" of P(q_i + V < T + r))
                           (product over "above" of P(q_i + V >= T + r)).

For the neighbour replace r by r + s, which costs e^e1. Then "below" has not become less likely, as q_i moved
by at most s; and "above" needs V to be larger by at most 2 s, which costs e^(e2 / c) each time, at most c
times. Monotone questions: if all rise, shifting r by s needs only s more of V; if all fall, do not shift r,
and then "below" has not become less likely and "above" needs at most s more. Everything is a whole number, so
ties are exact and harmless.

What breaks it (Lyu, Su, Li list published variants; the tests hold each of them): no noise on the questions,
noise that does not grow with c, no stop after c hits, releasing the very q_i + V_i that was compared.

Accuracy: the budget is split e1 : e2 = 1 : (2 c)^(2/3), or 1 : c^(2/3) when monotone, which minimises the
variance of q_i + V_i - R (same paper, section 4.2).
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from incrowd.errors import InvalidInput, Refused
from incrowd.mechanisms.additive.grid import Grid, add_saturating, floored_l1, lattice_of
from incrowd.mechanisms.additive.laplace import MOST_STEPS, Laplace, unclamped
from incrowd.mechanisms.mechanism import Mechanism
from incrowd.mechanisms.parameters import (
    amount,
    confidence_level,
    counted,
    log2_floor,
    positive,
)
from incrowd.noise import Source, discrete_laplace, discrete_laplace_pmf, discrete_laplace_sf
from incrowd.noise.readings import (
    Number,
    binary,
    decimal,
    items_of,
    shown,
)
from incrowd.privacy import Guarantee, pure


@dataclass(frozen=True, eq=False, repr=False)
class SparseVector(Mechanism):
    """Says which questions lie above a threshold, and pays for `hits` of them, however many it answers.

    `values` is the share of epsilon kept for numeric answers: 0 for none, in (0, 1) to give a fresh noisy
    value with each hit. Open a session with `start` and put questions to it one by one, or `release` a list.

    >>> m = SparseVector(epsilon=2.0, threshold=1000, hits=2)
    >>> session = m.start()
    >>> [session.ask(answer) for answer in (10, 4000, 3, 20, 5000)]
    [False, True, False, False, True]
    >>> session.closed, m.privacy.epsilon()
    (True, 2.0)
    """

    epsilon: Number
    _: KW_ONLY
    threshold: Number = 0
    hits: int = 1
    sensitivity: Number = 1
    monotone: bool = False
    values: Number = 0
    grid: Number | Grid | None = None

    def __post_init__(self) -> None:
        binary(self.threshold, "threshold")
        counted(self.hits, "hits")
        if not 0 <= decimal(self.values, "values") < 1:
            raise InvalidInput(
                f"values must be a share of epsilon, 0 or more and below 1, not {shown(self.values)}."
            )
        if not isinstance(self.monotone, bool):
            raise InvalidInput("monotone must be True or False.")
        scales = self.threshold_scale, self.question_scale, self.value_scale or 0
        if max(scales) > MOST_STEPS:
            raise InvalidInput(
                "SparseVector would need noise beyond 2**50 steps: use a coarser grid or unit."
            )

    @cached_property
    def exact_epsilon(self) -> Fraction:
        """Epsilon as a fraction."""
        return amount(self.epsilon, "epsilon")

    @cached_property
    def split(self) -> tuple[Fraction, Fraction, Fraction]:
        """The e1, e2 and e3 of the theorem: for the threshold, the questions and the values."""
        for_values = self.exact_epsilon * decimal(self.values, "values")
        compared = self.exact_epsilon - for_values
        weight = Fraction(round(1000 * self._factor ** (2 / 3)), 1000)  # any positive split is private
        for_threshold = compared / (1 + weight)
        return for_threshold, compared - for_threshold, for_values

    @property
    def _factor(self) -> int:
        """By how much more than one hit the noise on questions must hide."""
        return counted(self.hits, "hits") * (1 if self.monotone else 2)

    @cached_property
    def lattice(self) -> Grid:
        """The grid that answers are floored onto."""
        reach, (first, _, third) = positive(self.sensitivity, "sensitivity"), self.split
        narrow, wide = reach / max(self.split), reach * self.hits / min(first, third or first)
        finest = max(log2_floor(min(reach / 2**20, narrow)), log2_floor(wide) - 46)
        return lattice_of(self.grid, self.sensitivity, finest)

    @cached_property
    def sensitivity_in_steps(self) -> int:
        """How far one question moves after flooring, in grid steps."""
        return floored_l1(positive(self.sensitivity, "sensitivity"), self.lattice, 1)

    @cached_property
    def threshold_scale(self) -> Fraction:
        """The scale of the noise on the threshold, in grid steps."""
        return self.sensitivity_in_steps / self.split[0]

    @cached_property
    def question_scale(self) -> Fraction:
        """The scale of the noise on every question, in grid steps."""
        return self._factor * self.sensitivity_in_steps / self.split[1]

    @cached_property
    def value_scale(self) -> Fraction | None:
        """The scale of the noise on the value of a hit, in grid steps; None where none is released."""
        for_values = self.split[2]
        return counted(self.hits, "hits") * self.sensitivity_in_steps / for_values if for_values else None

    @property
    def noise_scale(self) -> float:
        """The scale of the noise on each question, in its units."""
        return float(self.question_scale * self.lattice.step)

    @property
    def privacy(self) -> Guarantee:
        """What one session guarantees from its first question to its last hit."""
        return pure(self.exact_epsilon)

    def start(self, source: Source | None = None) -> SparseSession:
        """Open a session: draw the noisy threshold, once. Each session costs `privacy` anew."""
        return SparseSession(self, source)

    def release(self, value: Any, source: Source | None = None) -> list[Any]:
        """The answers to a list of questions, in order, up to and including the last hit paid for."""
        complaint = "SparseVector.release takes a list of numbers, one for each question."
        if isinstance(value, str):
            raise InvalidInput(complaint)
        # All are read before any is answered.
        questions = [self._one(item) for item in items_of(value, complaint)]
        session, answers = self.start(source), []
        for steps in questions:
            if session.closed:
                break
            answers.append(session._answer(steps))
        return answers

    def halfwidth(self, confidence: Number, questions: int = 1) -> Any:
        """How far from the threshold all of so many questions must lie to be answered rightly."""
        failure = (1 - confidence_level(confidence)) / 2
        once = Laplace(scale=self.threshold_scale).halfwidth(1 - failure)
        questioned = Laplace(scale=self.question_scale).halfwidth(
            1 - failure, counted(questions, "questions")
        )
        return self.lattice.length(int(once + questioned) + (0 if self.lattice.integers else 2))

    def probability(self, questions: Any, answers: Iterable[bool]) -> float:
        """The exact probability of a sequence of answers without values, summed over the noisy threshold."""
        complaint = "SparseVector.probability takes two lists of one length: numbers, and truth values."
        said = items_of(answers, complaint)
        steps = [self._one(item) for item in items_of(questions, complaint)]
        if len(said) != len(steps) or not all(isinstance(above, bool | np.bool_) for above in said):
            raise InvalidInput(complaint)
        reach = math.ceil(self.threshold_scale * 60) + 5
        noise = np.arange(-reach, reach + 1)
        chance = np.asarray(discrete_laplace_pmf(noise, self.threshold_scale))
        hits = 0
        for question, above in zip(steps, said, strict=True):
            if hits == self.hits:
                return 0.0
            over = np.asarray(
                discrete_laplace_sf(self._threshold() + noise - question - 1, self.question_scale)
            )
            chance = chance * (over if above else 1 - over)
            hits += bool(above)
        return float(chance.sum())

    def _one(self, value: Any) -> int:
        steps = self.lattice.steps(value, "SparseVector")
        if steps.ndim:
            raise InvalidInput("SparseVector takes one number for each question.")
        return int(steps)

    def _threshold(self) -> int:
        """The threshold in steps: whole numbers reach it when they reach the next step above it."""
        return math.ceil(binary(self.threshold, "threshold") / self.lattice.step)


class SparseSession:
    """One run of a SparseVector; it closes itself after the last hit.

    Its noisy threshold is one secret that all answers share. So a session is not copied, not pickled and not
    continued in a forked process, where the same threshold would answer twice.
    """

    def __init__(self, mechanism: SparseVector, source: Source | None = None) -> None:
        self._mechanism = mechanism
        self._source = source
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._left = mechanism.hits
        self._noisy_threshold = mechanism._threshold() + self._noise(mechanism.threshold_scale)

    @property
    def left(self) -> int:
        """How many hits are still paid for."""
        return self._left

    @property
    def closed(self) -> bool:
        """Whether every hit that was paid for has been reported."""
        return self._left == 0

    def ask(self, value: Any) -> Any:
        """Whether the value lies above the threshold; with numeric answers, a noisy value or None."""
        return self._answer(self._mechanism._one(value))

    def _answer(self, steps: int) -> Any:
        mechanism = self._mechanism
        with self._lock:
            if self._process != os.getpid():
                raise Refused("A SparseVector session is answered only in the process that opened it.")
            if self._left == 0:
                raise Refused(
                    f"This SparseVector has reported the {mechanism.hits} hits it was paid for: open another."
                )
            noise = self._noise(mechanism.question_scale)
            above = steps + noise >= self._noisy_threshold
            self._left -= above
        if mechanism.value_scale is None:
            return above
        if not above:
            return None
        fresh = discrete_laplace(mechanism.value_scale, source=self._source)
        return mechanism.lattice.values(add_saturating(np.asarray(steps, dtype=np.int64), fresh))

    def _noise(self, scale: Fraction) -> int:
        """Unclamped, as a Python integer: a comparison must neither wrap around nor see a clamp."""
        return unclamped(discrete_laplace(scale, source=self._source), scale, self._source)

    def __reduce__(self) -> NoReturn:
        raise TypeError("A SparseVector session holds a secret threshold and is never copied or pickled.")
