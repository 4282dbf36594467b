"""Differencing: counts of large sets of people that together reveal one person's secret.

Counts are linear: whatever adds up to one person's row adds up to her secret. So it does not help to refuse
small sets (two large ones differ in her), nor to refuse sets that are almost everyone (the tracker of
Denning, Denning and Schwartz, 1979), nor to refuse pairs that differ in few (three sets do it), nor to round
(pad her with many crowds: some are at the edge, where one more person tips the number). Noise of differential
privacy does help: whatever is asked, success stays under `bounds.most_success`.

A `Ploy` is what an attacker asks and how she combines the answers; it knows neither tables nor engines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from incrowd.adversary.attacks.bounds import most_success
from incrowd.adversary.attacks.defences import (
    Curated,
    Engine,
    Exact,
    OverlapAuditing,
    Rounding,
    SizeAuditing,
    Suppressing,
)
from incrowd.adversary.attacks.outcome import Attempt, Rate, Report
from incrowd.adversary.data.crowd import HAS, KNOWN, SECRET, Crowd, gather
from incrowd.errors import InvalidInput

TRIES = 60
"""How many paddings an attacker tries before she gives up and guesses."""


@dataclass(frozen=True)
class Ploy:
    """Sets to ask about, and the weights with which their sizes add up to the secret: 1 or 0."""

    sets: tuple[str, ...]
    weights: tuple[int, ...]

    def reveal(self, answers: Sequence[float | None]) -> float | None:
        """The weighted sum of the answers; None if one was refused.

        >>> Ploy(("all", "all but one"), (1, -1)).reveal([812, 811])
        1.0
        """
        told = [answer for answer in answers if answer is not None]
        return float(np.dot(self.weights, told)) if len(told) == len(self.sets) else None


def direct(target: str, secret: str) -> Ploy:
    """How many people are this person and have the secret?"""
    return Ploy((f"({target} AND {secret})",), (1,))


def difference(target: str, secret: str, padding: str = "TRUE") -> Ploy:
    """Two counts that differ in one person: a crowd with her, less the crowd without her."""
    others = f"({padding}) AND {_not(target)}"
    return Ploy((f"{secret} AND ({padding} OR {target})", f"{secret} AND {others}"), (1, -1))


def tracker(target: str, secret: str, padding: str) -> Ploy:
    """The general tracker T: for any small set C, |C| = |C or T| + |C or not T| - |T| - |not T|.

    If T holds between 2k and n - 2k of n people, and C at most k, all four sets hold between k and n - k.
    """
    small, outside = f"({target} AND {secret})", _not(padding)
    return Ploy((f"{small} OR {padding}", f"{small} OR {outside}", padding, outside), (1, 1, -1, -1))


def three_sets(target: str, secret: str, one: str, two: str) -> Ploy:
    """For crowds A and B apart from each other and from her: |A or her| + |B| - |A or B|, over those who have
    the secret. Any two of the three sets differ in all of A or all of B: no pair looks like a difference.
    """
    first = f"({one} AND {_not(two)} AND {_not(target)})"
    second = f"({two} AND {_not(one)} AND {_not(target)})"
    sets = (f"({first} OR {target})", second, f"({first} OR {second})")
    return Ploy(tuple(f"{secret} AND {people}" for people in sets), (1, 1, -1))


def _not(where: str) -> str:
    # NOT of a comparison with NULL is NULL: this is the complement.
    return f"(({where}) IS NOT TRUE)"


def tipped(steps: Iterable[float | None]) -> float:
    """1.0 if one of these differences of rounded counts, each over another crowd, is a step up; else 0.0.

    A monotone rounding never steps down when somebody is added and stands still when nobody is, so that one
    step up proves the secret. Rounded to multiples of r, a crowd is at the edge about once in r.

    >>> tipped([0, 0, None, 5]), tipped([0, 0, None])
    (1.0, 0.0)
    """
    return float(any(step is not None and step > 0 for step in steps))


Attack = Callable[[Engine, str, Iterator[str]], float | None]
"""An attack asks an engine about a target, with paddings to choose from; above 1/2 is yes, None a refusal."""


def _directly(engine: Engine, target: str, paddings: Iterator[str]) -> float | None:
    del paddings
    ploy = direct(target, HAS)
    return ploy.reveal(engine.counts(ploy.sets))


def _differing(engine: Engine, target: str, paddings: Iterator[str]) -> float | None:
    del paddings
    ploy = difference(target, HAS)
    return ploy.reveal(engine.counts(ploy.sets))


def _tracking(engine: Engine, target: str, paddings: Iterator[str]) -> float | None:
    return _first(engine, (tracker(target, HAS, padding) for padding in islice(paddings, TRIES)))


def _tracking_once(engine: Engine, target: str, paddings: Iterator[str]) -> float | None:
    return _first(engine, [tracker(target, HAS, next(paddings))])


def _three_sets(engine: Engine, target: str, paddings: Iterator[str]) -> float | None:
    return _first(engine, (three_sets(target, HAS, next(paddings), next(paddings)) for _ in range(TRIES)))


def _first(engine: Engine, ploys: Iterable[Ploy]) -> float | None:
    """What the first ploy reveals whose questions are all answered; None if there is none."""
    revealed = (ploy.reveal(engine.counts(ploy.sets)) for ploy in ploys)
    return next((value for value in revealed if value is not None), None)


def _tipping(engine: Engine, target: str, paddings: Iterator[str]) -> float | None:
    ploys = (difference(target, HAS, padding) for padding in islice(paddings, TRIES))
    return tipped(ploy.reveal(engine.counts(ploy.sets)) for ploy in ploys)


def attack(engine: Engine, crowd: Crowd, attempt: Attack, generator: np.random.Generator) -> Rate:
    """How often an attack is right about a crowd's targets; where it is refused, it guesses."""
    paddings = crowd.paddings(generator)
    hits = 0
    for person, bit in zip(crowd.targets, crowd.bits, strict=True):
        value = attempt(engine, crowd.where(int(person)), paddings)
        said = bool(generator.integers(2)) if value is None else value > 0.5
        hits += said == bool(bit)
    return Rate(hits, len(crowd.targets))


def differencing(
    table: Any = None,
    *,
    known: Sequence[str] = KNOWN,
    secret: str = SECRET,
    epsilon: float = 1.0,
    people: int = 1_000,
    targets: int = 40,
    seed: int | None = None,
) -> Report:
    """Differencing, trackers and padding against exact counts, four classic defences and the curator.

    table, known, secret, people, targets: see `crowd.gather`. epsilon: what the curator grants an attacker.
    A target's secret moves each count by at most one, no more than her whole row does, so the noise that
    hides her row (Laplace, epsilon shared out over the counts) hides her secret: `most_success(epsilon)` is
    the bound.
    """
    if not epsilon > 0:
        raise InvalidInput(f"epsilon must be a positive number, not {epsilon!r}.")
    crowd = gather(table, known=known, secret=secret, people=people, targets=targets, seed=seed)
    exact = Exact(crowd.table)
    few = max(2, crowd.table.num_rows // 50)
    generator = np.random.default_rng(seed)
    rounded = Suppressing(Rounding(exact, 10), few)
    fights: list[tuple[str, Engine, Attack]] = [
        ("exact counts: two that differ in one person", exact, _differing),
        (f"under {few} suppressed: asked directly", Suppressing(exact, few), _directly),
        (f"under {few} suppressed: two that differ in one person", Suppressing(exact, few), _differing),
        (f"sets under {few} or over n - {few} refused: tracker", SizeAuditing(exact, few), _tracking),
        (
            f"pairs that differ in under {few} refused: three sets",
            OverlapAuditing(exact, few),
            _three_sets,
        ),
        ("rounded to 5: two that differ in one person", Rounding(exact, 5), _differing),
        ("rounded to 5: padded with many crowds", Rounding(exact, 5), _tipping),
        (f"rounded to 10, under {few} suppressed: padded", rounded, _tipping),
    ]
    attempts = [
        Attempt(name, attack(engine, crowd, how, generator), guessing=0.5) for name, engine, how in fights
    ]
    ways: list[tuple[str, Attack]] = [
        ("asked directly", _directly),
        ("two that differ in one person", _differing),
        ("tracker", _tracking_once),
    ]
    with Curated(crowd.table, epsilon, len(ways) * len(crowd.targets)) as curated:
        attempts += [
            Attempt(
                f"the curator, epsilon {epsilon:g}: {name}",
                attack(curated, crowd, how, generator),
                guessing=0.5,
                allowed=most_success(epsilon),
            )
            for name, how in ways
        ]
    return Report(
        name="differencing",
        title="Differencing: one person's secret from counts of crowds",
        knows=f"The attacker knows {', '.join(known)} of a person whom they single out, and no secret.",
        succeeds="She says rightly whether that person has the secret, which a fair coin decided.",
        attempts=tuple(attempts),
        lesson="Refusing small counts, refusing suspicious ones and rounding all fall to arithmetic on "
        "counts that look harmless. Noise with a budget does not, whatever is asked.",
        details={"people": crowd.table.num_rows, "targets": len(crowd.targets), "small": few},
    )
