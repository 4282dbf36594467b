"""Engines that count people, and the defences that were tried before differential privacy.

An engine counts sets of people. Each set is a WHERE condition; the answer is a number, or None if the engine
refuses. `Exact` returns true counts; the others wrap it and round, suppress or refuse. `Curated` is the real
curator. Engines know a table with a `secret` column (`crowd`), and no attack.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.curator import Curator
from incrowd.errors import InvalidInput


class Engine(Protocol):
    """Anything that counts people."""

    def counts(self, wheres: Sequence[str]) -> list[int | None]:
        """The number of people in each set; None where the engine refuses."""
        ...


class Exact:
    """True counts.

    >>> Exact(pa.table({"age": [30, 40, 50]})).counts(["age > 35", "age > 60"])
    [2, 0]
    """

    def __init__(self, table: pa.Table) -> None:
        self.people = table.num_rows
        self._engine = duckdb.connect()
        # Thousands of tiny statements: planning them is what takes time.
        self._engine.execute("SET threads = 1")
        self._engine.execute("PRAGMA disable_optimizer")
        self._engine.register("frame", table)
        self._engine.execute("CREATE TABLE people AS FROM frame")

    def counts(self, wheres: Sequence[str]) -> list[int | None]:
        """The number of people in each set."""
        asked = ", ".join(f"COUNT(*) FILTER (WHERE {where})" for where in wheres)
        row = self._engine.execute(f"SELECT {asked} FROM people").fetchone()
        return [int(count) for count in row or ()]

    def members(self, where: str) -> NDArray[np.bool_]:
        """Who is in a set."""
        rows = self._engine.execute(f"SELECT ({where}) IS TRUE AS inside FROM people ORDER BY rowid")
        return np.asarray(rows.fetchnumpy()["inside"], dtype=np.bool_)


@dataclass(frozen=True)
class Rounding:
    """Counts rounded to the nearest multiple of `to`.

    >>> Rounding(Exact(pa.table({"age": [30, 40, 50]})), to=5).counts(["age > 35", "age > 20"])
    [0, 5]
    """

    engine: Engine
    to: int = 5

    def counts(self, wheres: Sequence[str]) -> list[int | None]:
        """The rounded number of people in each set."""
        return [
            None if count is None else (2 * count + self.to) // (2 * self.to) * self.to
            for count in self.engine.counts(wheres)
        ]


@dataclass(frozen=True)
class Suppressing:
    """Counts under `below` are not shown."""

    engine: Engine
    below: int = 20

    def counts(self, wheres: Sequence[str]) -> list[int | None]:
        """The number of people in each set that is large enough."""
        return [
            None if count is None or count < self.below else count for count in self.engine.counts(wheres)
        ]


@dataclass(frozen=True)
class SizeAuditing:
    """Sets under `least` people, and sets that leave out under `least`, are refused: the classic control."""

    engine: Exact
    least: int = 20

    def counts(self, wheres: Sequence[str]) -> list[int | None]:
        """The number of people in each set that neither is small nor leaves few out."""
        most = self.engine.people - self.least
        return [
            count if count is not None and self.least <= count <= most else None
            for count in self.engine.counts(wheres)
        ]


class OverlapAuditing:
    """Size auditing that remembers its answers: it also refuses a set that differs, itself or its complement,
    from an answered set in fewer than `least` people. No two answers differ in one person.
    """

    def __init__(self, engine: Exact, least: int = 20) -> None:
        self._engine = engine
        self._least = least
        self._answered: list[NDArray[np.bool_]] = []

    def counts(self, wheres: Sequence[str]) -> list[int | None]:
        """The number of people in each set that passes."""
        return [self._count(where) for where in wheres]

    def _count(self, where: str) -> int | None:
        inside = self._engine.members(where)
        size, people = int(inside.sum()), len(inside)
        if not self._least <= size <= people - self._least:
            return None
        for other in self._answered:
            apart = int((inside ^ other).sum())
            if 0 < min(apart, people - apart) < self._least:
                return None
        self._answered.append(inside)
        return size


class Curated:
    """The curator. Each call asks about all sets in one question, as a new analyst whose whole budget is
    `epsilon` of pure differential privacy.
    """

    def __init__(self, table: pa.Table, epsilon: float, calls: int) -> None:
        if calls < 1:
            raise InvalidInput("A curator under attack needs at least one call.")
        self._epsilon = epsilon
        self._called = 0
        self.curator = Curator.from_tables(
            people=table,
            unit="row",
            bounds={"secret": (0, 1)},
            budget=(epsilon * calls * (1 + 1e-9), 0.0),
            analysts={f"analyst {index}": {"epsilon": epsilon} for index in range(calls)},
        )

    def counts(self, wheres: Sequence[str]) -> list[int | None]:
        """The noisy number of people in each set; epsilon is shared out over them."""
        asked = ", ".join(
            f"COUNT(*) FILTER (WHERE {where}) AS c{index}" for index, where in enumerate(wheres)
        )
        who = f"analyst {self._called}"
        self._called += 1
        answer = self.curator.ask(f"SELECT {asked} FROM people", epsilon=self._epsilon, analyst=who)
        return list(answer.to_arrow().to_pylist()[0].values())

    def __enter__(self) -> Curated:
        return self

    def __exit__(self, *_: object) -> None:
        self.curator.close()
