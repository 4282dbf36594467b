"""The proof of a whole statement: its common table expressions in order, then every part of it."""

from __future__ import annotations

from collections.abc import Mapping

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from incrowd.backends.totality.constructs import RULES
from incrowd.backends.totality.rules import ENGINES, Engine
from incrowd.backends.totality.values import TIMES, Value, calendar_only, hull
from incrowd.backends.totality.walk import Keys, NotTotalError, Walk, parts_of
from incrowd.errors import BackendError

Columns = dict[str, Value]
_CLAUSES = ("expressions", "from_", "joins", "where", "group", "having", "with_", "distinct")
_MOST_KEPT = 256


class Prover:
    """Proves of each statement over some tables that no row can make its engine raise.

    `tables` names the columns of each table with the engine's types; `views` are queries over them that
    statements read by name.
    """

    def __init__(
        self,
        engine: str,
        tables: Mapping[str, Mapping[str, str]],
        views: Mapping[str, str] | None = None,
    ) -> None:
        self._engine = ENGINES[engine]
        named = self._engine.named
        self._tables: dict[str, Columns] = {
            named(table): {named(column): self._engine.columns(kind) for column, kind in columns.items()}
            for table, columns in tables.items()
        }
        self._proven: dict[str, None] = {}
        for name, sql in (views or {}).items():
            self._tables[named(name)] = self._proof(sql)

    def prove(self, sql: str) -> None:
        """Raise `BackendError` unless the statement is total."""
        if sql in self._proven:
            return
        self._proof(sql, released=True)
        if len(self._proven) >= _MOST_KEPT:
            self._proven.pop(next(iter(self._proven)))
        self._proven[sql] = None

    def _proof(self, sql: str, released: bool = False) -> Columns:
        try:
            tree = sqlglot.parse_one(sql, read=self._engine.name)
            columns = _Scope(self._engine, self._tables, Keys()).columns(tree)
            for value in columns.values() if released else ():
                if value.kind in TIMES and not calendar_only(value):
                    raise NotTotalError(tree, "a date in its result may leave the calendar")
            return columns
        except NotTotalError as found:
            part = found.node.sql(self._engine.name)
            short = part if len(part) <= 60 else part[:57] + "..."
            raise BackendError(
                f"{short} is not known to be safe on every row ({found.why}); ask without it."
            ) from None
        except (SqlglotError, RecursionError, ArithmeticError):
            raise BackendError("The statement is too involved to be checked; ask in smaller steps.") from None


class _Scope:
    """The relations that a query can name."""

    def __init__(self, engine: Engine, tables: Mapping[str, Columns], keys: Keys) -> None:
        self._engine = engine
        self._tables = tables
        self._keys = keys

    def columns(self, query: exp.Expr) -> Columns:
        """The columns of a query, each expression of it proven."""
        scope = self._with(query)
        if isinstance(query, exp.Union):
            return scope._union(query)
        if isinstance(query, exp.Subquery):
            parts_of(query, "this", "alias")
            return scope.columns(query.this)
        if isinstance(query, exp.Select):
            return scope._select(query)
        raise NotTotalError(query)

    def _with(self, query: exp.Expr) -> _Scope:
        clause = query.args.get("with_")
        if clause is None:
            return self
        parts_of(clause, "expressions")
        scope = self
        for each in clause.expressions:
            parts_of(each, "this", "alias", "materialized")
            parts_of(each.args["alias"], "this")
            found = scope.columns(each.this)
            name = self._engine.named(each.alias)
            scope = _Scope(self._engine, {**scope._tables, name: found}, self._keys)
        return scope

    def _union(self, query: exp.Union) -> Columns:
        parts_of(query, "this", "expression", "with_")
        sides = [self.columns(side) for side in (query.this, query.expression)]
        if len(sides[0]) != len(sides[1]):
            raise NotTotalError(query)
        found: Columns = {}
        for (name, one), two in zip(sides[0].items(), sides[1].values(), strict=True):
            both = hull(one, two)
            if both is None:
                raise NotTotalError(query, f"{name} is of different types")
            found[name] = both
        return found

    def _select(self, select: exp.Select) -> Columns:
        parts_of(select, *_CLAUSES)
        sources: dict[str, Columns] = {}
        start, joins = select.args.get("from_"), select.args.get("joins") or []
        if start is not None:
            parts_of(start, "this")
            self._source(start.this, sources)
        for join in joins:
            parts_of(join, "this", "on", "side", "kind")
            self._source(join.this, sources)
        group = select.args.get("group")
        walk = Walk(
            self._engine,
            RULES[self._engine.name],
            self._keys,
            sources,
            lambda query: list(self.columns(query).values()),
            group is not None and bool(group.expressions),
        )
        for join in joins:
            if join.args.get("on") is not None:
                walk.truth(join.args["on"])
        for clause in ("where", "having"):
            if select.args.get(clause) is not None:
                parts_of(select.args[clause], "this")
                walk.truth(select.args[clause].this)
        found: Columns = {}
        for each in select.expressions:
            name = self._engine.named(each.alias_or_name)
            if name in found or not name:
                raise NotTotalError(each, "its name is not known")
            found[name] = walk.value(each.unalias())
        if group is not None:
            parts_of(group, "expressions")
            for each in group.expressions:
                walk.value(each)
        distinct = select.args.get("distinct")
        if distinct is not None:
            parts_of(distinct)
        return found

    def _source(self, node: exp.Expr, sources: dict[str, Columns]) -> None:
        if isinstance(node, exp.Subquery):
            found = self.columns(node)
        elif isinstance(node, exp.Table):
            parts_of(node, "this", "alias", "db")
            place = f"{node.db}.{node.name}" if node.db else node.name
            known = self._tables.get(self._engine.named(place))
            if known is None:
                raise NotTotalError(node, "there is no such table")
            found = known
        else:
            raise NotTotalError(node)
        alias = node.args.get("alias")
        if alias is not None:
            parts_of(alias, "this")
        name = self._engine.named(node.alias_or_name)
        if name in sources:
            raise NotTotalError(node, "its name is taken")
        sources[name] = found
