"""The rewrites that a question goes through before it is planned, one file each, in this order.

Each is a pure function from a tree to a tree that means the same, or refuses it in a sentence. After the
last one every column carries its table, every name is spelled as the planner folds it, and no WITH is left.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from incrowd.query.ownership import World
from incrowd.query.rules.drop_parens import drop_parens
from incrowd.query.rules.drop_schemas import drop_schemas
from incrowd.query.rules.expand_tests import expand_tests
from incrowd.query.rules.inline_ctes import inline_ctes
from incrowd.query.rules.join_sub_queries import join_sub_queries
from incrowd.query.rules.list_public import list_public
from incrowd.query.rules.name_aggregates import name_aggregates
from incrowd.query.rules.name_columns import name_columns
from incrowd.query.rules.qualify_names import qualify_names
from incrowd.query.rules.turn_joins import turn_joins

Rule = Callable[[exp.Query, World], exp.Query]
RULES: tuple[Rule, ...] = (
    drop_parens,
    expand_tests,
    name_aggregates,
    name_columns,
    inline_ctes,
    drop_schemas,
    qualify_names,
    turn_joins,
    list_public,
    join_sub_queries,
)


def rewrite(tree: exp.Query, world: World) -> exp.Query:
    """The tree after all rules."""
    for rule in RULES:
        tree = rule(tree, world)
    return tree


__all__ = ["RULES", "Rule", "rewrite"]
