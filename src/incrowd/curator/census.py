"""Choosing caps: a paid step of its own, before the question's numbers are computed.

Where neither the owner nor the analyst says how much one unit may contribute, a noisy census of what units
weigh is bought with the price's census lines, and `contribution.choose` reads the caps from it. What units
weigh in a ball depends on where values lie, which is bought before (`centres`). Where the owner bought a
census beforehand (`tuning`), caps are read from that one, for nothing and without a pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from incrowd.backends import Progress, Reader, census_statement, range_statement
from incrowd.backends.statement import census_exponent
from incrowd.curator import contribution
from incrowd.curator.centres import centre_of
from incrowd.curator.contribution import Situation, Use
from incrowd.curator.prices import Line, Price
from incrowd.curator.pricing import few_groups
from incrowd.curator.quantiles import added_up
from incrowd.curator.released import Stated
from incrowd.query import Centre, Leaf, Measure
from incrowd.query.measure import ROWS_PER_NORM
from incrowd.query.typed import Census

WIDEST_CAP = 32
"""At most 2^32 rows or groups are chosen: noise for more could be too wide to be drawn, after payment."""

_Run = Callable[[exp.Query], pa.Table]


@dataclass(frozen=True)
class ChosenCaps:
    """The caps that were left open in one leaf.

    caps: by weigh key. generous: by measure, a larger cap under which its total is measured too, so that
    shrinking can be undone. stated: by measure, what its number is about. centres: by value, of balls.
    """

    caps: Mapping[str, float] = field(default_factory=dict)
    generous: Mapping[str, float] = field(default_factory=dict)
    stated: Mapping[str, Stated] = field(default_factory=dict)
    centres: Mapping[str, Centre] = field(default_factory=dict)
    rows: Mapping[str, float] = field(default_factory=dict)
    """By ball, how many rows at the centre weigh 1."""

    def bounded(self, leaf: Leaf) -> Leaf:
        """The leaf with nothing left open."""
        return leaf.with_centres(self.centres, self.rows).with_caps(self.caps)


def choose_caps(
    index: int,
    leaf: Leaf,
    price: Price,
    reader: Reader,
    keys: pa.Table | None,
    progress: Progress | None,
    draw: Callable[[], None] | None = None,
) -> ChosenCaps:
    """The caps of a leaf that owner and analyst left open; `keys` are its public groups.

    `draw` is called before noise is drawn.
    """

    def run(tree: exp.Query) -> pa.Table:
        result = reader.run(tree, progress)
        if draw is not None:
            draw()
        return result

    if not leaf.open_caps:
        return ChosenCaps()
    groups = keys.num_rows if keys is not None else (None if leaf.keys else 1)
    centres = _centres(index, leaf, price, run)
    leaf = leaf.with_centres(centres)
    bought_now = _bought_now(index, leaf, price, run)
    caps: dict[str, float] = {}
    generous: dict[str, float] = {}
    stated: dict[str, Stated] = {}
    rows: dict[str, float] = {}
    for weigh_key, measure in leaf.open_caps.items():
        seen = _bought_before(measure.census) if measure.census is not None else bought_now[weigh_key]
        cells, unit = seen.cells, seen.unit
        situation = _situation(index, leaf, price, weigh_key, groups, seen)
        chosen = contribution.choose(cells, situation)
        most = 2.0**WIDEST_CAP if situation.counts else math.inf
        caps[weigh_key] = unit * min(chosen.cap, most)
        large = unit * min(chosen.generous, most)
        if measure.ball:
            rows[weigh_key] = ROWS_PER_NORM * contribution.lighter(cells, chosen.cap, situation)
        for user in leaf.measures.values():
            if user.weigh_key != weigh_key:
                continue
            totals = price.line(index, "totals", user.name)
            if totals is not None and large > caps[weigh_key]:
                generous[user.name] = large
            about = large if situation.use in ("total", "rescaled") else caps[weigh_key]
            if user.ball:
                # Rows at the centre weigh least: no unit counts for more of them, in L2 in one group. Only
                # units that weigh more than that many rows at the centre did in the census are cut at all.
                stated_cap, weight = about * rows[weigh_key], about * rows[weigh_key] / ROWS_PER_NORM
            else:
                stated_cap, weight = about, about
            beyond = contribution.most_beyond(
                cells, weight / unit, situation, price.confidence, seen.far_units
            )
            lost = large - caps[weigh_key] if user.name in generous else 0.0
            stated[user.name] = Stated(stated_cap, beyond, unit**2 * chosen.cut_squares, lost)
    return ChosenCaps(caps, generous, stated, centres, rows)


def _centres(index: int, leaf: Leaf, price: Price, run: _Run) -> dict[str, Centre]:
    """The centre and the spread of each value of a leaf's balls."""
    if not leaf.values:
        return {}
    statement = range_statement(leaf)
    result = run(statement.tree)
    parts = result.column("part").to_numpy()
    centres = {}
    for number, part in enumerate(statement.parts):
        (name,) = part.columns
        line = price.line(index, "centre", name)
        assert line is not None
        histogram = leaf.values[name].histogram
        mine = result.filter(pa.array(parts == number))
        weights = np.zeros(histogram.buckets, dtype=np.int64)
        weights[mine.column("cell").to_numpy()] = mine.column("n0").to_numpy()
        centres[name] = centre_of(added_up(weights), histogram, line.epsilon, leaf.distance)
    return centres


@dataclass(frozen=True)
class _Seen:
    """A noisy census: units by cell, the weight of the first cell's upper edge, and the noise's epsilon.

    row: the most that one row weighs, in that weight. generous: the most that the cap G may be, likewise,
    where the owner's file states it. far, far_units: the first cell with twice the noise, and the noisy
    number of units from there on.
    """

    cells: NDArray[np.int64]
    unit: float
    epsilon: float
    row: float
    generous: float | None = None
    far: int | None = None
    far_units: int | None = None


def _bought_before(census: Census) -> _Seen:
    """The census that the owner's file holds."""
    cap = census.cap / census.up_to
    return _Seen(np.array(census.units), census.up_to, census.epsilon, contribution.CENSUS_ROW, cap)


def _bought_now(index: int, leaf: Leaf, price: Price, run: _Run) -> dict[str, _Seen]:
    """The censuses that the question pays for, by weigh key."""
    if not leaf.uncapped:
        return {}
    result = run(census_statement(leaf).tree)
    seen = {}
    for place, (weigh_key, measure) in enumerate(leaf.uncapped.items()):
        line = price.line(index, "census", weigh_key)
        assert line is not None
        unit = 2.0 ** census_exponent(measure)
        row = (1.0 if measure.ball else measure.limit_of_row) / unit
        counts = _counted(measure)
        far = None if measure.ball else contribution.first_far(1.0 if counts else row, counts)
        cells, far_units = contribution.noisy_census(_counts(result, place), line.epsilon, leaf.distance, far)
        seen[weigh_key] = _Seen(cells, unit, float(line.epsilon), row, None, far, far_units)
    return seen


def _situation(
    index: int, leaf: Leaf, price: Price, weigh_key: str, groups: int | None, seen: _Seen
) -> Situation:
    """What the measures that share a cap are for."""
    users = [measure for measure in leaf.measures.values() if measure.weigh_key == weigh_key]
    measure = leaf.open_caps[weigh_key]
    totals = [price.line(index, "totals", user.name) for user in users]
    counts = _counted(measure)
    return Situation(
        use=_use(leaf, users, any(totals)),
        epsilon=seen.epsilon,
        epsilon_sums=min(_released_by(index, user, price).epsilon_like for user in users),
        epsilon_totals=min((float(line.epsilon) for line in totals if line is not None), default=0.0),
        groups=groups,
        row=seen.row if measure.ball or not counts else 1.0,
        counts=counts,
        paired=measure.level == "pair" and measure.value is None,
        norm=measure.norm,
        distance=leaf.distance,
        generous=seen.generous,
        far=seen.far,
        wide=measure.ball != "" and any(value.histogram.bands for value in leaf.values.values()),
    )


def _counted(measure: Measure) -> bool:
    """True if rows or groups are counted, or a ball weighs them."""
    return not measure.weighs_values


def _counts(result: pa.Table, part: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The one row of a census part: how many units weigh more than 0, 1, 2, 4, ..."""
    row = int(np.flatnonzero(result.column("part").to_numpy() == part)[0])
    columns = [name for name in result.column_names if name.startswith("n")]
    return np.array([result.column(name)[row].as_py() or 0 for name in columns], dtype=np.int64)


def _released_by(index: int, measure: Measure, price: Price) -> Line:
    line = price.line(index, "quantile" if measure.buckets else "sum", measure.line)
    if line is None:
        # Cells that are not released themselves: the next level that adds them up.
        line = next(line for line in price.lines if line.leaf > index and line.target == measure.line)
    return line


def _use(leaf: Leaf, users: Sequence[Measure], rescaled: bool) -> Use:
    """What the measures that share a cap are for."""
    if users[0].ball:
        return "joint"
    names = {user.name for user in users}
    kinds = {aggregate.kind for aggregate in leaf.aggregates if names & set(aggregate.measures)}
    if not kinds & {"count", "sum", "distinct"}:
        return "rank"
    if few_groups(leaf):
        return "total"
    return "rescaled" if rescaled else "sum"
