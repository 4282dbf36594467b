"""Grants: paid once and durably, used step by step, never beyond the schedule."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlglot

from incrowd import (
    BackendError,
    BudgetExceeded,
    Curator,
    IncrowdError,
    InvalidInput,
    LedgerError,
    NotPermitted,
    QueryError,
)
from incrowd.curator import grants, pricing
from incrowd.curator.grants import Grant
from incrowd.curator.schedule import Step, Strength
from incrowd.mechanisms import Gaussian, Laplace
from incrowd.noise import categorical

TOWNS = ["a", "b", "c"]
ALL = {"sums": 2, "histogram": 1, "tree": 1, "select": 1}


def table(rows: int = 300) -> pa.Table:
    place = np.arange(rows)
    towns = pa.array([TOWNS[i % 3] for i in range(rows)])
    return pa.table(
        {"id": place // 2, "age": 20 + place % 50, "pay": (place % 7).astype(float), "town": towns}
    )


def curator(rows: pa.Table | None = None, **more: Any) -> Curator:
    settings: dict[str, Any] = {
        "unit": "id",
        "bounds": {"age": (18, 90), "pay": (0, 10)},
        "domains": {"town": TOWNS},
        "budget": (100, 1e-4),
    }
    return Curator.from_tables(t=table() if rows is None else rows, **{**settings, **more})


def spent(made: Curator) -> Any:
    return made.budget()[0].spent


USES: dict[str, Callable[[Grant], Any]] = {
    "sums": lambda grant: grant.sums("SELECT town, SUM(pay) AS s FROM t GROUP BY town", contribution=2),
    "histogram": lambda grant: grant.histogram("SELECT town FROM t", contribution=2),
    "tree": lambda grant: grant.tree("SELECT age FROM t", contribution=2),
    "select": lambda grant: grant.select("SELECT town, COUNT(*) AS n FROM t GROUP BY town", contribution=2),
}


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_whole_price_is_spent_before_anything_is_read(delta: float) -> None:
    made = curator()
    grant = made.grant(2.0, delta, purpose="all", schedule=ALL)
    before = spent(made)
    assert before.epsilon is not None and before.epsilon > 0
    for use in USES.values():
        use(grant)
    assert spent(made) == before and grant.left == {"sums": 1}
    assert grant.cost.epsilon(delta) <= 2.0


@pytest.mark.parametrize("kind", USES)
def test_no_step_is_used_twice(kind: str) -> None:
    grant = curator().grant(2.0, purpose="once", schedule={kind: 1})  # type: ignore[dict-item]
    USES[kind](grant)
    with pytest.raises(NotPermitted, match=f"no step left for {kind}"):
        USES[kind](grant)


@pytest.mark.parametrize("kind", USES)
def test_another_kind_of_step_does_not_stand_in(kind: str) -> None:
    other = next(name for name in USES if name != kind)
    grant = curator().grant(2.0, purpose="other", schedule={other: 3})  # type: ignore[dict-item]
    with pytest.raises(NotPermitted, match="no step left"):
        USES[kind](grant)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_answers_are_near_the_truth_at_a_large_epsilon(delta: float) -> None:
    grant = curator(budget=(10_000, 1e-4)).grant(5_000.0, delta, purpose="truth", schedule=ALL)
    sums = USES["sums"](grant).to_arrow().to_pydict()
    truth = {
        town: float(sum(i % 7 for i in range(300) if i % 3 == place)) for place, town in enumerate(TOWNS)
    }
    assert dict(zip(sums["town"], sums["s"], strict=True)) == pytest.approx({**truth, None: 0.0}, abs=4)
    counts = USES["histogram"](grant).to_arrow().to_pydict()
    assert dict(zip(counts["town"], counts["n"], strict=True)) == {"a": 100, "b": 100, "c": 100, None: 0}
    tree = USES["tree"](grant)
    assert tree.total == pytest.approx(300, abs=1) and tree.quantile(0.49) == 44
    assert tree.quantile(0.01) == 20 and tree.quantile(0.99) == 69
    chosen = grant.select("SELECT town, SUM(pay) AS s FROM t GROUP BY town", contribution=2)
    assert chosen == {"town": max(truth, key=truth.__getitem__)}


def test_what_is_recorded_is_recalled_free_and_closes_the_grant(tmp_path: Path) -> None:
    with curator(ledger=tmp_path / "ledger.db", new_ledger=True) as made:
        grant = made.grant(1.0, purpose="model", about={"k": 3})
        assert grant.recorded is None and not grant.recalled
        grant.record(b"the model")
        paid = spent(made)
        with pytest.raises(LedgerError):
            grant.record(b"another")
        again = made.grant(1.0, purpose="model", about={"k": 3})
        assert again.recalled and again.recorded == b"the model" and spent(made) == paid
        with pytest.raises(NotPermitted, match="on record"):
            USES["sums"](again)
        others: list[dict[str, Any]] = [
            {"purpose": "model", "about": {"k": 4}},
            {"purpose": "another model", "about": {"k": 3}},
            {"purpose": "model", "about": {"k": 3}, "schedule": {"sums": 2}},
        ]
        for other in others:
            assert made.grant(1.0, **other).recorded is None
        assert made.ledger.verify().ok


def test_a_crash_leaves_the_price_spent(tmp_path: Path) -> None:
    file = tmp_path / "ledger.db"
    with curator(ledger=file, new_ledger=True) as made:
        made.grant(1.0, purpose="crash")
        paid = spent(made)
    with curator(ledger=file) as made:
        assert spent(made) == paid
        assert made.grant(1.0, purpose="crash").recorded is None
        assert spent(made).epsilon == 2 * paid.epsilon


REFUSED: list[tuple[Callable[[Curator, Grant], Any], type[IncrowdError], str]] = [
    (lambda made, grant: grant.sums("SELECT COUNT(*) FROM t"), QueryError, "contribution="),
    (lambda made, grant: grant.sums("SELECT MEDIAN(age) FROM t", contribution=2), QueryError, "grant.tree"),
    (lambda made, grant: grant.sums("SELECT age FROM t", contribution=2), QueryError, "rows of people"),
    (lambda made, grant: grant.tree("SELECT town FROM t", contribution=2), QueryError, "needs numbers"),
    (lambda made, grant: grant.tree("SELECT age, pay FROM t", contribution=2), QueryError, "one column"),
    (
        lambda made, grant: grant.tree("SELECT age FROM t", branching=1, contribution=2),
        InvalidInput,
        "branching",
    ),
    (
        lambda made, grant: grant.histogram("SELECT town, COUNT(*) FROM t GROUP BY town"),
        QueryError,
        "without GROUP BY",
    ),
    (lambda made, grant: grant.histogram("SELECT pay FROM t", contribution=2), QueryError, "not public"),
    (
        lambda made, grant: grant.select("SELECT COUNT(*) AS n FROM t", contribution=2),
        QueryError,
        "by groups",
    ),
    (
        lambda made, grant: grant.select("SELECT town, -SUM(pay) FROM t GROUP BY town", contribution=2),
        QueryError,
        "nothing computed",
    ),
    (
        lambda made, grant: grant.select(
            "SELECT town, COUNT(*) AS n FROM t GROUP BY town HAVING COUNT(*) < 9", contribution=2
        ),
        QueryError,
        "nothing computed",
    ),
    (
        lambda made, grant: grant.select(
            "SELECT town, COUNT(*) AS n FROM t GROUP BY town LIMIT 1", contribution=2
        ),
        QueryError,
        "nothing computed",
    ),
    (
        lambda made, grant: grant.tree("SELECT age FROM t ORDER BY age LIMIT 3", contribution=2),
        QueryError,
        "LIMIT",
    ),
    (lambda made, grant: grant.sums("SELECT COUNT(*) FROM t", contribution="x"), QueryError, "whole number"),  # type: ignore[arg-type]
    (lambda made, grant: grant.sums("SELECT COUNT(*) FROM t", contribution=True), QueryError, "whole number"),
    (lambda made, grant: made.grant(1.0, purpose="x", confidence=2), InvalidInput, "confidence"),
    (lambda made, grant: made.grant(1.0, purpose="x", schedule=None), InvalidInput, "schedule"),  # type: ignore[arg-type]
    (lambda made, grant: made.grant(1.0, purpose="x", about={1: 2}), InvalidInput, "plain values"),  # type: ignore[dict-item]
    (
        lambda made, grant: made.grant(1.0, purpose="x", about={"a": np.arange(5)}),
        InvalidInput,
        "plain values",
    ),
    (lambda made, grant: made.grant(10**400, 1e-6, purpose="x"), InvalidInput, "epsilon"),
    (lambda made, grant: grant.record("text"), InvalidInput, "bytes"),  # type: ignore[arg-type]
    (lambda made, grant: made.grant(1.0, purpose=" "), InvalidInput, "purpose"),
    (lambda made, grant: made.grant(1e6, purpose="x"), BudgetExceeded, "epsilon"),
]


@pytest.mark.parametrize("place", range(len(REFUSED)))
def test_what_cannot_be_done_uses_no_step_and_spends_nothing(place: int) -> None:
    use, kind, said = REFUSED[place]
    made = curator()
    grant = made.grant(1.0, purpose="refused", schedule=ALL)
    paid, left = spent(made), grant.left
    with pytest.raises(kind, match=said):
        use(made, grant)
    assert spent(made) == paid and grant.left == left


def _noted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, Any]]:
    """Every mechanism with what it was given, as it is released."""
    steps: list[tuple[Any, Any]] = []
    for mechanism in (Laplace, Gaussian):

        def release(self: Any, value: Any, original: Any = mechanism.release) -> Any:
            steps.append((self, np.atleast_1d(np.asarray(value))))
            return original(self, value)

        monkeypatch.setattr(mechanism, "release", release)
    original = categorical

    def drawn(utilities: Any, rate: Fraction) -> Any:
        steps.append((rate, np.asarray(utilities)))
        return original(utilities, rate=rate)

    monkeypatch.setattr(grants, "categorical", drawn)
    return steps


HOSTILE = [
    (999, age, pay, town) for age in (-5, 18, 90, 400) for pay in (-1e9, 10.0, 1e300) for town in TOWNS
]


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("kind", USES)
def test_one_unit_moves_a_step_by_no_more_than_its_strength(
    kind: str, delta: float, relation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = table(60)
    extra = pa.table(dict(zip(rows.column_names, map(list, zip(*HOSTILE, strict=True)), strict=True)))
    one = pa.concat_tables([rows, extra.cast(rows.schema)])
    two = rows if relation == "add-remove" else pa.concat_tables([rows, extra.slice(0, 1).cast(rows.schema)])
    steps = _noted(monkeypatch)
    runs = []
    for side in (one, two):
        steps.clear()
        with curator(side, relation=relation) as made:
            grant = made.grant(1.0, delta, purpose="replay", schedule={kind: 1})  # type: ignore[dict-item]
            (strength,) = grant.unused
            USES[kind](grant)
        runs.append(list(steps))
    moved = [(mechanism, a - b) for (mechanism, a), (_, b) in zip(*runs, strict=True)]
    if kind == "select":
        ((rate, change),) = moved
        assert float((change.max() - change.min()) * rate) <= float(strength.epsilon) * (1 + 1e-12)
    elif delta:
        squares = sum(float((change**2).sum()) / float(mechanism.scale) ** 2 for mechanism, change in moved)
        assert squares**0.5 <= strength.mu
    else:
        losses = [
            float(np.abs(change).sum()) / float(mechanism.scale_in_steps) for mechanism, change in moved
        ]
        assert sum(losses) <= float(strength.epsilon) * (1 + 1e-12)
    assert any(change.any() for _, change in moved)


def test_a_step_is_never_charged_to_a_weaker_one(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [Step("sums", 9.0), Step("sums", 1.0)]
    grant = curator().grant(1.0, purpose="race", schedule=steps)
    strong, weak = grant.unused
    priced = pricing.shared_price

    def overtaken(*arguments: Any) -> Any:
        if strong in grant.unused:
            grant.unused.remove(strong)  # another thread was first
        return priced(*arguments)

    monkeypatch.setattr(grants, "shared_price", overtaken)
    with pytest.raises(NotPermitted, match="just used"):
        USES["sums"](grant)
    assert grant.unused == [weak]


@pytest.mark.parametrize("kind", list(USES))
def test_nothing_is_released_after_the_block(kind: str) -> None:
    made = curator()
    with made.grant(2.0, purpose="all", schedule=ALL) as grant:
        USES[kind](grant)
    before = dict(grant.left)
    for use in USES.values():
        with pytest.raises(NotPermitted, match="ended with its with block and releases nothing"):
            use(grant)
    with pytest.raises(NotPermitted, match="make another grant"), grant:
        pass
    assert grant.left == before
    grant.record(b"kept")
    assert grant.recorded == b"kept"


def test_a_grant_without_a_block_stays_open() -> None:
    grant = curator().grant(2.0, purpose="all", schedule={"sums": 2})
    assert USES["sums"](grant) and USES["sums"](grant)


@pytest.mark.parametrize("kind", list(USES))
def test_a_step_in_which_the_engine_fails_stays_used_and_says_so(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = curator()
    grant = made.grant(2.0, purpose="all", schedule=ALL)
    left, paid = grant.left.get(kind, 0), spent(made)

    def failing(*_: object) -> None:
        raise BackendError("The database could not finish the question (IOException).")

    with monkeypatch.context() as patch:
        patch.setattr(made, "execute", failing)
        with pytest.raises(BackendError) as failure:
            USES[kind](grant)
    assert str(failure.value) == (
        "The database could not finish the question (IOException); this step of the grant for all stays "
        "used, so ask with another step, or plan a spare one in the next grant's schedule."
    )
    assert failure.value.__context__ is None and failure.value.__cause__ is None
    assert grant.left.get(kind, 0) == left - 1 and spent(made) == paid


def test_a_file_that_vanishes_costs_one_step(tmp_path: Path) -> None:
    place = tmp_path / "t.parquet"
    pq.write_table(table(), place)
    (tmp_path / "curator.yaml").write_text(
        "sources: {t: {parquet: t.parquet}}\n"
        "tables: {t: {source: t, unit: id, columns: {id: {type: integer}, "
        "pay: {type: float, bounds: [0, 10]}}}}\n"
        "budget: {epsilon: 9}\n"
    )
    with (
        Curator.open(tmp_path / "curator.yaml", new_ledger=True) as made,
        made.grant(1.0, purpose="pay", schedule={"sums": 2}) as grant,
    ):
        grant.sums("SELECT SUM(pay) AS s FROM t", contribution=2)
        place.unlink()
        with pytest.raises(BackendError, match="this step of the grant for pay stays used"):
            grant.sums("SELECT SUM(pay) AS s FROM t", contribution=2)
        assert grant.left == {}


@pytest.mark.parametrize(("distance", "levels"), [(1, 4), (2, 9)])
def test_a_tree_has_noise_for_all_of_its_levels(
    distance: int, levels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[tuple[Any, Any]] = []

    class Noted:
        def __init__(self, *amounts: Any, **named: Any) -> None:
            made.append((amounts, named))

        def release(self, level: Any) -> Any:
            return level

    monkeypatch.setattr(grants, "Gaussian", Noted)
    monkeypatch.setattr(grants, "Laplace", Noted)
    measure, leaf = SimpleNamespace(sensitivity_steps=1024), SimpleNamespace(distance=distance)
    grants._noise_for(Strength("tree", epsilon=Fraction(1, 3)), measure, leaf, levels)  # type: ignore[arg-type]
    grants._noise_for(Strength("tree", mu=0.5), measure, leaf, levels)  # type: ignore[arg-type]
    reach = 1024 * distance
    # Added up over the levels in L1; in L2 by the root of their number, and a little wider for the grid.
    assert made[0] == ((Fraction(1, 3),), {"sensitivity": reach * levels})
    scale = made[1][1]["scale"]
    exact = reach * 2 * Fraction(int(levels**0.5))
    assert exact * (1 + Fraction(1, 2**26)) <= scale <= exact * (1 + Fraction(3, 2**26))
    assert made[1][1]["sensitivity"] == reach


def test_quantiles_of_a_tree_are_the_middles_of_cells_or_their_numbers() -> None:
    tree = grants.Tree(np.array([1.0, 0.0, 3.0, 0.0]), 10.0, 18.0)
    assert tree.edges.tolist() == [10, 12, 14, 16, 18]
    assert tree.total == 4
    assert [tree.quantile(rank) for rank in (0.0, 0.25, 0.26, 1.0)] == [11, 11, 15, 15]
    whole = grants.Tree(np.array([1.0, 0.0, 3.0, 0.0]), 10, 14, whole=True)
    assert [whole.quantile(rank) for rank in (0.0, 0.25, 0.26, 1.0)] == [10, 10, 12, 12]
    # Noise may leave nothing, or a cell below zero: the middle cell then, and ranks never fall.
    assert grants.Tree(np.array([-1.0, 0.0, -3.0, 0.0]), 10.0, 18.0).quantile(0.5) == 15
    falling = grants.Tree(np.array([2.0, -1.0, 0.5, 2.0]), 10.0, 18.0)
    assert [falling.quantile(rank) for rank in (0.5, 0.57, 0.58)] == [11, 11, 17]
    for rank in (-0.1, 1.1, float("nan")):
        with pytest.raises(InvalidInput, match="rank lies between 0 and 1"):
            tree.quantile(rank)


@pytest.mark.parametrize(
    ("sql", "plain"),
    [
        ("SELECT k0 AS town, a0 AS n FROM released_0 ORDER BY k0", True),
        ("SELECT a0 + 1 AS n FROM released_0", False),
        ("SELECT a0 AS n FROM released_0 WHERE a0 > 1", False),
        ("SELECT a0 AS n FROM released_0 LIMIT 1", False),
        ("SELECT a0 AS n FROM released_0 OFFSET 1", False),
        ("SELECT q.n FROM (SELECT a0 AS n FROM released_0) AS q", False),
        ("SELECT a0 AS n FROM released_0 UNION ALL SELECT a0 AS n FROM released_0", False),
    ],
)
def test_which_sql_shows_numbers_as_they_are(sql: str, plain: bool) -> None:
    assert grants._plain(sqlglot.parse_one(sql, read="duckdb")) is plain  # type: ignore[arg-type]


def test_rows_are_selected_without_groups_and_counted_by_all_columns() -> None:
    assert grants._counted("SELECT a, b FROM t") == "SELECT a, b, COUNT(*) AS n FROM t GROUP BY 1, 2"
    assert grants._ranked("SELECT a AS c FROM t WHERE b") == "SELECT MEDIAN(a) AS x FROM t WHERE b"
    for tail in ("GROUP BY a", "ORDER BY a", "LIMIT 1", "GROUP BY a HAVING a > 1"):
        with pytest.raises(QueryError, match="Select the columns of rows"):
            grants._counted(f"SELECT a FROM t {tail}")
    with pytest.raises(QueryError, match="Select the columns of rows"):
        grants._counted("SELECT DISTINCT a FROM t")
    with pytest.raises(QueryError, match="about one column"):
        grants._ranked("SELECT a, b FROM t")
