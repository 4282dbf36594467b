"""Subsample and aggregate: any function at all, if it can be approximated from a random sample.

Theorem (Nissim, Raskhodnikova, Smith 2007). Put every unit into one of k blocks, each independently and
uniformly; run the function on each block; clamp the k answers to [low, high]; release a private median or
mean of them. Whatever the function is, this is epsilon-differentially private.

Proof. The blocks are drawn without looking at anybody. Given them, adding, removing or replacing a unit (in
its place) changes the records of one block only, hence one of the k answers, which is replaced by another
number in [low, high]: the neighbours of the aggregation are the `replace` neighbours of k numbers. The
median is `Quantile` under that relation: epsilon-bounded-range. The mean is a sum of k whole numbers of
grid steps that moves by at most (high - low), with discrete Laplace noise of scale (high - low) / epsilon,
divided by k. A mixture over the blocks keeps either guarantee, as the bound is the same for all of them.

Conditions.

- The function sees nothing of the data but its block (it does not close over the data).
- A block answers by its own records alone. It has a fresh process, and its time is the processor's, which
  other blocks do not use up. `patience`, by the clock, is for blocks that wait, and should be generous.
- workers * megabytes must fit into the machine.
- low, high, default and the number of blocks do not depend on the data.

How long the whole release takes does depend on the data: do not show it to those who may not see the data.

Accuracy. For the median: when more than k/2 + h of the answers lie within r of the truth, so does the
release, with the confidence for which h is `halfwidth`. For the mean: the noise is within `halfwidth` of
the mean of the clamped answers. Few blocks give each a large sample; many give the aggregation little
noise: h = 50 / epsilon for 2^32 points and 95%, so a few hundred blocks at epsilon 1.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InvalidInput
from incrowd.mechanisms.additive.grid import INTEGERS, Grid
from incrowd.mechanisms.additive.laplace import Laplace
from incrowd.mechanisms.mechanism import Mechanism
from incrowd.mechanisms.parameters import (
    amount,
    chosen,
    counted,
    float_above,
    log2_floor,
    positive,
)
from incrowd.mechanisms.records import (
    listed,
    read_floats,
)
from incrowd.mechanisms.robust.blocks import Function, Limits, Start, check_start, run_blocks
from incrowd.mechanisms.selection.quantile import FINEST, Interval, Quantile, interval
from incrowd.mechanisms.spelling import identity
from incrowd.noise import Source, uniform
from incrowd.noise.readings import (
    Number,
    binary,
    shown,
)
from incrowd.privacy import Guarantee

Aggregate = Literal["median", "mean"]


@dataclass(frozen=True, eq=False, repr=False)
class SubsampleAndAggregate(Mechanism):
    """Releases about what `function` gives on a random sample of the data.

    The `function` takes a block (of the kind that is released: a list, an array, a data frame) and returns
    a number between `low` and `high`; numbers outside are clamped. A block counts as `default` (the middle of
    the interval unless given) when the function raises, returns no number, or uses more than `seconds` of the
    processor, `patience` seconds by the clock or `megabytes` of memory. Blocks may be empty. Nothing that
    happens in a block is ever shown, so try the function on made-up data first.

    Blocks run in `workers` processes at a time. With start="fork" the function may be any callable; with
    start="spawn" it must be importable, and the process starts from nothing.

    >>> ages = list(range(18, 90)) * 50
    >>> m = SubsampleAndAggregate(lambda block: sum(block) / len(block), 4.0, blocks=40, low=0.0, high=120.0)
    >>> from incrowd.noise import SeededSource
    >>> 45 < m.release(ages, source=SeededSource(3)) < 62
    True
    """

    function: Function
    epsilon: Number
    _: KW_ONLY
    blocks: int
    low: Number
    high: Number
    aggregate: Aggregate = "median"
    default: Number | None = None
    seconds: int = 10
    patience: Number | None = None
    megabytes: int = 1024
    workers: int | None = None
    start: Start = "fork"
    grid: Number | Grid | None = None

    def __post_init__(self) -> None:
        chosen(self.aggregate, ("median", "mean"), "aggregate")
        check_start(self.function, self.start)
        counted(self.blocks, "blocks")
        _ = self.noise, self.fallback, self.limits, self.processes

    @cached_property
    def aggregator(self) -> Quantile:
        """The private median of the answers."""
        grid = self.grid
        if self.aggregate == "mean" and grid is None:
            # A mean of whole numbers is rarely whole, so whole bounds do not ask for integers here.
            grid = Fraction(2) ** log2_floor(interval(self.low, self.high, None).span / 2**FINEST)
        budget = amount(self.epsilon, "epsilon")
        return Quantile(budget, low=self.low, high=self.high, relation="replace", grid=grid)

    @cached_property
    def fallback(self) -> float:
        """What a block without an answer counts as."""
        low, high = binary(self.low, "low"), binary(self.high, "high")
        fallback = (low + high) / 2 if self.default is None else binary(self.default, "default")
        if not low <= fallback <= high:
            raise InvalidInput(f"default must lie between low and high, not at {shown(self.default)}.")
        return float(fallback)

    @cached_property
    def limits(self) -> Limits:
        """What one block may use."""
        seconds = counted(self.seconds, "seconds")
        patience = 10 * seconds if self.patience is None else positive(self.patience, "patience")
        return Limits(seconds, float(patience), counted(self.megabytes, "megabytes"))

    @property
    def processes(self) -> int:
        """How many blocks run at a time: `workers`, or as many as there are cores."""
        if self.workers is not None:
            return counted(self.workers, "workers")
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

    @property
    def interval(self) -> Interval:
        """The lattice of answers."""
        return self.aggregator.interval

    @cached_property
    def noise(self) -> Laplace:
        """The noise on the sum of the answers, in grid steps, when they are averaged."""
        reach = self.interval.high - self.interval.low
        return Laplace(self.aggregator.exact_epsilon, sensitivity=reach, grid=INTEGERS)

    @property
    def privacy(self) -> Guarantee:
        """What one release guarantees, whether a unit is added, removed or replaced."""
        return self.aggregator.privacy if self.aggregate == "median" else self.noise.privacy

    def release(self, value: Any, source: Source | None = None, *, units: Any = None) -> Any:
        """The aggregated answer for data with one record per unit, or with the unit of every record given."""
        answers = self.answers(value, source, units=units)
        return self.combine(answers, source)

    def answers(self, value: Any, source: Source | None = None, *, units: Any = None) -> list[float]:
        """What each block gives: as private as the data, for those who may see them."""
        parts = self.partition(value, source, units=units)
        blocks = [_rows(value, places) for places in parts]
        return run_blocks(
            self.function,
            blocks,
            self.limits,
            workers=self.processes,
            start=self.start,
            default=self.fallback,
        )

    def partition(
        self, value: Any, source: Source | None = None, *, units: Any = None
    ) -> list[NDArray[np.int64]]:
        """The places of the records of each block; a unit is in one block, drawn for it alone."""
        count = _length(value)
        who = np.arange(count)
        if units is not None:
            complaint = "units must list the unit of every record, one for each."
            if isinstance(units, np.ndarray) and units.ndim != 1:
                raise InvalidInput(complaint)
            # As keys, each read by itself: whether two records are of one unit depends on these two alone.
            places: dict[object, int] = {}
            named = [identity(unit) or repr(unit) for unit in listed(units, complaint)]
            who = np.array([places.setdefault(unit, len(places)) for unit in named], dtype=np.int64)
            if who.size != count:
                raise InvalidInput(complaint)
        many = int(who.max(initial=-1)) + 1
        drawn = np.asarray(uniform(self.blocks, size=many, source=source))[who]
        order = np.argsort(drawn, kind="stable")
        cuts = np.searchsorted(drawn[order], np.arange(1, self.blocks))
        return [np.asarray(part, dtype=np.int64) for part in np.split(order, cuts)]

    def combine(self, answers: Sequence[float], source: Source | None = None) -> Any:
        """The private aggregate of the answers of all blocks."""
        complaint = f"This SubsampleAndAggregate combines {self.blocks} answers, each a number."
        numbers: Any = read_floats(answers, complaint)
        if numbers.size != self.blocks:
            raise InvalidInput(complaint)
        numbers = np.where(np.isnan(numbers), self.fallback, numbers)
        if self.interval.grid.integers:
            numbers = np.rint(np.clip(numbers, self.interval.low, self.interval.high)).astype(np.int64)
        if self.aggregate == "median":
            return self.aggregator.release(numbers, source)
        steps = self.interval.steps(numbers, "SubsampleAndAggregate", public=True)
        total = int(self.noise.release(int(steps.sum()), source))
        mean = float(Fraction(total, self.blocks) * self.interval.grid.step)
        low, high = (float(end * self.interval.grid.step) for end in (self.interval.low, self.interval.high))
        return min(max(mean, low), high)  # post-processing

    def halfwidth(self, confidence: Number) -> float:
        """For the median, how many blocks it may be off in rank; for the mean, how far off in value."""
        if self.aggregate == "median":
            return self.aggregator.halfwidth(confidence)
        steps = Fraction(int(self.noise.halfwidth(confidence))) + self.blocks  # flooring: one step a block
        return float_above(steps * self.interval.grid.step / self.blocks)


def _length(value: Any) -> int:
    if isinstance(value, str | bytes) or not hasattr(value, "__len__") or not hasattr(value, "__getitem__"):
        raise InvalidInput("SubsampleAndAggregate takes a list, an array or a data frame of records.")
    if isinstance(value, dict):
        raise InvalidInput(
            "SubsampleAndAggregate takes rows, not a dict of columns: make a data frame of it."
        )
    if isinstance(value, np.ndarray) and value.ndim == 0:
        raise InvalidInput("SubsampleAndAggregate takes an array with one row for each record.")
    return len(value)


def _rows(value: Any, places: NDArray[np.int64]) -> Any:
    """The rows at these places, as the same kind of thing."""
    if isinstance(value, np.ndarray):
        return value[places]
    if hasattr(value, "iloc"):
        return value.iloc[places]
    if isinstance(value, Sequence):
        return [value[place] for place in places.tolist()]
    if hasattr(value, "take"):
        return value.take(places)  # pyarrow
    return value[places.tolist()]  # polars
