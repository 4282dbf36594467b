"""What a reader should know about the error of an answer before paying for it. Reads the plan alone."""

from __future__ import annotations

from dataclasses import dataclass

from incrowd.query import Plan


@dataclass(frozen=True)
class Expected:
    """How wide a column would be, at the price's confidence, in a group of so many rows.

    ranks: the half-width is a number of rows between the estimate and the truth, for a quantile; it does not
    depend on the rows of the group, which are then None unless a census that the owner bought tells them.
    """

    halfwidth: float
    rows: float | None = None
    ranks: bool = False

    def __str__(self) -> str:
        if not self.ranks:
            return f"± {self.halfwidth:.3g} in a group of {self.rows:,.0f} rows"
        of = "" if self.rows is None else f" of about {float(f'{self.rows:.2g}'):,.0f} in a group"
        return f"± {max(self.halfwidth, 1.0):,.0f} ranks{of}"


def caveats(plan: Plan) -> tuple[str, ...]:
    """The sentences, each once."""
    notes = [*plan.warnings, *plan.notes]
    for leaf in plan.leaves:
        kinds = {aggregate.kind for aggregate in leaf.aggregates}
        notes += [part.note for part in leaf.columns.values() if part.note]
        if leaf.uncapped:
            notes.append(
                "How much one unit may contribute is chosen privately from the data, so half-widths are "
                "known only with the answer."
            )
        if kinds - {"count", "sum", "quantile"}:
            notes.append(
                "The error of averages and spreads shrinks with the number of rows in a group, which is not "
                "known beforehand."
            )
        if "quantile" in kinds:
            notes.append("A quantile's interval depends on how dense the data is around it.")
    if plan.any_rank:
        notes.append(
            "Other ranks of the same rows are free afterwards, at the same epsilon and confidence; they come "
            "from a fifth of it, so ask first, or together, for those that must be exact."
        )
    return tuple(dict.fromkeys(notes))
