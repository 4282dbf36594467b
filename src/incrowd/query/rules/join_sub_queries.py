"""Sub-queries in expressions become joins: IN, EXISTS, = ANY, and those that stand for one value.

Let a select S read private rows, and let a sub-query be about the same person as the row r around it: it
reads public tables only, or its WHERE (or IN) equates its own unit with that of r. S gets

    LEFT JOIN (SELECT DISTINCT keys ... ) AS q ON q.unit = r.unit AND q.keys = ...

or GROUP BY keys in place of DISTINCT, and the expression reads q's columns. Two things follow.

- Ownership holds. The join is one of those that `ownership` permits: of private rows on the whole unit, or
  with a public table. It is checked there again, after the rewrite; nothing here is trusted. So whether a row
  is kept depends on the rows of its own unit alone, and rows that have no unit (NULL) belong to nobody.
- Rows are never multiplied. q has one row for each value of its keys, and ON equates every key.

Conditions about r that are no equations (`s.day > r.day`) are computed once for each value of r's columns:
the sub-query is joined to SELECT DISTINCT unit, columns FROM what S reads, and these columns become keys.

The values are those of SQL: x IN (...) is NULL where nothing equals x and something could, EXISTS is never
NULL. Where SQL raises an error because a sub-query that stands for one value has two rows, it is NULL.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query.combining import comparable
from incrowd.query.expressions import PUBLIC_LIST, total
from incrowd.query.ownership import RESERVED, Sources, World, sources
from incrowd.query.per_unit import all_keys, groups_by_unit, is_aggregating
from incrowd.query.sql import DIALECT, from_items
from incrowd.query.sub_queries import (
    Pair,
    aggregates_in,
    alias_of,
    column_of,
    pulled,
    ungrouped,
)
from incrowd.query.typed import said

_AROUND = f"{RESERVED}d"
"""The name under which a sub-query reads the values of the rows around it."""


def join_sub_queries(tree: exp.Query, world: World) -> exp.Query:
    """The tree without sub-queries in expressions over private rows, the innermost first."""
    selects = sorted(tree.find_all(exp.Select), key=_nesting, reverse=True)
    for select in selects:
        asked = list(_sub_queries(select))
        if not asked or not any(world.private(node) for node in (*from_items(select), *asked)):
            continue
        for node in asked:
            _refuse_in_on(node, select)
        try:
            below = sources(select, world)
        except QueryError:
            continue  # it stands over released numbers, or its FROM is refused in due course
        joiner = _Joiner(select, world, below)
        for node in asked:
            joiner.place(node)
    return tree


def _nesting(select: exp.Select) -> int:
    """How many selects a select stands in."""
    above = select.find_ancestor(exp.Select)
    return 0 if above is None else 1 + _nesting(above)


def _sub_queries(select: exp.Select) -> Iterator[exp.Expr]:
    """The expressions of a select that hold sub-queries, in their order; not those of other selects."""
    fixed = {id(item) for item in from_items(select)}

    def ends(node: exp.Expr) -> bool:
        return id(node) in fixed or (node is not select and isinstance(node, exp.Query))

    for node in select.walk(prune=ends):
        if id(node) in fixed:
            continue
        compared = isinstance(node, exp.EQ | exp.NEQ) and isinstance(node.expression, exp.Any | exp.All)
        listed = isinstance(node, exp.In) and node.args.get("query") and not node.args.get(PUBLIC_LIST)
        value = isinstance(node, exp.Subquery) and not isinstance(node.parent, exp.In | exp.Any | exp.All)
        if compared or listed or value or isinstance(node, exp.Exists):
            yield node


@dataclass
class _Joiner:
    """Adds the joins of one select's sub-queries."""

    select: exp.Select
    world: World
    below: Sources
    joined: dict[str, str] = field(default_factory=dict)
    read: list[exp.Expr] = field(init=False)

    def __post_init__(self) -> None:
        """Keep what the select reads before joins are added."""
        self.read = [self.select.args["from_"], *(self.select.args.get("joins") or [])]

    def place(self, node: exp.Expr) -> None:
        """Put an expression over joined columns where a sub-query is."""
        inner = self._inner(node)
        if inner is None:
            return
        grouped = is_aggregating(self.select) and not _is_of_rows(node)
        keys = [key.sql(DIALECT) for key in all_keys(self.select)] if grouped else []
        if grouped and not groups_by_unit(self.select, self.below) and not _stands_in(node, keys):
            return  # over groups of people: refused where the groups are released
        if isinstance(node, exp.Exists):
            made = self._exists(inner)
        elif isinstance(node, exp.Subquery):
            made = self._value(inner)
        else:
            made = self._listed(node, inner)
        if grouped and not _stands_in(node, keys):
            # One value for the whole unit, and a group belongs to one unit.
            made = made.transform(lambda part: exp.Min(this=part) if _is_joined(part) else part)
        if not isinstance(made, exp.Column):
            made = exp.paren(made, copy=False)
        node.replace(made)

    def _inner(self, node: exp.Expr) -> exp.Select | None:
        """The sub-query of an expression; None if another rule refuses it."""
        inner = node.args.get("query") or (
            node.expression.this if isinstance(node, exp.EQ | exp.NEQ) else node.this
        )
        inner = inner.unnest() if isinstance(inner, exp.Subquery) else inner
        if isinstance(inner, exp.Select) and inner.args.get("from_") is None:
            return None
        if not isinstance(inner, exp.Select):
            raise QueryError(f"{_named(node)} is no SELECT ... FROM; write it as one, or as several.")
        private = self.world.private(inner)
        if private and self.below.units is None:
            raise QueryError(
                "A sub-query over private rows beside a public table would show which of its rows people "
                "have; put the private table into FROM and GROUP BY the public column."
            )
        if private and not self.below.parts:
            raise QueryError(
                "Each row is a unit of its own here, and a sub-query cannot bring in other private rows; ask "
                "about one table at a time."
            )
        return self._cut_off(inner, node)

    def _cut_off(self, inner: exp.Select, node: exp.Expr) -> exp.Select:
        """The sub-query without ORDER BY and LIMIT, where they change nothing."""
        limit = inner.args.get("limit")
        most = None if limit is None else limit.expression
        whole = isinstance(most, exp.Literal) and most.name.isdigit() and int(most.name) > 0
        if inner.args.get("offset") or (limit is not None and not (whole and isinstance(node, exp.Exists))):
            raise QueryError(
                "LIMIT in a sub-query over private rows is not possible; take MAX or MIN of the column."
            )
        inner = inner.copy()
        inner.set("limit", None)
        inner.set("order", None)
        return inner

    def _listed(self, node: exp.Expr, inner: exp.Select) -> exp.Expr:
        """x IN (SELECT y ...), (x, z) IN ..., x = ANY (SELECT y ...) and x <> ALL (SELECT y ...)."""
        if isinstance(node, exp.EQ | exp.NEQ) and isinstance(node, exp.EQ) != isinstance(
            node.expression, exp.Any
        ):
            raise QueryError("= ALL and <> ANY of a sub-query are not possible; write IN or NOT IN.")
        subject = node.this.unnest()
        outers = list(subject.expressions) if isinstance(subject, exp.Tuple) else [subject]
        columns = inner.expressions
        if len(columns) != len(outers):
            raise QueryError(f"The sub-query of IN must give {_columns(len(outers))}.")
        if is_aggregating(inner) and inner.args.get("group") is None:
            same = exp.EQ(this=outers[0].copy(), expression=self._value(inner))
            return exp.Not(this=exp.paren(same)) if isinstance(node, exp.NEQ) else same
        rows = ungrouped(inner)
        equal = [
            exp.EQ(this=column.unalias().copy(), expression=outer.copy())
            for column, outer in zip(rows.expressions, outers, strict=True)
        ]
        hit = self._exists(rows.where(*equal))
        if isinstance(node, exp.In) and _only_truth_counts(node):
            return hit
        near = [
            exp.paren(exp.or_(same.copy(), *[_is_null(side) for side in (same.this, same.expression)]))
            for same in equal
            if not self._of_unit(same, rows)
        ]
        # Rows of the unit alone: of NULL and another person's values no answer may depend.
        units = [same.copy() for same in equal if self._of_unit(same, rows)]
        cases = [exp.If(this=hit, true=exp.true())]
        if near:
            cases.append(
                exp.If(this=self._exists(rows.where(*units, *near)), true=exp.cast(exp.null(), "BOOLEAN"))
            )
        found: exp.Expr = exp.Case(ifs=cases, default=exp.false())
        return exp.Not(this=exp.paren(found)) if isinstance(node, exp.NEQ) else found

    def _exists(self, inner: exp.Select) -> exp.Expr:
        """Whether the sub-query has a row for the row around it."""
        if is_aggregating(inner) and inner.args.get("group") is None:
            having = inner.args.get("having")
            if having is None:
                return exp.true()
            inner = inner.copy()
            inner.set("having", None)
            inner.set("expressions", [exp.alias_(having.this.copy(), f"{RESERVED}v", quoted=True)])
            return exp.func("COALESCE", self._value(inner), exp.false())
        rows, pairs = self._keyed(ungrouped(inner))
        if not pairs:
            many = exp.select(exp.alias_(exp.Count(this=exp.Star()), f"{RESERVED}v", quoted=True))
            many.set("from_", rows.args["from_"])
            many.set("joins", rows.args.get("joins"))
            many.set("where", rows.args.get("where"))
            return exp.GT(
                this=column_of(self._join(many, ()), f"{RESERVED}v"), expression=exp.Literal.number(0)
            )
        rows.set("expressions", _as_keys(pairs))
        sure = next(place for place, pair in enumerate(pairs) if not pair.safe)
        name = self._join(rows.distinct(), pairs)
        return exp.Not(this=_is_null(column_of(name, _key(sure))))

    def _value(self, inner: exp.Select) -> exp.Expr:
        """The value that the sub-query has for the row around it."""
        if len(inner.expressions) != 1:
            raise QueryError("A sub-query that stands for a value must give one column.")
        (column,) = inner.expressions
        name = column.alias_or_name
        if not is_aggregating(inner) or inner.args.get("group") is not None:
            rows = ungrouped(inner)
            if inner.args.get("distinct"):
                raise QueryError(f"DISTINCT {said(column.unalias())} may have two values; take MAX or MIN.")
            rows, pairs = self._keyed(rows)
            value = rows.expressions[0].unalias()
            one = exp.EQ(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(1))
            alone = exp.Case(ifs=[exp.If(this=one, true=exp.Min(this=value.copy()))])
            rows.set("expressions", [*_as_keys(pairs), exp.alias_(alone, name, quoted=True)])
            return column_of(self._join(_grouped(rows, pairs), pairs), name)
        return self._aggregated(inner, column)

    def _aggregated(self, inner: exp.Select, column: exp.Expr) -> exp.Expr:
        """The value of aggregates over the sub-query's rows; over none, counts are 0 and others NULL."""
        having = inner.args.get("having")
        value = column.unalias().copy()
        if having is not None:
            value = exp.Case(ifs=[exp.If(this=having.this.copy(), true=value)])
        bare = inner.copy()
        bare.set("having", None)
        rows, pairs = self._keyed(bare)
        value = exp.paren(value)
        parts: dict[str, exp.Expr] = {}
        for part in aggregates_in(value):
            parts.setdefault(part.sql(DIALECT), part.copy())
        names = [
            column.alias_or_name if len(parts) == 1 else f"{RESERVED}a{place}" for place in range(len(parts))
        ]
        columns = [
            exp.alias_(part, name, quoted=True) for part, name in zip(parts.values(), names, strict=True)
        ]
        rows.set("expressions", [*_as_keys(pairs), *columns])
        joined = self._join(_grouped(rows, pairs), pairs)
        for part in aggregates_in(value):
            place = list(parts).index(part.sql(DIALECT))
            there: exp.Expr = column_of(joined, names[place])
            if part.find(exp.Count, exp.CountIf):
                there = exp.func("COALESCE", there, exp.Literal.number(0))
            part.replace(there)
        return value.this if isinstance(value.this, exp.Column | exp.Coalesce) else value

    def _keyed(self, inner: exp.Select) -> tuple[exp.Select, list[Pair]]:
        """The sub-query without what it says about the row around it, and the keys that say it."""
        part = pulled(inner)
        rows, pairs = part.select, list(part.pairs)
        inside = sources(rows, self.world)
        private = inside.units is not None
        found = {self._unit_part(pair, inside) for pair in pairs} - {""}
        if private and (len(inside.parts) != len(self.below.parts) or not set(self.below.parts) <= found):
            raise QueryError(self._untied(inside))
        pairs = [pair if self._unit_part(pair, inside) else self._alike(pair, inside) for pair in pairs]
        if part.others:
            rows, more = self._around(rows, inside, part.others, pairs)
            pairs += more
        return rows, pairs

    def _untied(self, inside: Sources) -> str:
        table = next(iter(inside.tables), "it")
        within, around = _units(inside), _units(self.below)
        renamed = ""
        if set(within) & set(around):
            within = [f"inside.{name.partition('.')[2]}" for name in within]
            renamed = f"read it as {table} AS inside and "
        tie = " AND ".join(f"{inner} = {outer}" for inner, outer in zip(within, around, strict=False))
        return (
            f"The sub-query over {table} must be about the person of the row around it: {renamed}add {tie} "
            "to its WHERE; or ask for its number by itself first, and write that number here."
        )

    def _unit_part(self, pair: Pair, inside: Sources) -> str:
        """Which part of the unit a key is on both sides; the empty text if it is none."""
        if not isinstance(pair.inner, exp.Column) or not isinstance(pair.outer, exp.Column):
            return ""
        one, two = inside.field(pair.inner).unit, self.below.field(pair.outer).unit
        return one if one == two else ""

    def _of_unit(self, same: exp.EQ, rows: exp.Select) -> bool:
        sides = Pair(same.this, same.expression)
        return bool(self._unit_part(sides, sources(pulled(rows).select, self.world)))

    def _alike(self, pair: Pair, inside: Sources) -> Pair:
        """The key with both sides of one type, so that values that are equal are one row of the join."""
        one, two = total(pair.inner, inside.lookup), total(pair.outer, self.below.lookup)
        comparable(one, two, f"{said(pair.inner)} = {said(pair.outer)}")
        if one.kind == two.kind and one.kind != "float" and one.integral == two.integral:
            return pair
        kind = "TIMESTAMP" if one.kind in ("date", "timestamp") else "DOUBLE"
        return Pair(exp.cast(pair.inner, kind), exp.cast(pair.outer, kind), pair.safe)

    def _around(
        self, rows: exp.Select, inside: Sources, others: tuple[exp.Expr, ...], pairs: list[Pair]
    ) -> tuple[exp.Select, list[Pair]]:
        """The sub-query joined to the values of the rows around it, which become keys."""
        named: dict[tuple[str, str], exp.Column] = {}
        for node in others:
            for column in node.find_all(exp.Column):
                if column.table in self.below.items and column.table not in inside.items:
                    named.setdefault((column.table, column.name), column)
        units = _unit_columns(self.below)
        if not units and self.below.units is not None:
            raise QueryError(
                f"{said(others[0])} compares a sub-query with the row around it, which needs the unit's "
                "column; select it in the sub-query of FROM, or write an equation."
            )
        listed = [*units, *[column for place, column in named.items() if not self.below.field(column).unit]]
        values = [self._held(column) for column in listed]
        names = {(column.table, column.name): f"{RESERVED}x{place}" for place, column in enumerate(listed)}
        start, *joins = [part.copy() for part in self.read]
        around = exp.Select(from_=start, joins=joins).select(
            *[
                exp.alias_(value, name, quoted=True)
                for value, name in zip(values, names.values(), strict=True)
            ]
        )
        tests = []
        for part in inside.parts:
            own = next(column for column in _unit_columns(inside) if inside.field(column).unit == part)
            there = next(column for column in units if self.below.field(column).unit == part)
            tests.append(
                exp.EQ(this=column_of(_AROUND, names[there.table, there.name]), expression=own.copy())
            )
        on = exp.and_(*tests) if tests else exp.true()
        joined = exp.Join(this=exp.Subquery(this=around.distinct(), alias=alias_of(_AROUND)), on=on)
        rows.append("joins", joined)

        def swapped(part: exp.Expr) -> exp.Expr:
            if isinstance(part, exp.Column) and (part.table, part.name) in names:
                return column_of(_AROUND, names[part.table, part.name])
            return part

        tied = {pair.outer.sql(DIALECT) for pair in pairs}
        rows = rows.where(*[exp.paren(node.transform(swapped)) for node in others])
        keys = [
            Pair(column_of(_AROUND, name), value.copy(), not self.below.field(column).unit)
            for column, value, name in zip(listed, values, names.values(), strict=True)
            if value.sql(DIALECT) not in tied
        ]
        return rows, keys

    def _held(self, column: exp.Column) -> exp.Expr:
        """A column as it is compared: numbers with fractions are computed in float64."""
        copy = column.copy()
        return exp.cast(copy, "DOUBLE") if self.below.field(column).kind == "float" else copy

    def _join(self, rows: exp.Select, pairs: list[Pair] | tuple[()]) -> str:
        """Join a relation with one row for each value of its keys; the name that it gets."""
        tests: list[exp.Expr] = []
        for place, pair in enumerate(pairs):
            kind = exp.NullSafeEQ if pair.safe else exp.EQ
            tests.append(kind(this=column_of("", _key(place)), expression=pair.outer.copy()))
        text = rows.sql(DIALECT) + " ON " + " AND ".join(test.sql(DIALECT) for test in tests)
        known = self.joined.get(text)
        if known is not None:
            return known
        name = f"{RESERVED}q{len(self.joined)}"
        self.joined[text] = name
        for test in tests:
            test.this.set("table", exp.to_identifier(name, quoted=True))
        self.select.append(
            "joins",
            exp.Join(
                this=exp.Subquery(this=rows, alias=alias_of(name)),
                side="LEFT",
                on=exp.and_(*tests) if tests else exp.true(),
            ),
        )
        return name


def _refuse_in_on(node: exp.Expr, select: exp.Select) -> None:
    """Refuse a sub-query in ON, beside which no join can stand that it could read."""
    if node.find_ancestor(exp.Join, exp.Select) is not select:
        raise QueryError(f"{_named(node)} cannot stand in ON; put it into WHERE.")


def _named(node: exp.Expr) -> str:
    """A sub-query in the user's words: by the table that it reads."""
    table = node.find(exp.Table)
    return "A sub-query" if table is None else f"The sub-query over {table.name}"


def _is_of_rows(node: exp.Expr) -> bool:
    """True if an expression is computed for each row, and not for a group of them."""
    return node.find_ancestor(exp.AggFunc, exp.Where, exp.Group, exp.Select).__class__ is not exp.Select


def _stands_in(node: exp.Expr, keys: list[str]) -> bool:
    """True if an expression is part of one of the keys of its select."""
    part: exp.Expr | None = node
    while part is not None and not isinstance(part, exp.Select):
        if part.sql(DIALECT) in keys:
            return True
        part = part.parent
    return False


def _only_truth_counts(node: exp.Expr) -> bool:
    """True if NULL in place of FALSE would make no difference."""
    part = node.parent
    while isinstance(part, exp.And | exp.Or | exp.Paren):
        part = part.parent
    return isinstance(part, exp.Where)


def _is_joined(part: exp.Expr) -> bool:
    return isinstance(part, exp.Column) and part.table.startswith(f"{RESERVED}q")


def _is_null(node: exp.Expr) -> exp.Is:
    return exp.Is(this=node.copy(), expression=exp.null())


def _key(place: int) -> str:
    return f"{RESERVED}k{place}"


def _as_keys(pairs: list[Pair]) -> list[exp.Expr]:
    return [exp.alias_(pair.inner.copy(), _key(place), quoted=True) for place, pair in enumerate(pairs)]


def _grouped(rows: exp.Select, pairs: list[Pair]) -> exp.Select:
    return rows.group_by(*[pair.inner.copy() for pair in pairs]) if pairs else rows


def _columns(many: int) -> str:
    return "one column" if many == 1 else f"{many} columns"


def _unit_columns(below: Sources) -> list[exp.Column]:
    """A column for each part of the unit, by the name that a question can use."""
    found: dict[str, exp.Column] = {}
    for alias, relation in below.items.items():
        for name, known in relation.fields.items():
            if known.unit and relation.private:
                found.setdefault(known.unit, column_of(alias, name))
    return [found[part] for part in below.parts if part in found] if set(below.parts) <= set(found) else []


def _units(below: Sources) -> list[str]:
    return [f"{column.table}.{column.name}" for column in _unit_columns(below)]
