"""Statements that tests write as text."""

from __future__ import annotations

from sqlglot import exp, parse_one

from incrowd.query.sql import DIALECT


def tree(sql: str, dialect: str = DIALECT) -> exp.Query:
    """The tree of a statement."""
    parsed = parse_one(sql, read=dialect)
    assert isinstance(parsed, exp.Query), sql
    return parsed
