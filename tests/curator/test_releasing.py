"""Execute and noise: exact numbers go to their groups, and each gets the noise that its price states."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from incrowd import Curator
from incrowd.backends.statement import KEY_MASS
from incrowd.curator import pricing
from incrowd.curator.affording import price_of
from incrowd.curator.census import ChosenCaps
from incrowd.curator.preparing import Prepared
from incrowd.curator.prices import Price
from incrowd.curator.releasing import Exact, execute, noise
from incrowd.curator.request import Request

PEOPLE = pa.table(
    {
        "id": [1, 1, 1, 2, 2, 3, 4],
        "pay": [1.0, 2.0, 4.0, 8.0, 8.0, 2.0, None],
        "town": ["york", "hull", "york", "york", "bath", None, "hull"],
        "street": ["x", "y", "x", "x", "z", "x", "y"],
    }
)


@pytest.fixture(scope="module")
def curator() -> Iterator[Curator]:
    with Curator.from_tables(
        people=PEOPLE,
        unit="id",
        bounds={"pay": (0, 8)},
        domains={"town": ["york", "leeds", "hull"]},
        budget=(1e6, 0.5),
    ) as made:
        yield made


def asked(curator: Curator, sql: str, epsilon: float = 1e5, **options: Any) -> tuple[Prepared, Price]:
    question = curator.prepare(Request(sql, epsilon, **options))
    return question, price_of(question, curator.catalog)


def executed(curator: Curator, question: Prepared, chosen: ChosenCaps | None = None) -> Exact:
    (leaf,), (keys,) = question.plan.leaves, question.keys
    return execute(leaf, chosen or ChosenCaps(), curator.backend, keys)


def in_values(exact: Exact, name: str) -> list[float]:
    return [float(steps) * exact.leaf.measures[name].step for steps in exact.sums[name]]


COUNT = "SELECT town, COUNT(*) AS n FROM people GROUP BY town"


def test_rows_go_to_their_groups_and_those_outside_the_domain_nowhere(curator: Curator) -> None:
    question, _ = asked(curator, COUNT, contribution=3)
    exact = executed(curator, question)
    assert exact.groups.column("k0").to_pylist() == ["hull", "leeds", "york", None]
    assert in_values(exact, "m0") == [2.0, 0.0, 3.0, 1.0]
    assert exact.weights is None and not exact.cells and not exact.totals


def test_without_keys_there_is_one_group_even_if_no_row_counts(curator: Curator) -> None:
    for condition, expected in (("pay > 1", 5.0), ("pay > 100", 0.0)):
        sql = f"SELECT COUNT(*) AS n FROM people WHERE {condition}"
        exact = executed(curator, asked(curator, sql, contribution=3)[0])
        assert in_values(exact, "m0") == [expected]


def test_a_unit_is_shrunk_to_the_cap_that_was_chosen(curator: Curator) -> None:
    question, _ = asked(curator, "SELECT COUNT(*) AS n FROM people", rescale=False)
    (leaf,) = question.plan.leaves
    exact = executed(curator, question, ChosenCaps(dict.fromkeys(leaf.uncapped, 2.0)))
    assert in_values(exact, "m0") == [pytest.approx(2 + 2 + 1 + 1, abs=1e-6)]
    assert exact.leaf.measures["m0"].cap == 2.0


def test_totals_are_the_weight_under_the_cap_and_under_the_generous_one(
    curator: Curator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pricing, "SCALED_GROUPS", 1)
    question, price = asked(curator, COUNT)
    (leaf,) = question.plan.leaves
    chosen = ChosenCaps(dict.fromkeys(leaf.uncapped, 1.0), {"m0": 8.0})
    exact = executed(curator, question, chosen)
    small, large = exact.totals["m0"]
    assert large == 7 and small == 4
    released = noise(0, exact, price)
    assert released.factors["m0"][:2] == (4, 7)
    assert released.caps == {"m0": 1.0}
    # Rows weigh 1 each, however fine the steps of a count: a group's share of a total is that of its rows.
    factor = released.factor("m0")
    assert (factor.small, factor.large) == (4.0, 7.0)
    assert released.noise["m0"].step < 1


def test_totals_of_a_sum_are_in_its_values(curator: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pricing, "SCALED_GROUPS", 1)
    question, price = asked(curator, COUNT.replace("COUNT(*)", "SUM(pay)"))
    (leaf,) = question.plan.leaves
    chosen = ChosenCaps(dict.fromkeys(leaf.uncapped, 10.0), {"m0": 20.0})
    exact = executed(curator, question, chosen)
    factor = noise(0, exact, price).factor("m0")
    # Units weigh 7, 16 and 2. At epsilon 10^5 noise is far below a tenth.
    assert factor.small == pytest.approx(19, abs=0.1) and factor.large == pytest.approx(25, abs=0.1)


def test_a_cap_below_the_bound_of_a_row_is_known_again(curator: Curator) -> None:
    """Such a cap narrows the bounds of the measure, and with them what its weights are called."""
    question, price = asked(curator, COUNT.replace("COUNT(*)", "SUM(pay)"))
    (leaf,) = question.plan.leaves
    released = noise(0, executed(curator, question, ChosenCaps(dict.fromkeys(leaf.uncapped, 4.0))), price)
    assert released.known(leaf).measures["m0"].cap == 4.0
    assert len(released.columns(leaf, 0.95)["a0"].value) == released.table.num_rows


def test_the_totals_of_nobody_are_zero(curator: Curator) -> None:
    question, _ = asked(curator, COUNT.replace("GROUP", "WHERE pay > 100 GROUP"))
    (leaf,) = question.plan.leaves
    chosen = ChosenCaps(dict.fromkeys(leaf.uncapped, 1.0), {"m0": 8.0})
    assert executed(curator, question, chosen).totals == {"m0": (0, 0)}


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        (COUNT, ["k0", "m0"]),
        ("SELECT DISTINCT town FROM people", ["k0"]),
        ("SELECT 1 AS one FROM people HAVING TRUE", ["nothing"]),
    ],
)
def test_a_release_has_its_keys_and_measures_or_one_empty_number(
    curator: Curator, sql: str, columns: list[str]
) -> None:
    question, price = asked(curator, sql, contribution=3)
    exact = executed(curator, question)
    table = noise(0, exact, price).table
    assert table.column_names == columns and table.num_rows == exact.groups.num_rows


STREETS = "SELECT street, COUNT(*) AS n FROM people GROUP BY street"
PAID = "SELECT street, SUM(pay) AS paid FROM people GROUP BY street"


@pytest.mark.parametrize(("delta", "half"), [(0.0, KEY_MASS // 2), (1e-6, int(KEY_MASS / 2**0.5))])
def test_private_groups_weigh_what_their_units_share_out(curator: Curator, delta: float, half: int) -> None:
    """A unit in two groups gives each a half in L1, and the root of a half in L2."""
    exact = executed(curator, curator.prepare(Request(STREETS, delta=delta, contribution=3)))
    assert exact.weights is not None
    weights = dict(zip(exact.groups.column("k0").to_pylist(), exact.weights.tolist(), strict=True))
    assert weights == {"x": 2 * half + KEY_MASS, "y": half + KEY_MASS, "z": half}


GROUPS = 20_000


def many(exact: Exact, steps: int, weight: int | None = None) -> Exact:
    """The same leaf with many groups, in falling order, all alike."""
    groups = pa.table({"k0": [f"{number:05}" for number in reversed(range(GROUPS))]})
    sums = {name: np.full(GROUPS, steps) for name in exact.sums}
    return replace(
        exact, groups=groups, sums=sums, weights=None if weight is None else np.full(GROUPS, weight)
    )


@pytest.mark.statistical
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("delta", [0.0, 0.1])
def test_noise_is_as_wide_as_the_price_states_and_no_wider(relation: str, delta: float) -> None:
    """Fails by chance below 1e-6: 8% of a quantile of 20,000 draws are more than 7 sigma."""
    with Curator.from_tables(
        people=PEOPLE, unit="id", domains={"town": ["york"]}, budget=(5.0, 0.5), relation=relation
    ) as curator:
        question, price = asked(curator, COUNT, 0.5, contribution=3, delta=delta)
        exact = many(executed(curator, question), steps=7)
    released = noise(0, exact, price)
    line = price.line(0, "sum", "m0")
    assert line is not None and line.noise == released.noise["m0"].kind
    mechanism = line.mechanism(exact.leaf.measures["m0"], exact.leaf.distance)
    drawn = np.abs(released.table.column("m0").to_numpy() - 7)
    for confidence in (0.5, 0.8):
        assert np.quantile(drawn, confidence) == pytest.approx(mechanism.halfwidth(confidence), rel=0.08)
        said = released.noise["m0"].halfwidth(confidence)
        assert said == pytest.approx(mechanism.halfwidth(confidence) * exact.leaf.measures["m0"].step)


def test_groups_come_in_the_order_of_their_keys_with_their_own_numbers(curator: Curator) -> None:
    question, price = asked(curator, COUNT, contribution=3)
    exact = many(executed(curator, question), steps=0)
    numbered = replace(exact, sums={"m0": np.arange(GROUPS) << 30})
    table = noise(0, numbered, price).table
    assert table.column("k0").to_pylist() == [f"{number:05}" for number in range(GROUPS)]
    counts = np.round(table.column("m0").to_numpy() / 2**30)
    assert counts.tolist() == list(reversed(range(GROUPS)))


@pytest.mark.statistical
@pytest.mark.parametrize("unit", ["id", "row"])
def test_a_private_group_of_one_unit_is_hidden_and_one_of_many_is_shown(unit: str) -> None:
    """Fails by chance below 1e-6: 20,000 groups are each shown with a chance below 1e-12."""
    with Curator.from_tables(people=PEOPLE, unit=unit, bounds={"pay": (0, 8)}, budget=(20.0, 0.5)) as curator:
        question, price = asked(curator, PAID, 8.0, contribution=3, delta=1e-12)
        exact = executed(curator, question)
    for weight, shown in ((0, 0), (KEY_MASS, 0), (1_000 * KEY_MASS, GROUPS)):
        assert noise(0, many(exact, 0, weight), price).table.num_rows == shown


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("unit", "groups", "kind"), [("row", None, "laplace"), ("id", 2, "laplace"), ("id", 40, "gaussian")]
)
def test_a_count_of_units_decides_which_groups_are_shown(unit: str, groups: int | None, kind: str) -> None:
    """Fails by chance below 1e-6: 20,000 groups are each shown with a chance below 1e-12."""
    counted = "COUNT(*)" if unit == "row" else "COUNT(DISTINCT id)"
    with Curator.from_tables(people=PEOPLE, unit=unit, budget=(20.0, 0.5)) as curator:
        question, price = asked(
            curator, STREETS.replace("COUNT(*)", counted), 8.0, groups=groups, delta=1e-12
        )
        exact = executed(curator, question)
    assert exact.weights is None and [line.target for line in price.lines] == ["m0"]
    one = exact.leaf.measures["m0"].limit_steps
    for units, shown in ((0, 0), (1, 0), (5_000, GROUPS)):
        released = noise(0, many(exact, units * one), price)
        assert released.table.num_rows == shown and released.noise["m0"].kind == kind
    counts = released.table.column("m0").to_numpy() / one
    assert abs(np.median(counts) - 5_000) < 1
    least = released.noise["m0"].least
    assert least is not None and np.abs(counts - 5_000).max() < least / one


def test_quantiles_are_released_as_cells_between_their_ends(curator: Curator) -> None:
    sql = "SELECT town, MEDIAN(pay) AS middle, MAX(pay) AS most FROM people GROUP BY town"
    question, price = asked(curator, sql, contribution=3)
    exact = executed(curator, question)
    released = noise(0, exact, price)
    assert [name for name in released.table.column_names if name.startswith("m")] == [
        f"m0@{rank}{end}" for rank in (0.5, 0.99) for end in ("", "_low", "_high")
    ]
    assert released.trees["m0"].groups == 4  # of public towns, kept for other ranks
    spans = released.columns(exact.leaf, 0.9)
    york = released.table.column("k0").to_pylist().index("york")
    assert spans["a0"].value[york] == pytest.approx(4.0, abs=0.1)
    assert spans["a1"].value[york] == pytest.approx(8.0, abs=0.1)
    for span in spans.values():
        assert (span.low <= span.value).all() and (span.value <= span.high).all()
