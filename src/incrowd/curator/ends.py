"""The ends of intervals, carried through the SQL above the released numbers.

A released aggregate a0 comes with a0_low and a0_high, and with a0_half: how far its error reaches, where that
is independent of the errors of other groups. `with_ends` adds name_low and name_high beside each column of
the answer whose ends follow from these, by interval arithmetic (`end_rules`) and by pooling (`pooled_ends`).
A column whose ends cannot be followed gets none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from incrowd.curator.end_rules import Ends, ends_of
from incrowd.curator.pooled_ends import Rows, half_of, pooled
from incrowd.query import Leaf, Plan
from incrowd.query.sql import DIALECT, from_items

HALF = "_half"
"""What is added to a column's name for how far its error reaches."""
_LOW, _HIGH = "_low", "_high"


@dataclass(frozen=True)
class _Ended:
    """A query with ends beside its columns, and what is known of its rows and columns.

    fixed: the columns without noise. halves: those with a column for how far their errors reach. silent:
    what windows compute from noise, without ends.
    """

    query: exp.Query
    ended: frozenset[str]
    positive: frozenset[str]
    halves: frozenset[str]
    fixed: frozenset[str]
    apart: bool
    chosen: bool
    silent: frozenset[str] = frozenset()


def with_ends(plan: Plan) -> exp.Query:
    """The plan's SQL over released tables, with ends beside the columns that have them."""
    return _ended(plan.outer.copy(), plan.released, outermost=True).query


def without_ends(plan: Plan) -> tuple[str, ...]:
    """The columns of the answer that windows compute from noisy numbers, and that have no ends."""
    return tuple(sorted(_ended(plan.outer.copy(), plan.released, outermost=True).silent))


def _ended(query: exp.Query, released: Mapping[str, Leaf], outermost: bool = False) -> _Ended:
    if not isinstance(query, exp.Select):
        return _unknown(query)
    rows = _rows(query, released)
    where, group, having = (query.args.get(clause) for clause in ("where", "group", "having"))
    chosen = rows.chosen or not (where is None or rows.sure(where))
    rows = Rows(rows.ends, rows.fixed, rows.apart, chosen)
    if query.args.get("distinct") or (group is not None and not _by_keys(query, rows)):
        return _unknown(query)
    groups_chosen = chosen or not (having is None or rows.sure(having))
    after = [query.args.get(clause) for clause in ("qualify", "limit", "offset")]
    if query.args.get("limit") or query.args.get("offset"):
        after.append(query.args.get("order"))
    picked_out = groups_chosen or not all(rows.sure(clause) for clause in after if clause is not None)
    known = pooled(query.expressions, rows, groups_chosen)
    taken = {column.alias_or_name for column in query.expressions}
    columns: list[exp.Expr] = []
    ended, positive, halves, fixed, silent = (set[str]() for _ in range(5))
    for column in query.expressions:
        columns.append(column)
        name, inner = column.alias_or_name, column.unalias()
        if rows.sure(inner):
            fixed.add(name)
        ends = ends_of(inner, known)
        if ends is None and inner.find(exp.Window) and not rows.keys_only(inner):
            silent.add(name)
        if ends is None or ends.low == ends.high or {f"{name}{_LOW}", f"{name}{_HIGH}"} & taken:
            continue
        ended.add(name)
        columns.append(exp.alias_(ends.low, f"{name}{_LOW}", quoted=True))
        columns.append(exp.alias_(ends.high, f"{name}{_HIGH}", quoted=True))
        found = known.get(inner.sql(DIALECT))
        if found is not None and found.positive:
            positive.add(name)
        half = None if outermost or inner.find(exp.Window) else half_of(inner, known)
        if half is not None and f"{name}{HALF}" not in taken:
            halves.add(name)
            columns.append(exp.alias_(half, f"{name}{HALF}", quoted=True))
    query.set("expressions", columns)
    return _Ended(
        query,
        frozenset(ended),
        frozenset(positive),
        frozenset(halves),
        frozenset(fixed),
        rows.apart and not picked_out,
        picked_out,
        frozenset(silent),
    )


def _unknown(query: exp.Query) -> _Ended:
    """A query as it is: nothing is known of its columns, and numbers may have chosen its rows."""
    return _Ended(query, frozenset(), frozenset(), frozenset(), frozenset(), False, True)


def _by_keys(query: exp.Select, rows: Rows) -> bool:
    """Whether a select groups by what holds no noise."""
    group = query.args["group"]
    keys: Sequence[exp.Expr] = group.expressions
    if group.args.get("all"):
        keys = [column.unalias() for column in query.expressions if column.find(exp.AggFunc) is None]
    return all(rows.sure(key) for key in keys)


def _rows(select: exp.Select, released: Mapping[str, Leaf]) -> Rows:
    """What is known of the rows that a select reads. Sub-queries get ends of their own, in place."""
    ends: dict[str, Ends] = {}
    fixed: set[str] = set()
    sources = from_items(select)
    apart, chosen = len(sources) == 1 and not select.args.get("laterals"), False
    for source in sources:
        table = None if isinstance(source, exp.Table) else source.alias_or_name
        if isinstance(source, exp.Subquery) and isinstance(source.this, exp.Query):
            inner = _ended(source.this, released)
            source.set("this", inner.query)
            for name in inner.ended:
                _add(ends, name, table, True, name in inner.halves, name in inner.positive)
            fixed |= {_text(name, table, True) for name in inner.fixed}
            apart, chosen = apart and inner.apart, chosen or inner.chosen
        elif isinstance(source, exp.Table) and source.name in released:
            leaf = released[source.name]
            for aggregate in leaf.aggregates:
                linear = aggregate.kind in ("count", "sum")
                least = leaf.measures[aggregate.measures[0]].low if linear and leaf.measures else -1.0
                _add(ends, aggregate.name, None, False, linear, least >= 0)
            fixed |= {_text(key.name, None, False) for key in leaf.keys}
        elif isinstance(source, exp.Table):
            names = {(column.name, column.table) for column in select.find_all(exp.Column)}
            fixed |= {_text(name, at, True) for name, at in names if at == source.alias_or_name}
        else:
            apart = False
    rows = Rows(ends, frozenset(fixed), apart, chosen)
    on = [join.args.get("on") for join in select.args.get("joins") or []]
    if not all(rows.sure(test) for test in on if test is not None):
        rows = Rows(rows.ends, rows.fixed, False, True)
    return rows


def _add(
    ends: dict[str, Ends], name: str, table: str | None, quoted: bool, half: bool, positive: bool
) -> None:
    low, high, reach = (exp.column(f"{name}{end}", table=table, quoted=quoted) for end in (_LOW, _HIGH, HALF))
    ends[_text(name, table, quoted)] = Ends(low, high, reach if half else None, positive)


def _text(name: str, table: str | None, quoted: bool) -> str:
    return exp.column(name, table=table, quoted=quoted).sql(DIALECT)
