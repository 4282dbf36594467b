"""What to say of public rows that match nobody: plain SQL counts them, and here they are about nobody."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query.ownership import World, sources
from incrowd.query.sql import from_items


def lone_rows(tree: exp.Query, world: World) -> tuple[str, ...]:
    """A sentence for each join that keeps public rows without a match, where rows are counted.

    The rules have rewritten the tree already.
    """
    said = []
    for select in tree.find_all(exp.Select):
        names = list(_kept(select, world)) if _counts_rows(select) else []
        if names and _is_of_rows(select, world):
            said += [
                f"Rows of {name} that match nobody's rows are about nobody and are not counted: COUNT(*) is "
                "about 0 there, where plain SQL says 1."
                for name in names
            ]
    return tuple(dict.fromkeys(said))


def _kept(select: exp.Select, world: World) -> Iterator[str]:
    """The public items of FROM of which a join beside private rows keeps those without a match."""
    before: list[exp.Expr] = from_items(select)[:1]
    for join in select.args.get("joins") or ():
        known, new = any(map(world.private, before)), world.private(join.this)
        if new and not known and join.side in ("LEFT", "FULL"):
            yield from (item.alias_or_name for item in before)
        if known and not new and join.side in ("RIGHT", "FULL"):
            yield join.this.alias_or_name
        before.append(join.this)


def _counts_rows(select: exp.Select) -> bool:
    return any(isinstance(node.this, exp.Star | exp.Literal) for node in select.find_all(exp.Count))


def _is_of_rows(select: exp.Select, world: World) -> bool:
    try:
        sources(select, world)
    except QueryError:
        return False  # It reads released numbers.
    return True
