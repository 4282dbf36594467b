"""Floating point: the last bits of textbook Laplace noise reveal the value it was added to.

The textbook draws u, a multiple of 2^-53 in (0, 1], and adds sign * scale * log(u) to the value. On paper any
output can come from any value. In float64 an output can come from a value only if some u hits it exactly, and
values that are close have almost disjoint sets of outputs (Mironov 2012, "On significance of the least
significant bits for differential privacy"): one output decides, however small the claimed epsilon. Noise on
integers, or on a grid, has the same outputs for every value, and leaves the attacker what epsilon allows.

`attainable`, `decide` and `recover` know outputs and candidates, and nothing of where they came from.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from incrowd.adversary.attacks.averaging import repeated
from incrowd.adversary.attacks.bounds import most_success
from incrowd.adversary.attacks.outcome import Attempt, Rate, Report
from incrowd.adversary.data.crowd import KNOWN, SECRET, Crowd, gather
from incrowd.errors import InvalidInput
from incrowd.mechanisms import Laplace

EPSILONS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
BITS = 53
MOST = 128
"""With more candidate draws than this, an output counts as attainable: so many hit nearly every float."""

Support = Callable[[NDArray[np.float64], float, float], NDArray[np.bool_]]
"""Which outputs can come from a value, given the scale of the noise."""


def textbook_laplace(values: ArrayLike, scale: float, generator: np.random.Generator) -> NDArray[np.float64]:
    """Values plus Laplace noise computed in float64 as in textbooks, which is not private.

    >>> noisy = textbook_laplace([0.0, 1.0], 10.0, np.random.default_rng(1))
    >>> attainable(noisy[:1], 0.0, 10.0).tolist(), attainable(noisy[1:], 1.0, 10.0).tolist()
    ([True], [True])
    """
    exact = np.asarray(values, dtype=np.float64)
    draws = generator.integers(1, 2**BITS, size=exact.shape, endpoint=True)
    signs = generator.choice((-1.0, 1.0), size=exact.shape)
    noisy = [
        _output(value, sign, scale, draw)
        for value, sign, draw in zip(exact.flat, signs.flat, draws.ravel().tolist(), strict=True)
    ]
    return np.array(noisy).reshape(exact.shape)


def _output(value: float, sign: float, scale: float, draw: int) -> float:
    # The logarithm of the C library, of which NumPy's own differs in the last bit on some machines.
    return float(value + sign * scale * math.log(float(draw) * 2.0**-BITS))


def attainable(outputs: ArrayLike, value: float, scale: float) -> NDArray[np.bool_]:
    """Which outputs textbook noise of this scale can produce from this value.

    The draws that could have made an output lie around exp(-|output - value| / scale), within the rounding of
    the output; each is tried.
    """
    seen = np.asarray(outputs, dtype=np.float64)
    if not (0 < scale < math.inf and math.isfinite(value) and np.isfinite(seen).all()):
        raise InvalidInput("Outputs, values and the scale must be finite numbers, and the scale positive.")
    hit = [_hit(float(output), float(value), float(scale)) for output in seen.flat]
    return np.array(hit, dtype=np.bool_).reshape(seen.shape)


def _hit(output: float, value: float, scale: float) -> bool:
    apart = output - value
    middle = math.exp(-abs(apart) / scale) * 2.0**BITS
    reach = middle * (math.ulp(output) + math.ulp(apart)) / scale + 3
    low, high = max(1, math.floor(middle - reach)), min(2**BITS, math.ceil(middle + reach))
    if high - low > MOST:
        return True
    sign = -1.0 if apart > 0 else 1.0
    return any(_output(value, sign, scale, draw) == output for draw in range(low, high + 1))


def everywhere(outputs: NDArray[np.float64], value: float, scale: float) -> NDArray[np.bool_]:
    """The support of noise on integers or on a grid: every output can come from every value."""
    del value, scale
    return np.ones(outputs.shape, dtype=np.bool_)


def decide(
    outputs: ArrayLike, candidates: Sequence[float], scale: float, support: Support = attainable
) -> NDArray[np.int64]:
    """For each output, the index of its likeliest candidate: the nearest one from which it can come, or the
    nearest of all if it can come from none.

    >>> decide([0.2, 0.9, 7.0], [0.0, 1.0], 10.0, everywhere).tolist()
    [0, 1, 1]
    """
    seen = np.asarray(outputs, dtype=np.float64)
    possible = np.array([support(seen, candidate, scale) for candidate in candidates])
    distance = np.array([abs(seen - candidate) for candidate in candidates])
    distance[~possible & possible.any(axis=0)] = np.inf
    return np.asarray(np.argmin(distance, axis=0), dtype=np.int64)


def recover(outputs: ArrayLike, candidates: Sequence[float], scale: float) -> float:
    """The value behind repeated textbook outputs: the candidate from which most of them can come; among
    several, the likeliest.

    >>> noisy = textbook_laplace([37.0] * 20, 100.0, np.random.default_rng(1))
    >>> recover(noisy, range(100), 100.0)
    37.0
    """
    seen = np.asarray(outputs, dtype=np.float64)
    if not len(candidates) or not seen.size:
        raise InvalidInput("There must be at least one output and one candidate.")

    def rank(candidate: float) -> tuple[int, float]:
        return int(attainable(seen, candidate, scale).sum()), -float(abs(seen - candidate).sum())

    return float(max(candidates, key=rank))


def floating_point(
    table: Any = None,
    *,
    known: Sequence[str] = KNOWN,
    secret: str = SECRET,
    epsilons: Sequence[float] = EPSILONS,
    people: int = 1_000,
    seed: int | None = None,
) -> Report:
    """Mironov's attack on textbook noise, on NumPy's, on ours and on the curator.

    table, known, secret, people: see `crowd.gather`. For each target, a count of the people who are she and
    have the secret, 1 or 0, is released once with noise for epsilon, and the attacker says which it was.
    """
    if not epsilons or not all(0 < epsilon < math.inf for epsilon in epsilons):
        raise InvalidInput("epsilons must be positive numbers, at least one.")
    generator = np.random.default_rng(seed)
    crowd = gather(table, known=known, secret=secret, people=people, seed=seed)
    truth = crowd.bits.astype(np.int64)
    releases: list[tuple[str, Callable[[float], ArrayLike], bool]] = [
        ("textbook noise in float64", lambda b: textbook_laplace(truth, b, generator), True),
        ("numpy.random's laplace", lambda b: generator.laplace(truth, b), True),
        ("incrowd's Laplace on integers", lambda b: Laplace(epsilon=1 / b).release(truth), False),
        ("incrowd's Laplace on a fine grid", lambda b: _on_a_grid(truth, 1 / b), False),
        ("the curator", lambda b: repeated(crowd, 1 / b, 1)[0][0], False),
    ]
    attempts: list[Attempt] = []
    for name, release, broken in releases:
        for epsilon in epsilons:
            scale = 1 / epsilon
            said = decide(release(scale), (0.0, 1.0), scale, attainable if broken else everywhere)
            attempts.append(
                Attempt(
                    name,
                    Rate(int((said == truth).sum()), len(truth)),
                    guessing=0.5,
                    # 1 / (1 / epsilon) may differ from epsilon in the last place, and so does the claim.
                    allowed=most_success(max(epsilon, 1 / scale)),
                    x=epsilon,
                    note="It claims epsilon and does not keep it." if broken else "",
                    claimed=broken,
                )
            )
    return Report(
        name="floating-point",
        title="Floating point: one noisy count, was it 0 or 1?",
        knows="The attacker knows the scale of the noise and how it is drawn, and sees one output.",
        succeeds="She says rightly whether the count was 1 or 0, which a fair coin decided.",
        attempts=tuple(attempts),
        lesson="Laplace noise in floating point tells its secret in the last bits, whatever epsilon it "
        "claims. Draw noise on integers or on a grid.",
        axis="epsilon",
        logarithmic=True,
        details=_worked_example(crowd, generator),
    )


def _on_a_grid(truth: NDArray[np.int64], epsilon: float) -> NDArray[np.float64]:
    """Each person's count released by itself, as a real number."""
    noise = Laplace(epsilon=epsilon, sensitivity=1.0)
    return np.array([noise.release(float(bit)) for bit in truth])


def _worked_example(crowd: Crowd, generator: np.random.Generator) -> dict[str, Any]:
    """A hidden total, recovered exactly although the scale of the noise equals the number of people."""
    people, times = crowd.table.num_rows, 40
    hidden = int(crowd.table["secret"].to_numpy().sum())
    outputs = textbook_laplace([float(hidden)] * times, float(people), generator)
    return {
        "people with the secret": hidden,
        "outputs": times,
        "claimed epsilon of each": 1 / people,
        "mean of the outputs": round(float(outputs.mean()), 1),
        "recovered from their last bits": int(recover(outputs, range(people + 1), float(people))),
    }
