"""The proof of a whole statement: its common table expressions in order, then every part of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from sqlglot import exp
from sqlglot.errors import SqlglotError

from incrowd.backends.totality.constructs import RULES
from incrowd.backends.totality.engine_rules import ENGINES, Engine
from incrowd.backends.totality.reading import as_read
from incrowd.backends.totality.values import TIMES, Value, calendar_only, hull
from incrowd.backends.totality.walk import Keys, NotTotalError, Walk, parts_of
from incrowd.backends.trees import digest_of, text_of
from incrowd.errors import BackendError, CatalogError

Columns = dict[str, Value]
_CLAUSES = ("expressions", "from_", "joins", "where", "group", "having", "with_", "distinct")
PIECE = "__piece"
"""The name under which a view's query reads its rows."""
_MOST_KEPT = 256


class Prover:
    """Proves for statements over some tables that no row can make the engine raise.

    `tables` maps each table to its columns and their engine types. `private` names the tables whose rows must
    stay secret; by default all. A statement that reads no private table passes without proof: if it fails, it
    fails for everybody.
    """

    def __init__(
        self,
        engine: str,
        tables: Mapping[str, Mapping[str, str]] | None = None,
        private: Collection[str] | None = None,
    ) -> None:
        self._engine = ENGINES[engine]
        self._tables = {
            self._engine.named(name): self._columns(types) for name, types in (tables or {}).items()
        }
        self._private = {
            self._engine.named(table) for table in (tables or {} if private is None else private)
        }
        self._proven: dict[bytes, None] = {}

    def _columns(self, types: Mapping[str, str]) -> Columns:
        return {self._engine.named(column): self._engine.columns(kind) for column, kind in types.items()}

    def view(self, name: str, pieces: Iterable[tuple[exp.Query, Mapping[str, str]]]) -> None:
        """Add a table that stacks queries over `PIECE`, each with the column types of its piece."""
        columns: Columns = {}
        for query, types in pieces:
            for column, value in self._readable(name, query, {PIECE: self._columns(types)}).items():
                both = hull(columns[column], value) if column in columns else value
                if both is None:
                    raise CatalogError(f"tables.{name}: its files have different types of {column}.")
                columns[column] = both
        self._tables[self._engine.named(name)] = columns
        self._proven.clear()

    def read(self, name: str, query: exp.Query) -> None:
        """CatalogError unless the query that reads a table is total."""
        self._readable(name, query, self._tables)

    def _readable(self, name: str, query: exp.Query, tables: Mapping[str, Columns]) -> Columns:
        failure = ""
        try:
            return self._proof(query, tables)
        except BackendError as error:
            failure = str(error)
        raise CatalogError(f"tables.{name}: {failure}")

    def prove(self, tree: exp.Query) -> None:
        """Raise `BackendError` unless the statement is total, or reads no private table."""
        if not {_place(self._engine, table) for table in tree.find_all(exp.Table)} & self._private:
            return
        # Not hash(tree), by which sqlglot compares trees: no two statements may share a proof by chance.
        mark = digest_of(tree, self._engine.name)
        if mark in self._proven:
            return
        self._proof(tree, self._tables, released=True)
        if len(self._proven) >= _MOST_KEPT:
            self._proven.pop(next(iter(self._proven)), None)
        self._proven[mark] = None

    def _proof(self, tree: exp.Query, tables: Mapping[str, Columns], released: bool = False) -> Columns:
        try:
            return self._proven_columns(tree, tables, released)
        except NotTotalError as error:
            part = text_of(error.node, self._engine.name)
            short = part if len(part) <= 60 else part[:57] + "..."
            failure = f"{short} is not known to be safe on every row ({error.why}); ask without it."
        except (SqlglotError, RecursionError, ArithmeticError):
            failure = "The statement is too involved to be checked; ask in smaller steps."
        # Raised outside the handlers, so that the new error does not carry the old one as its context.
        raise BackendError(failure)

    def _proven_columns(self, tree: exp.Query, tables: Mapping[str, Columns], released: bool) -> Columns:
        columns = _Scope(self._engine, tables, Keys()).columns(as_read(tree, self._engine.name))
        for value in columns.values() if released else ():
            if value.kind in TIMES and not calendar_only(value):
                raise NotTotalError(tree, "a date in its result may leave the calendar")
        return columns


def _fill(sources: dict[str, Columns], side: str, before: set[str]) -> None:
    """Mark the columns that an outer join fills with NULL where nothing matches."""
    for name in sources:
        if side == "FULL" or (side == "RIGHT" and name in before) or (side == "LEFT" and name not in before):
            sources[name] = {column: value.but(null=True) for column, value in sources[name].items()}


def _place(engine: Engine, table: exp.Table) -> str:
    return engine.named(f"{table.db}.{table.name}" if table.db else table.name)


class _Scope:
    """The relations that a query can name."""

    def __init__(self, engine: Engine, tables: Mapping[str, Columns], keys: Keys) -> None:
        self._engine = engine
        self._tables = tables
        self._keys = keys

    def columns(self, query: exp.Expr) -> Columns:
        """The columns of a query, after a proof of each of its expressions."""
        scope = self._with(query)
        if isinstance(query, exp.Union | exp.Intersect | exp.Except):
            return scope._stacked(query)
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
        for cte in clause.expressions:
            parts_of(cte, "this", "alias", "materialized")
            parts_of(cte.args["alias"], "this")
            columns = scope.columns(cte.this)
            name = self._engine.named(cte.alias)
            scope = _Scope(self._engine, {**scope._tables, name: columns}, self._keys)
        return scope

    def _stacked(self, query: exp.SetOperation) -> Columns:
        parts_of(query, "this", "expression", "distinct", "with_")
        sides = [self.columns(side) for side in (query.this, query.expression)]
        if len(sides[0]) != len(sides[1]):
            raise NotTotalError(query)
        columns: Columns = {}
        for (name, one), two in zip(sides[0].items(), sides[1].values(), strict=True):
            both = hull(one, two)
            if both is None:
                raise NotTotalError(query, f"{name} is of different types")
            columns[name] = both
        return columns

    def _select(self, select: exp.Select) -> Columns:
        parts_of(select, *_CLAUSES)
        sources: dict[str, Columns] = {}
        start, joins = select.args.get("from_"), select.args.get("joins") or []
        if start is not None:
            parts_of(start, "this")
            self._source(start.this, sources)
        for join in joins:
            parts_of(join, "this", "on", "side", "kind")
            before = set(sources)
            self._source(join.this, sources)
            _fill(sources, join.side.upper(), before)
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
        columns: Columns = {}
        for expression in select.expressions:
            name = self._engine.named(expression.alias_or_name)
            if name in columns or not name:
                raise NotTotalError(expression, "its name is not known")
            columns[name] = walk.value(expression.unalias())
        if group is not None:
            parts_of(group, "expressions")
            for key in group.expressions:
                walk.value(key)
        distinct = select.args.get("distinct")
        if distinct is not None:
            parts_of(distinct)
        return columns

    def _source(self, node: exp.Expr, sources: dict[str, Columns]) -> None:
        if isinstance(node, exp.Subquery):
            columns = self.columns(node)
        elif isinstance(node, exp.Table):
            parts_of(node, "this", "alias", "db")
            known = self._tables.get(_place(self._engine, node))
            if known is None:
                raise NotTotalError(node, "there is no such table")
            columns = known
        else:
            raise NotTotalError(node)
        alias = node.args.get("alias")
        if alias is not None:
            parts_of(alias, "this")
        name = self._engine.named(node.alias_or_name)
        if name in sources:
            raise NotTotalError(node, "its name is taken")
        sources[name] = columns
