"""The whole curator as a mechanism: questions asked through `Curator.ask` about neighbouring tables.

One ask of a wide table is many runs at once. The table consists of blocks that are all alike, each with its
own groups and its own units; a block's rows are the data of a run, and the answer's rows for its groups are
the run's output. Noise is independent over groups, and no unit is in two blocks, so the runs are independent
and each is what an ask about one block would have given. Where something is chosen for the table as a whole
(caps that nobody declared), blocks are not independent, and there is one block in each ask.

No answer is recalled: asks of one curator differ in the confidence of their intervals, which makes them
different questions and changes nothing else, and every so often a new curator begins a new account.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from incrowd.adversary.audit.case import Case
from incrowd.adversary.audit.sampling import Batch
from incrowd.curator import Curator

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

    size: the groups of a block. public: whether the keys are declared. asked: what is said besides the
    question, its epsilon among it.
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
        found: list[Any] = []
        while len(found) < runs:
            with self.curator(table, blocks) as curator:
                for place in range(min(ASKS, -(-(runs - len(found)) // blocks))):
                    answer = curator.ask(self.question, **self.asked, confidence=0.9 + 1e-4 * place)
                    assert not answer.recalled
                    found.extend(self.outputs(answer.to_arrow(), blocks))
        return found[:runs]

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
        found: list[list[Any]] = [[None] * self.size for _ in range(blocks)]
        for place, key in enumerate(answer.column("g").to_pylist()):
            if key is not None:
                values = [column[place] for column in columns]
                found[key // self.size][key % self.size] = values[0] if len(values) == 1 else values
        return [each[0] if self.size == 1 else each for each in found]


BASE: tuple[Row, ...] = ((1, 0, 1.0), (2, 0, -2.0), (3, 0, 0.0))
ONE = {"epsilon": 1.0, "delta": 0.0, "contribution": 1}
HEAVY: tuple[Row, ...] = tuple((9, place % 2, 10.0) for place in range(40))
LOW: tuple[Row, ...] = tuple((unit, 0, -10.0) for unit in range(4))
DELTA = 0.02


def _case(name: str, asked: Asked, x: Sequence[Row], x_prime: Sequence[Row], samples: int) -> Case:
    claim = float(asked.asked["epsilon"]), float(asked.asked["delta"])
    return Case(name, asked.question, Batch(asked), tuple(x), tuple(x_prime), *claim, samples=samples)


GROUPED = "SELECT g, {} AS v FROM t GROUP BY g"
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
    _case("curator: AVG", Asked(GROUPED.format("AVG(x)"), ONE), BASE, (*BASE, (9, 0, 99.0)), 120_000),
    _case(
        "curator: VARIANCE", Asked(GROUPED.format("VAR_POP(x)"), ONE), BASE, (*BASE, (9, 0, 10.0)), 100_000
    ),
    _case("curator: MEDIAN", Asked(GROUPED.format("MEDIAN(x)"), ONE), LOW, (*LOW, (9, 0, 10.0)), 24_000),
    _case(
        "curator: private keys, one alone",
        Asked(GROUPED.format("COUNT(*)"), {**ONE, "delta": DELTA}, public=False),
        (),
        ((9, 0, 0.0),),
        150_000,
    ),
    _case(
        "curator: private keys, a crowd",
        Asked(GROUPED.format("COUNT(*)"), {**ONE, "delta": DELTA}, public=False),
        tuple((unit, 0, 0.0) for unit in range(10)),
        tuple((unit, 0, 0.0) for unit in range(11)),
        150_000,
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
        600,
    ),
    _case(
        "curator: caps chosen privately",
        Asked("SELECT SUM(x) AS v FROM t", {"epsilon": 1.0, "delta": 0.0}, blocks=1),
        BASE,
        (*BASE, *HEAVY),
        300,
    ),
)
