"""Group keys: public ones with the SQL that lists them, private ones without.

A key is public if its values can be listed without looking at private rows: from the query's own text (CASE with
constants, truth values, parts of dates, WHERE x IN (...)), from the declared domain of its columns, or by counting
through narrow bounds. The list is then every value of the expression over the product of those domains.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from incrowd.catalog import Catalog
from incrowd.errors import QueryError
from incrowd.query.expressions import total
from incrowd.query.plan import Key
from incrowd.query.relations import Relation, Sources
from incrowd.query.sql import DIALECT
from incrowd.query.typed import ENUMERABLE, Field, Typed, enumerated, literal, lookup_in

_TYPES = {"integer": "BIGINT", "float": "DOUBLE", "text": "TEXT", "boolean": "BOOLEAN", "date": "DATE", "timestamp": "TIMESTAMP"}


def narrowed(below: Sources, where: exp.Expression | None) -> Sources:
    """The sources with what WHERE says about their columns: x IN (...) and x = ... list the values there are."""
    items: dict[str, Relation] = dict(below.items)
    todo = [] if where is None else [where]
    while todo:
        node = todo.pop()
        if isinstance(node, exp.And):
            todo += [node.this, node.expression]
        elif isinstance(node, exp.Paren):
            todo.append(node.this)
        elif isinstance(node, exp.In | exp.EQ) and isinstance(node.this, exp.Column):
            column = node.this
            listed = node.expressions if isinstance(node, exp.In) else [node.expression]
            try:
                found = [total(each, below.lookup) for each in listed]
            except QueryError:
                continue
            values = [each.values[0] for each in found if each.values is not None and len(each.values) == 1 and not each.nullable]
            relation = items.get(column.table)
            if relation is None or not values or len(values) != len(listed):
                continue
            field = relation.fields[column.name]
            if field.kind not in ("integer", "text") or any(not isinstance(each, int if field.kind == "integer" else str) for each in values):
                continue
            kept = tuple(dict.fromkeys(values)) if field.values is None else tuple(each for each in values if each in field.values)
            fields = {**relation.fields, column.name: replace(field, values=kept, nullable=False, domain=None)}
            items[column.table] = replace(relation, fields=fields)
    return replace(below, items=items)


def key_for(index: int, node: exp.Expression, below: Sources, catalog: Catalog) -> Key:
    """The key of one GROUP BY expression."""
    typed = total(node, below.lookup)
    label = node.name if isinstance(node, exp.Column) else node.sql(DIALECT)
    if below.units is not None and any(node.sql() == each.sql() for each in below.units):
        raise QueryError(f"Grouping by {label} alone would single out each protected unit; group by something that many of them share.")
    columns = {(each.table, each.name): below.items[each.table].fields[each.name] for each in node.find_all(exp.Column)}
    for (_, name), field in columns.items():
        if field.per_unit and len(below.units or ()) == 1:
            raise QueryError(f"{name} identifies the protected unit, so it cannot be part of a group key; count it with COUNT(DISTINCT {name}).")
    if typed.kind == "null":
        raise QueryError("GROUP BY NULL makes no groups; leave it out.")
    sql = typed.sql
    if typed.kind == "integer":
        sql = exp.TryCast(this=sql, to=exp.DataType.build("BIGINT"))
    return Key(f"k{index}", sql, typed.kind, _domain(node, typed, columns, below, catalog), label)


def _domain(node: exp.Expression, typed: Typed, columns: Mapping[tuple[str, str], Field], below: Sources, catalog: Catalog) -> str | None:
    kind = _TYPES[typed.kind]
    if not isinstance(node, exp.Column) and typed.values is not None and (columns == {} or _listed(columns) is None):
        return _values(list(typed.values) + ([None] if typed.nullable else []), kind)
    sizes = _listed(columns)
    if sizes is None or sizes > ENUMERABLE:
        return None
    tables: dict[str, list[tuple[str, str]]] = {}
    for (alias, name), field in columns.items():
        tables.setdefault(alias, []).append((name, _column_values(field, catalog)))
    joined = []
    scope: dict[str, dict[str, Field]] = {}
    for alias, parts in tables.items():
        inner = ", ".join(f'({sql}) AS "{name}_"("{name}")' for name, sql in parts)
        picked = ", ".join(f'"{name}"' for name, _ in parts)
        joined.append(f'(SELECT {picked} FROM {inner}) AS "{alias}"')
        scope[alias] = {name: below.items[alias].fields[name] for name, _ in parts}
    again = total(node, lookup_in(scope)).sql.sql(DIALECT)
    source = f" FROM {', '.join(joined)}" if joined else ""
    return f"SELECT DISTINCT CAST({again} AS {kind}) AS v{source}"


def _listed(columns: Mapping[tuple[str, str], Field]) -> int | None:
    """How many combinations of values the columns have; None where one of them cannot be listed."""
    size = 1
    for field in columns.values():
        values = enumerated(field)
        if values is None and field.domain is None:
            return None
        size *= len(values or ()) + 1
    return size


def _column_values(field: Field, catalog: Catalog) -> str:
    kind = _TYPES[field.kind]
    if field.domain is not None:
        table, _, column = field.domain.partition(".")
        picked = f'SELECT DISTINCT TRY_CAST("{column}" AS {kind}) AS v FROM "{table}" WHERE "{column}" IS NOT NULL'
        return picked + (f" UNION ALL SELECT CAST(NULL AS {kind})" if field.nullable else "")
    values = list(enumerated(field) or ())
    return _values(values + ([None] if field.nullable else []), kind)


def _values(values: list[object], kind: str) -> str:
    rows = ", ".join(f"(CAST({literal(each).sql(DIALECT)} AS {kind}))" for each in values)
    if not rows:
        return f"SELECT CAST(NULL AS {kind}) AS v WHERE FALSE"
    return f"SELECT v FROM (VALUES {rows}) AS t(v)"
