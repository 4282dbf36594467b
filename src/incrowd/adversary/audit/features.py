"""Features of outputs, and the scores learned from them. Knows nothing of privacy.

A *feature* is a number, a word or the whole output, read off each output by itself. Besides the values there
are differences and sums of two places (noise that is used twice cancels in one of them) and, for reals, the
exponent of the lowest bit that is set: sums of floats differ in it although their values are close (Mironov
2012).

A *score* is learned from features: the value itself; or, bin by bin, the logarithm of how much likelier the
bin is on x than on x'. By the lemma of Neyman and Pearson thresholds of the likelihood ratio are the best
events; for independent places it is the sum of the places' scores (naive Bayes). Where places depend on each
other a logistic regression weighs those scores, and where they are many Fisher's linear discriminant is
learned from fewer runs.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from incrowd.adversary.audit.outputs import Outputs

Floats = NDArray[np.float64]
Kind = Literal["value", "lowest bit", "difference", "sum", "word", "whole"]
MOST_CELLS = 256
"""Up to so many distinct values, each is a bin of its own; beyond, bins are quantiles."""
BINS = 64
MOST_FEATURES = 150
MOST_PAIRED = 6
"""Up to so many places, all pairs give differences and sums; beyond, only neighbouring places."""
MASS = 2.0
"""Runs added to each bin on either side, so that a rarely seen bin weighs little."""


@dataclass(frozen=True)
class Feature:
    """One thing that is read off every output."""

    kind: Kind
    places: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The feature in words."""
        named = [f"the output's {place.strip()}" if place else "the output" for place in self.places]
        match self.kind:
            case "lowest bit":
                return f"the exponent of the lowest bit of {named[0]}"
            case "difference":
                return f"{named[0]} minus {named[1]}"
            case "sum":
                return f"{named[0]} plus {named[1]}"
            case "whole":
                return "the output"
            case _:
                return named[0]

    def read(self, outputs: Outputs) -> Any:
        """The feature of every output: an array of numbers (NaN where it has none), or of words."""
        match self.kind:
            case "whole":
                return outputs.whole()
            case "word":
                return outputs.word(self.places[0])
        first = outputs.number(self.places[0])
        if self.kind == "lowest bit":
            return lowest_bit(first)
        if self.kind == "value":
            return first
        with np.errstate(invalid="ignore"):
            second = outputs.number(self.places[1])
            return first - second if self.kind == "difference" else first + second


def lowest_bit(values: Floats) -> Floats:
    """The exponent of the lowest bit that is set; NaN for 0, infinities and NaN.

    >>> lowest_bit(np.array([1.0, 6.0, 0.375])).tolist()
    [0.0, 1.0, -3.0]
    """
    fraction, exponent = np.frexp(np.where(np.isfinite(values) & (values != 0), values, 1.0))
    mantissa = np.abs(np.ldexp(fraction, 53)).astype(np.int64)
    zeros = np.log2((mantissa & -mantissa).astype(np.float64))
    lowest = exponent - 53 + zeros
    return np.where(np.isfinite(values) & (values != 0), lowest, np.nan)


def features_of(outputs: Outputs) -> list[Feature]:
    """The features that these outputs have."""
    places = [place for place, numbers in outputs.numbers.items() if _varies(numbers)]
    features = [Feature("value", (place,)) for place in places]
    features += [Feature("word", (place,)) for place in outputs.words]
    for place in places:
        numbers = outputs.number(place)
        finite = numbers[np.isfinite(numbers)]
        if (finite != np.rint(finite)).any():
            features.append(Feature("lowest bit", (place,)))
    plain = [place for place in places if place.endswith("]") or "." in place]
    pairs = itertools.combinations(plain, 2) if len(plain) <= MOST_PAIRED else itertools.pairwise(plain)
    for one, other in pairs:
        features += [Feature("difference", (one, other)), Feature("sum", (one, other))]
    return features[:MOST_FEATURES]


def _varies(numbers: Floats) -> bool:
    return numbers.size > 0 and not bool((np.isnan(numbers).all()) or (numbers == numbers[0]).all())


class Score(Protocol):
    """A number for every output, learned or plain."""

    @property
    def name(self) -> str:
        """The score in words."""
        ...

    def of(self, outputs: Outputs) -> Floats:
        """The score of every output; NaN is in no event."""
        ...


@dataclass(frozen=True)
class Value:
    """A numeric feature itself."""

    feature: Feature

    @property
    def name(self) -> str:
        """The feature in words."""
        return self.feature.name

    def of(self, outputs: Outputs) -> Floats:
        """The feature of every output."""
        return np.asarray(self.feature.read(outputs), dtype=np.float64)


@dataclass(frozen=True)
class Bins:
    """The logarithm of a likelihood ratio, for each bin of a numeric feature.

    edges: the bins' lower ends, increasing; scores: one more than edges (below the first), then one for NaN.
    """

    feature: Feature
    edges: Floats
    scores: Floats
    exact: bool

    @property
    def name(self) -> str:
        """The score in words."""
        return f"the likelihood ratio of {self.feature.name}"

    def of(self, outputs: Outputs) -> Floats:
        """The score of every output."""
        values = np.asarray(self.feature.read(outputs), dtype=np.float64)
        return np.asarray(self.scores[_bins(values, self.edges, self.exact)], dtype=np.float64)


def _bins(values: Floats, edges: Floats, exact: bool) -> NDArray[np.int64]:
    place = np.searchsorted(edges, values, side="right")
    if exact:  # a value never seen while learning falls into bin 0
        here = np.clip(place - 1, 0, len(edges) - 1)
        place = np.where(edges[here] == values, place, 0)
    return np.where(np.isnan(values), len(edges) + 1, place)


@dataclass(frozen=True)
class Cells:
    """The logarithm of a likelihood ratio, for each word or whole output that was seen; 0 for others."""

    feature: Feature
    scores: Mapping[Any, float]

    @property
    def name(self) -> str:
        """The score in words."""
        return f"the likelihood ratio of {self.feature.name}"

    def of(self, outputs: Outputs) -> Floats:
        """The score of every output."""
        values = self.feature.read(outputs)
        return np.array([self.scores.get(value, 0.0) for value in values.tolist()], dtype=np.float64)


@dataclass(frozen=True)
class Weighted:
    """A weighted sum of scores."""

    parts: Sequence[Score]
    weights: Sequence[float]
    kind: str

    @property
    def name(self) -> str:
        """The score in words."""
        heaviest = max(zip(self.parts, self.weights, strict=True), key=_weight)[0]
        return f"a {self.kind} score of {len(self.parts)} features (above all {heaviest.name})"

    def of(self, outputs: Outputs) -> Floats:
        """The score of every output."""
        total = np.zeros(outputs.size)
        for part, weight in zip(self.parts, self.weights, strict=True):
            total += weight * part.of(outputs)
        return total


def _weight(part: tuple[Score, float]) -> float:
    """How far a weighted score reaches: its weight times the spread of its scores."""
    score, weight = part
    scores = list(score.scores.values()) if isinstance(score, Cells) else getattr(score, "scores", [0.0, 1.0])
    return abs(weight) * float(np.ptp(scores))


def ratios(first: Floats, second: Floats) -> Floats:
    """Log ratio of both sides' shares in each bin, shrunk towards 0 where counts are small."""
    shares = [(counts + MASS) / (counts.sum() + MASS * len(counts)) for counts in (first, second)]
    return np.asarray(np.log(shares[0] / shares[1]), dtype=np.float64)


def learn_bins(feature: Feature, first: Outputs, second: Outputs) -> Bins | None:
    """Bins of a numeric feature: each value where they are few, else by quantile, finer in the tails.

    None where no output has the feature, as with the difference of two keys that never come together.
    """
    values = [np.asarray(feature.read(outputs), dtype=np.float64) for outputs in (first, second)]
    pooled = np.concatenate(values)
    distinct = np.unique(pooled[~np.isnan(pooled)])
    if distinct.size == 0:
        return None
    exact = len(distinct) <= MOST_CELLS
    edges = distinct if exact else np.unique(np.quantile(distinct_sorted(pooled), levels(BINS)))
    counts = [np.bincount(_bins(side, edges, exact), minlength=len(edges) + 2) for side in values]
    return Bins(feature, edges, ratios(counts[0].astype(float), counts[1].astype(float)), exact)


def distinct_sorted(values: Floats) -> Floats:
    """The numbers among the values, in order, infinities brought to the largest float."""
    numbers = np.nan_to_num(values[~np.isnan(values)])
    return np.sort(numbers)


def levels(bins: int) -> Floats:
    """Levels of quantiles: evenly spaced, and towards both ends by halves down to 1 in 100,000."""
    tails = 0.5 ** np.arange(4, 17)
    return np.unique(np.concatenate([np.linspace(0, 1, bins + 1), tails, 1 - tails]))


def learn_cells(feature: Feature, first: Outputs, second: Outputs) -> Cells | None:
    """A likelihood ratio for each value of words or whole outputs; None where hardly any is seen twice."""
    tallies: list[dict[Any, int]] = []
    for outputs in (first, second):
        tally: dict[Any, int] = {}
        for value in feature.read(outputs).tolist():
            tally[value] = tally.get(value, 0) + 1
        tallies.append(tally)
    keys = list({**tallies[0], **tallies[1]})
    if len(keys) > (first.size + second.size) / 4:
        return None
    counts = [np.array([tally.get(key, 0) for key in keys], dtype=np.float64) for tally in tallies]
    # Unlike in bins, each value is compared alone: many rare values must not raise each other's scores.
    scores = np.log((counts[0] + MASS) / (first.size + MASS)) - np.log(
        (counts[1] + MASS) / (second.size + MASS)
    )
    return Cells(feature, dict(zip(keys, scores.tolist(), strict=True)))


def linear(columns: Floats, labels: Floats) -> Floats:
    """The weights of Fisher's linear discriminant, with a small ridge."""
    spread = columns.std(axis=0) + 1e-300
    scaled = (columns - columns.mean(axis=0)) / spread
    first, second = scaled[labels == 1], scaled[labels == 0]
    covariance = np.atleast_2d((np.cov(first.T) + np.cov(second.T)) / 2)
    ridge = 1e-3 * np.eye(columns.shape[1])
    weights = np.linalg.solve(covariance + ridge, first.mean(axis=0) - second.mean(axis=0))
    return np.asarray(weights / spread, dtype=np.float64)


def logistic(columns: Floats, labels: Floats, rounds: int = 12) -> Floats:
    """The weights, without the intercept, of a logistic regression with a small ridge (Newton's method)."""
    many = columns.shape[1]
    weights = np.zeros(many + 1)
    design = np.column_stack([columns, np.ones(len(columns))])
    ridge = 1e-3 * len(columns) * np.eye(many + 1) / (many + 1)
    for _ in range(rounds):
        chance = 1 / (1 + np.exp(-np.clip(design @ weights, -30, 30)))
        slope = design.T @ (labels - chance) - ridge @ weights
        curve = (design * (chance * (1 - chance))[:, None]).T @ design + ridge
        step = np.linalg.solve(curve, slope)
        weights += step
        if np.abs(step).max() < 1e-6:
            break
    return np.asarray(weights[:many], dtype=np.float64)
