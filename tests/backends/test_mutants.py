"""The properties have teeth: each classic mistake, put back into the code, is caught by one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from sqlglot import exp

from incrowd.backends import DuckDB, balls, statement
from incrowd.backends.measures import weight_of
from incrowd.backends.trees import applied, chosen, column, integer, joined
from incrowd.query import Leaf, joining, per_unit
from incrowd.query.typed import Typed, double
from tests.backends.exactness import check_exactness
from tests.backends.grammar import Asked, Source
from tests.backends.houses import check_leaf, plan_of, tables_from

SEEDS = range(6)
PER_USER = "(SELECT user_id, COUNT(*) AS many, SUM(f) AS fs FROM visits GROUP BY user_id) AS p"


def leaf_of(sql: str) -> Leaf:
    (leaf,) = plan_of(sql, "user", rows=1, groups=1).leaves
    return leaf


def check(sql: str, wild: bool) -> None:
    """The properties of one unit, on some tables."""
    leaf = leaf_of(sql)
    for seed in SEEDS:
        check_leaf(leaf, "user", "add-remove", tables_from(seed, wild), 0, 1, most=9)


def caught(sql: str, wild: bool = False) -> None:
    with pytest.raises(AssertionError):
        check(sql, wild)


@pytest.mark.parametrize(
    "aggregate", ["SUM(v.x)", "COUNT(*)", "AVG(v.x)", "MEDIAN(v.x)", "COUNT(DISTINCT v.user_id)"]
)
def test_weights_that_are_not_applied_are_caught(monkeypatch: pytest.MonkeyPatch, aggregate: str) -> None:
    def unshrunk(value: exp.Expr, weight: exp.Expr, cap: int) -> exp.Expr:
        return value

    def whole_share(weight: exp.Expr, cap: int, root: bool = False) -> exp.Expr:
        return double(1.0)

    sql = f"SELECT v.cat, {aggregate} FROM visits AS v GROUP BY v.cat"
    check(sql, wild=False)
    monkeypatch.setattr(statement, "_shrunk", unshrunk)
    for module in (statement, balls):
        monkeypatch.setattr(module, "share_of", whole_share)
    caught(sql)


@pytest.mark.parametrize("aggregate", ["AVG(v.x)", "CORR(v.x, v.f)"])
@pytest.mark.parametrize("l2", [False, True])
def test_a_ball_that_is_left_is_caught(monkeypatch: pytest.MonkeyPatch, aggregate: str, l2: bool) -> None:
    """A norm that is rounded down lets a unit in many groups leave the ball by a few steps."""
    sql = f"SELECT v.cat, {aggregate} FROM visits AS v GROUP BY v.cat"
    (leaf,) = plan_of(sql, "user").leaves
    bounded = leaf.in_l2() if l2 else leaf

    def replay() -> None:
        for seed in SEEDS:
            check_leaf(bounded, "user", "add-remove", tables_from(seed, False), 3, 1, most=9)

    def rounded_down(sums: Sequence[str], coarse: int) -> exp.Expr:
        sizes: list[exp.Expr] = [
            joined(exp.IntDiv, applied(exp.Abs, column(name)), integer(coarse)) for name in sums
        ]
        most = integer(2**28)
        sizes = [chosen((joined(exp.LTE, size, most), size), default=most) for size in sizes]
        return weight_of(balls._added([joined(exp.Mul, size, size) for size in sizes]), False)

    replay()
    if l2:
        monkeypatch.setattr(balls, "_square_norm", rounded_down)
    else:
        monkeypatch.setattr(balls, "share_of", lambda *_, **__: double(1.0))
    with pytest.raises(AssertionError):
        replay()


def test_rows_of_nobody_that_are_kept_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def kept(node: exp.Expr) -> exp.Expr:
        return exp.true() if isinstance(node, exp.Not) and isinstance(node.this, exp.Is) else node

    sql = f"SELECT COUNT(*) FROM {PER_USER}"
    leaf = leaf_of(sql)
    check(sql, wild=True)
    careless = replace(leaf, rows=leaf.rows.transform(kept))
    with pytest.raises(AssertionError):
        for seed in SEEDS:
            check_leaf(careless, "user", "add-remove", tables_from(seed, wild=True), 0, 1, most=9)


def test_a_join_of_private_tables_without_the_unit_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joining, "_joins_on_unit", lambda *_: True)
    caught("SELECT COUNT(*) FROM visits AS v JOIN steps AS s ON v.x = s.m")


def test_a_float_sum_per_unit_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def plain(node: exp.Expr, value: Typed, chosen: per_unit.Chosen) -> Typed:
        return Typed(exp.Sum(this=chosen(value.sql)), "float")

    sql = f"SELECT p.fs, COUNT(*) FROM {PER_USER} GROUP BY p.fs"
    check(sql, wild=False)
    monkeypatch.setattr(per_unit, "_fixed_point", plain)
    # The statement is refused as one that may raise; here the property must notice by itself.
    monkeypatch.setattr(DuckDB, "prove", lambda self, sql: None)
    caught(sql)


def test_counting_rows_instead_of_pairs_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    sql = "SELECT COUNT(DISTINCT v.user_id) AS value0 FROM visits AS v"
    asked = Asked(sql, sql, "user", 0, ("COUNT(DISTINCT v.user_id)",), Source("visits AS v", (), (), ()))
    (leaf,) = plan_of(sql, "user", rows=1000, groups=1000).leaves
    (name,) = leaf.measures

    def check_all(given: Leaf) -> None:
        for seed in SEEDS:
            check_exactness(asked, given, tables_from(seed, wild=False))

    check_all(leaf)
    row_level = replace(leaf.measures[name], level="row", cap=1000.0)
    with pytest.raises(AssertionError):
        check_all(replace(leaf, measures={name: row_level}))


def test_the_right_side_of_a_left_join_does_not_say_whose_row_it_is() -> None:
    """Rows without a match would all be grouped under NULL, whoever they belong to."""
    inner = "SELECT s.user_id, COUNT(*) AS many, MAX(v.x) AS top FROM visits AS v LEFT JOIN steps AS s "
    inner += "ON v.user_id = s.user_id AND s.m > 99 GROUP BY s.user_id"
    sql = f"SELECT SUM(LEAST(p.many, 99)) FROM ({inner}) AS p"
    (leaf,) = plan_of(sql, "user", rows=1, groups=1).leaves
    assert [key.label for key in leaf.keys] == [
        "user_id"
    ]  # groups of people, to be released: not one per person
    check(sql, wild=True)
