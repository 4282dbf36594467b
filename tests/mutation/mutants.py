"""The mutants of a module: its syntax tree with one small fault in it, each with a line and a name.

A fault is a change that a careless edit could make: another comparison, AND for OR, one more or less, the
other branch, a check that never fires. Text in quotes is left alone, as most of it is prose.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
}
_PAIRS = (
    *(("min", "max"), ("any", "all"), ("floor", "ceil"), ("And", "Or"), ("LT", "LTE"), ("GT", "GTE")),
    *(("Add", "Sub"), ("Least", "Greatest"), ("Min", "Max"), ("EQ", "NEQ"), ("low", "high")),
)
_SWAPPED = {one: two for pair in _PAIRS for one, two in (pair, pair[::-1])}


@dataclass(frozen=True)
class Mutant:
    """One faulty tree of a module."""

    line: int
    fault: str
    tree: ast.Module


def mutants(source: str) -> list[Mutant]:
    """Every mutant of a module, in the order of its lines.

    >>> [(each.line, each.fault) for each in mutants("def f(x):\\n    return x < 1\\n")]
    [(2, 'returns None'), (2, 'Lt becomes LtE'), (2, '1 becomes 2')]
    """
    tree = ast.parse(source)
    made = []
    for place, node in enumerate(ast.walk(tree)):
        for fault, field, value in _faults(node):
            changed = copy.deepcopy(tree)
            setattr(list(ast.walk(changed))[place], field, value)
            made.append(Mutant(getattr(node, "lineno", 0), fault, ast.fix_missing_locations(changed)))
    return sorted(made, key=lambda mutant: mutant.line)


def _faults(node: ast.AST) -> Iterator[tuple[str, str, object]]:
    """What may go wrong at a node: in words, the field that changes, and its new value."""
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in _COMPARISONS:
            other = _COMPARISONS[type(operator)]
            yield f"{type(operator).__name__} becomes {other.__name__}", "ops", [other()]
        case ast.BoolOp(op=ast.And()):
            yield "and becomes or", "op", ast.Or()
        case ast.BoolOp():
            yield "or becomes and", "op", ast.And()
        case ast.BinOp(op=operator, left=left) if type(operator) in _ARITHMETIC and not _text(left):
            changed = _ARITHMETIC[type(operator)]
            yield f"{type(operator).__name__} becomes {changed.__name__}", "op", changed()
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "not is dropped", "operand", _negated(operand)
        case ast.UnaryOp(op=ast.USub()):
            yield "minus is dropped", "op", ast.UAdd()
        case ast.Constant(value=bool(value)):
            yield f"{value} becomes {not value}", "value", not value
        case ast.Constant(value=int(value) | float(value)) if abs(value) < 2**1000:
            yield f"{value} becomes {value + 1}", "value", value + 1
        case ast.Name(id=name) | ast.Attribute(attr=name) if name in _SWAPPED:
            field = "id" if isinstance(node, ast.Name) else "attr"
            yield f"{name} becomes {_SWAPPED[name]}", field, _SWAPPED[name]
        case ast.IfExp(test=test):
            yield "the other branch", "test", _negated(test)
        case ast.If(test=test, body=[ast.Raise()]):
            yield "never raised", "test", ast.Constant(False)
        case ast.If(test=test):
            yield "the condition is negated", "test", _negated(test)
        case ast.comprehension(ifs=[test, *rest]):
            yield "the filter is dropped", "ifs", rest
        case ast.Return(value=value) if value is not None and not isinstance(value, ast.Constant):
            yield "returns None", "value", ast.Constant(None)


def _negated(test: ast.expr) -> ast.expr:
    return ast.UnaryOp(ast.Not(), test)


def _text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
