"""Statements that tests write as text, and trees as they are compared."""

from __future__ import annotations

from typing import Any

from sqlglot import exp, parse_one

from incrowd.query.sql import DIALECT

_SAME: dict[Any, Any] = {
    exp.DType.TIMESTAMPNTZ: exp.DType.TIMESTAMP,
    exp.DType.VARCHAR: exp.DType.TEXT,
    "DOW": "DAYOFWEEK",
}
"""Two spellings of one thing."""
_HINTS = {"quoted", "nested", "typed", "safe", "big_int", "ignore_nulls", "kind", "over"}
"""What the parser notes, and neither the proof nor the text depends on."""


def tree(sql: str, dialect: str = DIALECT) -> exp.Query:
    """The tree of a statement."""
    parsed = parse_one(sql, read=dialect)
    assert isinstance(parsed, exp.Query), sql
    return parsed


def plain(node: Any, engine: str = "duckdb") -> Any:
    """A tree without what has no meaning to the proof: parentheses, defaults, hints of the parser."""
    if isinstance(node, exp.Paren):
        return plain(node.this, engine)
    if isinstance(node, list):
        return tuple(plain(child, engine) for child in node)
    if not isinstance(node, exp.Expr):
        return _SAME.get(node, node)
    parts = {name: plain(part, engine) for name, part in node.args.items() if part and name not in _HINTS}
    # Spark's parser reads CAST as TRY_CAST without `safe`, and so does the proof.
    cast = engine == "spark" and isinstance(node, exp.TryCast) and not node.args.get("safe")
    return "cast" if cast else node.key, tuple(sorted(parts.items(), key=lambda item: item[0]))
