"""GROUP BY ROLLUP, CUBE and GROUPING SETS: which keys there are, and by which of them each level groups.

ROLLUP (a, b) stands for the levels (a, b), (a) and (); CUBE (a, b) for all subsets; GROUPING SETS lists
levels. Several of them beside each other are combined, as in plain SQL: GROUP BY a, ROLLUP (b) is (a, b) and
(a). A level that is written twice is two levels, which show the same numbers.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query.sql import DIALECT
from incrowd.query.typed import said

MOST_LEVELS = 64
"""The most levels of one question: CUBE of six keys."""
_WORDS = (exp.Rollup, exp.Cube, exp.GroupingSets)
_WITH = ("rollup", "cube")
_Level = tuple[exp.Expr, ...]


@dataclass(frozen=True)
class Groupings:
    """The keys of a GROUP BY with levels, each once, and the places of each level's keys among them."""

    keys: tuple[exp.Expr, ...]
    levels: tuple[tuple[int, ...], ...]

    def grouping(self, node: exp.Expr) -> exp.Expr | None:
        """GROUPING(a, b) as a number over the columns g0, g1, ...; None for any other expression.

        A key's bit is 1 in the levels that add it up; the last key has the lowest bit.
        """
        if not isinstance(node, exp.Grouping | exp.GroupingId):
            return None
        texts = [key.sql(DIALECT) for key in self.keys]
        bits: list[exp.Expr] = []
        for argument in node.expressions:
            if argument.sql(DIALECT) not in texts:
                raise QueryError(f"{said(node)} takes keys of GROUP BY; {said(argument)} is none.")
            bits.append(exp.column(f"g{texts.index(argument.sql(DIALECT))}"))
        if not bits:
            raise QueryError(f"{said(node)} needs a key of GROUP BY, as in GROUPING({said(self.keys[0])}).")
        value = bits[0]
        for bit in bits[1:]:
            double = exp.Mul(this=value, expression=exp.Literal.number(2))
            value = exp.Add(this=double, expression=bit)
        return value if len(bits) == 1 else exp.paren(value)


def has_levels(select: exp.Select) -> bool:
    """Whether a SELECT groups by ROLLUP, CUBE or GROUPING SETS."""
    group = select.args.get("group")
    if group is None:
        return False
    return any(isinstance(item, _WORDS) for item in group.expressions) or any(
        group.args.get(word) for word in (*_WITH, "grouping_sets")
    )


def groupings(select: exp.Select) -> Groupings | None:
    """The levels of a SELECT; None if it has no ROLLUP, CUBE or GROUPING SETS."""
    if not has_levels(select):
        return None
    group = select.args["group"]
    if group.args.get("all") or group.args.get("totals"):
        raise QueryError("GROUP BY ALL cannot stand beside ROLLUP, CUBE or GROUPING SETS; name the keys.")
    items = [*group.expressions]
    for word in _WITH:
        for written in group.args.get(word) or []:
            if written.expressions:
                items.append(written)
            else:  # GROUP BY a, b WITH ROLLUP
                items = [type(written)(expressions=[item.copy() for item in items])]
    items += group.args.get("grouping_sets") or []
    if sum(1 for item in items if item.find(exp.Rollup, exp.Cube, exp.GroupingSets)) > MOST_LEVELS:
        raise _too_many()
    columns = select.expressions
    factors = [_levels(item, columns) for item in items]
    levels: list[_Level] = [()]
    for factor in factors:
        if len(levels) * len(factor) > MOST_LEVELS:
            raise _too_many()
        levels = [before + after for before, after in itertools.product(levels, factor)]
    keys: dict[str, exp.Expr] = {}
    for item in items:
        for key in _keys_in(item, columns):
            keys.setdefault(key.sql(DIALECT), key)
    places: Mapping[str, int] = {text: place for place, text in enumerate(keys)}
    found = tuple(tuple(sorted({places[key.sql(DIALECT)] for key in level})) for level in levels)
    return Groupings(tuple(keys.values()), found)


def _levels(item: exp.Expr, columns: Sequence[exp.Expr]) -> list[_Level]:
    """The levels that one item of GROUP BY stands for."""
    if isinstance(item, exp.GroupingSets):
        levels = [level for part in item.expressions for level in _levels(part, columns)]
        if len(levels) > MOST_LEVELS:
            raise _too_many()
        return levels or [()]
    if isinstance(item, exp.Rollup):
        parts = [_together(part, columns) for part in item.expressions]
        return [tuple(itertools.chain(*parts[:size])) for size in range(len(parts), -1, -1)]
    if isinstance(item, exp.Cube):
        parts = [_together(part, columns) for part in item.expressions]
        if 2 ** len(parts) > MOST_LEVELS:
            raise _too_many()
        kept = itertools.product((True, False), repeat=len(parts))
        return [tuple(itertools.chain(*itertools.compress(parts, choice))) for choice in kept]
    return [_together(item, columns)]


def _together(item: exp.Expr, columns: Sequence[exp.Expr]) -> _Level:
    """The keys of a pair of brackets, or one key."""
    if isinstance(item, exp.Tuple):
        return tuple(_key(part, columns) for part in item.expressions)
    return (_key(item, columns),)


def _keys_in(item: exp.Expr, columns: Sequence[exp.Expr]) -> list[exp.Expr]:
    """All keys of an item, in the order in which they are written."""
    if isinstance(item, (*_WORDS, exp.Tuple)):
        return [key for part in item.expressions for key in _keys_in(part, columns)]
    return [_key(item, columns)]


def _key(node: exp.Expr, columns: Sequence[exp.Expr]) -> exp.Expr:
    """A key; the number of a column stands for that column."""
    node = node.unnest()
    if isinstance(node, exp.Literal) and not node.is_string:
        place = int(node.this) if node.this.isdecimal() else 0
        if not 1 <= place <= len(columns):
            raise QueryError(f"GROUP BY {node.this} is the number of no column; name the key.")
        node = columns[place - 1].unalias()
    return node.copy()


def _too_many() -> QueryError:
    return QueryError(
        f"GROUP BY makes more than {MOST_LEVELS} levels; list those that are needed in GROUPING SETS."
    )
