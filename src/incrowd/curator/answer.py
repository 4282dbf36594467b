"""The answer: a table of noisy numbers with intervals, its cost, what is left, and notes about its error."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from incrowd.catalog.addresses import wrong_path
from incrowd.curator import emptiness, quantities, showing
from incrowd.curator.ends import without_ends
from incrowd.curator.held import for_pandas, for_polars, for_python
from incrowd.curator.ledger import Balance
from incrowd.curator.postprocessing import Processed, post_process, released_numbers
from incrowd.curator.prices import Price
from incrowd.curator.released import Released
from incrowd.curator.request import plain_number
from incrowd.curator.views import csv_of, html_of, text_of
from incrowd.errors import InvalidInput
from incrowd.noise.readings import shown
from incrowd.privacy import Guarantee
from incrowd.privacy.amounts import read
from incrowd.query import Plan

if TYPE_CHECKING:
    import altair
    import pandas
    import polars


@dataclass(frozen=True, repr=False)
class Answer:
    """What the curator answers. Everything in it is private already and may be shared."""

    plan: Plan = field(repr=False)
    released: tuple[Released, ...] = field(repr=False)
    price: Price = field(repr=False)
    remaining: tuple[Balance, ...] = field(default=(), repr=False)
    public: Mapping[str, pa.Table] = field(default_factory=dict, repr=False)
    """The public tables that the SQL above the released numbers reads."""
    recalled: bool = False
    """Whether it was on record and cost nothing this time."""
    pilot: Answer | None = field(default=None, repr=False)
    """The answer that said which epsilon this one needed, where a pilot was paid for that (`piloting`)."""
    shortfall: str = ""
    """Where the accuracy that was asked for was not reached: how wide the answer is, and what it would take.
    """
    _cache: dict[float | None, Processed] = field(default_factory=dict, repr=False, compare=False)

    @property
    def cost(self) -> Guarantee:
        """The guarantee of this answer, with that of its pilot."""
        own = self.price.guarantee
        return own if self.pilot is None else self.pilot.cost + own

    @property
    def paid(self) -> tuple[float, float]:
        """The epsilon and the delta that were spent this time: nothing for what was on record."""
        own = (0.0, 0.0) if self.recalled else (self.price.epsilon, self.price.delta)
        if self.pilot is None:
            return own
        epsilon, delta = (float(read(a, "") + read(b, "")) for a, b in zip(own, self.pilot.paid, strict=True))
        return epsilon, delta

    @property
    def confidence(self) -> float:
        """The confidence that intervals have unless another is asked for."""
        return self.price.confidence

    def to_arrow(self, intervals: float | bool | None = None) -> pa.Table:
        """The answer as an Arrow table.

        With `intervals` (a confidence), each number has its ends beside it: name_low and name_high.
        """
        return self._processed(self._level(intervals)).table

    def _processed(self, confidence: float | None) -> Processed:
        if confidence not in self._cache:
            self._cache[confidence] = post_process(self.plan, self.released, self.public, confidence)
        return self._cache[confidence]

    def to_pandas(self, intervals: float | bool | None = None) -> pandas.DataFrame:
        """The answer as a pandas data frame; what pandas cannot hold (a date after 9999, a union) is text."""
        try:
            import pandas
        except ImportError:
            raise InvalidInput("to_pandas needs the package pandas: pip install 'incrowd[pandas]'.") from None
        frame = for_pandas(self.to_arrow(intervals)).to_pandas()
        assert isinstance(frame, pandas.DataFrame)
        return frame

    def to_polars(self, intervals: float | bool | None = None) -> polars.DataFrame:
        """The answer as a polars data frame; what polars cannot hold (an interval, a union) is text."""
        try:
            import polars
        except ImportError:
            raise InvalidInput("to_polars needs the package polars: pip install 'incrowd[polars]'.") from None
        frame = polars.from_arrow(for_polars(self.to_arrow(intervals)))
        assert isinstance(frame, polars.DataFrame)
        return frame

    def numbers(self, intervals: float | bool | None = None) -> tuple[pa.Table, ...]:
        """The released numbers themselves, one table for each SELECT over private rows.

        They can always be read, whatever the SQL above them makes of them.
        """
        return released_numbers(self.plan, self.released, self._level(intervals))

    def intervals(self, confidence: float | None = None) -> pa.Table:
        """The answer with the ends of its intervals."""
        return self.to_arrow(confidence if confidence is not None else self.confidence)

    def _level(self, intervals: float | bool | None) -> float | None:
        if intervals is None or intervals is False:
            return None
        level = self.confidence if intervals is True else plain_number(intervals, "intervals")
        if not (type(level) in (int, float) and 0 < level < 1):
            raise InvalidInput(
                f"intervals must be a confidence between 0 and 1, such as 0.95, not {shown(intervals)}."
            )
        return float(level)

    @property
    def factors(self) -> Mapping[str, float]:
        """By aggregate, the factor that undoes the shrinking of heavy units; left out if none was cut."""
        return quantities.factors_of(self.plan, self.released)

    @property
    def caps(self) -> Mapping[str, float | None]:
        """By aggregate, the most that one unit counts for in its number; None where nothing is cut."""
        return quantities.caps_of(self.plan, self.released)

    @property
    def beyond(self) -> Mapping[str, int]:
        """By aggregate, at most so many units would count for more, at the answer's confidence.

        For caps that were chosen privately; how many exceed a declared one is not known.
        """
        return quantities.beyond_of(self.plan, self.released)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know before trusting the numbers."""
        parts = [part for leaf in self.plan.leaves for part in leaf.columns.values()]
        notes = [part.note for part in parts if part.note]
        notes += self._stated
        for label, factor in self.factors.items():
            if factor > 1.02:
                notes.append(
                    f"{label}: heavy units were scaled down to bound what one of them can do, and all groups "
                    f"scaled back up by {factor:.2f}; this assumes that heavy units are spread over groups "
                    "like the others."
                )
            if factor > 2:
                notes.append(
                    f"{label}: more of the total was cut off than kept, so the cut is likely to dominate the "
                    "error; ask with a larger epsilon or contribution."
                )
        silent = without_ends(self.plan)
        if silent:
            notes.append(
                f"{', '.join(silent)}: ranks and what noisy numbers pick out follow the noise; they have no "
                "interval."
            )
        failure = self._processed(None).failure
        return tuple(dict.fromkeys([*notes, *([failure] if failure else [])]))

    @property
    def _stated(self) -> list[str]:
        """What the numbers are about, and which groups are hidden."""
        stated = [*self.plan.warnings]
        if not self.plan.leaves:
            stated += self.plan.notes
        stated += quantities.sentences(
            self.caps,
            self.beyond,
            self.confidence,
            quantities.by_group_of(self.plan),
            quantities.weighed_of(self.plan),
        )
        stated += showing.sentences(self.plan, self.price.lines, self.released)
        stated += emptiness.sentences(self.plan, self.to_arrow(True))
        return [*stated, self.shortfall] if self.shortfall else stated

    def to_csv(self, path: str | Path | None = None, intervals: float | bool | None = None) -> str | None:
        """The answer as CSV: written to a path, or returned as text."""
        text = csv_of(self.to_arrow(intervals))
        if path is None:
            return text
        if not isinstance(path, str | os.PathLike) or not str(path).strip():
            raise InvalidInput("path must be the path of a file, or left out for CSV as text.")
        if wrong := wrong_path(str(path)):
            raise InvalidInput(f"path cannot be written to: {wrong}.")
        try:
            Path(path).write_text(text, encoding="utf-8", newline="")
        except OSError as error:
            reason = (error.strerror or "not writable").lower()
            raise InvalidInput(f"{path} cannot be written: {reason}; name another file.") from None
        return None

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The answer for any library that reads Arrow's C stream: polars.DataFrame(answer), say."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The rows, each as a dictionary."""
        return iter(for_python(self.to_arrow()).to_pylist())

    def __len__(self) -> int:
        return int(self.to_arrow().num_rows)

    def __str__(self) -> str:
        return "\n".join([text_of(self.to_arrow(True)), *self._stated])

    def __repr__(self) -> str:
        return "\n".join([str(self), "", f"({self._said_cost})"])

    def _repr_html_(self) -> str:
        return html_of(self.to_arrow(True), [self._said_cost, *self.notes])

    @property
    def _said_cost(self) -> str:
        if not self.plan.leaves:
            return "free"
        if self.pilot is None:
            return "on record, free" if self.recalled else str(self.price)
        epsilon, delta = self.paid
        cost = f"epsilon {epsilon:g}" + (f", delta {delta:g}" if delta else "")
        return f"{cost}, with its pilot" if epsilon else "on record, free"

    def plot(self, confidence: float | None = None) -> altair.LayerChart | altair.FacetChart:
        """A chart with error bars: numbers by group."""
        from incrowd.curator.plot import chart

        return chart(for_python(self.intervals(confidence)))
