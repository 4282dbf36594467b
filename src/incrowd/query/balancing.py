"""Long chains of one operator as balanced trees: a thousand terms are ten levels deep and not a thousand.

Parsers read a + b + c as (a + b) + c. Planning, rendering and engines go down that tree by recursion, so a
long chain is refused for its depth. AND, OR, + and * are associative: AND and OR exactly, + and * up to the
rounding of floats, in one order that is the same on every engine. Short chains stay as they are read.
"""

from __future__ import annotations

from sqlglot import exp

LONGEST_CHAIN, MOST_TERMS = 64, 1_000
"""Chains of more terms than the first are balanced; of more than the second, refused for their depth."""
_ASSOCIATIVE = (exp.And, exp.Or, exp.Add, exp.Mul)


def balanced(tree: exp.Query) -> exp.Query:
    """The tree with its long chains balanced.

    >>> from sqlglot import parse_one
    >>> chain = parse_one("SELECT " + " + ".join(f"x{place}" for place in range(100)))
    >>> balanced(chain).sql().count("(")
    98
    """
    for chain in [node for node in _nodes(tree) if isinstance(node, _ASSOCIATIVE)]:
        if not isinstance(chain.parent, type(chain)):
            terms = _terms(chain)
            if LONGEST_CHAIN < len(terms) <= MOST_TERMS:
                for term in terms:
                    term.pop()
                whole = joined(type(chain), terms)
                chain.replace(whole)
    return tree


def _nodes(tree: exp.Expr) -> list[exp.Expr]:
    """Every node, parents first; without recursion, however deep they are."""
    nodes, waiting = [], [tree]
    while waiting:
        node = waiting.pop()
        nodes.append(node)
        waiting.extend(node.iter_expressions())
    return nodes


def _terms(chain: exp.Expr) -> list[exp.Expr]:
    """The terms of a chain as it was read, from left to right."""
    terms, node = [], chain
    while type(node) is type(chain):
        terms.append(node.args["expression"])
        node = node.args["this"]
    return [node, *reversed(terms)]


def joined(operator: type[exp.Expr], terms: list[exp.Expr]) -> exp.Expr:
    """Terms joined in halves; each half in parentheses."""
    if len(terms) == 1:
        return terms[0]
    middle = len(terms) // 2
    halves = (joined(operator, half) for half in (terms[:middle], terms[middle:]))
    first, second = (exp.Paren(this=half) if isinstance(half, operator) else half for half in halves)
    return operator(this=first, expression=second)
