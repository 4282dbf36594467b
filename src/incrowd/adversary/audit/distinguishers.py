"""Learns an event that tells two data sets apart. It sees only the outputs of the learning half.

The outputs are split again: on one part scores are fitted (`features`), on the other the score, its threshold
and the direction are chosen that promise most in the test. An audit stays valid whatever is learned here,
because the event is tested on outputs never seen here; a better event only makes it more powerful.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.adversary.audit.features import (
    Bins,
    Cells,
    Feature,
    Score,
    Value,
    Weighted,
    distinct_sorted,
    features_of,
    learn_bins,
    learn_cells,
    levels,
    linear,
    logistic,
)
from incrowd.adversary.audit.outputs import Outputs, read

Floats = NDArray[np.float64]
Objective = Callable[[Any, int, Any, int], Floats]
"""The worth of an event, from hits and runs on the side where it is likely, then on the other side."""
THRESHOLDS = 200
SIMPLER = 0.005
"""How much better, relatively, a score must be to replace a simpler one."""
FITTED = 40_000
"""Runs on either side that a logistic regression is fitted on."""


@dataclass(frozen=True)
class Event:
    """A set of outputs: those whose score is at least (or at most) a threshold.

    forward: whether it is likelier on x than on x'.
    """

    score: Score
    threshold: float
    above: bool
    forward: bool

    def holds(self, outputs: Outputs) -> NDArray[np.bool_]:
        """Which outputs are in the event."""
        scores = self.score.of(outputs)
        return np.asarray(scores >= self.threshold if self.above else scores <= self.threshold)

    @property
    def words(self) -> str:
        """The event in words."""
        side = "at least" if self.above else "at most"
        if isinstance(self.score, Value):
            return f"{self.score.name} is {side} {_brief(self.threshold)}"
        if isinstance(self.score, Cells):
            return _listed(self, self.score)
        if isinstance(self.score, Bins):
            return _ranges(self, self.score)
        return f"{self.score.name} is {side} {self.threshold:.3g}"


def _inside(event: Event, score: float) -> bool:
    return score >= event.threshold if event.above else score <= event.threshold


def _brief(number: float) -> str:
    return f"{number:.6g}"


def _join(parts: list[str], most: int = 4) -> str:
    shown = parts[:most]
    rest = len(parts) - len(shown)
    if rest:
        shown.append(f"one of {rest} more")
    return " or ".join(shown)


def _listed(event: Event, score: Cells) -> str:
    inside = [key for key, ratio in score.scores.items() if _inside(event, ratio)]
    if _inside(event, 0.0) or "" in inside or len(inside) > len(score.scores) / 2 > 8:
        outside = [key for key in score.scores if key not in set(inside)]
        if not outside:
            return f"{score.feature.name} is anything"
        return f"{score.feature.name} is not {_join([_key(key) for key in outside])}"
    strength = sorted(inside, key=lambda key: -abs(score.scores[key]))
    return f"{score.feature.name} is {_join([_key(key) for key in strength])}"


def _key(key: Any) -> str:
    text = key if isinstance(key, str) else repr(key)
    return text if len(text) <= 60 else text[:57] + "..."


def _ranges(event: Event, score: Bins) -> str:
    """Neighbouring bins of the event as ranges."""
    ends = [*(_brief(edge) for edge in score.edges), ""]
    parts: list[str] = []
    inside = [_inside(event, float(ratio)) for ratio in score.scores[:-1]]
    place = 0
    while place < len(inside):
        if not inside[place]:
            place += 1
            continue
        last = place
        while last + 1 < len(inside) and inside[last + 1]:
            last += 1
        if place == 0:
            if not score.exact:
                parts.append(f"below {ends[last]}" if ends[last] else "anything")
            elif last:
                parts.append(ends[0] if last == 1 else f"from {ends[0]} to {ends[last - 1]}")
        elif score.exact:
            low, high = ends[place - 1], ends[last - 1]
            parts.append(low if low == high else f"from {low} to {high}")
        elif last == len(inside) - 1:
            parts.append(f"at least {ends[place - 1]}")
        else:
            parts.append(f"from {ends[place - 1]} to below {ends[last]}")
        place = last + 1
    if _inside(event, float(score.scores[-1])):
        parts.append("missing")
    return f"{score.feature.name} is {_join(parts) if parts else 'none that was seen'}"


def learn(first: Any, second: Any, objectives: list[Objective]) -> list[Event]:
    """For each objective, the best event found on these outputs of x and of x'."""
    fits = [read(outputs[: len(outputs) // 2]) for outputs in (first, second)]
    picks = [read(outputs[len(outputs) // 2 :]) for outputs in (first, second)]
    scores = fit_scores(fits[0], fits[1])
    valued = [(score, score.of(picks[0]), score.of(picks[1])) for score in scores]
    return [_best(valued, objective) for objective in objectives]


def fit_scores(first: Outputs, second: Outputs) -> list[Score]:
    """Scores from these outputs, simple ones first."""
    merged = {**first.numbers, **second.numbers}
    both = Outputs(
        first.size + second.size,
        {place: np.concatenate([first.number(place), second.number(place)]) for place in merged},
        {**first.words, **second.words},
        (),
    )
    listed = features_of(both)
    plain: list[Score] = [Value(feature) for feature in listed if feature.kind != "word"]
    learned: list[Score] = []
    for feature in listed:
        fitted = (
            learn_cells(feature, first, second)
            if feature.kind == "word"
            else learn_bins(feature, first, second)
        )
        if fitted is not None:
            learned.append(fitted)
    whole = None
    if len(both.numbers) != 1 or both.words or "" not in both.numbers:
        whole = learn_cells(Feature("whole"), first, second)
    sums: list[Score] = []
    places = [score for score in learned if _kind(score) in ("value", "word")]
    if len(places) > 1:
        sums.append(Weighted(places, [1.0] * len(places), "naive Bayes"))
    heads = first.head(FITTED), second.head(FITTED)
    labels = np.concatenate([np.ones(heads[0].size), np.zeros(heads[1].size)])
    values = [score for score in plain if isinstance(score, Value) and score.feature.kind == "value"]
    if len(values) > 1 and np.isfinite(columns := _columns(values, heads)).all():
        sums.append(Weighted(values, linear(columns, labels).tolist(), "linear"))
    if len(learned) > 1:
        weights = logistic(_columns(learned, heads), labels)
        sums.append(Weighted(learned, weights.tolist(), "logistic"))
    words = [score for score in learned if _kind(score) == "word"]
    bins = [score for score in learned if _kind(score) != "word"]
    scores = [*words, *plain, *bins, *([whole] if whole else []), *sums]
    # If no two outputs are alike, or all are, there is nothing to learn: return an uninformative score.
    return scores or [Cells(Feature("whole"), {})]


def _columns(scores: Sequence[Score], both: tuple[Outputs, Outputs]) -> Floats:
    return np.concatenate([np.column_stack([score.of(outputs) for score in scores]) for outputs in both])


def _kind(score: Score) -> str:
    return score.feature.kind if isinstance(score, Bins | Cells) else ""


def _best(valued: list[tuple[Score, Floats, Floats]], objective: Objective) -> Event:
    """The event of the highest objective; a simpler one that is nearly as good is preferred."""
    best: Event | None = None
    worth = -np.inf
    for score, one, other in valued:
        kept = [np.sort(scores[~np.isnan(scores)]) for scores in (one, other)]
        at = _thresholds(np.concatenate([one, other]))
        for above in (True, False):
            hits = [_count(scores, at, above) for scores in kept]
            for forward in (True, False):
                likely, seldom = (0, 1) if forward else (1, 0)
                sizes = (len(one), len(other))
                gains = objective(hits[likely], sizes[likely], hits[seldom], sizes[seldom])
                place = int(np.argmax(gains))
                value = float(gains[place])
                if best is None or value > worth + SIMPLER * abs(worth):
                    best, worth = Event(score, float(at[place]), above, forward), value
    assert best is not None
    return best


def _thresholds(values: Floats) -> Floats:
    clean = distinct_sorted(values)
    if clean.size == 0:
        return np.zeros(1)
    distinct = np.unique(clean)
    if len(distinct) <= THRESHOLDS:
        return distinct
    return np.unique(np.quantile(clean, levels(THRESHOLDS), method="nearest"))


def _count(values: Floats, at: Floats, above: bool) -> NDArray[np.int64]:
    if above:
        return np.asarray(len(values) - np.searchsorted(values, at, side="left"))
    return np.asarray(np.searchsorted(values, at, side="right"))
