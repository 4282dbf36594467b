"""A black-box audit: nobody tells neighbouring tables apart from answers better than the price says.

One release of a wide table is many experiments at once: its groups fall into blocks that are alike except
that every second block holds one unit more (or another one, where units are replaced), and noise is
independent over groups. An attacker who knows everything but whether the unit is there scores what was
released of each block; the event "the score is at least t" is chosen on one half of the blocks and tested on
the other, at a confidence of 1 - 1e-7 (Clopper, Pearson 1934). Every audit must also catch a mutant: the same
code with a bug put in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

from incrowd import Curator
from incrowd.adversary.audit.binomial import at_least, at_most
from incrowd.backends import DuckDB, statement
from incrowd.backends.statement import KEY_MASS
from incrowd.curator import contribution as caps
from incrowd.curator import preparing, quantiles, releasing, showing
from incrowd.curator.prices import Line, Price
from incrowd.curator.released import Released, rank_column
from incrowd.curator.request import Request
from incrowd.curator.thresholds import count_threshold_for, threshold_for
from incrowd.mechanisms import Gaussian, Laplace, PartitionSelection, TruncatedLaplace
from incrowd.noise import categorical
from incrowd.query import Measure, Plan, bound
from incrowd.query.measure import MOST_GROUPS

from .repeating import answers

pytestmark = pytest.mark.statistical
ERROR = 1e-7
"""How often a bound may be above the truth by chance, for each audit."""
Floats = NDArray[np.float64]
Scores = tuple[Floats, Floats]
"""What an attacker makes of blocks with the unit, and of blocks without it."""


def least(hits: Any, of: int) -> Any:
    """What a probability is at least, but for a chance of ERROR / 2."""
    return at_least(hits, of, ERROR / 2)


def most(hits: Any, of: int) -> Any:
    """What a probability is at most, but for a chance of ERROR / 2."""
    return at_most(hits, of, ERROR / 2)


def sound_epsilon(p: Any, q: Any, delta: float) -> Any:
    """P(E) - delta <= e^epsilon Q(E)."""
    return np.log(np.maximum(p - delta, 1e-12) / q)


def sound_mu(p: Any, q: Any, delta: float) -> Any:
    """A test of level Q(E) has at most the power Phi(Phi^-1(Q(E)) + mu)."""
    return norm.ppf(p) - norm.ppf(q)


def lower_bound(scores: Scores, delta: float = 0.0, claim: Callable[..., Any] = sound_epsilon) -> float:
    """An epsilon (or mu) that the release has at least; wrong with probability ERROR."""
    halves = [[sample[start::2] for sample in scores] for start in (0, 1)]

    def bounds(half: list[Floats], direction: int, at: Floats) -> Any:
        """For the events score >= t with the unit against without, or score <= t the other way around."""
        p, q = (direction * sample for sample in (half if direction == 1 else half[::-1]))
        hits = [(sample[:, None] >= direction * at[None, :]).sum(axis=0) for sample in (p, q)]
        return claim(least(hits[0], len(p)), most(hits[1], len(q)), delta)

    at = np.unique(np.quantile(np.concatenate(halves[0]), np.linspace(0.002, 0.998, 120)))
    tried = {direction: bounds(halves[0], direction, at) for direction in (1, -1)}
    direction = max(tried, key=lambda way: tried[way].max())
    chosen = at[[int(tried[direction].argmax())]]
    return float(bounds(halves[1], direction, chosen)[0])


@dataclass(frozen=True)
class House:
    """A table of blocks, and what is asked of it.

    base: the rows (unit, group, value) of a block. extra: those of the unit in every second block; other:
    those in the blocks between, where units are replaced.
    """

    question: str
    base: tuple[tuple[int, int, float], ...]
    extra: tuple[tuple[int, int, float], ...]
    other: tuple[tuple[int, int, float], ...] = ()
    size: int = 1
    blocks: int = 600
    unit: str = "id"
    public: bool = True
    relation: str = "add-remove"
    asked: Mapping[str, Any] | None = None

    def curator(self) -> Curator:
        rows = [
            (block * 1_000 + unit, block * self.size + group, value)
            for block in range(self.blocks)
            for unit, group, value in (*self.base, *(self.extra if block % 2 else self.other))
        ]
        columns = zip(*rows, strict=True)
        names = ("id", "g", "x")
        table = pa.table({name: list(values) for name, values in zip(names, columns, strict=True)})
        bounds: dict[str, Any] = {"x": (-10.0, 10.0)}
        if self.public:
            bounds["g"] = (0, self.blocks * self.size - 1)
        settings: Any = {"unit": self.unit, "relation": self.relation, "budget": (1e3, 0.9), "bounds": bounds}
        return Curator.from_tables(t=table, **settings)


def sides(values: NDArray[Any], size: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """The blocks with the unit, and those without; the group of NULL behind them holds nobody."""
    blocks = values[: len(values) // (2 * size) * 2 * size].reshape(-1, size)
    return blocks[1::2], blocks[::2]


def exact_of(curator: Curator, question: str, **asked: Any) -> releasing.Exact:
    prepared = curator.prepare(Request(question, **asked))
    (exact,) = curator.execute(prepared, curator.choose_caps(prepared, curator.price_of(prepared)))
    return exact


def scored_sums(exact: releasing.Exact, released: Released, size: int) -> Scores:
    """The log-likelihood ratio of each block under the noise that the answer states."""
    scores = [np.zeros(released.table.num_rows // size // 2) for _ in range(2)]
    for name, noise in released.noise.items():
        truth = [side[0] for side in sides(exact.sums[name], size)]
        noisy = sides(released.table.column(name).to_numpy(), size)
        for score, side in zip(scores, noisy, strict=True):
            far = [np.abs(side - centre) / float(noise.scale) for centre in truth]
            ratio = far[1] - far[0] if noise.kind == "laplace" else (far[1] ** 2 - far[0] ** 2) / 2
            score += ratio.sum(axis=1)
    return scores[0], scores[1]


def scored_cells(exact: releasing.Exact, released: Released, size: int) -> Scores:
    """Points and ends as one number: the unit pulls all of them up."""
    names = [rank_column("m0", 1.0, end) for end in ("", "_low", "_high")]
    columns = [released.table.column(name).to_numpy() for name in names]
    total = sum(columns[1:], columns[0]).astype(float)
    with_unit, without = sides(total, size)
    return with_unit.sum(axis=1), without.sum(axis=1)


def audited(house: House, times: int, score: Callable[..., Scores] = scored_sums) -> tuple[Scores, Price]:
    """The scores of all blocks of all releases, and what they cost."""
    asked = {"epsilon": 1.0, "delta": 0.0, **(house.asked or {})}
    scored: list[Scores] = []
    with house.curator() as curator:
        exact: releasing.Exact | None = None
        for answer in answers(curator, house.question, times, **asked):
            exact = exact or exact_of(curator, house.question, **asked)
            scored.append(score(exact, answer.released[0], house.size))
        price = answer.price
    return (np.concatenate([a for a, _ in scored]), np.concatenate([b for _, b in scored])), price


ONE = {"contribution": 1}
BASE = ((1, 0, 1.0), (2, 0, -2.0), (3, 0, 0.0))
HEAVY = tuple((9, place % 2, 10.0) for place in range(40))
HOUSES = {
    "count of rows": House("SELECT g, COUNT(*) AS n FROM t GROUP BY g", BASE, ((9, 0, 5.0),), unit="row"),
    "sum over rows": House("SELECT g, SUM(x) AS s FROM t GROUP BY g", BASE, ((9, 0, 99.0),), unit="row"),
    "count of a heavy unit": House(
        "SELECT g, COUNT(*) AS n FROM t GROUP BY g", BASE, HEAVY, size=2, asked={"contribution": 2}
    ),
    "sum of a heavy unit": House(
        "SELECT g, SUM(x) AS s FROM t GROUP BY g", BASE, HEAVY, size=2, asked={"contribution": 3}
    ),
    "average of a heavy unit": House(
        "SELECT g, AVG(x) AS a FROM t GROUP BY g", BASE, tuple((9, 0, 10.0) for _ in range(40)), asked=ONE
    ),
    "count of units": House(
        "SELECT g, COUNT(DISTINCT id) AS n FROM t GROUP BY g", BASE, HEAVY, size=2, asked={"groups": 1}
    ),
    "bounds per group": House(
        "SELECT g, SUM(x, contribution_bounds_per_group => (-5, 5)) AS s FROM t GROUP BY g",
        BASE,
        HEAVY,
        size=2,
        asked={"groups": 1},
    ),
    "sum of a replaced unit": House(
        "SELECT g, SUM(x) AS s FROM t GROUP BY g",
        BASE,
        ((9, 0, 10.0),),
        ((9, 0, -10.0),),
        relation="replace",
        asked=ONE,
    ),
    "a unit that moves to another group": House(
        "SELECT g, COUNT(*) AS n FROM t GROUP BY g",
        BASE,
        ((9, 0, 0.0),),
        ((9, 1, 0.0),),
        size=2,
        relation="replace",
        asked=ONE,
    ),
}
TIMES = 40


@pytest.mark.parametrize("name", HOUSES)
def test_answers_tell_neighbours_apart_no_better_than_the_price(name: str) -> None:
    scores, price = audited(HOUSES[name], TIMES)
    bound = lower_bound(scores)
    assert bound <= price.guarantee.epsilon() <= 1
    assert bound > 0.3  # the attacker is no straw man


TOP = House(
    "SELECT g, QUANTILE(CASE WHEN x > 0 THEN 1 ELSE 0 END, 1.0) AS top FROM t GROUP BY g",
    ((1, 0, 0.0), (2, 0, 0.0)),
    tuple((9, 0, 3.0) for _ in range(5)),
    blocks=120,
    asked={"epsilon": 2.0, "contribution": 1},
)


def test_quantiles_tell_neighbours_apart_no_better_than_the_price() -> None:
    scores, price = audited(TOP, TIMES, scored_cells)
    assert lower_bound(scores) <= price.guarantee.epsilon() <= 2


MANY_DAYS = House(
    "SELECT g, COUNT(DISTINCT id) AS n FROM t GROUP BY g",
    tuple((1, group, 0.0) for group in range(16)),
    tuple((9, group, 0.0) for group in range(32)),
    size=32,
    blocks=300,
    asked={"epsilon": 4.0, "groups": 16, "delta": 1e-3},
)


def test_units_in_many_groups_are_as_private_as_gaussian_noise_says() -> None:
    scores, price = audited(MANY_DAYS, TIMES)
    (line,) = price.lines
    assert line.noise == "gaussian"
    bound = lower_bound(scores, claim=sound_mu)
    assert 0.4 * line.mu < bound <= line.mu
    assert lower_bound(scores, price.delta) <= price.epsilon


def narrowed(self: Line, measure: Measure, distance: int) -> Laplace | Gaussian | TruncatedLaplace:
    return mechanism(replace(self, epsilon=self.epsilon * 2, mu=self.mu * 2), measure, distance)


mechanism = Line.mechanism
bound_plan = bound


def test_half_the_noise_is_caught_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Line, "mechanism", narrowed)
    for house in HOUSES.values():
        assert lower_bound(audited(house, TIMES)[0]) > 1
    scores, price = audited(MANY_DAYS, TIMES)
    assert lower_bound(scores, claim=sound_mu) > price.lines[0].mu


def test_quantiles_drawn_too_eagerly_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    # A quarter of epsilon is what this unit can show: points have half of it, and the exponential mechanism
    # needs its factor 2 only for utilities that move up for one candidate and down for another.
    def eager(utilities: NDArray[np.int64], *, rate: Fraction) -> Any:
        return categorical(utilities, rate=rate * 8)

    monkeypatch.setattr(quantiles, "categorical", eager)
    assert lower_bound(audited(TOP, TIMES, scored_cells)[0]) > 2


@pytest.mark.parametrize(
    "name",
    [
        "count of a heavy unit",
        "sum of a heavy unit",
        "average of a heavy unit",
        "count of units",
        "bounds per group",
    ],
)
def test_a_cap_that_is_ignored_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    weight_cap = statement.weight_cap
    monkeypatch.setattr(statement, "weight_cap", lambda measure: 50 * weight_cap(measure))
    # So large a cap may leave 64 bits, which is noticed before; here the audit must notice by itself.
    monkeypatch.setattr(DuckDB, "prove", lambda self, sql: None)
    assert lower_bound(audited(HOUSES[name], TIMES)[0]) > 1


@pytest.mark.parametrize("name", ["sum of a replaced unit", "a unit that moves to another group"])
def test_a_distance_that_is_ignored_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def near(*given: Any) -> Plan:
        plan = bound_plan(*given)
        return replace(plan, leaves=tuple(replace(leaf, distance=1) for leaf in plan.leaves))

    monkeypatch.setattr(preparing, "bound", near)
    assert lower_bound(audited(HOUSES[name], TIMES)[0]) > 1


DELTA = 0.02
LONELY = ((9, 0, 0.0),)
EVERYWHERE = tuple((9, group, 0.0) for group in range(MOST_GROUPS))
SOMEWHERE = tuple((9, group, 0.0) for group in range(12))
ALONE = {
    "rows": House(
        "SELECT g, COUNT(*) AS n FROM t GROUP BY g",
        (),
        LONELY,
        LONELY,
        unit="row",
        blocks=3_000,
        public=False,
    ),
    "units in as many groups as count": House(
        "SELECT g, COUNT(DISTINCT id) AS n FROM t GROUP BY g",
        (),
        EVERYWHERE,
        EVERYWHERE,
        size=MOST_GROUPS,
        blocks=20,
        public=False,
        asked={"epsilon": 8.0, "groups": 8},
    ),
    "units in more groups than their cap": House(
        "SELECT g, COUNT(DISTINCT id) AS n FROM t GROUP BY g",
        (),
        SOMEWHERE,
        SOMEWHERE,
        size=12,
        blocks=3_000,
        public=False,
        asked={"epsilon": 2.0, "groups": 3},
    ),
    "rows, by a selection": House(
        "SELECT g, SUM(x) AS s FROM t GROUP BY g",
        (),
        LONELY,
        LONELY,
        unit="row",
        blocks=3_000,
        public=False,
    ),
    "units, by weights of keys": House(
        "SELECT g, SUM(x) AS s FROM t GROUP BY g",
        (),
        EVERYWHERE[:KEY_MASS],
        EVERYWHERE[:KEY_MASS],
        size=KEY_MASS,
        blocks=40,
        public=False,
        asked={"epsilon": 8.0, "contribution": 4},
    ),
}


def shown_alone(house: House, times: int = 40) -> tuple[int, int, Price]:
    """In how many blocks a group that only the unit is in was shown, of how many, and the price."""
    hits = 0
    with house.curator() as curator:
        for answer in answers(
            curator, house.question, times, **{"epsilon": 1.0, "delta": DELTA, **(house.asked or {})}
        ):
            keys = np.array(answer.released[0].table.column("k0").to_pylist(), dtype=np.int64)
            hits += len(np.unique(keys // house.size))
        return hits, times * house.blocks, answer.price


@pytest.mark.parametrize("name", ALONE)
def test_a_key_that_only_one_unit_has_is_shown_no_more_often_than_delta(name: str) -> None:
    hits, of, price = shown_alone(ALONE[name])
    (line,) = (candidate for candidate in price.lines if candidate.delta)
    assert least(hits, of) <= line.delta <= DELTA
    assert hits > 0  # there was something to see


@pytest.mark.parametrize("name", ALONE)
def test_a_threshold_lower_by_the_weight_of_a_unit_is_caught(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(showing, "threshold_for", lambda *given: threshold_for(*given) - KEY_MASS)
    # Where each row is a unit, keys are chosen by their number of units: the same bug counts one too many.
    chosen = PartitionSelection.release
    monkeypatch.setattr(PartitionSelection, "release", lambda self, counts: chosen(self, counts + 1))
    monkeypatch.setattr(
        showing,
        "count_threshold_for",
        lambda *given: count_threshold_for(*given) - given[-1].limit_steps,
    )
    drawn = TruncatedLaplace.release
    monkeypatch.setattr(TruncatedLaplace, "release", lambda self, counts: drawn(self, counts + self.largest))
    hits, of, _ = shown_alone(ALONE[name])
    assert least(hits, of) > DELTA


CROWDED = House(
    "SELECT g, COUNT(*) AS n FROM t GROUP BY g",
    tuple((unit, 0, 0.0) for unit in range(8)),
    ((9, 0, 0.0),),
    unit="row",
    public=False,
    asked={"delta": 1e-2},
)


def crowds(house: House, times: int) -> tuple[Scores, Price]:
    """Shown or not, and the count where it is shown."""
    scored: list[Scores] = []
    with house.curator() as curator:
        for answer in answers(curator, house.question, times, epsilon=1.0, **(house.asked or {})):
            table = answer.released[0].table
            score = np.full(house.blocks, -1e9)
            score[table.column("k0").to_numpy()] = table.column("m0").to_numpy() / 2**30
            scored.append(tuple(side.ravel() for side in sides(score, 1)))  # type: ignore[arg-type]
    return (np.concatenate([a for a, _ in scored]), np.concatenate([b for _, b in scored])), answer.price


def test_shown_keys_and_their_counts_tell_neighbours_apart_no_better_than_the_price() -> None:
    scores, price = crowds(CROWDED, TIMES)
    assert lower_bound(scores, price.delta) <= price.epsilon


def test_keys_and_counts_with_a_quarter_of_the_noise_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def narrow(epsilon: Fraction, delta: Fraction, **steps: int) -> TruncatedLaplace:
        return TruncatedLaplace(epsilon * 4, delta, **steps)

    monkeypatch.setattr("incrowd.curator.prices.TruncatedLaplace", narrow)
    scores, price = crowds(CROWDED, TIMES)
    assert lower_bound(scores, price.delta) > price.epsilon


def chosen_caps(heavy: int) -> Floats:
    """The caps that a census of thirty light units and some heavy ones leads to; ten are just noticed."""
    counts = np.array([30 + heavy, *[heavy] * 4, *[0] * 42])
    cells = [caps.noisy_census(counts, Fraction(1), 1)[0] for _ in range(3_000)]
    situation = caps.Situation("sum", epsilon=1.0, epsilon_sums=1.0)
    return np.array([caps.choose(census, situation).cap for census in cells])


def test_caps_chosen_privately_tell_neighbours_apart_no_better_than_their_share() -> None:
    assert lower_bound((chosen_caps(10), chosen_caps(9))) <= 1


def test_a_census_with_little_noise_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def narrow(epsilon: Fraction, *, sensitivity: int) -> Laplace:
        return Laplace(epsilon * 16, sensitivity=sensitivity)

    monkeypatch.setattr(caps, "Laplace", narrow)
    assert lower_bound((chosen_caps(10), chosen_caps(9))) > 1


def asks(times: int) -> Iterator[Floats]:
    """Final columns of whole questions, each reserved, executed, recorded and answered anew."""
    house = replace(HOUSES["count of rows"], blocks=2_000)
    with house.curator() as curator:
        for place in range(times):
            # Another confidence is another question; the same one would be answered from the record.
            answer = curator.ask(house.question, epsilon=1.0, delta=0.0, confidence=0.5 + place * 1e-3)
            assert not answer.recalled
            yield answer.to_arrow().column("n").to_numpy().astype(float)


def whole_way(times: int = 15) -> float:
    pairs = [sides(column, 1) for column in asks(times)]
    with_unit, without = (np.concatenate([pair[side].ravel() for pair in pairs]) for side in (0, 1))
    return lower_bound((with_unit, without))


def test_the_whole_way_from_question_to_answer_keeps_the_price() -> None:
    assert 0.4 < whole_way() <= 1


def test_half_the_noise_is_caught_on_the_whole_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Line, "mechanism", narrowed)
    assert whole_way() > 1
