"""ROLLUP, CUBE and GROUPING SETS: totals are the sums of their parts, bounded and covered as is said."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom

from incrowd import Curator
from incrowd.curator.adding_up import consistent, of_declared_groups, summed
from incrowd.curator.answer import Answer
from incrowd.curator.census import ChosenCaps
from incrowd.curator.preparing import public_keys
from incrowd.curator.releasing import Exact, execute
from tests.backends.houses import engine_of, furnish, plan_of, tables_from, without_each_unit

from .repeating import answers

ROWS = 2_000
rng = np.random.default_rng(20260401)
TABLE = pa.table(
    {
        "id": rng.integers(0, 600, ROWS),
        "kind": rng.choice(["a", "b", "c"], ROWS, p=[0.6, 0.3, 0.1]),
        "year": rng.integers(2020, 2024, ROWS),
        "town": rng.choice(["york", "hull", "bath", None], ROWS, p=[0.5, 0.3, 0.1, 0.1]),
        "pay": np.round(rng.uniform(-20, 100, ROWS), 2),
    }
)
LEVELS = ["ROLLUP (kind, year)", "CUBE (kind, year)", "GROUPING SETS ((kind), (year), ())"]
PRIVATE = ["ROLLUP (kind, town)", "CUBE (town, kind)"]


@pytest.fixture(scope="module")
def curator() -> Curator:
    return Curator.from_tables(
        t=TABLE,
        unit="id",
        bounds={"pay": (-20, 100), "year": (2020, 2023)},
        domains={"kind": ["a", "b", "c"], "year": [2020, 2021, 2022, 2023]},
        budget=(1e7, 0.9),
        not_null=["t.kind", "t.year"],
        contribution={"t": 20},
    )


def asked(levels: str) -> str:
    keys = "kind, town" if "town" in levels else "kind, year"
    bits = ", ".join(f"GROUPING({key}) AS g_{key}" for key in keys.split(", "))
    return f"SELECT {keys}, {bits}, COUNT(*) AS n, SUM(pay) AS pay, AVG(pay) AS mean FROM t GROUP BY {levels}"


def by_level(answer: Answer) -> dict[tuple[int, ...], list[dict[str, Any]]]:
    found: dict[tuple[int, ...], list[dict[str, Any]]] = {}
    for row in answer:
        bits = tuple(value for name, value in row.items() if name.startswith("g_"))
        found.setdefault(bits, []).append(row)
    return found


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("levels", LEVELS + PRIVATE)
def test_totals_are_the_sums_of_their_parts(curator: Curator, levels: str, delta: float) -> None:
    answer = curator.ask(asked(levels), epsilon=3.0, delta=delta or 1e-4 * ("town" in levels))
    found = by_level(answer)
    keys = answer.to_arrow().column_names[:2]
    for (coarse, totals), (fine, parts) in itertools.permutations(found.items(), 2):
        if not all(one >= other for one, other in zip(coarse, fine, strict=True)):
            continue
        kept = [key for key, bit in zip(keys, coarse, strict=True) if not bit]
        for total in totals:
            own = [part for part in parts if all(part[key] == total[key] for key in kept)]
            assert sum(part["n"] for part in own) == total["n"]
            assert sum(part["pay"] for part in own) == pytest.approx(total["pay"], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("levels", LEVELS + PRIVATE)
def test_with_much_budget_the_answer_is_the_engines(curator: Curator, levels: str) -> None:
    import duckdb

    t = TABLE  # noqa: F841 DuckDB reads it by this name
    question = asked(levels)
    with duckdb.connect() as connection:
        truth = connection.execute(question).fetchall()
    answer = curator.ask(question, epsilon=1e5, delta=1e-3)

    def keyed(rows: Any) -> dict[Any, Any]:
        return {tuple(row[:4]): row[4:] for row in rows}

    got = keyed([tuple(row.values()) for row in answer])
    assert got.keys() == keyed(truth).keys()
    for key, (n, pay, mean) in keyed(truth).items():
        assert got[key][0] == n
        assert got[key][1] == pytest.approx(pay, abs=1.0)
        assert got[key][2] == pytest.approx(mean, abs=0.1)


def test_levels_cost_what_was_asked_and_pay_for_keys_once(curator: Curator) -> None:
    for levels in LEVELS:
        price = curator.price(asked(levels), epsilon=1.5, delta=0.0)
        assert float(sum(line.epsilon for line in price.lines)) == pytest.approx(1.5, rel=1e-12)
        assert price.guarantee.epsilon(0.0) <= 1.5
    price = curator.price(asked("ROLLUP (kind, town)"), epsilon=1.5, delta=1e-5)
    assert price.guarantee.epsilon(1e-5) <= 1.5
    assert [line.kind for line in price.lines].count("keys") == 1


def test_filters_on_totals_see_which_level_a_row_is_of(curator: Curator) -> None:
    question = "SELECT kind, COUNT(*) AS n FROM t GROUP BY ROLLUP (kind) HAVING GROUPING(kind) = 1"
    (row,) = curator.ask(question, epsilon=1e4)
    assert row == {"kind": None, "n": ROWS}


def test_counts_of_units_are_answered_by_level_and_say_so(curator: Curator) -> None:
    question = "SELECT kind, COUNT(DISTINCT id) AS people FROM t GROUP BY ROLLUP (kind)"
    answer = curator.ask(question, epsilon=1e5)
    people = {row["kind"]: row["people"] for row in answer}
    assert people[None] == len(set(TABLE.column("id").to_pylist()))
    assert sum(people.values()) - people[None] > people[None]
    assert any("does not add up" in note for note in answer.notes)


def test_hidden_groups_are_left_out_of_totals(curator: Curator) -> None:
    question = "SELECT town, COUNT(*) AS n FROM t WHERE pay > {} GROUP BY ROLLUP (town)"
    rows = list(curator.ask(question.format(99.99), epsilon=0.5, delta=1e-9))
    assert rows == [{"town": None, "n": 0}]
    answer = curator.ask(question.format(0), epsilon=1.0, delta=1e-5)
    assert any("groups that are shown" in note for note in answer.notes)


def exact_levels(sql: str, mode: str, tables: dict[str, pa.Table], **limits: float) -> list[Exact]:
    plan, engine = plan_of(sql, mode, **limits), engine_of(mode)
    furnish(engine, tables)
    leaf = plan.leaves[0]
    first = of_declared_groups(execute(leaf, ChosenCaps(), engine, public_keys(leaf, engine)))
    return [first, *(summed(first, other) for other in plan.leaves[1:])]


def distance(one: Exact, other: Exact, name: str) -> int:
    def keyed(exact: Exact) -> dict[Any, int]:
        keys = [repr(list(row.values())) for row in exact.groups.to_pylist()]
        return dict(zip(keys, map(int, exact.sums[name]), strict=True))

    here, there = keyed(one), keyed(other)
    return sum(abs(here.get(key, 0) - there.get(key, 0)) for key in here.keys() | there.keys())


@pytest.mark.parametrize("mode", ["user", "row"])
@pytest.mark.parametrize(
    "levels", ["ROLLUP (cat, city)", "CUBE (b, f)", "ROLLUP (grp, d)", "GROUPING SETS ((cat), (b))"]
)
def test_one_unit_moves_every_level_by_no_more_than_the_cells(levels: str, mode: str) -> None:
    """On rows with NULL, NaN, infinities and far dates; without the cap, units would move it further."""
    sql = f"SELECT COUNT(*) AS n, SUM(x) AS x, SUM(n) AS m, AVG(f) AS f FROM visits GROUP BY {levels}"
    most = 0
    for seed in (1, 3, 8):
        tables = tables_from(seed, True)
        here = exact_levels(sql, mode, tables, rows=2)
        for neighbour in itertools.islice(without_each_unit(tables, mode, ("visits",)), 2):
            there = exact_levels(sql, mode, neighbour, rows=2)
            for one, other in zip(here, there, strict=True):
                for name, measure in one.leaf.measures.items():
                    moved = distance(one, other, name)
                    assert moved <= measure.sensitivity_steps
                    most = max(most, moved)
    assert most > 0


def test_totals_of_huge_groups_are_clamped_and_do_not_overflow(curator: Curator) -> None:
    plan = plan_of("SELECT SUM(x) AS x FROM visits GROUP BY ROLLUP (cat)", "user", rows=2)
    groups = pa.table({"k0": pa.array(range(9), pa.int64())})
    for sign in (1, -1):
        values = np.full(9, sign * 2**61, dtype=np.int64)
        cells = Exact(plan.leaves[0], groups, {"m0": values}, None, {}, {}, ChosenCaps())
        assert summed(cells, plan.leaves[1]).sums["m0"].tolist() == [sign * 2**61]


def errors(curator: Curator, question: str, truth: Sequence[float], times: int, **options: Any) -> Any:
    """The errors of a column n in each row, and how often its interval held the truth."""
    off, held = [], np.zeros(len(truth))
    for answer in answers(curator, question, times, **options):
        spans = [
            released.columns(leaf, 0.95)["a0"]
            for leaf, released in zip(answer.plan.leaves, answer.released, strict=True)
        ]
        value, low, high = (
            np.concatenate([getattr(span, end) for span in spans]) for end in ("value", "low", "high")
        )
        off.append(value - truth)
        held += (low <= truth) & (truth <= high)
    return np.array(off), held


@pytest.mark.statistical
@pytest.mark.parametrize("levels", ["ROLLUP (kind, year)", "CUBE (kind, year)"])
def test_levels_are_covered_and_err_less_than_by_themselves(curator: Curator, levels: str) -> None:
    """Each row fails by chance with probability below 1e-8, each mean error below 1e-6."""
    times, frame = 300, TABLE.to_pandas()
    kept = [["kind", "year"], ["kind"], *([["year"]] if "CUBE" in levels else []), []]
    parts = [frame.groupby(keys).size().to_numpy() if keys else np.array([ROWS]) for keys in kept]
    truth = np.concatenate(parts)
    question = f"SELECT COUNT(*) AS n FROM t GROUP BY {levels}"
    off, held = errors(curator, question, truth, times, epsilon=4.0, delta=0.0)
    assert binom.cdf(held.min(), times, 0.94) > 1e-8
    assert binom.sf(held.max() - 1, times, 0.995) > 1e-8
    sizes = np.cumsum([len(part) for part in parts])[:-1]
    found = [float(np.sqrt(np.mean(level**2))) for level in np.split(off, sizes, axis=1)]
    alone = 20 * np.sqrt(2) / (4.0 / len(kept))  # a Laplace draw with an equal share
    assert max(found) < 1.1 * alone
    assert np.prod(found) ** (1 / len(found)) < 0.92 * alone


@pytest.mark.statistical
def test_private_trees_are_covered(curator: Curator) -> None:
    """Each row fails by chance with probability below 1e-8."""
    times, frame = 200, TABLE.to_pandas()
    frame["town"] = frame["town"].fillna("~")
    parts = [frame.groupby(["kind", "town"]).size(), frame.groupby("kind").size()]
    truth = np.concatenate([*(part.to_numpy() for part in parts), [ROWS]])
    question = "SELECT COUNT(*) AS n FROM t GROUP BY ROLLUP (kind, town)"
    _, held = errors(curator, question, truth, times, epsilon=120.0, delta=1e-2)
    assert binom.cdf(held.min(), times, 0.94) > 1e-8


@pytest.mark.parametrize("levels", ["ROLLUP (kind, year)", "CUBE (town, kind)"])
def test_an_accuracy_may_be_asked_for(curator: Curator, levels: str) -> None:
    question = f"SELECT COUNT(*) AS n FROM t GROUP BY {levels}"
    answer = curator.ask(question, epsilon=40.0, delta=1e-3, within=16.0)
    table = answer.intervals()
    widths = np.asarray(table.column("n_high")) - np.asarray(table.column("n_low"))
    assert 10.0 < np.median(widths) / 2 <= 17.0
    assert 5.0 < answer.paid[0] < 39.0


def test_consistent_numbers_come_with_their_own_deviations(curator: Curator) -> None:
    (answer,) = answers(curator, asked("ROLLUP (kind, year)"), 1, epsilon=2.0, delta=0.0)
    again = consistent(answer.plan.leaves, answer.released)
    assert [one.table.num_rows for one in again] == [12, 3, 1]
    for release in answer.released:
        wider = release.with_noise(dict.fromkeys(release.noise, 2.0), {})
        for name in release.noise:
            before, after = (np.asarray(r.table.column(f"{name}@deviation")) for r in (release, wider))
            assert np.allclose(2 * before, after)
