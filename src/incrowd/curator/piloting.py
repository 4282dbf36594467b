"""Asking for an accuracy whose price only the data can tell: a pilot, and then the question once more.

The half-width of an average or a quantile depends on the data, so that no price can promise it beforehand.
The question is asked twice at most: at a small part of what may be spent (the pilot), and, unless that is
accurate enough, at the epsilon which the pilot says is needed.

How wide. The half-width of a column is the larger side of its interval, and over several groups the median:
groups that are small enough to be hopeless should not cost the whole budget. Of several columns the widest
counts. Dates count in days, timestamps in seconds.

Which epsilon. The pilot's numbers are taken as they are, their intervals computed anew as if the noise were
that of another price, and the least epsilon whose half-widths are within the error is taken, with MARGIN: the
pilot's numbers are noisy, and caps that are chosen from the data grow a little with epsilon. That is close
where caps are declared. Where caps and centres are bought from the data, those of the pilot are rougher than
those that follow, and the ends of a lone quantile lie at powers of two of cells: there the answer may be
twice as wide or as narrow as was asked. What falls short says so.

Privacy. Each of the two is an ordinary question that is priced, reserved and recorded. The epsilon of the
second is a function of what the first released: it is chosen adaptively, for which the ledger's filters hold
(`privacy.filters`). The accuracy of the second does not depend on the first either: its noise is its own.

Nothing raises once the pilot is paid because of what it said. That both fit the budget is checked before.
The same request again gets both from the record, free, for the second epsilon follows from the first answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol

import numpy as np
import pyarrow as pa

from incrowd.catalog import Catalog
from incrowd.curator import affording
from incrowd.curator.answer import Answer
from incrowd.curator.ledger import Ledger
from incrowd.curator.preparing import Prepared
from incrowd.curator.prices import LineKind, Price
from incrowd.errors import BudgetExceeded, InvalidInput

MARGIN = 1.1
"""The second question gets so many times the epsilon that the pilot says is needed."""
NEAREST = 1.01
"""The epsilon that is needed is found up to this factor."""
_FURTHEST = 1_000.0
"""An epsilon that would be needed is looked for up to so many times the one that was asked."""


class Asking(Protocol):
    """What a pilot needs of a curator."""

    catalog: Catalog

    @property
    def ledger(self) -> Ledger:
        """The account."""

    def price_of(self, question: Prepared) -> Price:
        """The price of a question."""

    def on_record(self, question: Prepared, price: Price) -> Price | None:
        """The price of the answer that is on record for a question."""


def ask(
    curator: Asking,
    question: Prepared,
    steps: tuple[Prepared, Prepared],
    asked: Callable[[Prepared], Answer],
) -> Answer:
    """The answer to a question within an error; `asked` asks one step of it and pays for that.

    steps: the pilot, and the question at the most that may be spent after it.
    """
    pilot_step, rest = steps
    whole = curator.price_of(question)
    analyst = curator.catalog.analyst(question.request.analyst)
    if curator.on_record(pilot_step, curator.price_of(pilot_step)) is None:
        curator.ledger.check(analyst, whole.guarantee, whole.charge)
    pilot = asked(pilot_step)
    within, most = question.request.within, rest.request.epsilon
    assert within is not None and most is not None
    widths = halfwidths(pilot)
    if widths and max(widths.values()) <= within:
        return pilot
    epsilon = _needed(pilot, rest, curator.catalog, within, pilot.price.epsilon, most)
    spent = most if epsilon is None else min(_rounded(MARGIN * epsilon), most)
    try:
        answer = asked(replace(rest, request=replace(rest.request, epsilon=spent)))
    except BudgetExceeded as refused:
        said = f"Only the pilot is answered, for what follows it did not fit any more: {refused}"
        return replace(pilot, shortfall=said)
    return replace(answer, pilot=pilot, shortfall=_shortfall(answer, rest, curator.catalog, within))


def halfwidths(answer: Answer) -> dict[str, float]:
    """By column with an interval, its half-width: the median over the answer's rows.

    Empty if there is no row, or no number in it.
    """
    table = answer.to_arrow(True)
    widths = {}
    for name in table.column_names:
        if not {f"{name}_low", f"{name}_high"} <= set(table.column_names):
            continue
        value, low, high = (_numbers(table.column(f"{name}{end}")) for end in ("", "_low", "_high"))
        with np.errstate(invalid="ignore"):
            sides = np.maximum(high - value, value - low)[~np.isnan(value)]
        if len(sides):
            widths[name] = float(np.median(np.nan_to_num(sides, nan=math.inf, posinf=math.inf)))
    return widths


def _numbers(column: pa.ChunkedArray) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """A column as numbers: days of dates, seconds of timestamps, NaN for NULL and for what is no number."""
    if pa.types.is_date(column.type):
        column = column.cast(pa.date32()).cast(pa.int32())
    elif pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("s"), safe=False).cast(pa.int64())
    try:
        plain = column.cast(pa.float64(), safe=False)
    except pa.ArrowException:
        return np.full(len(column), math.nan)
    numbers = plain.to_numpy(zero_copy_only=False)
    return np.asarray(numbers, dtype=np.float64)


def _needed(
    answer: Answer, question: Prepared, catalog: Catalog, within: float, least: float, most: float
) -> float | None:
    """The least epsilon at which the answer's numbers would be within an error; None if above `most`."""

    def accurate(epsilon: float) -> bool:
        try:
            widths = halfwidths(_at(answer, affording.priced(question, catalog, epsilon)))
        except InvalidInput:  # No noise can be drawn for this epsilon.
            return False
        return bool(widths) and max(widths.values()) <= within

    if not halfwidths(answer) or not accurate(most):
        return None
    low, high = least, most
    while high / low > NEAREST:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if accurate(middle) else (middle, high)
    return high


def _at(answer: Answer, price: Price) -> Answer:
    """The answer as if its noise were that of another price."""
    released = []
    for index, (leaf, release) in enumerate(zip(answer.plan.leaves, answer.released, strict=True)):
        # What is only added up moves with what it adds up.
        sources = (index,) if leaf.totals is None else (index, leaf.totals.finest)

        def ratio(kind: LineKind, target: str, sources: tuple[int, ...] = sources) -> float:
            paid, other = (
                next(filter(None, (lines.line(source, kind, target) for source in sources)), None)
                for lines in (answer.price, price)
            )
            return 1.0 if paid is None or other is None else paid.epsilon_like / other.epsilon_like

        ratios: Mapping[str, float] = {
            name: ratio("quantile" if measure.buckets else "sum", measure.line)
            for name, measure in leaf.measures.items()
        }
        totals: Mapping[str, float] = {name: ratio("totals", name) for name in leaf.measures}
        released.append(release.with_noise(ratios, totals))
    return replace(answer, released=tuple(released), price=price, _cache={})


def _shortfall(answer: Answer, question: Prepared, catalog: Catalog, within: float) -> str:
    """What a reader should know if the answer is wider than was asked; the empty text if it is not."""
    widths = halfwidths(answer)
    if not widths:
        return f"The answer has no number whose half-width could be compared with {within:g}."
    widest = max(widths, key=lambda name: widths[name])
    if widths[widest] <= within:
        return ""
    paid = answer.price.epsilon
    needed = _needed(answer, question, catalog, within, paid, _FURTHEST * paid)
    takes = (
        "no epsilon is known to be enough" if needed is None else f"it takes an epsilon of about {needed:.2g}"
    )
    return f"{widest} is ± {widths[widest]:.3g} and not ± {within:g}, as was asked: {takes}."


def _rounded(epsilon: float) -> float:
    """Three digits."""
    return float(f"{epsilon:.3g}")
