"""Reconstruction: too many answers that are too accurate give away almost everybody's secret.

Theorem (Dinur, Nissim 2003). Let n people have one secret bit each, and let a release answer how many people
with the secret are in each of m random subsets, with error at most alpha. If alpha is well under sqrt(n) and
m a small multiple of n, whoever knows the subsets finds all but few of the bits in polynomial time. Every
noise of that size falls, whatever it is called, so a release that answers m questions needs noise that grows
with m: which is what a budget of differential privacy enforces.

`reconstruct` is the decoder: it knows subsets and answers, and nothing of where they came from.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from incrowd.adversary.attacks.bounds import most_success
from incrowd.adversary.attacks.outcome import Attempt, Rate, Report
from incrowd.adversary.data.crowd import KNOWN, SECRET, Crowd, gather
from incrowd.curator import Curator
from incrowd.errors import InvalidInput

Method = Literal["least squares", "linear programming"]
ERRORS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
"""alpha / sqrt(n)."""
PROGRAMMED = 150
"""How many people the linear programme is tried on: its time grows with about the cube."""
CURATED = 400


def reconstruct(
    subsets: ArrayLike, answers: ArrayLike, method: Method = "least squares", error: float = 0.0
) -> NDArray[np.bool_]:
    """Everybody's secret bit, from noisy counts of secret holders in many subsets.

    subsets: a row for each answer and a column for each person, 1 where she is in it. error: the standard
    deviation of the answers, where the attacker knows it.

    Least squares is the best linear estimate: with secrets of mean 1/2 and variance 1/4 it minimises
    |subsets x - answers|^2 + 4 error^2 |x - 1/2|^2. Linear programming minimises the largest error among x
    in [0, 1]^n, as in the theorem. Both round at 1/2.

    >>> subsets = [[1, 1, 0], [0, 1, 1], [1, 0, 1]]
    >>> reconstruct(subsets, [1.2, 0.9, 2.1]).tolist()
    [True, False, True]
    >>> reconstruct(subsets, [1.2, 0.9, 2.1], "linear programming").tolist()
    [True, False, True]
    """
    # Whole numbers up to 2^24 are exact in float32, where a product of matrices takes half the time.
    design = np.asarray(subsets, dtype=np.float32)
    counts = np.asarray(answers, dtype=np.float64)
    if design.ndim != 2 or counts.shape != design.shape[:1] or design.size == 0:
        raise InvalidInput("Subsets must be a table with a row for each answer and a column for each person.")
    if not (np.isfinite(counts).all() and (design * design == design).all()):
        raise InvalidInput("Subsets must hold 0 and 1, and answers finite numbers; leave out refused ones.")
    if not 0 <= error < math.inf:
        raise InvalidInput(f"The error of the answers must be a number of at least 0, not {error!r}.")
    if method == "least squares":
        return _squares(design, counts, error) > 0.5
    if method == "linear programming":
        return _programme(design, counts) > 0.5
    raise InvalidInput(f"The method is least squares or linear programming, not {method}.")


def _squares(design: NDArray[np.float32], answers: NDArray[np.float64], error: float) -> NDArray[np.float64]:
    gram = (design.T @ design).astype(np.float64)
    # With fewer subsets than people the system is singular; a tiny ridge picks the solution nearest to 1/2.
    gram[np.diag_indices_from(gram)] += max(4 * error**2, 1e-3)
    centred = answers - design.sum(axis=1, dtype=np.float64) / 2
    return np.asarray(0.5 + np.linalg.solve(gram, centred @ design), dtype=np.float64)


def _programme(design: NDArray[np.float32], answers: NDArray[np.float64]) -> NDArray[np.float64]:
    # Imported here: it is slow to load, and every other attack and the command line do without it.
    from scipy import optimize

    queries, people = design.shape
    slack = np.full((queries, 1), -1.0)
    sides = np.vstack([np.hstack([design, slack]), np.hstack([-design, slack])])
    solution = optimize.linprog(
        np.append(np.zeros(people), 1.0),
        A_ub=sides,
        b_ub=np.concatenate([answers, -answers]),
        bounds=[(0, 1)] * people + [(0, None)],
        method="highs",
    )
    assert solution.x is not None, "a slack wide enough always exists"
    return np.asarray(solution.x[:people], dtype=np.float64)


def random_subsets(people: int, queries: int, generator: np.random.Generator) -> NDArray[np.bool_]:
    """Subsets such that each person is in a random half of them."""
    half = np.arange(queries)[:, None] < (queries + 1) // 2
    return generator.permuted(np.broadcast_to(half, (queries, people)), axis=0)


def curated_sums(
    crowd: Crowd, subsets: NDArray[np.bool_], epsilon: float
) -> tuple[NDArray[np.float64], float, float]:
    """The curator's count of secret holders in each subset, bought with its whole budget; the error within
    which 95% of the answers lie; and the standard deviation of the noise.

    The subsets are a public table, joined to the private one: one question asks all of them. A person is
    counted in half of the subsets, which is her contribution, and noise covers it.
    """
    query, person = np.nonzero(subsets)
    rows = (len(subsets) + 1) // 2
    with Curator.from_tables(
        people=crowd.table.select(["person", "secret"]),
        subsets=pa.table({"subset": query, "person": person}),
        public=["subsets"],
        unit="person",
        bounds={"people.secret": (0, 1)},
        budget=(epsilon, 0.0),
    ) as curator:
        answer = curator.ask(
            "SELECT s.subset AS subset, COUNT(*) AS n FROM people p JOIN subsets s ON p.person = s.person "
            "WHERE p.secret = 1 GROUP BY s.subset",
            epsilon=epsilon,
            contribution=rows,
            groups=rows,
            rescale=False,
        )
        width = answer.price.halfwidths["n"]
    table = answer.to_arrow()
    table = table.filter(table["subset"].is_valid()).sort_by("subset")
    assert width is not None and table.num_rows == len(subsets)
    return table["n"].to_numpy().astype(np.float64), float(width), math.sqrt(2) * rows / epsilon


def reconstruction(
    table: Any = None,
    *,
    known: Sequence[str] = KNOWN,
    secret: str = SECRET,
    people: int = 1_000,
    queries: Sequence[float] = (1, 2, 4),
    errors: Sequence[float] = ERRORS,
    epsilons: Sequence[float] = (0.5, 1.0, 2.0, 4.0, 8.0),
    seed: int | None = None,
) -> Report:
    """Reconstruction against answers with bounded error, and against the curator's.

    table, known, secret, people: see `crowd.gather`. queries: how many subsets are asked about, as multiples
    of the number of people. errors: alpha / sqrt(n). epsilons: the curator's whole budget, each in its turn.
    A person without the secret is in no count, so the curator guarantees epsilon for every secret; for many
    secrets from one release, the bound on their share is that of `bounds`.
    """
    if not (queries and min(queries) > 0 and errors and min(errors) > 0 and all(e > 0 for e in epsilons)):
        raise InvalidInput("Queries, errors and epsilons must be positive numbers, and some of each given.")
    generator = np.random.default_rng(seed)
    crowd = gather(table, known=known, secret=secret, people=people, seed=seed)
    attempts: list[Attempt] = []
    for multiple in queries:
        subsets = random_subsets(crowd.table.num_rows, round(multiple * crowd.table.num_rows) or 1, generator)
        attempts += _bounded(crowd, subsets, f"least squares, {_times(multiple)} answers", errors, generator)
    fewer = gather(table, known=known, secret=secret, people=min(people, PROGRAMMED), seed=seed)
    multiple = max(queries)
    subsets = random_subsets(fewer.table.num_rows, round(multiple * fewer.table.num_rows) or 1, generator)
    name = f"linear programming, {_times(multiple)} answers, n = {fewer.table.num_rows}"
    attempts += _bounded(fewer, subsets, name, errors, generator, "linear programming")
    asked = gather(table, known=known, secret=secret, people=min(people, CURATED), seed=seed)
    size = asked.table.num_rows
    for epsilon in epsilons:
        subsets = random_subsets(size, size, generator)
        answers, width, deviation = curated_sums(asked, subsets, epsilon)
        bits = reconstruct(subsets, answers, error=deviation)
        attempts.append(
            Attempt(
                f"the curator, n answers, n = {size}",
                _rate(asked, bits),
                guessing=0.5,
                allowed=most_success(epsilon),
                x=width / math.sqrt(size),
                note=f"The whole budget is epsilon {epsilon:g}; 95% of answers are within {width:.0f}.",
            )
        )
    return Report(
        name="reconstruction",
        title=f"Reconstruction: everybody's secret from sums over subsets, n = {crowd.table.num_rows:,}",
        knows="The attacker knows who is in each subset, and no secret.",
        succeeds="A person's secret, which a fair coin decided, is found; the share of people is shown.",
        attempts=tuple(attempts),
        lesson="Answers with errors well under sqrt(n) give away almost everybody once there are a few times "
        "n of them. A budget makes the error grow with the number of answers.",
        axis="error of an answer / sqrt(n)",
        logarithmic=True,
        details={"people": crowd.table.num_rows, "targets": len(crowd.targets)},
    )


def _bounded(
    crowd: Crowd,
    subsets: NDArray[np.bool_],
    name: str,
    errors: Sequence[float],
    generator: np.random.Generator,
    method: Method = "least squares",
) -> list[Attempt]:
    """Attempts of the decoder against errors uniform between -alpha and alpha."""
    size = crowd.table.num_rows
    exact = subsets.astype(np.float64) @ crowd.table["secret"].to_numpy()
    attempts = []
    for relative in errors:
        alpha = relative * math.sqrt(size)
        answers = exact + generator.uniform(-alpha, alpha, len(exact))
        bits = reconstruct(subsets, answers, method, error=alpha / math.sqrt(3))
        attempts.append(Attempt(name, _rate(crowd, bits), guessing=0.5, x=relative))
    return attempts


def _times(multiple: float) -> str:
    return "n" if multiple == 1 else f"{multiple:g} n"


def _rate(crowd: Crowd, bits: NDArray[np.bool_]) -> Rate:
    return Rate(int((bits[crowd.targets] == crowd.bits).sum()), len(crowd.targets))
