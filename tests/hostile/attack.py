"""The attack itself: cases from a seed, each in a store, and questions about both sides of it."""

from __future__ import annotations

import itertools
import os
import random
import shutil
import tempfile
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from tests.hostile import cases, questions
from tests.hostile.cases import Case
from tests.hostile.neighbour import Broken, Limits, Tally, attempt, check_opening, check_question
from tests.hostile.stores import Store

Variant = TypeVar("Variant")


def wanted(quick: int, full: int) -> int:
    """How many questions to have accepted: few in the tests, all of them where INCROWD_HOSTILE=full, and so
    many times the few where it is a number.
    """
    said = os.environ.get("INCROWD_HOSTILE", "1")
    return full if said == "full" else max(1, round(quick * float(said)))


def few(variants: Sequence[Variant], quick: int = 1) -> Sequence[Variant]:
    """The variants of an attack: the first of them in the tests, all of them with INCROWD_HOSTILE."""
    return variants if "INCROWD_HOSTILE" in os.environ else variants[:quick]


def attack(
    tally: Tally,
    makers: Sequence[Callable[[random.Random], Store]],
    accepted: int,
    *,
    seed: int = 0,
    per_case: int = 8,
    whole: float = 0.1,
) -> Tally:
    """Ask about one case after another until so many questions are accepted; what breaks is in the tally.

    Of each case `per_case` questions are asked; the share `whole` of them goes the whole way, noise and all.
    """
    for place in itertools.count(seed):
        if tally.accepted >= accepted:
            return tally
        assert place - seed < 5 * accepted + 20, f"too few questions are accepted: {tally}"
        rng = random.Random(place)
        store = makers[place % len(makers)](rng)
        case = cases.draw(rng, store.storages, store.texts)
        folder = Path(tempfile.mkdtemp(prefix="incrowd-hostile-"))
        try:
            _case(tally, store, case, rng, folder, per_case, whole, f"seed {place}, {store.name}")
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return tally


def _case(
    tally: Tally,
    store: Store,
    case: Case,
    rng: random.Random,
    folder: Path,
    per_case: int,
    whole: float,
    label: str,
) -> None:
    secrets = case.secrets()
    writing = []
    for name, rows in (("without", case.without), ("hostile", case.hostile)):
        (folder / name).mkdir()
        writing.append(attempt(lambda rows=rows, name=name: store.written(case, rows, folder / name)))  # type: ignore[misc]
    if any(outcome.error is not None for outcome in writing):
        tally.unwritable += 1  # the format cannot hold such a row: pyarrow, pandas or polars says so
        return
    sides = [attempt(outcome.value) for outcome in writing]
    try:
        if not check_opening(sides[0], sides[1], secrets, case.broken):
            tally.kept_shut += 1
            return
        tally.opened += 1
        pair = [side.value for side in sides]
        for _ in range(per_case):
            sql, limits = questions.question(rng, case), Limits.draw(rng)
            tally.tried += 1
            try:
                accepted = check_question(pair, sql, limits, secrets, rng.random() < whole)
                tally.accepted += accepted
                tally.refused += not accepted
            except Broken as broken:
                tally.accepted += 1
                tally.broken.append(f"{label}: {broken}\n  {sql}\n  {limits}; {case}")
    except Broken as broken:
        tally.broken.append(f"{label}, at opening: {broken}\n  {case}\n{_origin(broken)}")
    finally:
        for side in sides:
            if side.value is not None:
                side.value.close()


def _origin(broken: Broken) -> str:
    cause = broken.__cause__
    return "" if cause is None else "".join(traceback.format_exception(cause)[-3:])
