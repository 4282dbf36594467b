"""From the noisy numbers of a tuning to what they propose. All of it is computed from releases: free."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from incrowd.catalog import Catalog
from incrowd.catalog.bought import BoughtBounds, BoughtContribution, BoughtDomain
from incrowd.catalog.columns import typed
from incrowd.curator.answer import Answer
from incrowd.curator.contribution import Situation, choose, most_beyond
from incrowd.curator.evidence import SURE, top_of
from incrowd.curator.preparing import Prepared
from incrowd.curator.prices import Price
from incrowd.curator.probes import FINER, RANKS, Probe, ProbeKind
from incrowd.curator.profile import Proposal, Reading, listed
from incrowd.curator.released import Released

CONFIDENCE = 0.95
MOST_VALUES = 1_000
"""A longer domain is no list for a file."""
WORTH = 2.0
"""Bounds are narrowed on a side if that side becomes so many times shorter at least."""


WORDS: Mapping[ProbeKind, str] = {
    "rows": "rows per unit",
    "totals": "total per unit",
    "above": "how high values reach",
    "below": "how low values reach",
    "quantiles": "quantiles",
    "keys": "values that many units share",
}


@dataclass(frozen=True)
class Measurement:
    """A probe with its question, its price, and the rate of its noise."""

    probe: Probe
    question: Prepared
    price: Price

    @property
    def distance(self) -> int:
        """How many units neighbours differ by."""
        return self.question.plan.leaves[0].distance

    @property
    def epsilon(self) -> float:
        """What the measurement costs."""
        return self.price.epsilon

    @property
    def said(self) -> str:
        """What is measured, in words."""
        return f"{self.probe.place}: {WORDS[self.probe.kind]}"

    @property
    def unseen(self) -> int:
        """Fewer units than this cannot be told from noise."""
        if self.probe.kind != "keys":
            return math.ceil(SURE * self.distance / self.epsilon)
        line = max((line for line in self.price.lines if line.delta), key=lambda line: line.delta)
        tail = -math.log(2 * float(line.delta)) + math.log(20)
        rate = line.mu * math.sqrt(tail / 2) if line.mu else float(line.epsilon)
        return math.ceil(tail * self.distance / rate)


Read = tuple[list[Proposal], list[Reading]]


def read_proposals(
    catalog: Catalog, done: Sequence[tuple[Measurement, Released]], answer: str, day: dt.date
) -> Read:
    """What finished measurements propose, and what they show."""
    proposals: list[Proposal] = []
    readings: list[Reading] = []
    sides: dict[str, list[tuple[Measurement, Released]]] = {}
    for measured, release in done:
        if measured.probe.kind in ("above", "below"):
            sides.setdefault(measured.probe.place, []).append((measured, release))
        elif measured.probe.kind != "quantiles":
            read = _domain if measured.probe.kind == "keys" else _contribution
            proposed, seen = read(measured, release, answer, day)
            proposals, readings = proposals + proposed, readings + seen
    for both in sides.values():
        proposed, seen = _bounds(catalog, both, answer, day)
        proposals, readings = proposals + proposed, readings + seen
    return proposals, readings


def _cells(measured: Measurement, release: Released) -> NDArray[np.int64]:
    """The noisy census of a probe, rounded to whole units."""
    answer = Answer(measured.question.plan, (release,), measured.price)
    return np.array(answer.to_arrow().column("n").to_pylist(), dtype=np.int64)


def _situation(measured: Measurement, row: float, counts: bool) -> Situation:
    return Situation(
        "total", measured.epsilon, measured.epsilon, row=row, counts=counts, distance=measured.distance
    )


def _contribution(measured: Measurement, release: Released, answer: str, day: dt.date) -> Read:
    """The contribution that a census proposes: the generous cap, which few units exceed."""
    probe, cells = measured.probe, _cells(measured, release)
    counts = probe.kind == "rows"
    situation = _situation(measured, 1.0 if counts else 2.0**FINER, counts)
    what = "rows per unit" if counts else f"total of {probe.column} per unit"
    rate = measured.epsilon / measured.distance
    if not top_of(cells, rate, 0 if counts else FINER, counts).sure:
        unseen = f"fewer than about {measured.unseen:,} units cannot be seen"
        return [], [Reading(probe.table, probe.column, what, "not seen", unseen, measured.epsilon)]
    cap = choose(cells, situation).generous
    beyond = most_beyond(cells, cap, situation, CONFIDENCE)
    value = int(cap) if counts else _tidy(cap * probe.up_to)
    words = f"at most {beyond:,} units have more" if beyond else "no unit has more"
    mark = BoughtContribution(
        epsilon=measured.epsilon,
        at=day,
        answer=answer,
        up_to=probe.up_to,
        units=tuple(int(cell) for cell in cells),
    )
    reading = Reading(probe.table, probe.column, what, f"{value:,}", words, measured.epsilon, proposed=True)
    return [Proposal(probe.table, probe.column, "contribution", value, words, mark)], [reading]


def _bounds(
    catalog: Catalog, sides: Sequence[tuple[Measurement, Released]], answer: str, day: dt.date
) -> Read:
    """Narrower bounds, where the declared ones are far wider than what units' values reach."""
    probe = sides[0][0].probe
    column = catalog.tables[probe.table].columns[probe.column]
    assert column.bounds is not None
    declared = [float(end) for end in column.bounds]
    ends, outside = list(declared), 0
    epsilon = sum(measured.epsilon for measured, _ in sides)
    # Beyond 2^53, distances of whole numbers are not exact, and a narrowed end might cut off a value.
    exact = max(map(abs, declared)) <= 2.0**53
    for measured, release in sides if exact else ():
        cells = _cells(measured, release)
        situation = _situation(measured, 2.0**FINER, False)
        if not top_of(cells, measured.epsilon / measured.distance, FINER, False).sure:
            continue
        reach = choose(cells, situation).generous
        if reach * WORTH > 2.0**FINER:
            continue
        side = measured.probe.kind == "above"
        ends[side] = measured.probe.anchor + (1 if side else -1) * _tidy(reach * measured.probe.up_to)
        outside += most_beyond(cells, reach, situation, 1 - (1 - CONFIDENCE) / len(sides))
    whole = column.type == "integer"
    low, high = (math.floor(ends[0]), math.ceil(ends[1])) if whole else ends
    shown = listed([low, high])
    if ends == declared:
        kept = Reading(probe.table, probe.column, "range of values", shown, "declared bounds fit", epsilon)
        return [], [kept]
    words = f"at most {outside:,} units have values outside" if outside else "no unit has values outside"
    mark = BoughtBounds(epsilon=epsilon, at=day, answer=answer, declared=column.bounds, outside=outside)
    value = [typed(low, column.type), typed(high, column.type)]
    reading = Reading(probe.table, probe.column, "range of values", shown, words, epsilon, proposed=True)
    return [Proposal(probe.table, probe.column, "bounds", tuple(value), words, mark)], [reading]


def _domain(measured: Measurement, release: Released, answer: str, day: dt.date) -> Read:
    """The values that many units share, as a domain."""
    probe, price = measured.probe, measured.price
    rows = Answer(measured.question.plan, (release,), price).to_arrow()
    values = [value for value in rows.column("v").to_pylist() if value is not None]
    words = f"values of fewer than about {measured.unseen:,} units may be missing"
    cost = (price.epsilon, price.delta)
    what = "values that many share"
    if not values or len(values) > MOST_VALUES:
        shown = f"{len(values):,} values" if values else "none"
        return [], [Reading(probe.table, probe.column, what, shown, words, *cost)]
    mark = BoughtDomain(
        epsilon=price.epsilon, delta=price.delta, at=day, answer=answer, least=measured.unseen
    )
    reading = Reading(probe.table, probe.column, what, listed(values), words, *cost, proposed=True)
    return [Proposal(probe.table, probe.column, "domain", tuple(values), words, mark)], [reading]


def read_quantiles(measured: Measurement, question: Prepared, release: Released) -> list[Reading]:
    """The quantiles of a column, for the owner to look at."""
    probe = measured.probe
    row = Answer(question.plan, (release,), measured.price).to_arrow(CONFIDENCE).to_pylist()[0]
    share = measured.epsilon / len(RANKS)
    readings = []
    for place, rank in enumerate(RANKS):
        value, low, high = (row[f"q{place}{end}"] for end in ("", "_low", "_high"))
        readings.append(
            Reading(
                probe.table,
                probe.column,
                f"{rank:.0%} of rows are below",
                f"{value:,.6g}",
                f"{low:,.6g} to {high:,.6g}",
                share,
            )
        )
    return readings


def _tidy(value: float) -> float:
    """The number rounded up to three digits; whole where it can be.

    >>> _tidy(1448.1546878700494), _tidy(0.35355)
    (1450, 0.354)
    """
    size = math.floor(math.log10(value)) - 2
    digits = math.ceil(value / 10.0**size - 1e-9)
    return digits * 10**size if size >= 0 else round(digits * 10.0**size, -size)
