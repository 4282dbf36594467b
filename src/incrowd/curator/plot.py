"""A chart of an answer: numbers by group with their intervals (altair, the `plot` extra)."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from incrowd.errors import InvalidInput

if TYPE_CHECKING:
    import altair


def chart(table: pa.Table) -> altair.LayerChart | altair.FacetChart:
    """Points with error bars, one facet for each number, by the answer's other columns.

    Dates and timestamps are drawn where there are no other numbers: one axis cannot show both.
    """
    try:
        import altair as alt
    except ImportError:
        raise InvalidInput("plot() needs the package altair: pip install 'incrowd[plot]'.") from None
    names = table.column_names
    numbers = [name for name in names if f"{name}_low" in names]
    moments = [name for name in numbers if pa.types.is_temporal(table.schema.field(name).type)]
    scale = "T" if moments == numbers else "Q"
    ends = {f"{name}{end}" for name in numbers for end in ("_low", "_high")}
    groups = [name for name in names if name not in ends and name not in numbers]
    if not numbers:
        raise InvalidInput("There is nothing to plot: no column of the answer has an interval.")
    shown = [name for name in numbers if scale == "T" or name not in moments]
    rows: list[dict[str, Any]] = []
    for row in table.to_pylist():
        label = ", ".join("NULL" if row[name] is None else str(row[name]) for name in groups) or "all"
        rows += [
            {
                "group": label,
                "number": name,
                "value": _plain(row[name]),
                "low": _plain(row[f"{name}_low"]),
                "high": _plain(row[f"{name}_high"]),
            }
            for name in shown
        ]
    order = list(dict.fromkeys(row["group"] for row in rows))
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        x=alt.X("group:N", sort=order, title=", ".join(groups) or None)
    )
    bars = base.mark_rule(strokeWidth=2, color="#8fb3d9").encode(
        y=alt.Y(f"low:{scale}", title=None), y2=f"high:{scale}"
    )
    points = base.mark_point(filled=True, size=50, color="#1f4e79").encode(
        y=f"value:{scale}",
        tooltip=["group:N", "number:N", *(f"{part}:{scale}" for part in ("value", "low", "high"))],
    )
    layered = alt.layer(bars, points)
    if len(shown) == 1:
        return layered.properties(title=shown[0])
    facets = layered.facet(column=alt.Column("number:N", title=None))
    drawn: alt.FacetChart = facets.resolve_scale(y="independent")
    return drawn


def _plain(value: Any) -> Any:
    """A value as JSON holds it."""
    return value.isoformat() if isinstance(value, dt.date) else value
