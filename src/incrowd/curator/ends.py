"""The ends of intervals, carried through the SQL above the released numbers by interval arithmetic.

A released column a0 comes with a0_low and a0_high. `with_ends` adds name_low and name_high beside each column
of the answer whose ends follow from these; a column whose ends cannot be followed gets none.
"""

from __future__ import annotations

from sqlglot import exp

from incrowd.query.sql import DIALECT


def with_ends(query: exp.Query) -> exp.Query:
    """The query with name_low and name_high beside each column whose ends can be followed through it."""
    if not isinstance(query, exp.Select):
        return query
    outer = query.copy()
    ends = _ends_below(outer)
    if (
        outer.args.get("group")
        or outer.args.get("distinct")
        or any(each.find(exp.AggFunc, exp.Window) for each in outer.expressions)
    ):
        return outer
    taken = {each.alias_or_name for each in outer.expressions}
    picked: list[exp.Expr] = []
    for each in outer.expressions:
        picked.append(each)
        found = _interval(each.unalias(), ends)
        name = each.alias_or_name
        if found is not None and found[0] != found[1] and not {f"{name}_low", f"{name}_high"} & taken:
            picked.append(exp.alias_(found[0], f"{name}_low", quoted=True))
            picked.append(exp.alias_(found[1], f"{name}_high", quoted=True))
    outer.set("expressions", picked)
    return outer


def _ends_below(select: exp.Select) -> dict[str, tuple[exp.Expression, exp.Expression]]:
    """The columns of FROM whose ends are there, by their text; sub-queries get ends of their own."""
    found: dict[str, tuple[exp.Expression, exp.Expression]] = {}
    start = select.args.get("from_")
    joins = select.args.get("joins") or []
    for source in ([start.this] if start is not None else []) + [join.this for join in joins]:
        if isinstance(source, exp.Subquery) and isinstance(source.this, exp.Select):
            inner = with_ends(source.this)
            source.set("this", inner)
            names = {each.alias_or_name for each in inner.expressions}
            for name in names:
                if f"{name}_low" in names and f"{name}_high" in names:
                    columns = [
                        exp.column(f"{name}{end}", table=source.alias_or_name, quoted=True)
                        for end in ("", "_low", "_high")
                    ]
                    found[columns[0].sql(DIALECT)] = (columns[1], columns[2])
        elif isinstance(source, exp.Table):
            for column in select.find_all(exp.Column):
                if not column.table and column.name.startswith("a") and column.name[1:].isdigit():
                    found[column.sql(DIALECT)] = (
                        exp.column(f"{column.name}_low"),
                        exp.column(f"{column.name}_high"),
                    )
    return found


def _interval(
    node: exp.Expression, ends: dict[str, tuple[exp.Expression, exp.Expression]]
) -> tuple[exp.Expression, exp.Expression] | None:
    """The ends of an expression by interval arithmetic; None where they cannot be followed."""
    text = node.sql(DIALECT)
    if text in ends:
        return ends[text][0].copy(), ends[text][1].copy()
    if isinstance(node, exp.Literal | exp.Neg) and not (isinstance(node, exp.Literal) and node.is_string):
        if isinstance(node, exp.Literal):
            return node.copy(), node.copy()
        inner = _interval(node.this, ends)
        return (
            None if inner is None else (exp.Neg(this=exp.paren(inner[1])), exp.Neg(this=exp.paren(inner[0])))
        )
    if isinstance(node, exp.Paren):
        return _interval(node.this, ends)
    if isinstance(node, exp.Round | exp.Floor | exp.Ceil | exp.Sqrt | exp.Cast):
        inner = _interval(node.this, ends)
        if inner is None:
            return None
        both: list[exp.Expression] = []
        for end in inner:
            copy = node.copy()
            copy.set("this", end)
            both.append(copy)
        return both[0], both[1]
    if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div):
        left, right = _interval(node.this, ends), _interval(node.expression, ends)
        return None if left is None or right is None else _arithmetic(node, left, right)
    if isinstance(node, exp.Greatest | exp.Least):
        parts = [_interval(each, ends) for each in (node.this, *node.expressions)]
        known = [each for each in parts if each is not None]
        if len(known) < len(parts):
            return None
        return tuple(
            type(node)(this=known[0][end], expressions=[each[end] for each in known[1:]]) for end in (0, 1)
        )  # type: ignore[return-value]
    return None


def _arithmetic(
    node: exp.Expression,
    left: tuple[exp.Expression, exp.Expression],
    right: tuple[exp.Expression, exp.Expression],
) -> tuple[exp.Expression, exp.Expression]:
    def pair(a: exp.Expression, b: exp.Expression) -> exp.Expression:
        return type(node)(this=exp.paren(a.copy()), expression=exp.paren(b.copy()))

    if isinstance(node, exp.Add):
        return pair(left[0], right[0]), pair(left[1], right[1])
    if isinstance(node, exp.Sub):
        return pair(left[0], right[1]), pair(left[1], right[0])
    corners = [pair(a, b) for a in left for b in right]
    low = exp.Least(this=corners[0], expressions=corners[1:])
    high = exp.Greatest(this=corners[0].copy(), expressions=[each.copy() for each in corners[1:]])
    if isinstance(node, exp.Mul):
        return low, high
    # A divisor that may be zero leaves nothing sure.
    sure = exp.GT(
        this=exp.Mul(this=exp.paren(right[0].copy()), expression=exp.paren(right[1].copy())),
        expression=exp.Literal.number("0"),
    )
    infinite = exp.cast(exp.Literal.string("Infinity"), "DOUBLE")
    return (
        exp.Case(ifs=[exp.If(this=sure, true=low)], default=exp.Neg(this=infinite)),
        exp.Case(ifs=[exp.If(this=sure.copy(), true=high)], default=infinite.copy()),
    )
