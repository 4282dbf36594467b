"""What a leaf released: noisy integers per group with the scale of their noise, and quantiles.

Nothing private is left in it.

It is what the ledger keeps of an answer (Arrow's stream format), and all that columns and intervals are
computed from.
"""

from __future__ import annotations

import json
import math
import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from incrowd.curator import distinct, moments
from incrowd.curator import quantiles as quantile_cells
from incrowd.curator.estimates import Factor, Floats, Span, column
from incrowd.curator.quantiles import Quantiles, Whole
from incrowd.curator.rank_tree import Tree
from incrowd.curator.ratios import Noise, interval
from incrowd.curator.selected import Selected, lowest
from incrowd.mechanisms import Gaussian, Laplace, TruncatedLaplace
from incrowd.query import Aggregate, Centre, Leaf

KNOWN_IN_BALLS = 0.999
"""How surely a ball's count must be above zero for an average to have more than its bounds as an interval.

Where a spread was drawn far too narrow, a count is nothing but noise, and its ratio narrow and far off.
"""
_KINDS: dict[str, type[Laplace] | type[Gaussian]] = {"laplace": Laplace, "gaussian": Gaussian}


@dataclass(frozen=True)
class Noisy:
    """How a number was made noisy: enough to say how far it may be off."""

    kind: str
    scale: Fraction
    step: float = 1.0
    least: int | None = None
    """Where the number decided that its group is shown: the least with which it does, in steps."""
    bound: int | None = None
    """The most that the noise can be, in steps, where there is such a bound."""

    @classmethod
    def of(cls, mechanism: Laplace | Gaussian | TruncatedLaplace, step: float) -> Noisy:
        """The noise of a mechanism on a grid of this step."""
        if isinstance(mechanism, Gaussian):
            return cls("gaussian", Fraction(mechanism.noise_scale), step)
        return cls("laplace", Fraction(mechanism.scale_in_steps), step)

    def times(self, ratio: float) -> Noisy:
        """Noise so many times as wide, with limits that follow."""
        least, bound = (
            None if limit is None else math.ceil(limit * ratio) for limit in (self.least, self.bound)
        )
        return replace(self, scale=self.scale * Fraction(ratio), least=least, bound=bound)

    @property
    def in_values(self) -> Noise:
        """The kind of noise with its scale in values."""
        return Noise(self.kind, float(self.scale) * self.step)

    def halfwidth(self, confidence: float) -> float:
        """The half-width in values."""
        return float(_KINDS[self.kind](scale=self.scale).halfwidth(confidence)) * self.step

    @property
    def selected(self) -> Selected:
        """By what noise and from which value on a group is shown."""
        assert self.least is not None
        bound = math.inf if self.bound is None else self.bound * self.step
        return Selected(self.kind, float(self.scale) * self.step, self.least * self.step, bound)

    @property
    def deviation(self) -> float:
        """The standard deviation in values."""
        spread = math.sqrt(2) if self.kind == "laplace" else 1.0
        return float(self.scale) * spread * self.step

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        state = {"kind": self.kind, "scale": str(self.scale), "step": self.step}
        limits = {"least": self.least, "bound": self.bound}
        return state | {name: limit for name, limit in limits.items() if limit is not None}

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> Noisy:
        """The reverse of `to_json`."""
        limits = (state.get(name) for name in ("least", "bound"))
        return cls(state["kind"], Fraction(state["scale"]), state["step"], *limits)


@dataclass(frozen=True)
class Stated:
    """What a number is about: the sum in which each unit counts for at most `cap`.

    beyond: at the question's confidence, at most so many units would count for more. cut_squares: where sums
    are scaled back up, an estimate of the sum of the squares of what units lose before. largest_cut: the most
    that one of these loses.
    """

    cap: float
    beyond: int
    cut_squares: float = 0.0
    largest_cut: float = 0.0


@dataclass(frozen=True)
class Released:
    """One leaf's release.

    table: keys k0, k1, ..., measures m0, m1, ... in steps; the quantiles of a histogram m0 are cell numbers
    in columns m0@0.5, m0@0.5_low and m0@0.5_high. noise: by measure. caps: by measure, if any was chosen
    privately.
    Names of measures do not depend on what the question calls its tables, so whoever asks it otherwise can
    read what was released.
    factors: by measure, two noisy totals (under the cap and a generous one), each in steps of its noise.
    stated: by measure, what its number is about, where the cap was chosen privately. centres: by value, of
    balls. trees: by histogram, what answers its other ranks.
    """

    table: pa.Table
    noise: Mapping[str, Noisy]
    caps: Mapping[str, float] = field(default_factory=dict)
    factors: Mapping[str, tuple[int, int, Noisy, Noisy]] = field(default_factory=dict)
    stated: Mapping[str, Stated] = field(default_factory=dict)
    confidence: float = 0.95
    centres: Mapping[str, Centre] = field(default_factory=dict)
    trees: Mapping[str, Tree] = field(default_factory=dict)

    def known(self, leaf: Leaf) -> Leaf:
        """The leaf with the centres and caps of this release."""
        if not leaf.open_caps:
            return leaf
        open_caps = (measure for measure in leaf.measures.values() if measure.cap is None)
        caps = {measure.weigh_key: self.caps[measure.name] for measure in open_caps}
        return leaf.with_centres(self.centres).with_caps(caps)

    def columns(self, leaf: Leaf, confidence: float) -> dict[str, Span]:
        """Each released column of the leaf at a confidence."""
        known = self.known(leaf)
        return {aggregate.name: self._column(known, aggregate, confidence) for aggregate in known.aggregates}

    def halves(self, leaf: Leaf, confidence: float) -> dict[str, float]:
        """How far the errors of counts and sums reach at a confidence, where those of groups are independent.

        Not where a group is shown because its number is large, nor where one factor scales all groups. The
        error of a sum of such numbers is between Laplace and normal noise in shape (`pooled_ends`), so each
        reaches as far as the wider of the two. Rounding to a whole number adds a variance of 1/12.
        """
        known, normal = self.known(leaf), -NormalDist().inv_cdf((1 - confidence) / 2)
        reaches = {}
        for aggregate in known.aggregates:
            name = aggregate.measures[0]
            if aggregate.kind not in ("count", "sum") or name in self.factors:
                continue
            noise = self.noise[name]
            if noise.least is None and self._spread(name) is None:
                reach = max(noise.halfwidth(confidence), normal * noise.deviation)
                reaches[aggregate.name] = math.hypot(reach, normal / 12**0.5 if aggregate.whole else 0.0)
        return reaches

    def _column(self, leaf: Leaf, aggregate: Aggregate, confidence: float) -> Span:
        if aggregate.kind == "quantile":
            return self._quantile(leaf, aggregate, confidence)
        if aggregate.kind in ("avg", "ratio"):
            return self._average(leaf, aggregate, confidence)
        if aggregate.kind == "distinct":
            return self._distinct(aggregate, confidence)
        if aggregate.kind == "r2":
            return self._column(leaf, replace(aggregate, kind="corr"), confidence).squared()
        shared_confidence = 1 - (1 - confidence) / len(aggregate.measures)
        spans = {}
        for name in aggregate.measures:
            value, halfwidth = self._values(name), self._reach(name, shared_confidence)
            if aggregate.kind in ("count", "sum") and name in self.factors:
                widest = float(np.max(halfwidth, initial=0.0))
                spans[name] = self.factor(name).scaled(value, widest, confidence)
            else:
                spans[name] = Span.around(value, halfwidth)
            if aggregate.whole and name in self.stated:
                # Where units may be cut, a count need not be whole: its interval is rounded outwards.
                span = spans[name]
                spans[name] = Span(span.value, span.low - 1.0, span.high + 1.0)
            if self.noise[name].least is not None:
                spans[name] = replace(spans[name], low=lowest(value, self.noise[name].selected, confidence))
        box = column(aggregate, leaf.measures, spans)
        if aggregate.kind in ("count", "sum"):
            return box
        sums = {name: self._values(name) for name in aggregate.measures}
        deviations = {name: self._deviation(name) for name in aggregate.measures}
        return moments.interval(aggregate, leaf.measures, sums, deviations, box, confidence)

    def _values(self, measure: str) -> Floats:
        steps = self.table.column(measure).to_numpy(zero_copy_only=False).astype(np.float64)
        values: Floats = steps * self.noise[measure].step
        return values

    def _spread(self, measure: str) -> Floats | None:
        """The standard deviations of a measure's errors, in values, where levels were made consistent."""
        name = deviation_column(measure)
        if name not in self.table.column_names:
            return None
        steps = self.table.column(name).to_numpy(zero_copy_only=False).astype(np.float64)
        return np.asarray(steps * self.noise[measure].step)

    def _deviation(self, measure: str) -> Floats | float:
        """The standard deviation of a measure's errors, in values."""
        spread = self._spread(measure)
        return self.noise[measure].deviation if spread is None else spread

    def _reach(self, measure: str, confidence: float) -> Floats | float:
        """How far a measure's errors reach, in values."""
        spread = self._spread(measure)
        if spread is None:
            return self.noise[measure].halfwidth(confidence)
        return spread * _reach_of_sums(self.noise[measure].kind, confidence)

    def _in_values(self, measure: str, confidence: float) -> Noise:
        """The law of a measure's errors; normal for sums of errors, wide enough for this confidence."""
        spread = self._spread(measure)
        if spread is None:
            return self.noise[measure].in_values
        normal = -NormalDist().inv_cdf((1 - confidence) / 2)
        return Noise("gaussian", spread * (_reach_of_sums(self.noise[measure].kind, confidence) / normal))

    def _average(self, leaf: Leaf, aggregate: Aggregate, confidence: float) -> Span:
        """The ratio of a centred sum and a count, both noisy.

        In a ball the ratio is s n / (n^2 + v), with v the variance of the noise of n: s / n where n is known,
        and the centre where it is not, since a ratio of noise is worse than what is known already.
        """
        total, count = aggregate.measures
        measure = leaf.measures[total]
        if aggregate.kind == "avg":
            middle, between = measure.centre, (measure.low, measure.high)
        else:
            middle, between = measure.offset, aggregate.between
        bounds = (between[0] - middle, between[1] - middle)
        sums, rows = self._values(total), self._values(count)
        noises = self._in_values(total, confidence), self._in_values(count, confidence)
        low, high = interval(sums, rows, noises, bounds, confidence, KNOWN_IN_BALLS if measure.ball else 0.0)
        if measure.ball or aggregate.kind == "ratio":
            held = np.maximum(rows, 0.0)
            ratio = sums * held / np.maximum(held**2 + self._deviation(count) ** 2, 1e-300)
        else:
            ratio = sums / np.maximum(rows, 1.0)
        return Span(np.clip(ratio, low, high), low, high) + middle

    def _distinct(self, aggregate: Aggregate, confidence: float) -> Span:
        """A number of values, from the counts under two caps."""
        both = 1 - (1 - confidence) / 2
        generous, narrow = (self._values(name) for name in aggregate.measures)
        one, two = (self.noise[name] for name in aggregate.measures)
        reaches = one.halfwidth(both), two.halfwidth(both)
        return distinct.combined(generous, narrow, reaches, one.deviation, aggregate.between)

    def factor(self, measure: str) -> Factor:
        """What scales a measure's shrunken sums back up."""
        small, large, small_noise, large_noise = self.factors[measure]
        stated = self.stated.get(measure)
        return Factor(
            small * small_noise.step,
            large * large_noise.step,
            small_noise.deviation,
            large_noise.deviation,
            stated.cut_squares if stated else 0.0,
            stated.largest_cut if stated else 0.0,
        )

    def _quantile(self, leaf: Leaf, aggregate: Aggregate, confidence: float) -> Span:
        """A quantile that was asked for, or one that the tree of its histogram answers."""
        measure, (rank,) = leaf.measures[aggregate.measures[0]], aggregate.quantiles
        tree, asked = self.trees.get(measure.name), rank_column(measure.name, rank) in self.table.column_names

        def cells(end: str) -> Whole:
            column = self.table.column(rank_column(measure.name, rank, end))
            return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.int64)

        if asked and confidence <= self.confidence:
            found = Quantiles(cells(""), cells("_low"), cells("_high"))
        elif tree is not None:
            row = 1 << -measure.exponent
            found = quantile_cells.read(tree, measure.buckets, (rank,), row, confidence).of(0)
            if asked:
                found = found.around(cells(""))
        else:
            # The ends were drawn for the confidence of the question; beyond it only the bounds are sure.
            last = np.full_like(cells(""), measure.buckets - 1)
            found = Quantiles(cells(""), np.zeros_like(last), last)
        middles, lows, highs = (
            np.array([quantile_cells.value_of(measure, int(cell), end) for cell in part], dtype=np.float64)
            for part, end in ((found.points, "middle"), (found.lows, "low"), (found.highs, "high"))
        )
        return Span(middles, lows, highs)

    def with_noise(self, ratios: Mapping[str, float], totals: Mapping[str, float]) -> Released:
        """The same numbers as if their noise were so many times as wide, by measure: a prediction.

        The ends of quantiles move with it (`quantiles.moved`). totals: the same for the factors.
        """
        table = self.table
        drawn = Counter(name.partition("@")[0] for name in table.column_names if name.endswith("_low"))
        for name in self.noise:
            spread = deviation_column(name)
            if spread in table.column_names:
                wider = pc.multiply(table.column(spread), ratios[name])
                table = table.set_column(table.column_names.index(spread), spread, wider)
        for name in table.column_names:
            histogram, _, rest = name.partition("@")
            end = next((end for end in ("_low", "_high") if rest.endswith(end)), None)
            if end is None:
                continue
            points = table.column(name.removesuffix(end)).to_numpy(zero_copy_only=False)
            ends = table.column(name).to_numpy(zero_copy_only=False)
            few = drawn[histogram] <= quantile_cells.MOST_DRAWN
            moved = quantile_cells.moved(points, ends, ratios[histogram], few)
            table = table.set_column(table.column_names.index(name), name, pa.array(moved, pa.int64()))
        return replace(
            self,
            table=table,
            noise={name: noise.times(ratios[name]) for name, noise in self.noise.items()},
            factors={
                name: (small, large, noise.times(totals[name]), large_noise.times(totals[name]))
                for name, (small, large, noise, large_noise) in self.factors.items()
            },
            trees={
                name: replace(tree, variance=tree.variance * ratios[name] ** 2)
                for name, tree in self.trees.items()
            },
        )

    def to_bytes(self) -> bytes:
        """Arrow's stream format, with the noise in the schema's metadata."""
        about = {
            "noise": {name: noise.to_json() for name, noise in self.noise.items()},
            "caps": dict(self.caps),
            "factors": {
                name: [a, b, c.to_json(), d.to_json()] for name, (a, b, c, d) in self.factors.items()
            },
            "stated": {
                name: [s.cap, s.beyond, s.cut_squares, s.largest_cut] for name, s in self.stated.items()
            },
            "confidence": self.confidence,
            "centres": {name: list(centre) for name, centre in self.centres.items()},
            "trees": {name: tree.to_json() for name, tree in self.trees.items()},
        }
        sink = pa.BufferOutputStream()
        marked = self.table.replace_schema_metadata({b"incrowd": json.dumps(about).encode()})
        with pa.ipc.new_stream(sink, marked.schema) as writer:
            writer.write_table(marked)
        return bytes(sink.getvalue())

    @classmethod
    def from_bytes(cls, content: bytes) -> Released:
        """The reverse of `to_bytes`."""
        table = pa.ipc.open_stream(content).read_all()
        about = json.loads(table.schema.metadata[b"incrowd"])
        return cls(
            table.replace_schema_metadata(None),
            {name: Noisy.from_json(state) for name, state in about["noise"].items()},
            about["caps"],
            {
                name: (a, b, Noisy.from_json(c), Noisy.from_json(d))
                for name, (a, b, c, d) in about["factors"].items()
            },
            {name: Stated(*parts) for name, parts in about.get("stated", {}).items()},
            about["confidence"],
            {name: Centre(*parts) for name, parts in about.get("centres", {}).items()},
            {name: Tree.from_json(state) for name, state in about.get("trees", {}).items()},
        )

    def sorted_by_keys(self, keys: int) -> Released:
        """In the order of the keys, so that the engine's own order shows nothing."""
        if not keys or not self.table.num_rows:
            return self
        order = pc.sort_indices(self.table, [(f"k{index}", "ascending") for index in range(keys)])
        places = order.to_numpy(zero_copy_only=False)
        trees = {name: tree.in_order(places) for name, tree in self.trees.items()}
        return replace(self, table=self.table.take(order), trees=trees)


def deviation_column(measure: str) -> str:
    """The column that says how far a consistent number may be off: a standard deviation, in steps.

    >>> deviation_column("m0")
    'm0@deviation'
    """
    return f"{measure}@deviation"


def _reach_of_sums(kind: str, confidence: float) -> float:
    """How many deviations the error of a sum reaches, whose parts have this noise.

    A sum of Laplace errors has a tail between that of one Laplace error and the normal one (`pooled_ends`).
    """
    normal = -NormalDist().inv_cdf((1 - confidence) / 2)
    return normal if kind == "gaussian" else max(normal, -math.log1p(-confidence) / math.sqrt(2))


def rank_column(histogram: str, rank: float, end: str = "") -> str:
    """The column of a quantile, or of one of its ends.

    >>> rank_column("m0", 0.25, "_low")
    'm0@0.25_low'
    """
    return f"{histogram}@{rank!r}{end}"


def pack(released: Sequence[Released]) -> bytes:
    """Several leaves' releases as one record of the ledger."""
    parts = [release.to_bytes() for release in released]
    return struct.pack("<I", len(parts)) + b"".join(struct.pack("<Q", len(part)) + part for part in parts)


def unpack(content: bytes) -> tuple[Released, ...]:
    """The reverse of `pack`."""
    (count,) = struct.unpack_from("<I", content)
    released, place = [], 4
    for _ in range(count):
        (size,) = struct.unpack_from("<Q", content, place)
        released.append(Released.from_bytes(content[place + 8 : place + 8 + size]))
        place += 8 + size
    return tuple(released)
