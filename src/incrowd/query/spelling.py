"""One spelling for rows that mean the same, so that the ledger knows a question however it is written.

Names of tables are counted through, and what stands on both sides of AND, OR, = and <> is sorted. Renaming is
one to one and these four are commutative (no operand can raise), so two texts are the same only where the
rows are. Texts are for comparison alone: nothing of them is run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlglot import exp

_SORTED = {exp.And: "AND", exp.Or: "OR", exp.EQ: "=", exp.NEQ: "<>"}
_QUALIFIER = re.compile(r"""'(?:[^']|'')*'|"((?:[^"]|"")*)"(?=\.)""")


def names_of(rows: exp.Query) -> dict[str, str]:
    """The names that tables and subqueries have in `rows`, each with the one that it gets.

    >>> from sqlglot import parse_one
    >>> list(names_of(parse_one("SELECT v.x FROM visits AS v, (SELECT 1 AS y) AS w")))
    ['v', 'w']
    """
    names: dict[str, str] = {}
    for alias in rows.find_all(exp.TableAlias):
        if alias.name:
            names.setdefault(alias.name, f"\x01{len(names)}")
    return names


def spelled(rows: exp.Query, names: Mapping[str, str]) -> str:
    """The text of `rows` in their one spelling.

    >>> from sqlglot import parse_one
    >>> one = parse_one('SELECT "v"."x" FROM t AS "v" WHERE "v"."x" > 3 AND 2 = "v"."y"')
    >>> two = parse_one('SELECT "w"."x" FROM t AS "w" WHERE "w"."y" = 2 AND ("w"."x" > 3)')
    >>> spelled(one, names_of(one)) == spelled(two, names_of(two))
    True
    """
    tree = rows.copy()
    for alias in list(tree.find_all(exp.TableAlias)):
        if alias.name in names:
            alias.set("this", exp.to_identifier(names[alias.name], quoted=True))
    for column in tree.find_all(exp.Column):
        if column.table in names:
            column.set("table", exp.to_identifier(names[column.table], quoted=True))
    for node in reversed(list(tree.find_all(*_SORTED))):
        if not (isinstance(node, exp.Connector) and type(node) is type(_above(node))):
            texts = sorted(operand.sql("duckdb") for operand in _operands(node))
            node.replace(exp.Var(this=f"{_SORTED[type(node)]}({', '.join(texts)})"))
    return tree.sql("duckdb")


def renamed(text: str, names: Mapping[str, str]) -> str:
    """A text of SQL with quoted names for tables, with their new ones.

    >>> renamed('CAST("v"."x" AS DOUBLE) || \\'"v".\\'', {"v": "t0"})
    'CAST("t0"."x" AS DOUBLE) || \\'"v".\\''
    """

    def name(found: re.Match[str]) -> str:
        given = found.group(1)
        new = None if given is None else names.get(given.replace('""', '"'))
        return found.group(0) if new is None else f'"{new}"'

    return _QUALIFIER.sub(name, text)


def _above(node: exp.Expr) -> exp.Expr | None:
    """What a condition stands in, parentheses aside."""
    parent = node.parent
    while isinstance(parent, exp.Paren):
        parent = parent.parent
    return parent


def _operands(node: exp.Expr) -> list[exp.Expr]:
    """The operands of a comparison, or of a chain of the same connector; parentheses aside."""
    operands, waiting = [], [node.args["expression"], node.args["this"]]
    while waiting:
        operand = waiting.pop().unnest()
        if isinstance(node, exp.Connector) and type(operand) is type(node):
            waiting += [operand.args["expression"], operand.args["this"]]
        else:
            operands.append(operand)
    return operands
