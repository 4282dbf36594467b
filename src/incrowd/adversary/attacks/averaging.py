"""Averaging: fresh noise on every repeat of a question cancels out in the mean.

Each answer about a person has discrete Laplace noise of scale 1 / epsilon on her bit, and k of them are
k * epsilon-differentially private and no better: after enough repeats her secret is plain. The curator stands
in the way twice. The same question gets the recorded answer, so repeating it adds nothing; and another
question, or the same one at another price, is paid from a budget that ends. `average` knows only answers, not
where they came from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from incrowd.adversary.attacks.bounds import most_success
from incrowd.adversary.attacks.outcome import Attempt, Rate, Report
from incrowd.adversary.data.crowd import HAS, KNOWN, SECRET, Crowd, gather
from incrowd.curator import Curator
from incrowd.errors import BudgetExceeded, InvalidInput
from incrowd.mechanisms import Laplace

REPEATS = (1, 2, 4, 8, 16, 32, 64)


def average(answers: ArrayLike) -> NDArray[np.bool_]:
    """The secret bits behind repeated noisy answers: a row for each repeat, a column for each person.

    Each answer is brought into [0, 1] before averaging. This is the most powerful test: under Laplace noise
    of scale b the likelihood ratio of a bit of 1 to one of 0 is exp((|y| - |y - 1|) / b), which does not grow
    beyond that range.

    >>> average([[3, -1], [0, 0], [1, 2]]).tolist()
    [True, False]
    """
    table = np.asarray(answers, dtype=np.float64)
    if table.ndim != 2 or table.size == 0 or np.isnan(table).any():
        raise InvalidInput("Averaging needs a table of numbers: a row for each repeat.")
    return np.asarray(np.clip(table, 0, 1).mean(axis=0) > 0.5)


def _curator(crowd: Crowd, budget: float) -> Curator:
    people = crowd.table.select(["person", "secret"])
    return Curator.from_tables(
        people=people,
        unit="row",
        domains={"person": people["person"].to_pylist()},
        bounds={"secret": (0, 1)},
        budget=(budget, 0.0),
    )


def _question(rephrased: int = 0) -> str:
    """SQL that counts, for every person at once, whether she has the secret.

    Each person is in one group only, so all groups together cost as much as one. Each value of `rephrased`
    gives another wording of the same question.
    """
    more = f" AND person >= {-rephrased}" if rephrased else ""
    return f"SELECT person, COUNT(*) AS n FROM people WHERE {HAS}{more} GROUP BY person"


def _asked(curator: Curator, crowd: Crowd, question: str, epsilon: float) -> tuple[NDArray[np.int64], bool]:
    answer = curator.ask(question, epsilon=epsilon)
    table = answer.to_arrow()
    table = table.filter(table["person"].is_valid()).sort_by("person")
    return table["n"].to_numpy()[crowd.targets], answer.recalled


def repeated(crowd: Crowd, epsilon: float, times: int) -> tuple[NDArray[np.int64], int]:
    """The curator's answers about the targets when one question is asked `times` times (a row per time), and
    how many of them it recalled from its record.
    """
    with _curator(crowd, epsilon) as curator:
        answers = [_asked(curator, crowd, _question(), epsilon) for _ in range(times)]
    return np.array([row for row, _ in answers]), sum(recalled for _, recalled in answers)


def rephrased(crowd: Crowd, epsilon: float, budget: float, times: int) -> NDArray[np.int64]:
    """The curator's answers about the targets to `times` wordings of a question, until the budget ends."""

    def told(curator: Curator) -> Iterator[NDArray[np.int64]]:
        for time in range(times):
            try:
                yield _asked(curator, crowd, _question(time), epsilon)[0]
            except BudgetExceeded:
                return

    with _curator(crowd, budget) as curator:
        return np.array(list(told(curator)))


def averaging(
    table: Any = None,
    *,
    known: Sequence[str] = KNOWN,
    secret: str = SECRET,
    epsilon: float = 0.5,
    budget: float = 2.0,
    people: int = 1_000,
    repeats: Sequence[int] = REPEATS,
    seed: int | None = None,
) -> Report:
    """Averaging against fresh noise without a budget, and against the curator in two ways.

    table, known, secret, people: see `crowd.gather`. epsilon: the price of each answer; budget: where the
    curator's account ends. A person without the secret is in no count, so each answer is epsilon-private for
    every secret, and the answers together are so for the sum of what they cost.
    """
    if not (epsilon > 0 and budget >= epsilon):
        raise InvalidInput("epsilon must be a positive number, and the budget at least that.")
    if not repeats or min(repeats) < 1:
        raise InvalidInput("Repeats must be whole numbers of at least 1.")
    crowd = gather(table, known=known, secret=secret, people=people, seed=seed)
    most = max(repeats)
    noise = Laplace(epsilon=epsilon, sensitivity=1)
    fresh = noise.release(np.broadcast_to(crowd.bits.astype(np.int64), (most, len(crowd.targets))))
    same, recalled = repeated(crowd, epsilon, most)
    other = rephrased(crowd, epsilon, budget, most)

    def attempt(name: str, answers: NDArray[np.int64], allowed: float, times: int, note: str) -> Attempt:
        right = int((average(answers[:times]) == crowd.bits).sum())
        return Attempt(
            name, Rate(right, len(crowd.targets)), guessing=0.5, allowed=allowed, x=times, note=note
        )

    attempts: list[Attempt] = []
    for times in repeats:
        price = most_success(times * epsilon)
        attempts.append(
            attempt("fresh noise, no budget", fresh, price, times, f"epsilon {times * epsilon:g} so far")
        )
    for times in repeats:
        note = "The first answer costs; the others are recalled and equal to it."
        attempts.append(attempt("the curator, the same question", same, most_success(epsilon), times, note))
    for times in repeats:
        spent = min(times, len(other))
        note = f"{spent} of {times} questions were answered" + (
            "; the budget ended." if spent < times else "."
        )
        bound = most_success(spent * epsilon)
        attempts.append(attempt("the curator, rephrased until the budget ends", other, bound, times, note))
    return Report(
        name="averaging",
        title=f"Averaging: a question asked again and again, epsilon {epsilon:g} each time",
        knows="The attacker knows who is who in the table, and no secret.",
        succeeds="A person's secret, which a fair coin decided, is found; the share of people is shown.",
        attempts=tuple(attempts),
        lesson="Noise without an account wears off. A record of answers makes repeats worthless, and a "
        "budget ends what rephrasing could add.",
        axis="times asked",
        logarithmic=True,
        details={
            "targets": len(crowd.targets),
            "budget": budget,
            "recalled": recalled,
            "answered before the budget ended": len(other),
        },
    )
