"""The whole curator as a mechanism: questions asked through `Curator.ask` about neighbouring tables.

One ask of a wide table is many runs at once. The table consists of blocks that are all alike, each with its
own groups and its own units; a block's rows are the data of a run, and the answer's rows for its groups are
the run's output. Noise is independent over groups, and no unit is in two blocks, so the runs are independent
and each is what an ask about one block would have given. Where something is chosen for the table as a whole
(caps that nobody declared), blocks are not independent, and there is one block in each ask.

No answer is recalled: asks of one curator differ in the confidence of their intervals, which makes them
different questions and changes nothing else, and every so often a new curator begins a new account.

Where an answer hides most of what was spent for it (the ends of intervals, caps chosen on the way), the ask
is replayed besides: every exact number that it adds noise to, with and without a unit (`replays`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.adversary.audit.case import Case
from incrowd.adversary.audit.neighbours import HOSTILE
from incrowd.adversary.audit.proofs import Proof, proven
from incrowd.adversary.audit.replays import recorded, replayed
from incrowd.adversary.audit.runs import Batch
from incrowd.backends.statement import KEY_MASS, MOST_GROUPS
from incrowd.curator import Curator, showing
from incrowd.mechanisms import Gaussian, Laplace, TruncatedLaplace
from incrowd.noise import discrete_gaussian_sf, discrete_laplace_sf

Row = tuple[int, int, float | None]
"""A unit, one of its block's groups, and a value."""
ASKS = 10
"""Asks that one account pays for."""
SCHEMA = pa.schema([("id", pa.int64()), ("g", pa.int64()), ("x", pa.float64())])
UNITS = 1_000
"""Units that a block may have; those of different blocks are different people."""


@dataclass(frozen=True)
class Asked:
    """A question about a table of blocks; called with a block's rows and a number of runs.

    size: the groups of a block. public: whether the keys are declared. asked: the other arguments of the
    ask, epsilon among them.
    """

    question: str
    asked: Mapping[str, Any]
    size: int = 1
    blocks: int = 1_000
    unit: str = "id"
    public: bool = True
    relation: str = "add-remove"
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, rows: Sequence[Row], runs: int, /) -> Any:
        """Each run's output: a number per group of the block, or None where a private key is not shown."""
        blocks = min(self.blocks, runs)
        table = self.table(rows, blocks)
        outputs: list[Any] = []
        while len(outputs) < runs:
            with self.curator(table, blocks) as curator:
                for place in range(min(ASKS, -(-(runs - len(outputs)) // blocks))):
                    answer = curator.ask(self.question, **self.asked, confidence=0.9 + 1e-4 * place)
                    assert not answer.recalled
                    outputs.extend(self.outputs(answer.to_arrow(), blocks))
        return outputs[:runs]

    def replay(self, pairs: Iterable[tuple[list[Row], list[Row]]] | None = None) -> Proof:
        """The ask replayed about tables in which one unit comes, or is replaced, with hostile rows."""

        def release(rows: Sequence[Row]) -> None:
            # A second block that stays empty, so that the keys are public.
            with self.curator(self.table(rows, 1), 2) as curator:
                curator.ask(self.question, **self.asked)

        claim = float(self.asked["epsilon"]), float(self.asked["delta"])
        chosen = units(40, self.size, self.relation) if pairs is None else pairs
        return replayed(release, chosen, *claim)

    def table(self, rows: Sequence[Row], blocks: int) -> pa.Table:
        """The rows, once in each block."""
        listed = [
            (block * UNITS + unit, block * self.size + group, value)
            for block in range(blocks)
            for unit, group, value in rows
        ]
        columns: list[Sequence[Any]] = list(zip(*listed, strict=True)) or [(), (), ()]
        return pa.table(
            [pa.array(column, kind.type) for column, kind in zip(columns, SCHEMA, strict=True)], SCHEMA
        )

    def curator(self, table: pa.Table, blocks: int) -> Curator:
        """A curator that has answered nothing yet."""
        bounds: dict[str, Any] = {"x": (-10.0, 10.0)}
        if self.public and self.size * blocks > 1:
            bounds["g"] = (0, blocks * self.size - 1)
        settings = {"unit": self.unit, "relation": self.relation, "budget": (100.0, 0.99), **self.settings}
        return Curator.from_tables(t=table, bounds=bounds, **settings)

    def outputs(self, answer: pa.Table, blocks: int) -> list[Any]:
        """The answer's rows by block."""
        names = [name for name in answer.column_names if name != "g"]
        columns = [answer.column(name).to_pylist() for name in names]
        if "g" not in answer.column_names:
            return [columns[0][0]]
        by_block: list[list[Any]] = [[None] * self.size for _ in range(blocks)]
        for place, key in enumerate(answer.column("g").to_pylist()):
            if key is not None:
                values = [column[place] for column in columns]
                by_block[key // self.size][key % self.size] = values[0] if len(values) == 1 else values
        return [block[0] if self.size == 1 else block for block in by_block]


BASE: tuple[Row, ...] = ((1, 0, 1.0), (2, 0, -2.0), (3, 0, 0.0))
ONE = {"epsilon": 1.0, "delta": 0.0, "contribution": 1}
HEAVY: tuple[Row, ...] = tuple((9, place % 2, 10.0) for place in range(40))
DELTA = 0.02


def units(count: int, groups: int, relation: str, seed: int = 0) -> Iterator[tuple[list[Row], list[Row]]]:
    """Pairs of tables: a crowd, and the crowd with one unit added or replaced, whose rows may be hostile."""
    chance = random.Random(seed)
    values: list[float | None] = [*HOSTILE, None, -10.0, 10.0, 0.0, -8.0]

    def person(unit: int, rows: int) -> list[Row]:
        same = chance.choice(values)
        mixed = chance.random() < 0.5
        return [
            (unit, chance.randrange(groups), chance.choice(values) if mixed else same) for _ in range(rows)
        ]

    near: list[Row] = [(1, 0, -8.0)]
    yield [*near, *([(9, 0, -10.0)] if relation == "replace" else [])], [*near, (9, 0, 10.0)]
    for _ in range(count - 1):
        crowd = [
            row
            for unit in range(chance.choice((0, 1, 2, 5, 30)))
            for row in person(unit, chance.choice((1, 3)))
        ]
        one, other = (person(99, chance.choice((1, 1, 2, 7, 60))) for _ in range(2))
        yield [*crowd, *(one if relation == "replace" else [])], [*crowd, *other]


def joining(count: int, groups: int, seed: int = 0) -> Iterator[tuple[list[Row], list[Row]]]:
    """Pairs of tables: a crowd in every group, and one unit more in some; the groups stay the same."""
    chance = random.Random(seed)
    crowd: list[Row] = [(10 * group + unit, group, 1.0) for group in range(groups) for unit in range(10)]
    for _ in range(count):
        rows = chance.choice((1, 1, 2, 3, 40))
        yield crowd, [*crowd, *((999, chance.randrange(groups), chance.choice(HOSTILE)) for _ in range(rows))]


def lone_keys(asked: Asked) -> Proof:
    """Keys that only one unit has: the chance that any is shown, divided by the delta stated for them.

    Weights, threshold and noise are those of the ask itself; the tail of the noise is exact.
    """
    stated: list[tuple[Fraction, int]] = []
    module: Any = showing
    names = ("threshold_for", "count_threshold_for")
    originals = {name: getattr(module, name) for name in names}

    def noting(original: Any) -> Any:
        def noted(tail: Any, delta: Fraction, *others: Any) -> int:
            least: int = original(tail, delta, *others)
            stated.append((delta, least))
            return least

        return noted

    def share(nobody: Sequence[Row], rows: Sequence[Row]) -> float:
        with recorded() as transcript, asked.curator(asked.table(rows, 1), 1) as curator:
            curator.ask(asked.question, **asked.asked)
        if not transcript.steps:  # nobody counts, so nothing could be shown
            return 0.0
        noise, weights = transcript.steps[0].mechanism, np.asarray(transcript.steps[0].inputs)
        if isinstance(noise, TruncatedLaplace):
            delta, least = noise.exact_delta, noise.bound + 1
        else:
            delta, least = stated[-1]
        shown = noise_tail(noise, least - weights[weights > 0])
        return float(-np.expm1(np.log1p(-shown).sum())) / float(delta)

    for name in names:
        setattr(module, name, noting(originals[name]))
    try:
        sizes = (1, 2, 3, 10, 100, 1_000, KEY_MASS, KEY_MASS + 1, MOST_GROUPS, MOST_GROUPS + 1)
        return proven("exact", share, [((), [(9, group, 0.0) for group in range(size)]) for size in sizes])
    finally:
        for name in names:
            setattr(module, name, originals[name])


def noise_tail(noise: Laplace | Gaussian | TruncatedLaplace, least: NDArray[np.int64]) -> NDArray[np.float64]:
    """P(noise >= k) for each k, exactly."""
    if isinstance(noise, TruncatedLaplace):
        above, cut = (
            np.asarray(discrete_laplace_sf(at, noise.scale_in_steps)) for at in (least - 1, noise.bound)
        )
        return np.where(least > noise.bound, 0.0, (above - cut) / (1 - 2 * cut))
    if isinstance(noise, Laplace):
        return np.asarray(discrete_laplace_sf(least - 1, noise.scale_in_steps))
    # Fine steps are rounded to whole ones, halves upwards: at least k from k - 1/2 on.
    fine = least * 2**noise.fine - 2**noise.fine // 2
    return np.asarray(discrete_gaussian_sf(fine - 1, noise.sigma_in_fine_steps))


def _case(
    name: str,
    asked: Asked,
    x: Sequence[Row],
    x_prime: Sequence[Row],
    samples: int,
    replay: bool = False,
    proof: Callable[[], Proof] | None = None,
) -> Case:
    claim = float(asked.asked["epsilon"]), float(asked.asked["delta"])
    proof = asked.replay if replay else proof
    return Case(
        name, asked.question, Batch(asked), tuple(x), tuple(x_prime), *claim, samples=samples, proof=proof
    )


GROUPED = "SELECT g, {} AS v FROM t GROUP BY g"
CROWDED = Asked(GROUPED.format("COUNT(*)"), {**ONE, "delta": DELTA}, size=3, public=False)
KEYED = Asked(GROUPED.format("COUNT(*)"), {**ONE, "delta": DELTA}, public=False)
MANY_KEYED = Asked(
    GROUPED.format("COUNT(DISTINCT id)"), {"epsilon": 1.0, "delta": DELTA, "groups": 20}, public=False
)
WEIGHED = Asked(GROUPED.format("SUM(x)"), {**ONE, "delta": DELTA}, public=False)
CURATORS: tuple[Case, ...] = (
    _case("curator: COUNT", Asked(GROUPED.format("COUNT(*)"), ONE), BASE, (*BASE, (9, 0, 0.0)), 150_000),
    _case(
        "curator: COUNT of rows",
        Asked(GROUPED.format("COUNT(*)"), {"epsilon": 1.0, "delta": 0.0}, unit="row"),
        BASE,
        (*BASE, (9, 0, 0.0)),
        120_000,
    ),
    _case(
        "curator: COUNT, one in many groups",
        Asked(GROUPED.format("COUNT(*)"), {**ONE, "contribution": 2}, size=2),
        BASE,
        (*BASE, *HEAVY),
        120_000,
    ),
    _case(
        "curator: COUNT(DISTINCT unit)",
        Asked(GROUPED.format("COUNT(DISTINCT id)"), {"epsilon": 1.0, "delta": 0.0, "groups": 1}, size=2),
        BASE,
        (*BASE, *HEAVY),
        120_000,
    ),
    _case("curator: SUM", Asked(GROUPED.format("SUM(x)"), ONE), BASE, (*BASE, (9, 0, 99.0)), 120_000),
    _case(
        "curator: SUM, replaced",
        Asked(GROUPED.format("SUM(x)"), ONE, relation="replace"),
        (*BASE, (9, 0, 10.0)),
        (*BASE, (9, 0, -10.0)),
        120_000,
    ),
    _case("curator: AVG", Asked(GROUPED.format("AVG(x)"), ONE), BASE, (*BASE, (9, 0, 99.0)), 40_000, True),
    _case(
        "curator: VARIANCE",
        Asked(GROUPED.format("VAR_POP(x)"), ONE),
        BASE,
        (*BASE, (9, 0, 10.0)),
        40_000,
        True,
    ),
    _case(
        "curator: MEDIAN",
        Asked(GROUPED.format("MEDIAN(x)"), ONE),
        ((1, 0, -8.0),),
        ((1, 0, -8.0), (9, 0, 10.0)),
        4_000,
        True,
    ),
    _case(
        "curator: MEDIAN, replaced",
        Asked(GROUPED.format("MEDIAN(x)"), ONE, relation="replace"),
        ((1, 0, -8.0), (9, 0, -10.0)),
        ((1, 0, -8.0), (9, 0, 10.0)),
        1_000,
        True,
    ),
    _case(
        "curator: private keys, one alone",
        KEYED,
        (),
        ((9, 0, 0.0),),
        30_000,
        proof=lambda: lone_keys(KEYED),
    ),
    _case(
        "curator: private keys of many days, one alone",
        MANY_KEYED,
        (),
        ((9, 0, 0.0),),
        30_000,
        proof=lambda: lone_keys(MANY_KEYED),
    ),
    _case(
        "curator: private keys by weights, one alone",
        WEIGHED,
        (),
        ((9, 0, 0.0),),
        30_000,
        proof=lambda: lone_keys(WEIGHED),
    ),
    _case(
        "curator: private keys, a crowd",
        Asked(GROUPED.format("COUNT(*)"), {**ONE, "delta": DELTA}, public=False),
        tuple((unit, 0, 0.0) for unit in range(10)),
        tuple((unit, 0, 0.0) for unit in range(11)),
        40_000,
        proof=lambda: CROWDED.replay(joining(30, CROWDED.size)),
    ),
    _case(
        "curator: private keys of rows",
        Asked(GROUPED.format("COUNT(*)"), {"epsilon": 1.0, "delta": DELTA}, unit="row", public=False),
        tuple((unit, 0, 0.0) for unit in range(4)),
        tuple((unit, 0, 0.0) for unit in range(5)),
        150_000,
    ),
    _case(
        "curator: one small table",
        Asked("SELECT COUNT(*) AS v FROM t", ONE, blocks=1),
        BASE,
        (*BASE, (9, 0, 0.0)),
        100,
        True,
    ),
    _case(
        "curator: caps chosen privately",
        Asked("SELECT SUM(x) AS v FROM t", {"epsilon": 1.0, "delta": 0.0}, blocks=1),
        BASE,
        (*BASE, *HEAVY),
        100,
        True,
    ),
    _case(
        "curator: caps chosen privately, by group",
        Asked(GROUPED.format("SUM(x)"), {"epsilon": 1.0, "delta": 0.0}, size=2, blocks=1),
        BASE,
        (*BASE, *HEAVY),
        100,
        True,
    ),
)
