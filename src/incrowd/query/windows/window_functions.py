"""The functions that windows over one person's rows may have, in total form, with what is known of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from sqlglot import exp

from incrowd.catalog.types import SQL_TYPES
from incrowd.errors import QueryError
from incrowd.query.combining import unite
from incrowd.query.expressions import condition, total
from incrowd.query.graded_cells import ROWS_OF_ONE
from incrowd.query.growth import refuse_growth
from incrowd.query.ownership import Sources, field_from
from incrowd.query.per_unit import aggregate_of_unit
from incrowd.query.typed import Field, Lookup, Typed, said
from incrowd.query.windows.window_frames import Over, over_of, whole_offset

MOST_TILES = 100
"""Up to so many tiles are listed as values."""
Function = Callable[[exp.Expr, Over, Lookup], Typed]


def window_column(window: exp.Window, below: Sources) -> tuple[exp.Expr, Field]:
    """A window as a column of one person's rows, and what is known of it."""
    function, test = window.this, None
    if isinstance(function, exp.Filter):
        function, test = function.this, condition(function.expression.this, below.lookup, "FILTER")
    if isinstance(function, exp.IgnoreNulls | exp.RespectNulls):
        raise QueryError(
            f"{said(function)} is not possible, as not every engine knows it; leave the rows out by WHERE "
            f"{said(function.this.this)} IS NOT NULL in a sub-query below."
        )
    over = over_of(window, below)
    made = _FUNCTIONS.get(type(function))
    if made is not None:
        if test is not None:
            raise QueryError(f"{said(function)} takes no FILTER; write CASE WHEN inside it.")
        typed = made(function, over, below.lookup)
    else:
        typed = _aggregated(function, over, below.lookup, test)
    refuse_growth(typed.sql, said(window))
    field = field_from(window, typed, below, said(window))
    if isinstance(function, _VALUES) and isinstance(function.this, exp.Column) and not _default(function):
        field = replace(field, domain=below.field(function.this).domain)
    return typed.sql, replace(field, weight=1)


def _row_number(node: exp.Expr, over: Over, lookup: Lookup) -> Typed:
    return _place(over.ordered(exp.RowNumber()))


def _rank(node: exp.Expr, over: Over, lookup: Lookup) -> Typed:
    """RANK counts the rows before a row's first peer, DENSE_RANK the different places."""
    return _place(over.peers(type(node)()))


def _place(sql: exp.Expr) -> Typed:
    wide = (1.0, float(ROWS_OF_ONE))
    return Typed(exp.cast(sql, "BIGINT"), "integer", 1, None, False, integral=True, size=64, wide=wide)


def _tiles(node: exp.Expr, over: Over, lookup: Lookup) -> Typed:
    """NTILE: the row's place in the total order decides, and the number of rows."""
    tiles = whole_offset(node.this, "NTILE", least=1)
    sql = exp.cast(over.ordered(exp.Ntile(this=exp.Literal.number(tiles))), "BIGINT")
    values = tuple(range(1, tiles + 1)) if tiles <= MOST_TILES else None
    return Typed(sql, "integer", 1, tiles, False, values, integral=True, size=64)


def _neighbour(node: exp.Expr, over: Over, lookup: Lookup) -> Typed:
    """LAG and LEAD. Engines convert a default in different ways, so it is a CASE: no row there, no one."""
    name = "LAG" if isinstance(node, exp.Lag) else "LEAD"
    offset = exp.Literal.number(whole_offset(node.args.get("offset"), name, default=1))
    value = _operand(node, lookup)
    sql = over.ordered(type(node)(this=value.sql, offset=offset))
    found = value.but(sql=sql, nullable=True, said="")
    default = _default(node)
    if default is None:
        return found
    other = total(default, lookup)
    facts, (there, instead) = unite([value.but(sql=sql), other], name)
    one = over.ordered(type(node)(this=exp.Literal.number(1), offset=offset.copy()))
    missing = exp.Is(this=one, expression=exp.null())
    chosen = exp.Case(ifs=[exp.If(this=missing, true=instead)], default=there)
    return facts.but(sql=exp.paren(chosen), said="")


def _default(node: exp.Expr) -> exp.Expr | None:
    """The default of LAG and LEAD; none for other functions, and NULL is none."""
    default: exp.Expr | None = node.args.get("default")
    return None if isinstance(default, exp.Null) else default


def _of_frame(node: exp.Expr, over: Over, lookup: Lookup) -> Typed:
    """FIRST_VALUE, LAST_VALUE and NTH_VALUE."""
    renamed: dict[type[exp.Expr], type[exp.Expr]] = {exp.First: exp.FirstValue, exp.Last: exp.LastValue}
    kind = renamed.get(type(node), type(node))
    value = _operand(node, lookup)
    function = kind(this=value.sql)
    if kind is exp.NthValue:
        function.set("offset", exp.Literal.number(whole_offset(node.args.get("offset"), "NTH_VALUE", 1)))
    sql = over.row(function, kind is exp.FirstValue)
    return value.but(sql=sql, nullable=True, said="")


def _operand(node: exp.Expr, lookup: Lookup) -> Typed:
    """The argument; a constant in the type that it has, which not every engine knows of a bare one."""
    for key, value in node.args.items():
        if value and key not in ("this", "offset", "default"):
            raise QueryError(f"{said(node)} has an option that is not understood; leave it out.")
    value = total(node.this, lookup)
    if value.sql.find(exp.Column):
        return value
    if value.kind == "null":
        raise QueryError(f"{said(node)} is always NULL; name a column in it.")
    floating = value.kind == "float" or (value.kind == "integer" and not value.integral)
    return value.but(sql=exp.cast(value.sql, "DOUBLE" if floating else SQL_TYPES[value.kind]))


def _aggregated(node: exp.Expr, over: Over, lookup: Lookup, test: Typed | None) -> Typed:
    """COUNT, MIN and MAX of a frame: exact, whatever the order of its rows."""
    if isinstance(node.this, exp.Distinct):
        raise QueryError(
            f"{said(node)} is not possible in a window; count in a sub-query that groups by the person, and "
            "JOIN it on the person."
        )
    if isinstance(node, exp.Sum | exp.Avg):
        raise QueryError(
            f"{said(node)} is not possible in a window over one person's rows; compute it in a sub-query "
            "that groups by the person, and JOIN that on the person."
        )
    if not isinstance(node, exp.Count | exp.CountIf | exp.Min | exp.Max):
        raise QueryError(
            f"{said(node)} is not possible over one person's rows; use ROW_NUMBER, RANK, LAG, LEAD, "
            "FIRST_VALUE, LAST_VALUE, COUNT, MIN or MAX there."
        )
    typed = aggregate_of_unit(node, lookup, test)
    aggregates = (exp.Count, exp.Min, exp.Max)
    sql = typed.sql.transform(lambda part: over.framed(part.copy()) if isinstance(part, aggregates) else part)
    return typed.but(sql=sql)


_VALUES = (exp.Lag, exp.Lead, exp.First, exp.Last, exp.FirstValue, exp.LastValue, exp.NthValue)
_FUNCTIONS: Mapping[type[exp.Expr], Function] = {
    exp.RowNumber: _row_number,
    exp.Rank: _rank,
    exp.DenseRank: _rank,
    exp.Ntile: _tiles,
    **dict.fromkeys((exp.Lag, exp.Lead), _neighbour),
    **dict.fromkeys((exp.First, exp.Last, exp.FirstValue, exp.LastValue, exp.NthValue), _of_frame),
}
