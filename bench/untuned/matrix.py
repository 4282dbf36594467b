"""The matrix of asks on untuned tables: coverage, width, worst error, error, absurd caps, units beyond."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from untuned.asking import Asked, Asker
from untuned.tables import KEYS, Numbers, Spread, drawn, real, spread

EPSILONS = (0.05, 0.1, 0.3, 1.0, 3.0)
FEWER = {1: 1.0, 8: 1.0, 100: 0.4, 5_000: 0.1}
"""How many of the releases a line with so many keys gets: each holds as many numbers as there are keys."""
TOO_HIGH = 64.0
"""A cap this many times above the heaviest unit, and above what is taken where nothing is seen, is absurd."""
SEEN = 25.0
"""So are caps that keep less than a tenth of the total where more than SEEN over the epsilon of the census
units weigh more: noise hides so many in one cell less than once in 10,000 times."""


def spreads(data: Path | None) -> Iterator[Spread]:
    """Every table over every number of keys."""
    for rows in (*drawn(), *(real(data) if data is not None else ())):
        for keys in KEYS:
            yield spread(rows, keys)
            if keys in (8, 100):
                yield spread(rows, keys, whole=True)


class ByHand:
    """The least error with a cap that somebody who knows the data declares, for the whole of epsilon."""

    def __init__(self, held: Spread) -> None:
        self.truth = held.under(math.inf)
        weights = held.weights[held.weights > 0]
        caps = np.unique(np.quantile(weights, np.linspace(0, 1, 100))) if len(weights) else np.ones(1)
        self.caps = np.unique(np.concatenate((caps, np.sort(weights)[-50:])))
        self.cuts = np.array([float(np.mean((held.under(cap) - self.truth) ** 2)) for cap in self.caps])

    def rmse(self, epsilon: float) -> float:
        return math.sqrt(float(np.min(2 * (self.caps / epsilon) ** 2 + self.cuts)))

    def usual(self) -> float:
        """What the numbers themselves are about."""
        return math.sqrt(float(np.mean(self.truth**2)))


@dataclass
class Line:
    """What is kept of the answers to one question."""

    asker: Asker
    epsilon: float
    truth: Numbers
    covered: list[float] = field(default_factory=list)
    errors: list[Numbers] = field(default_factory=list)
    squares: list[float] = field(default_factory=list)
    beyond: list[tuple[int, int]] = field(default_factory=list)
    worst: float = 0.0
    absurd: int = 0

    def add(self, asked: Asked) -> None:
        """One more answer."""
        held = self.asker.held
        away = np.abs(asked.value - asked.about)
        # The longer side: intervals of what cannot be negative end at 0.
        half = np.maximum(np.maximum(asked.high - asked.value, asked.value - asked.low), 1e-12)
        slack = 1e-9 * (1 + np.abs(asked.about))
        inside = (asked.low - slack <= asked.about) & (asked.about <= asked.high + slack)
        self.covered.append(float(inside.mean()))
        self.errors.append(away / half)
        self.squares.append(float(np.mean((asked.value - self.truth) ** 2)))
        self.worst = max(self.worst, float((away / half).max()))
        more = int((held.weights > asked.stated.cap).sum())
        self.beyond.append((more, asked.stated.beyond))
        row = 1.0 if held.bounds is None else max(map(abs, held.bounds))
        known = max(float(held.weights.max(initial=0.0)), 4 * row)
        kept = held.total_under(asked.stated.cap) / max(held.weights.sum(), 1e-300)
        missed = more > SEEN / self.asker.census_epsilon and kept < 0.1
        self.absurd += bool(asked.stated.cap > TOO_HIGH * known or missed)

    @property
    def cover(self) -> float:
        return float(np.mean(self.covered))

    @property
    def wide(self) -> float:
        """How many times narrower all intervals could be and still hold 95% of what they are about."""
        return 1 / max(float(np.quantile(np.concatenate(self.errors), 0.95)), 1e-12)

    @property
    def rmse(self) -> float:
        return math.sqrt(float(np.mean(self.squares)))

    @property
    def usual(self) -> float:
        """The median over answers of the root mean squared error of their numbers."""
        return math.sqrt(float(np.median(self.squares)))

    @property
    def beyond_held(self) -> float:
        return float(np.mean([more <= said for more, said in self.beyond]))

    @property
    def beyond_wide(self) -> float:
        """Stated units over those of one noisy count: the true number and what its noise may hide."""
        hidden = math.log(10) / self.asker.census_epsilon
        return float(np.median([said / (more + hidden) for more, said in self.beyond]))

    def faults(self) -> list[str]:
        """What is out of range, beyond chance."""
        asks, numbers = len(self.covered), len(self.covered) * len(self.truth)
        spread = 3.5 * max(math.sqrt(0.05 * 0.95 / numbers), float(np.std(self.covered)) / math.sqrt(asks))
        # The 95% quantile of a few errors is uncertain itself.
        unsure = 3.5 * math.sqrt(0.95 / (0.05 * numbers)) / math.log(20)
        tests = {
            "cover": not 0.94 - spread <= self.cover <= 0.99 + spread,
            "wide": self.wide > 1.5 * (1 + unsure),
            # Of n draws of Laplace noise, one in a thousand times the largest is as far off as this.
            "worst": self.worst > max(5.0, math.log(1_000 * numbers) / math.log(20)),
            "absurd": self.absurd > 0,
            "beyond": self.beyond_held < 0.95 - 3.5 * math.sqrt(0.05 * 0.95 / asks),
            "loose": self.beyond_wide > 3,
        }
        return [word for word, wrong in tests.items() if wrong]


def run(data: Path | None, releases: int, only: str, relation: str) -> None:
    """Print the lines, and what they come to by number of keys."""
    every: dict[int, list[tuple[Line, float, bool]]] = defaultdict(list)
    for held in spreads(data):
        if only not in f"{held.name} {held.keys}":
            continue
        by_hand = ByHand(held)
        for epsilon in EPSILONS:
            line = Line(Asker(held, epsilon, relation), epsilon, by_hand.truth)
            for _ in range(max(10, int(releases * FEWER[held.keys]))):
                line.add(line.asker.ask())
            best = by_hand.rmse(epsilon)
            # Where even the best cap errs by more than half of the numbers, nothing can be learned.
            every[held.keys].append((line, best, best < 0.5 * by_hand.usual()))
            print(
                f"{held.name:20} {held.keys:5} {epsilon:5} cover {line.cover:6.1%} wide {line.wide:5.2f} "
                f"worst {line.worst:5.2f} rmse {line.rmse:10.4g} /best {line.rmse / best:7.2f} usually "
                f"{line.usual / best:6.2f} beyond {line.beyond_held:4.0%} {line.beyond_wide:5.2f} "
                f"{' '.join(line.faults())}",
                flush=True,
            )
    for keys, lines in every.items():
        print(summary(keys, lines))


def summary(keys: int, lines: list[tuple[Line, float, bool]]) -> str:
    """One line about all lines with so many keys."""
    asks = sum(len(line.covered) for line, _, _ in lines)
    told = [(line, best) for line, best, telling in lines if telling]

    def mean(ratios: list[float]) -> float:
        return math.exp(float(np.mean(np.log(ratios)))) if ratios else math.nan

    faults = [fault for line, _, _ in lines for fault in line.faults()]
    covers = [line.cover for line, _, _ in lines]
    counted = ", ".join(f"{word} {faults.count(word)}" for word in dict.fromkeys(sorted(faults)))
    return (
        f"{keys} keys: {asks} asks in {len(lines)} lines; cover {min(covers):.1%} to {max(covers):.1%}; "
        f"worst {max(line.worst for line, _, _ in lines):.2f}; "
        f"wide {np.median([line.wide for line, _, _ in lines]):.2f}; absurd "
        f"{sum(line.absurd for line, _, _ in lines)}; /best in {len(told)} telling lines "
        f"{mean([line.rmse / best for line, best in told]):.2f}, usually "
        f"{mean([line.usual / best for line, best in told]):.2f}; beyond "
        f"{np.median([line.beyond_wide for line, _, _ in lines]):.2f} (most "
        f"{max(line.beyond_wide for line, _, _ in lines):.1f}); out of range: {counted or 'nothing'}"
    )
