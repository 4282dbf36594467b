"""What the numbers of an answer are about: sums in which each unit counts for at most a cap."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from incrowd.curator.released import Released, Stated
from incrowd.query import Aggregate, Leaf, Plan


def caps_of(plan: Plan, released: Sequence[Released] | None = None) -> dict[str, float | None]:
    """By label, the most that one unit counts for; None where nothing is cut.

    Sums are in values; counts, averages and quantiles in rows (or groups). Before the release, caps that are
    chosen privately are left out.
    """
    caps: dict[str, float | None] = {}
    for leaf, aggregate, stated in _numbers(plan, released):
        measure = leaf.measures[aggregate.measures[0]]
        if not leaf.units or (measure.level == "pair" and not leaf.keys):
            # Each row is a unit of its own, or units are counted once.
            caps[aggregate.label] = None
        elif stated is not None:
            caps[aggregate.label] = stated.cap
        elif measure.cap is not None:
            in_values = aggregate.kind == "sum" and measure.weighing == "rows"
            caps[aggregate.label] = measure.cap * (measure.limit if in_values else 1.0)
    return caps


def beyond_of(plan: Plan, released: Sequence[Released]) -> dict[str, int]:
    """By label, how many units would count for more at most, where the cap was chosen privately."""
    return {
        aggregate.label: stated.beyond
        for _, aggregate, stated in _numbers(plan, released)
        if stated is not None
    }


def sentences(caps: Mapping[str, float | None], beyond: Mapping[str, int], confidence: float) -> list[str]:
    """What an answer says about its privately chosen caps.

    >>> sentences({"COUNT(*)": 64.0}, {"COUNT(*)": 2}, 0.95)
    ['COUNT(*): each unit counts for at most 64; at 95% confidence, at most 2 units would count for more.']
    """
    said = []
    for label, units in beyond.items():
        many = "no unit" if units == 0 else "1 unit" if units == 1 else f"{units:,} units"
        most = "" if units == 0 else "at most "
        said.append(
            f"{label}: each unit counts for at most {caps[label]:,.6g}; at {confidence * 100:g}% confidence, "
            f"{most}{many} would count for more."
        )
    return said


def _numbers(
    plan: Plan, released: Sequence[Released] | None
) -> Iterator[tuple[Leaf, Aggregate, Stated | None]]:
    """Every aggregate with its leaf, and what was stated about its first measure."""
    releases = released if released is not None else [None] * len(plan.leaves)
    for leaf, release in zip(plan.leaves, releases, strict=True):
        for aggregate in leaf.aggregates:
            yield leaf, aggregate, release.stated.get(aggregate.measures[0]) if release else None
