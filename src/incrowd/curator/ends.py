"""The ends of intervals, carried through the SQL above the released numbers.

A released aggregate a0 comes with a0_low and a0_high, and with a0_half: how far its error reaches, where that
is independent of the errors of other groups. `with_ends` adds name_low and name_high beside each column of
the answer whose ends follow from these, by interval arithmetic (`end_rules`) and by pooling (`pooled_ends`).
A column whose ends cannot be followed gets none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

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
    if isinstance(query, exp.SetOperation):
        return _union(query, released)
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
    known = pooled(
        query.expressions, replace(rows, ends={**rows.ends, **_of_inner(query, released)}), groups_chosen
    )
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


def _union(query: exp.SetOperation, released: Mapping[str, Leaf]) -> _Ended:
    """UNION ALL: a column has ends if every side has them, or a constant in its place."""
    sides = _sides(query)
    if sides is None or any(len(set(side.named_selects)) < len(side.selects) for side in sides):
        return _unknown(query)
    ended = [_ended(side.copy(), released, outermost=True) for side in sides]
    given = [side.expressions for side in sides]
    own = [[column.alias_or_name for column in columns] for columns in given]
    names, columns = own[0], [[] for _ in sides]  # type: tuple[list[str], list[list[exp.Expr]]]
    kept: list[set[str]] = [set(), set(), set()]
    for place, name in enumerate(names):
        facts = [
            (side.ended, side.positive, side.fixed, at[place]) for side, at in zip(ended, own, strict=True)
        ]
        follows = all(at in known or at in fixed for known, _, fixed, at in facts)
        follows &= any(at in known for known, _, _, at in facts)
        follows &= not {f"{name}{_LOW}", f"{name}{_HIGH}"} & set(names)
        if follows:
            kept[0].add(name)
        if all(at in positive for _, positive, _, at in facts):
            kept[1].add(name)
        if all(at in fixed for _, _, fixed, at in facts):
            kept[2].add(name)
        for picked, side, column in zip(columns, ended, (each[place] for each in given), strict=True):
            picked.append(column)
            there = {item.alias_or_name: item.unalias() for item in side.query.selects}
            at = column.alias_or_name
            for end in (_LOW, _HIGH) if follows else ():
                value = there[f"{at}{end}"] if at in side.ended else column.unalias()
                picked.append(exp.alias_(value.copy(), f"{name}{end}", quoted=True))
    for before, side, picked in zip(sides, ended, columns, strict=True):
        side.query.set("expressions", [column.copy() for column in picked])
        before.replace(side.query)
    chosen = any(side.chosen for side in ended) or bool(query.args.get("limit") or query.args.get("offset"))
    known, positive, fixed = map(frozenset, kept)
    return _Ended(query, known, positive, frozenset(), fixed, False, chosen)


def _sides(query: exp.Query) -> list[exp.Select] | None:
    """The selects of a UNION ALL; None for any other set operation."""
    if isinstance(query, exp.Subquery):
        plain = not any(value for name, value in query.args.items() if name != "this")
        return _sides(query.this) if plain else None
    if isinstance(query, exp.Select):
        return [query]
    if not isinstance(query, exp.Union) or query.args.get("distinct") or query.args.get("by_name"):
        return None
    sides = _sides(query.left), _sides(query.right)
    return None if sides[0] is None or sides[1] is None else sides[0] + sides[1]


def _of_inner(select: exp.Select, released: Mapping[str, Leaf]) -> dict[str, Ends]:
    """The ends of the sub-queries that stand for a number in the columns of a select, by their text."""
    found = {}
    for column in select.expressions:
        for query in column.find_all(exp.Subquery):
            if not isinstance(query.this, exp.Select) or len(query.selects) != 1:
                continue
            inner = _ended(query.this.copy(), released, outermost=True)
            if inner.chosen or not inner.ended:
                continue
            low, high = (_alone(inner.query, place) for place in (1, 2))
            found[query.sql(DIALECT)] = Ends(low, high, positive=bool(inner.positive))
    return found


def _alone(query: exp.Query, place: int) -> exp.Subquery:
    """One column of a query, as a number."""
    alone = query.copy()
    alone.set("expressions", [query.selects[place].copy()])
    return exp.Subquery(this=alone)


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
