"""Which groups of an answer may be empty: public ones are all shown, and a small count may be noise alone.

Reads the released numbers and their intervals, nothing else, so it is free and tells nothing new.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from incrowd.curator.held import for_python
from incrowd.curator.lineage import origins
from incrowd.query import Aggregate, Leaf, Plan

MOST_NAMED = 3
_LONGEST = 40


def sentences(plan: Plan, table: pa.Table) -> list[str]:
    """What is said about groups whose count cannot be told from 0; `table` holds the intervals."""
    traced = origins(plan)
    keys = [name for name in plan.columns if name not in traced]
    said: dict[tuple[int, ...], list[str]] = {}
    for name, origin in traced.items():
        if origin is None or not _counts_groups(plan.leaves[origin[0]], origin[1]):
            continue
        low = f"{name}_low"
        ends = table.column(low).to_pylist() if low in table.column_names else []
        empty = tuple(place for place, end in enumerate(ends) if end is not None and end <= 0)
        if empty:
            said.setdefault(empty, []).append(name)
    return [_sentence(names, empty, table.select(keys)) for empty, names in said.items()]


def _counts_groups(leaf: Leaf, aggregate: Aggregate) -> bool:
    """Whether an aggregate counts all rows or units of public groups."""
    measure = leaf.measures[aggregate.measures[0]]
    plain = measure.value is None and measure.present is None and not measure.buckets
    return aggregate.kind == "count" and plain and bool(leaf.keys) and leaf.public


def _sentence(names: list[str], empty: tuple[int, ...], keys: pa.Table) -> str:
    many = f"{len(empty):,} of {keys.num_rows:,} groups" if keys.num_rows > 1 else "the group"
    shown = for_python(keys.take(list(empty[:MOST_NAMED]))).to_pylist() if keys.column_names else []
    listed = ["/".join(_spoken(value) for value in group.values()) for group in shown]
    if listed and len(empty) > MOST_NAMED:
        listed.append(f"{len(empty) - MOST_NAMED:,} more")
    which = f" ({', '.join(listed)})" if listed else ""
    return f"{', '.join(names)}: {many} may be empty, for the interval includes 0{which}."


def _spoken(value: Any) -> str:
    """A key in a few letters and one line."""
    if value is None:
        return "NULL"
    text = " ".join(str(value).split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
