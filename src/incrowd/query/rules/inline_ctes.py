"""Common table expressions are put where they are used, so that one walk sees everything.

The innermost WITH goes first: its names hide those of the WITHs around it, and its bodies may use them.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from incrowd.catalog.names import fold
from incrowd.errors import QueryError
from incrowd.query.ownership import World

MOST_NODES = 20_000


def inline_ctes(tree: exp.Query, world: World) -> exp.Query:
    """The tree without WITH."""
    while True:
        clauses = list(tree.find_all(exp.With))
        if not clauses:
            return tree
        with_ = max(clauses, key=lambda clause: clause.depth)
        owner = with_.parent
        assert isinstance(owner, exp.Query)
        known = _bodies(with_)
        owner.set("with_", None)
        if owner is tree:
            tree = _use(tree, known)
        else:
            owner.replace(_use(owner.copy(), known))
        _refuse_giants(tree)


def _bodies(with_: exp.With) -> dict[str, exp.Expr]:
    """The body of each name, with the names before it put in."""
    if with_.recursive:
        raise QueryError("WITH RECURSIVE is not possible; write the steps out as sub-queries.")
    known: dict[str, exp.Expr] = {}
    for cte in with_.expressions:
        if cte.args["alias"].columns:
            raise QueryError(f"Name the columns of {cte.alias} inside its SELECT, with AS.")
        if not isinstance(cte.this, exp.Query) or any(
            value for key, value in cte.args.items() if key not in ("this", "alias", "materialized")
        ):
            raise QueryError(f"{cte.alias} in WITH must be a SELECT.")
        if fold(cte.alias) in known:
            raise QueryError(f"Two parts of WITH are called {cte.alias}; rename one.")
        known[fold(cte.alias)] = _use(cte.this, known)
        _refuse_giants(known[fold(cte.alias)])
    return known


def _refuse_giants(tree: exp.Expr) -> None:
    """Refuse a tree that is too large: if each name uses the one before it twice, every step doubles it."""
    if sum(1 for _ in tree.walk()) > MOST_NODES:
        raise QueryError("The question is too large; ask it in smaller parts.")


def _use(node: exp.Expr, known: Mapping[str, exp.Expr]) -> exp.Query:
    def swap(part: exp.Expr) -> exp.Expr:
        if not isinstance(part, exp.Table) or part.args.get("db") or fold(part.name) not in known:
            return part
        if any(value for key, value in part.args.items() if key not in ("this", "alias", "joins")):
            raise QueryError(f"{part.name} is used with a modifier that is not possible here; leave it out.")
        alias_given = part.args.get("alias")
        if isinstance(alias_given, exp.TableAlias) and alias_given.columns:
            raise QueryError(f"Name the columns of {part.alias_or_name} inside its SELECT, with AS.")
        alias = exp.TableAlias(this=exp.to_identifier(part.alias_or_name, quoted=True))
        return exp.Subquery(this=known[fold(part.name)].copy(), alias=alias, joins=part.args.get("joins"))

    result = node.transform(swap)
    assert isinstance(result, exp.Query)
    return result
