"""Turns calls of functions by name into the constructs that the engine's parser would read.

An engine's dialect writes some functions only by their names. The rules of the proof are about constructs, so
each such call becomes the construct that the parser would make of it.
"""

from __future__ import annotations

from typing import TypeVar

from sqlglot import exp

_Node = TypeVar("_Node", bound=exp.Expr)


def as_read(tree: _Node, dialect: str) -> _Node:
    """The tree, with each call of a function that the dialect's parser knows replaced by its construct.

    >>> as_read(exp.Anonymous(this="STRPOS", expressions=[exp.column("a"), exp.column("b")]), "postgres").key
    'strposition'
    """
    if tree.find(exp.Anonymous) is None:
        return tree
    read = tree.copy()
    for node in reversed(list(read.find_all(exp.Anonymous))):
        construct = exp.func(str(node.this), *node.expressions, dialect=dialect)
        if isinstance(construct, exp.Anonymous):
            continue
        if node is read:
            return construct  # type: ignore[return-value]
        node.replace(construct)
    return read
