"""The leaves of a question with levels (ROLLUP, CUBE, GROUPING SETS), and the SQL that stacks them.

Theorem. Let y be the vector of a measure over the finest groups, which one unit moves by at most C in L1
(`measure`). A level adds up the numbers of the finest groups that agree on its keys. One unit then moves the
level's vector by at most C in L1 as well: |sum of changes| is at most the sum of |changes|. In L2 that fails
(a unit with C / sqrt(m) in each of m groups moves their total by C sqrt(m)), so measures stay bounded in L1
here; noise for L2 may be added to them, since a vector is no longer in L2 than in L1. Each level is therefore
released like any sum, with a part of the same budget, and no row is read twice.

Where keys are private, the finest groups are chosen once, and levels add up the groups that are shown: for
any fixed choice the theorem holds for the rest, so the choice and the levels compose.

This needs numbers that add up: sums over rows, and counts of units where each row is one. A count of units
with several rows does not, nor does a quantile; then every level is a leaf of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sqlglot import exp

from incrowd.catalog.types import SQL_TYPES
from incrowd.query.grouping_sets import Groupings
from incrowd.query.measure import Measure
from incrowd.query.plan import Key, Leaf, Totals, deciding, released_name

STACKED = "levels"
"""What the stacked levels are called in the SQL above them."""
ALONE = (
    "Each level of groups is answered by itself here, for {} does not add up over groups: numbers of one "
    "level need not be the sums of another's. Ask for COUNT(*) and SUM alone, and they will be."
)
APART = (
    "Each level of groups is answered by itself here, for some groups are private and the finest level is "
    "not asked for: totals need not be the sums of their parts."
)
OF_SHOWN = "Totals are those of the groups that are shown; what is in hidden groups is left out of them."


def leaves_of(leaf: Leaf, rows: exp.Select, levels: Groupings, first: int) -> list[Leaf]:
    """The leaves of all levels, each once; `first` is the number that the first one will have.

    leaf: by all keys. rows: what it reads, without keys.
    """
    kept = list(dict.fromkeys(levels.levels))
    whole = tuple(range(len(leaf.keys)))
    if kept == [whole]:
        return [deciding(leaf)]
    if not (adds_up(leaf) and (leaf.public or whole in kept)):
        words = APART if adds_up(leaf) else ALONE.format(_not_adding(leaf))
        noted = _with_note(leaf, words)
        return [_alone(noted, rows, places) for places in kept]
    if not leaf.public:
        leaf = _with_note(leaf, OF_SHOWN)
    finest = replace(leaf, totals=Totals(first, whole, whole in kept))
    others = [
        replace(leaf, keys=_renamed(leaf.keys, places), totals=Totals(first, places))
        for places in kept
        if places != whole
    ]
    return [finest, *others]


def families(leaves: Sequence[Leaf]) -> dict[int, list[int]]:
    """The numbers of the leaves whose numbers add up, the finest first, by the number of that one."""
    found: dict[int, list[int]] = {}
    for index, leaf in enumerate(leaves):
        if leaf.totals is not None:
            found.setdefault(leaf.totals.finest, []).append(index)
    return found


def adds_up(leaf: Leaf) -> bool:
    """Whether the numbers of groups add up to those of their unions, for every measure."""
    return all(_additive(leaf, measure) for measure in leaf.measures.values())


def stacked(leaves: Sequence[Leaf], levels: Groupings, keys: Sequence[Key], first: int) -> exp.Subquery:
    """All levels on top of one another: keys k0, k1, ..., NULL where they are added up, and g0, g1, ...

    g is 1 where a key is added up, and 0 elsewhere.
    """
    kept = list(dict.fromkeys(levels.levels))
    order = {leaf.totals.kept: place for place, leaf in enumerate(leaves) if leaf.totals is not None}
    places = order or {level: place for place, level in enumerate(kept)}
    selects = [_level(leaves[places[level]], first + places[level], level, keys) for level in levels.levels]
    union: exp.Query = selects[0]
    for select in selects[1:]:
        union = exp.union(union, select, distinct=False, copy=False)
    return exp.Subquery(this=union, alias=exp.TableAlias(this=exp.to_identifier(STACKED, quoted=True)))


def above_stack(outer: exp.Select, ordered: bool, keys: int) -> exp.Select:
    """The SELECT over the stack: its columns are read there, and groups come before what adds them up."""
    if not ordered and outer.args.get("order"):
        outer = outer.order_by(*[exp.column(f"g{place}") for place in range(keys)])
    for column in list(_own(outer)):
        # Names in quotes are those of the answer's own columns, in ORDER BY.
        if not column.table and not column.this.quoted:
            column.replace(exp.column(column.name, table=STACKED, quoted=True))
    return outer


def _own(node: exp.Expr) -> Iterator[exp.Column]:
    """The columns of a SELECT, not those of queries inside it."""
    for part in node.iter_expressions():
        if isinstance(part, exp.Column):
            yield part
        elif not isinstance(part, exp.Query):
            yield from _own(part)


def _level(leaf: Leaf, index: int, level: Sequence[int], keys: Sequence[Key]) -> exp.Select:
    columns: list[exp.Expr] = []
    for place, key in enumerate(keys):
        here: exp.Expr = exp.cast(exp.null(), SQL_TYPES[key.kind])
        if place in level:
            here = exp.column(f"k{level.index(place)}")
        columns.append(exp.alias_(here, key.name, quoted=True))
    for aggregate in leaf.aggregates:
        columns.append(exp.alias_(exp.column(aggregate.name), aggregate.name, quoted=True))
    for place in range(len(keys)):
        bit = exp.Literal.number(int(place not in level))
        columns.append(exp.alias_(bit, f"g{place}", quoted=True))
    return exp.select(*columns, copy=False).from_(exp.to_table(released_name(index)))


def _additive(leaf: Leaf, measure: Measure) -> bool:
    if measure.buckets or measure.level == "value":
        return False
    return measure.level == "row" or measure.ball != "" or not leaf.units


def _not_adding(leaf: Leaf) -> str:
    """The first aggregate that does not add up."""
    return next(
        aggregate.label
        for aggregate in leaf.aggregates
        if not all(_additive(leaf, leaf.measures[name]) for name in aggregate.measures)
    )


def _alone(leaf: Leaf, rows: exp.Select, places: Sequence[int]) -> Leaf:
    """The leaf by some of its keys, as if nothing else were asked. Without keys, a unit is in one group."""
    keys = _renamed(leaf.keys, places)
    measures = dict(leaf.measures)
    if not keys:
        measures = {
            name: measure.capped(1.0)
            if measure.level == "pair" and not measure.ball and (measure.value is None or measure.by_pairs)
            else measure
            for name, measure in measures.items()
        }
    return deciding(replace(leaf, rows=with_keys(rows, keys), keys=keys, measures=measures))


def with_keys(rows: exp.Select, keys: Sequence[Key]) -> exp.Select:
    """The rows with their keys."""
    for key in keys:
        rows = rows.select(exp.alias_(key.sql.copy(), key.name))
    return rows


def _renamed(keys: Sequence[Key], places: Sequence[int]) -> tuple[Key, ...]:
    return tuple(replace(keys[place], name=f"k{number}") for number, place in enumerate(places))


def _with_note(leaf: Leaf, note: str) -> Leaf:
    if not leaf.aggregates:
        return leaf
    head, *rest = leaf.aggregates
    return replace(leaf, aggregates=(replace(head, note=f"{head.note} {note}".strip()), *rest))
