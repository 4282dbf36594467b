"""PARTITION BY, ORDER BY and frames of a window, with nothing left open that engines decide in own ways.

Text is ordered by code points and NULL stands where the question's dialect puts it, as in all statements.
Frames are written out. Frames of RANGE reach from the partition's end or the row's peers to the same, frames
of ROWS are counted in constants, so no bound is computed from a value.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query.combining import as_float
from incrowd.query.expressions import total
from incrowd.query.ownership import Sources
from incrowd.query.typed import Field, Typed, double, said

MOST_OFFSET = 1_000_000
"""How far from a row a frame or a function may reach, in rows."""
_ENDS = {("UNBOUNDED", "PRECEDING"), ("CURRENT ROW", ""), ("UNBOUNDED", "FOLLOWING")}
_LAST = 2 * MOST_OFFSET
End = tuple[str, str]


@dataclass(frozen=True)
class Over:
    """What a window runs over: partition, order as written, the columns that break ties, and the frame."""

    partition: tuple[exp.Expr, ...]
    order: tuple[exp.Ordered, ...]
    ties: tuple[exp.Ordered, ...]
    kind: str
    """ROWS or RANGE."""
    start: End
    end: End

    def peers(self, function: exp.Expr) -> exp.Window:
        """A function that treats rows alike which tie in the order as written, and has no frame."""
        return self._window(function, self.order, None)

    def ordered(self, function: exp.Expr) -> exp.Window:
        """A function that looks at rows one by one, and has no frame of its own."""
        return self._window(function, (*self.order, *self.ties), None)

    def framed(self, function: exp.Expr) -> exp.Window:
        """An aggregate of the rows of the frame. Peers are in a frame of RANGE together."""
        if (self.start, self.end) == (("UNBOUNDED", "PRECEDING"), ("UNBOUNDED", "FOLLOWING")):
            return self._window(function, (), None)
        order = self.order if self.kind == "RANGE" else (*self.order, *self.ties)
        return self._window(function, order, self._spec(self.kind))

    def row(self, function: exp.Expr, first: bool) -> exp.Window:
        """A function that takes the first or another row of the frame, which must not be one of several."""
        ends = [self.start] if first else [self.start, self.end]
        if self.kind == "RANGE" and ("CURRENT ROW", "") in ends:
            raise QueryError(
                f"{said(function)} would take one of several rows that tie; write ROWS BETWEEN UNBOUNDED "
                "PRECEDING AND UNBOUNDED FOLLOWING after its ORDER BY for the last row of all."
            )
        return self._window(function, (*self.order, *self.ties), self._spec("ROWS"))

    def _spec(self, kind: str) -> exp.WindowSpec:
        return exp.WindowSpec(
            kind=kind,
            start=_bound(self.start),
            start_side=self.start[1] or None,
            end=_bound(self.end),
            end_side=self.end[1] or None,
        )

    def _window(
        self, function: exp.Expr, order: tuple[exp.Ordered, ...], spec: exp.WindowSpec | None
    ) -> exp.Window:
        window = exp.Window(this=function, partition_by=[part.copy() for part in self.partition], over="OVER")
        if order:
            window.set("order", exp.Order(expressions=[key.copy() for key in order]))
        if spec is not None:
            window.set("spec", spec)
        return window


def over_of(window: exp.Window, below: Sources) -> Over:
    """What a window runs over; refuses partitions that may hold rows of two people."""
    for name, value in window.args.items():
        if (
            value
            and name not in ("this", "partition_by", "order", "spec")
            and (name, value) != ("over", "OVER")
        ):
            raise QueryError(f"{said(window)} has an option that is not understood; leave it out.")
    written = window.args.get("partition_by") or []
    marks = [below.field(part).unit if isinstance(part, exp.Column) else "" for part in written]
    if not below.parts or not set(below.parts) <= set(marks):
        raise QueryError(_mixes(window, below))
    partition = [_key(total(part, below.lookup)) for part in written]
    order = _order(window.args.get("order"), below)
    kind, start, end = _frame(window, bool(order))
    return Over(
        tuple(part for part in partition if part is not None),
        order,
        _ties(below, {key.this.sql() for key in order}),
        kind,
        start,
        end,
    )


def _mixes(window: exp.Window, below: Sources) -> str:
    """Why a window is refused, and how to write it."""
    function = said(window.this)
    (relation,) = below.items.values()
    units: dict[str, Field] = {field.unit: field for field in relation.fields.values() if field.unit}
    if below.parts and set(below.parts) <= set(units):
        names = ", ".join(units[part].name.rpartition(".")[2] for part in below.parts)
        return (
            f"{function} would run over the rows of several people; begin its window with PARTITION BY "
            f"{names}, or put it over released numbers, in an outer SELECT."
        )
    if below.parts:
        return (
            f"{function} would run over the rows of several people; select the column of the protected unit "
            "in each sub-query below it, and begin its window with PARTITION BY that column."
        )
    return (
        f"{function} has nothing to run over: each row is a person of its own here. Aggregate with GROUP BY, "
        "and put windows over its aggregates."
    )


def _key(typed: Typed) -> exp.Expr | None:
    """An expression that orders or divides rows, in a form that engines order alike; None for a constant."""
    if not typed.sql.find(exp.Column):
        return None
    if typed.kind == "boolean":
        return as_float(typed, "").sql
    if typed.kind == "float" or (typed.kind == "integer" and not typed.integral):
        return exp.Add(this=as_float(typed, "").sql, expression=double(0.0))
    return typed.sql


def _order(order: exp.Order | None, below: Sources) -> tuple[exp.Ordered, ...]:
    """ORDER BY as written."""
    keys = []
    for written in [] if order is None else order.expressions:
        if not isinstance(written, exp.Ordered) or written.args.get("with_fill"):
            raise QueryError(f"{said(written)} cannot stand in a window's ORDER BY; write a column there.")
        key = _key(total(written.this, below.lookup))
        if key is not None:
            keys.append(
                exp.Ordered(
                    this=key,
                    desc=bool(written.args.get("desc")),
                    nulls_first=bool(written.args.get("nulls_first")),
                )
            )
    return tuple(keys)


def _ties(below: Sources, ordered: set[str]) -> tuple[exp.Ordered, ...]:
    """Every column that varies within a unit and is not in the order already."""
    ties = []
    for alias, relation in below.items.items():
        for name, field in relation.fields.items():
            key = None if field.unit else _key(below.lookup(exp.column(name, table=alias, quoted=True)))
            if key is not None and key.sql() not in ordered:
                ties.append(exp.Ordered(this=key, desc=False, nulls_first=False))
    return tuple(ties)


def _frame(window: exp.Window, ordered: bool) -> tuple[str, End, End]:
    """The frame, written out: by default all rows up to the row's peers, or all without an order."""
    spec = window.args.get("spec")
    before, here, after = ("UNBOUNDED", "PRECEDING"), ("CURRENT ROW", ""), ("UNBOUNDED", "FOLLOWING")
    if spec is None:
        return "RANGE", before, here if ordered else after
    kind = str(spec.args.get("kind") or "").upper()
    start = _end(spec, "start", here)
    end = _end(spec, "end", here)
    if kind not in ("ROWS", "RANGE") or spec.args.get("exclude"):
        raise QueryError(
            f"{said(window)} has a frame that not every engine knows; write it with ROWS BETWEEN."
        )
    if kind == "RANGE" and not {start, end} <= _ENDS:
        raise QueryError(
            f"{said(window)} has a frame measured in values, which may leave what engines compute; write it "
            "with ROWS BETWEEN, or JOIN the table to itself on the person and test the difference in WHERE."
        )
    if _place(start) > _place(end) or start == after or end == before:
        raise QueryError(
            f"The frame of {said(window)} ends before it starts; write its ends the other way round."
        )
    if kind == "RANGE" and not ordered:
        return kind, before, after
    return kind, start, end


def _end(spec: exp.WindowSpec, name: str, default: End) -> End:
    """One end of a frame."""
    written, side = spec.args.get(name), str(spec.args.get(f"{name}_side") or "").upper()
    if written is None:
        return default
    if not isinstance(written, exp.Expr):
        return str(written).upper(), side
    if isinstance(written, exp.Literal) and not written.is_string:
        return str(whole_offset(written, "A frame")), side
    return "", side


def _place(end: End) -> int:
    """Where an end lies, in rows from the row itself."""
    far = _LAST if end[0] == "UNBOUNDED" else 0 if end[0] in ("CURRENT ROW", "") else int(end[0])
    return -far if end[1] == "PRECEDING" else far


def _bound(end: End) -> object:
    return exp.Literal.number(end[0]) if end[0].isdigit() else end[0]


def whole_offset(node: exp.Expr | None, where: str, least: int = 0, default: int | None = None) -> int:
    """A constant number of rows."""
    if node is None and default is not None:
        return default
    text = node.name if isinstance(node, exp.Literal) and not node.is_string else ""
    if not (text.isascii() and text.isdigit() and len(text) < 9 and least <= int(text) <= MOST_OFFSET):
        raise QueryError(f"{where} needs a whole number from {least} to {MOST_OFFSET:,}, such as 1.")
    return int(text)
