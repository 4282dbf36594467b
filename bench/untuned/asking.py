"""Asks the curator's own code without an engine: exact numbers come from arrays, everything else is real.

The census, the choice of caps, prices, noise and intervals are the package's functions. Only `Backend.run`
and the exact sums are stood in for, by what `Spread` computes.
"""

from __future__ import annotations

import functools
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from incrowd import Curator
from incrowd.backends.measures import CENSUS_CELLS, weight_cap
from incrowd.backends.statement import census_exponent
from incrowd.curator.census import choose_caps
from incrowd.curator.preparing import Prepared
from incrowd.curator.prices import Price
from incrowd.curator.released import Stated
from incrowd.curator.releasing import Exact, noise
from incrowd.curator.request import Request
from untuned.tables import Numbers, Spread


@dataclass(frozen=True)
class Asked:
    """One answer: estimates and intervals by key, and what they are about."""

    value: Numbers
    low: Numbers
    high: Numbers
    about: Numbers
    cap: float
    stated: Stated


class Asker:
    """A question about a spread, asked again and again."""

    def __init__(self, held: Spread, epsilon: float, relation: str = "add-remove") -> None:
        self.held = held
        grouped = held.keys > 1
        what = "COUNT(*)" if held.bounds is None else "SUM(value)"
        sql = f"SELECT key, {what} AS n FROM t GROUP BY key" if grouped else f"SELECT {what} AS n FROM t"
        frame = pd.DataFrame({"unit": [0], "value": [0.0], "key": [0]})
        warnings.filterwarnings("ignore", "budget: epsilon")
        with Curator.from_tables(
            t=frame,
            unit="unit",
            bounds={"value": held.bounds or (0, 1)},
            domains={"key": list(range(held.keys))},
            not_null=["key"],
            budget=(1e9, 0.0),
            relation=relation,
        ) as curator:
            self.prepared: Prepared = curator.prepare(Request(sql, epsilon))
            self.price: Price = curator.price_of(self.prepared)
        (self.leaf,), (self.keys,) = self.prepared.plan.leaves, self.prepared.keys
        (self.measure,) = self.leaf.measures.values()
        unit = 2.0 ** census_exponent(self.measure)
        self.limits = unit * np.append(0.0, 2.0 ** np.arange(CENSUS_CELLS))
        heavier = (held.weights[None, :] > self.limits[:, None]).sum(axis=1)
        row: dict[str, Any] = {"part": [0]}
        self.census = pa.table(row | {f"n{cell}": [int(units)] for cell, units in enumerate(heavier)})
        self.groups = self.keys if self.keys is not None else pa.table({"_": [0]})
        self.under = functools.lru_cache(maxsize=64)(self._under)
        self.total_under = functools.lru_cache(maxsize=64)(held.total_under)

    @property
    def census_epsilon(self) -> float:
        """How much of the census's epsilon holds for one unit."""
        (line,) = (line for line in self.price.lines if line.kind == "census")
        return float(line.epsilon) / self.leaf.distance

    def run(self, *_: object) -> pa.Table:
        """The census, as an engine returns it."""
        return self.census

    def _under(self, cap: float) -> Numbers:
        sums = self.held.under(cap)
        return np.append(sums, np.zeros(self.groups.num_rows - len(sums)))

    def ask(self) -> Asked:
        """One answer."""
        chosen = choose_caps(0, self.leaf, self.price, self, self.keys, None)  # type: ignore[arg-type]
        bounded = chosen.bounded(self.leaf)
        (measure,) = bounded.measures.values()
        assert measure.cap is not None
        steps = np.trunc(self.under(measure.cap) / measure.step).astype(np.int64)
        totals = {}
        for name, generous in chosen.generous.items():
            weight = measure.step if measure.value is not None else 1.0
            caps = (weight_cap(measure), weight_cap(measure, generous))
            small, large = (int(self.total_under(cap * weight) / weight) for cap in caps)
            totals[name] = (small, large)
        exact = Exact(bounded, self.groups, {measure.name: steps}, None, {}, totals, chosen)
        released = noise(0, exact, self.price)
        (span,) = released.columns(self.leaf, self.price.confidence).values()
        stated = chosen.stated[measure.name]
        held = self.held.keys
        return Asked(
            span.value[:held],
            span.low[:held],
            span.high[:held],
            self.under(stated.cap)[:held],
            measure.cap,
            stated,
        )
