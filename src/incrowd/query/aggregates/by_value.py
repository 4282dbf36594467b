"""MODE, HISTOGRAM, APPROX_TOP_K and APPROX_TOP_COUNT: lists that are computed from the count of each value.

    SELECT k, MODE(x) FROM t GROUP BY k

is asked as SELECT k, x, COUNT(*) FROM t GROUP BY k, x, and the list is made of the noisy counts. So nothing
but the counts is released, bounded like any others: adding or removing a unit moves them by its cap at most,
and a value is shown if it is public, or if enough units share it. What is chosen of them is post-processing.
The counts are on record: asked for by themselves, they cost nothing more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query.aggregates.operands import AS_WRITTEN, BESIDE
from incrowd.query.grouping_sets import has_levels
from incrowd.query.per_unit import group_keys
from incrowd.query.sql import DIALECT, bounds_of, number
from incrowd.query.typed import said

TOP = ("APPROX_TOP_K", "APPROX_TOP_COUNT")
NAMES = ("HISTOGRAM", *TOP)
USUAL, MOST = 5, 10_000
"""How many values a list of the most frequent has, unless it says so, and the most that it may have."""
_VALUE, _COUNT, _COUNTS = "value", "count", "counts"


def is_by_value(node: exp.Expr) -> bool:
    """Whether an aggregate is made of the counts of values."""
    if isinstance(node, exp.WithinGroup | exp.Filter):
        return is_by_value(node.this)
    return isinstance(node, exp.Mode) or (isinstance(node, exp.AnonymousAggFunc) and node.name in NAMES)


def counts_and_lists(select: exp.Select) -> tuple[exp.Select, exp.Select] | None:
    """The SELECT that counts values, and the one over it, still without FROM; None if none is asked for."""
    asked = list(_asked(select))
    if not asked:
        return None
    values = list(dict.fromkeys(_value_of(node) for node in asked))
    label = said(asked[0]) if isinstance(asked[0], exp.AnonymousAggFunc) else f"MODE({said(values[0])})"
    if len(values) > 1:
        raise QueryError(f"{label} and {said(asked[-1])} count different values; ask for each by itself.")
    if has_levels(select):
        raise QueryError(
            f"{label} takes plain GROUP BY, without ROLLUP and the like; ask for each level by itself."
        )
    keys = group_keys(select)
    return _counting(select, keys, values[0], label), _listing(select, keys, label)


def _asked(select: exp.Select) -> Iterator[exp.Expr]:
    """The aggregates of the SELECT that are made of counts, each with what is around it."""
    waiting: list[exp.Expr] = [*select.expressions]
    waiting += [select.args[clause] for clause in ("having", "qualify", "order") if select.args.get(clause)]
    while waiting:
        node = waiting.pop(0)
        if is_by_value(node):
            yield node
        elif not isinstance(node, exp.Query):
            waiting.extend(node.iter_expressions())


def _value_of(node: exp.Expr) -> exp.Expr:
    """The value whose rows are counted."""
    label = said(node)
    if isinstance(node, exp.Filter):
        raise QueryError(f"{label} takes no FILTER here; write its condition into WHERE.")
    plain = node.this if isinstance(node, exp.WithinGroup) else node
    if bounds_of(plain) is not None:
        raise QueryError(f"{label} counts each row once and takes no bounds; leave them out.")
    if isinstance(plain, exp.AnonymousAggFunc):
        listed, most = list(plain.expressions), 2 if plain.name in TOP else 1
        if plain is not node:
            raise QueryError(f"{label} takes no WITHIN GROUP; write the column in its brackets.")
        if not 1 <= len(listed) <= most:
            raise QueryError(f"{label} takes one column here; for bins, GROUP BY WIDTH_BUCKET or CASE.")
    else:
        inside = node.expression if plain is not node else plain.this
        ordered = isinstance(inside, exp.Order)
        listed = [part.this for part in inside.expressions] if ordered else [inside]
        listed += [
            part for name, part in plain.args.items() if part and (name != "this" or plain is not node)
        ]
        if len(listed) != 1 or listed[0] is None or isinstance(listed[0], exp.Distinct):
            raise QueryError(f"{label} needs one column, as in MODE(x).")
    value: exp.Expr = listed[0]
    return value


def _counting(select: exp.Select, keys: Sequence[exp.Expr], value: exp.Expr, label: str) -> exp.Select:
    """SELECT keys, value, COUNT(*) over the same rows."""
    counting = select.copy()
    for clause in ("having", "qualify", "order", "limit", "offset", "distinct", "windows"):
        counting.set(clause, None)
    count = exp.Count(this=exp.Star())
    count.meta[AS_WRITTEN] = f"the counts of {label}"
    count.meta[BESIDE] = (
        f"{label} is made of noisy counts: values whose counts are close may change places, and values that "
        "few units share are left out unless they are public."
    )
    columns = [*((f"k{place}", key) for place, key in enumerate(keys)), (_VALUE, value), (_COUNT, count)]
    named = [exp.alias_(node.copy(), name, quoted=True) for name, node in columns]
    counting.set("expressions", named)
    counting.set("group", exp.Group(expressions=[node.copy() for _, node in columns[:-1]]))
    return counting


def _listing(select: exp.Select, keys: Sequence[exp.Expr], label: str) -> exp.Select:
    """The SELECT over the counts."""
    names = {key.sql(DIALECT): f"k{place}" for place, key in enumerate(keys)}

    def swap(part: exp.Expr) -> exp.Expr:
        if part.sql(DIALECT) in names:
            return _column(names[part.sql(DIALECT)])
        if is_by_value(part):
            return _list_of(part)
        if isinstance(part, exp.Filter | exp.AggFunc | exp.Window | exp.WithinGroup | exp.Query):
            raise QueryError(
                f"{label} stands alone, or with the columns of GROUP BY; ask for {said(part)} in a SELECT of "
                "its own."
            )
        if isinstance(part, exp.Column) and part.table:
            raise QueryError(f"{part.name} must be in GROUP BY or inside an aggregate.")
        return part

    def moved(node: exp.Expr) -> exp.Expr:
        return node.copy().transform(swap)

    listing = exp.Select()
    for projection in select.expressions:
        named = exp.alias_(moved(projection.unalias()), projection.alias_or_name, quoted=True)
        listing = listing.select(named)
    if keys:
        listing.set("group", exp.Group(expressions=[_column(name) for name in names.values()]))
    for clause in ("having", "order", "limit", "offset"):
        written = select.args.get(clause)
        if written is not None:
            listing.set(clause, moved(written))
    if select.args.get("distinct"):
        listing = listing.distinct()
    if select.args.get("qualify") is not None:
        raise QueryError(f"QUALIFY cannot stand beside {label}; put the SELECT into a sub-query.")
    if keys and select.args.get("order") is None and not select.args.get("distinct"):
        listing = listing.order_by(*[_column(name) for name in names.values()])
    return listing


def _list_of(node: exp.Expr) -> exp.Expr:
    """The aggregate over the counts: values in the order of their counts, equal counts in that of values."""
    named = isinstance(node, exp.AnonymousAggFunc)
    if named and node.name == "HISTOGRAM":
        lists = [_ordered(_column(name), _VALUE) for name in (_VALUE, _COUNT)]
        return exp.func("MAP", *lists, dialect=DIALECT)
    if not named:
        return exp.func("LIST_EXTRACT", _ordered(_column(_VALUE), _COUNT, _VALUE), _whole(1), dialect=DIALECT)
    most = number(node.expressions[1]) if len(node.expressions) > 1 else float(USUAL)
    if most is None or not (most.is_integer() and 1 <= most <= MOST):
        raise QueryError(f"{said(node)} needs the number of values, a whole number from 1 to {MOST}.")
    one = _column(_VALUE)
    if node.name == "APPROX_TOP_COUNT":
        parts = [
            exp.PropertyEQ(this=exp.to_identifier(name), expression=_column(name))
            for name in (_VALUE, _COUNT)
        ]
        one = exp.Struct(expressions=parts)
    ordered = _ordered(one, _COUNT, _VALUE)
    return exp.func("LIST_SLICE", ordered, _whole(1), _whole(int(most)), dialect=DIALECT)


def _ordered(listed: exp.Expr, *by: str) -> exp.Expr:
    """LIST(listed ORDER BY ...) FILTER (WHERE value IS NOT NULL): counts from the largest one down."""
    order = [exp.Ordered(this=_column(name), desc=name == _COUNT, nulls_first=False) for name in by]
    there = exp.Not(this=exp.Is(this=_column(_VALUE), expression=exp.null()))
    made = exp.ArrayAgg(this=exp.Order(this=listed, expressions=order))
    return exp.Filter(this=made, expression=exp.Where(this=there))


def _column(name: str) -> exp.Expr:
    return exp.column(name, table=_COUNTS, quoted=True)


def _whole(value: int) -> exp.Expr:
    return exp.Literal.number(value)


def over(listing: exp.Select, counts: exp.Select) -> exp.Select:
    """The SELECT over the released counts."""
    return listing.from_(exp.Subquery(this=counts, alias=exp.TableAlias(this=exp.to_identifier(_COUNTS))))
