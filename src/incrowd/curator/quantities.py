"""What the numbers of an answer are about: sums in which each unit counts for at most a cap.

Numbers go by the label of their aggregate. Where two have the same, as COUNT(*) of two subqueries, the second
is "COUNT(*) (2)".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from incrowd.curator.released import Released, Stated
from incrowd.query import Aggregate, Leaf, Plan


def caps_of(plan: Plan, released: Sequence[Released] | None = None) -> dict[str, float | None]:
    """By label, the most that one unit counts for; None where nothing is cut.

    Sums are in values; counts, averages and quantiles in rows (or groups). Before the release, caps that are
    chosen privately are left out.
    """
    caps: dict[str, float | None] = {}
    for label, leaf, aggregate, release in _numbers(plan, released):
        stated = _stated(aggregate, release)
        measure = leaf.measures[aggregate.measures[0]]
        once = measure.level == "pair" and (measure.value is None or measure.by_pairs) and not leaf.keys
        if not leaf.units or once:
            # Each row is a unit of its own, or units are counted once.
            caps[label] = None
        elif stated is not None:
            caps[label] = stated.cap
        elif measure.cap is not None:
            in_values = aggregate.kind == "sum" and measure.weighing == "rows"
            caps[label] = measure.cap * (measure.limit if in_values else 1.0)
    return caps


def beyond_of(plan: Plan, released: Sequence[Released]) -> dict[str, int]:
    """By label, how many units would count for more at most, where the cap was chosen privately."""
    return {
        label: stated.beyond
        for label, _, aggregate, release in _numbers(plan, released)
        if (stated := _stated(aggregate, release)) is not None
    }


def factors_of(plan: Plan, released: Sequence[Released]) -> dict[str, float]:
    """By label, the factor that scaled a sum back up, where one did."""
    return {
        label: release.factor(aggregate.measures[0]).value
        for label, _, aggregate, release in _numbers(plan, released)
        if release is not None and aggregate.measures[0] in release.factors
    }


def by_group_of(plan: Plan) -> set[str]:
    """The labels of numbers whose cap is on what a unit counts for in one group."""
    return {
        label
        for label, leaf, aggregate, _ in _numbers(plan, None)
        if leaf.measures[aggregate.measures[0]].ball and leaf.measures[aggregate.measures[0]].norm == 2
    }


def weighed_of(plan: Plan) -> set[str]:
    """The labels of numbers in which a unit counts less for extreme values, and not for many rows alone."""
    return {
        label
        for label, leaf, aggregate, _ in _numbers(plan, None)
        if leaf.measures[aggregate.measures[0]].ball
    }


def sentences(
    caps: Mapping[str, float | None],
    beyond: Mapping[str, int],
    confidence: float,
    by_group: Collection[str] = (),
    weighed: Collection[str] = (),
) -> list[str]:
    """What an answer says about its privately chosen caps.

    >>> sentences({"COUNT(*)": 64.0}, {"COUNT(*)": 2}, 0.95)
    ['COUNT(*): each unit counts for at most 64; at 95% confidence, at most 2 units would count for more.']
    """
    said = []
    for label, units in beyond.items():
        many = "no unit" if units == 0 else "1 unit" if units == 1 else f"{units:,} units"
        most = "" if units == 0 else "at most "
        where = " rows of each group" if label in by_group else " rows" if label in weighed else ""
        if label in weighed:
            where += ", fewer if its values are extreme, so this is about rows weighed so"
        said.append(
            f"{label}: each unit counts for at most {caps[label]:,.6g}{where}; at {confidence * 100:g}% "
            f"confidence, {most}{many} would count for more."
        )
    return said


def _numbers(
    plan: Plan, released: Sequence[Released] | None
) -> Iterator[tuple[str, Leaf, Aggregate, Released | None]]:
    """Every aggregate by a label of its own, with its leaf and what was released of it."""
    releases = released if released is not None else [None] * len(plan.leaves)
    times: Counter[str] = Counter()
    for index, (leaf, release) in enumerate(zip(plan.leaves, releases, strict=True)):
        if leaf.adds_up(index):
            continue
        for aggregate in leaf.aggregates:
            times[aggregate.label] += 1
            again = f" ({times[aggregate.label]})" if times[aggregate.label] > 1 else ""
            yield aggregate.label + again, leaf, aggregate, release


def _stated(aggregate: Aggregate, release: Released | None) -> Stated | None:
    """What was stated about an aggregate's first measure."""
    return release.stated.get(aggregate.measures[0]) if release else None
